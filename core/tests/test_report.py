"""What `explain` says: the findings again, and what would help."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pytest
from licet.backend import Descriptor, Language
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.decide import Verdict, decide
from licet.policy import PolicyStack
from licet.report import Explanation, Repair, explain, repairs_by_the_owner
from licet.request import CodeNeeds, Intent, NormalizedRequest, ScreenReport, Violation
from licet.rules import By
from licet.screen import VERSION as SCREEN_VERSION
from licet.select import Offer, select

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]
Explained = Callable[..., Explanation]

ALL_HELD = SandboxEnforcementContract(
    **{control: Enforcement(Level.enforced, "kernel", evidence=Evidence.probed) for control in Control}
)
ABLE = Descriptor("able", "1", ALL_HELD, Language("python"), frozenset({"read", "tool"}))
SMALL = Descriptor("small", "1", ALL_HELD, Language("tiny", frozenset({"class"}), frozenset(), stdin=False))
READ = Intent("read", "/p/a")
SHELL = Violation("shell", 3, "it starts a program", "leave the program out")
AT = datetime(2026, 11, 30, 10, tzinfo=UTC)
BROKEN = Violation("syntax_error", 2, "invalid syntax", "")


@pytest.fixture
def explained(normalized: Normalized, stack_of: StackOf) -> Explained:
    def make(
        policy: str = "",
        *descriptors: Descriptor,
        report: ScreenReport | None = None,
        syntax_error: Violation | None = None,
        **fields: Any,
    ) -> Explanation:
        stack, seen = stack_of(policy), report or ScreenReport()
        request = normalized(stack=stack, **fields)
        decision = decide(request, stack, seen)
        offers = [Offer(descriptor) for descriptor in descriptors]
        selection = select(request, decision, seen.needs, stack, offers)
        return explain(decision, selection, stack, syntax_error, at=AT)

    return make


@pytest.mark.parametrize(
    ("policy", "descriptors", "exit_code"),
    [
        ("", [ABLE], 0),
        ("deny: [run]", [ABLE], 3),
        ("deny: [run]", [], 3),
        ("ask: [run]", [ABLE], 4),
        ("ask: [run]", [], 5),
        ("", [], 5),
    ],
)
def test_exit_codes(explained: Explained, policy: str, descriptors: list[Descriptor], exit_code: int) -> None:
    assert explained(policy, *descriptors).exit_code == exit_code


def test_the_form_of_json(explained: Explained) -> None:
    seen = Intent("shell", None, "inferred", 3, excerpt='os.system("id")')
    found = explained(
        "", ABLE, report=ScreenReport(violations=(SHELL,), intents=(seen,)), syntax_error=BROKEN
    )
    told = json.loads(json.dumps(found.as_json()))
    untried = {"edits": [], "leads_to": None}
    assert told == {
        "effect": "deny",
        "verdicts": [
            {
                "intent": {
                    "action": "run",
                    "target": None,
                    "source": "declared",
                    "line": None,
                    "when": "start",
                    "excerpt": None,
                },
                "effect": "allow",
                "by": [],
                "reason": "running is allowed unless something asks or denies",
                "demands": [],
            },
            {
                "intent": {
                    "action": "shell",
                    "target": None,
                    "source": "inferred",
                    "line": 3,
                    "when": "start",
                    "excerpt": 'os.system("id")',
                },
                "effect": "deny",
                "by": [{"document": "root", "line": 0, "rule": "no `shell`"}],
                "reason": "nothing allows it",
                "demands": [],
            },
        ],
        "violations": [
            {"code": "shell", "line": 3, "message": "it starts a program", "advice": "leave the program out"}
        ],
        "selection": told["selection"],
        "repair": [
            {"kind": "change_code", "text": "leave the program out", "line": 3, **untried},
            {"kind": "remove_line", "text": "remove line 3", "line": 3, **untried},
            {
                "kind": "allow",
                "text": "have the owner of the policy add `allow: [shell]`",
                "line": 3,
                **untried,
            },
        ],
        "policy": f"root@{found.policy_digest.removeprefix('sha256:')[:4]}",
        "policy_digest": found.policy_digest,
        "policy_stale": None,
        "licet": version("licet"),
        "screen": SCREEN_VERSION,
        "plan_digest": told["plan_digest"],
        "syntax_error": {"code": "syntax_error", "line": 2, "message": "invalid syntax", "advice": ""},
        "at": "2026-11-30T10:00:00+00:00",
        "documents": [{"file": "root", "name": None, "role": "root", "sha256": None}],
        "rules": [],
        "demands": [],
        "rehearsals": [],
        "ballots": [],
        "enforced": [],
    }


def test_what_was_chosen_is_told_with_its_digest(explained: Explained) -> None:
    found = explained("", ABLE, SMALL, report=ScreenReport(needs=CodeNeeds({"class": 4})))
    told = found.as_json()
    assert found.selection.chosen is not None
    assert told["plan_digest"] == found.selection.chosen.plan_digest
    proved = {"missing": (), "refuted": (), "evidence": "probed"}
    assert told["selection"] == {
        "backend": "able",
        "candidates": [
            {"name": "able", "satisfies": True, "blockers": (), **proved},
            {
                **proved,
                "name": "small",
                "satisfies": False,
                "blockers": (
                    {
                        "what": "syntax",
                        "asked": "class",
                        "offered": "tiny lacks it",
                        "because": "line 4 uses it",
                    },
                ),
            },
        ],
    }


@pytest.mark.parametrize(
    ("policy", "fields", "repairs"),
    [
        ("", {}, []),
        (
            "",
            {"intents": (READ,)},
            [
                Repair("drop_intent", "do without `read /p/a`"),
                Repair("allow", "have the owner of the policy add `allow: [read /p/a]`"),
            ],
        ),
        ("deny: [read ./a]", {"intents": (READ,)}, [Repair("drop_intent", "do without `read /p/a`")]),
        ("ask: [read ./a]", {"intents": (READ,)}, [Repair("get_approval", "have `read /p/a` approved")]),
        ("deny: [run]", {}, []),
        (
            "",
            {"report": ScreenReport(intents=(Intent("read", None, "inferred", 7),) * 2)},
            [
                Repair("remove_line", "remove line 7", 7),
                Repair("allow", "have the owner of the policy add `allow: [read …]`", 7),
            ],
        ),
        (
            "",
            {"report": ScreenReport(violations=(SHELL,))},
            [Repair("change_code", "leave the program out", 3)],
        ),
    ],
)
def test_advice_follows_the_verdicts(
    explained: Explained, policy: str, fields: dict[str, Any], repairs: list[Repair]
) -> None:
    assert list(explained(policy, ABLE, **fields).repair) == repairs


def test_without_a_backend_it_says_what_the_code_could_do_without(explained: Explained) -> None:
    needs = CodeNeeds({"class": 2}, {"os": 1}, stdin=True)
    found = explained("", SMALL, report=ScreenReport(needs=needs))
    assert [(repair.kind, repair.text) for repair in found.repair[:-1]] == [
        ("change_code", "do without the module `os` (line 1 imports it)"),
        ("change_code", "do without the stdin `standard input` (the code or the request uses it)"),
        ("change_code", "do without the syntax `class` (line 2 uses it)"),
    ]
    assert found.repair[-1].kind == "enable_backend"


def test_a_denied_request_is_told_nothing_of_backends(explained: Explained) -> None:
    assert explained("deny: [run]", SMALL, report=ScreenReport(needs=CodeNeeds({"class": 2}))).repair == ()


@pytest.mark.parametrize(
    ("root", "text"),
    [
        ("/p/licet.yaml", "have the owner of the policy add `allow: [shell]`"),
        (
            "licet:compute",
            "start a policy from licet:compute (`licet policy init`) and add `allow: [shell]`",
        ),
    ],
)
def test_nobody_is_sent_to_the_owner_of_a_pack(root: str, text: str) -> None:
    by = (By(root, 0, "no `shell`"), By("licet:data", 0, "no `shell`"))
    verdict = Verdict(Intent("shell", None, "inferred", 3), "deny", by, "nothing allows it")
    assert list(repairs_by_the_owner(verdict)) == [Repair("allow", text, 3)]
