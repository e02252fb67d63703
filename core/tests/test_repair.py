"""The smallest change that passes: each proposal holds, none is smaller, and who else could help is named."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.backend import Descriptor, Language
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.decide import Ballot
from licet.edits import Asked, applied, intent_of
from licet.policy import PolicyStack
from licet.prepare import Prepared, prepare
from licet.repair import Attempt, explained, passes, repairs
from licet.report import Explanation
from licet.request import ExecutionRequest, Intent, Limits, Subject
from licet.select import Offer
from licet.testing.strategies import document_of

HELD = SandboxEnforcementContract(
    **{control: Enforcement(Level.enforced, "kernel", evidence=Evidence.probed) for control in Control}
)
FULL = Descriptor(
    "full", "1", HELD, Language("python"), frozenset({"read", "write", "network", "shell", "tool"})
)
SMALL = Descriptor("small", "1", HELD, Language("tiny", frozenset({"generator"}), frozenset(), stdin=False))
MONDAY = datetime(2026, 11, 30, 10, tzinfo=UTC)


def stack_of(*texts: str) -> PolicyStack:
    documents = [
        document_of(f"licet: 1\n{text}\n", name, "/p")
        for text, name in zip(texts, ("root", "bound1", "bound2"), strict=False)
    ]
    return PolicyStack(documents[0], tuple(documents[1:]))


def attempts(
    stack: PolicyStack,
    *backends: Descriptor,
    deciders: Callable[..., Sequence[Ballot]] | None = None,
) -> Attempt:
    offers = [Offer(backend) for backend in backends]

    def attempt(asked: Asked) -> Prepared:
        return prepare(
            asked.request,
            stack,
            offers,
            at=asked.at,
            directory="/",
            host_environment={},
            digest=lambda name, content: name,
            deciders=deciders,
        )

    return attempt


def explain(
    policy: str | Sequence[str],
    code: str = "1",
    *backends: Descriptor,
    at: datetime = MONDAY,
    deciders: Callable[..., Sequence[Ballot]] | None = None,
    **fields: Any,
) -> Explanation:
    stack = stack_of(*([policy] if isinstance(policy, str) else policy))
    attempt = attempts(stack, *(backends or (FULL,)), deciders=deciders)
    if "intents" in fields:
        fields["intents"] = tuple(map(intent_of, fields["intents"]))
    request = ExecutionRequest(code=code, **fields)
    return explained(request, attempt(Asked(request, at)), attempt)


def told(found: Explanation) -> list[str]:
    """What is proposed, in one line each."""
    return [f"{one.text} → {one.leads_to}" if one.leads_to else one.text for one in found.repair]


WEEKEND = """\
allow: [shell]
rules: [{id: weekend, deny: shell, during: {days: [mon], zone: UTC}, unless: {group: oncall}}]"""
ON_CALL = Subject(id="ann", groups=("dev",))


@pytest.mark.parametrize(
    ("policy", "fields", "proposed"),
    [
        ("", {}, []),
        (
            "",
            {"intents": ["read /p/a"]},
            ["do without `read /p/a` → allow", "have the owner of the policy add `allow: [read /p/a]`"],
        ),
        (
            "allow: [read ./a, read ./b/c]",
            {"intents": ["read /p"]},
            [
                "narrow `read /p` to `read /p/a` and `read /p/b/c` → allow",
                "do without `read /p` → allow",
                "have the owner of root:2 allow all of `read /p`",
            ],
        ),
        (
            "allow: [read ./a]\nask: [read ./b]",
            {"intents": ["read /p"]},
            [
                "narrow `read /p` to `read /p/a` → allow",
                "do without `read /p` → allow",
                "narrow `read /p` to `read /p/a` and `read /p/b` → ask",
                "have the owner of root:2 allow all of `read /p`",
            ],
        ),
        (
            "allow: [network a.example.com:443, network *.b.example.com:443]",
            {"intents": ["network any"]},
            [
                "narrow `network any` to `network a.example.com:443` → allow",
                "do without `network any` → allow",
                "have the owner of root:2 allow all of `network any`",
            ],
        ),
        ("deny: [run]", {}, ["have the owner of root:2 take `deny: run` back"]),
        (
            "ask: [read ./a]",
            {"intents": ["read /p/a"]},
            ["do without `read /p/a` → allow", "have `read /p/a` approved"],
        ),
        (
            "ask: [read ./a]\napproval: {count: 2, from: [finance], reviewer: human}",
            {"intents": ["read /p/a"]},
            [
                "do without `read /p/a` → allow",
                "have `read /p/a` approved by 2 human persons of finance",
            ],
        ),
        (
            "",
            {"intents": ["read /x", "write /x"]},
            [
                "do without `read /x` and `write /x` → allow",
                "have the owner of the policy add `allow: [read /x]`",
                "have the owner of the policy add `allow: [write /x]`",
            ],
        ),
        (
            "",
            {"code": "import os\nos.system('id')\n"},
            ["remove line 2 → allow", "have the owner of the policy add `allow: [shell]`"],
        ),
        (
            "allow: [read ./a]",
            {"code": "open('/p/a/x').read()", "intents": []},
            ["declare `read /p/a/x` too → allow", "remove line 1 → allow"],
        ),
        (
            "limits: {stdin: 1B}",
            {"stdin": "abc"},
            ["do without standard input → allow", "send less, or ask for a higher limit"],
        ),
        (
            WEEKEND,
            {"intents": ["shell"], "subject": ON_CALL},
            [
                "wait until Tue 2026-12-01 00:00 in UTC → allow",
                "do without `shell` → allow",
                "have somebody run it who is of the group `oncall` → allow",
                "have the owner of root:3 change the rule `weekend`",
            ],
        ),
        (
            "rules: [{id: freeze, deny: run, if: {before: '2027-01-01T00:00:00Z'}}]",
            {},
            [
                "wait until Fri 2027-01-01 00:00 UTC → allow",
                "have the owner of root:2 change the rule `freeze`",
            ],
        ),
        (
            "rules: [{id: outsiders, deny: run, if: {group: [contractors, guests]}}]",
            {"subject": Subject(id="bob", groups=("dev", "guests"))},
            [
                "have somebody run it who is not of `contractors` or `guests` → allow",
                "have the owner of root:2 change the rule `outsiders`",
            ],
        ),
        (
            "rules: [{id: slow, deny: run, if: request.limits.wall_time > 10}]",
            {},
            [
                "ask for the limit `wall_time` of 10 → allow",
                "have the owner of root:2 change the rule `slow`",
            ],
        ),
        (
            "allow: [read ./a]\nrules: [{id: many, ask: run, if: request.inputs.size() > 1}]",
            {"inputs": {"a": 1, "b": 2}, "intents": ["read /p/a"]},
            [
                "do without the input `a` → allow",
                "do without the input `b` → allow",
                "have `run` approved",
            ],
        ),
        (
            "rules: [{id: acme, deny: run, if: {tenant: acme}}]",
            {},
            [
                "say the tenant, if it is not `acme`: nobody did, so `acme` counts → allow",
                "have the owner of root:2 change the rule `acme`",
            ],
        ),
    ],
)
def test_what_is_proposed(policy: str, fields: dict[str, Any], proposed: list[str]) -> None:
    assert told(explain(policy, **fields)) == proposed


def test_bounds_are_named_and_the_administrator_is() -> None:
    found = explain(["allow: [read /]", "allow: [read ./a]\nname: org"], intents=["read /p/b"])
    assert told(found)[-1] == "have the owner of bound1 allow all of `read /p/b`"
    stack = stack_of("allow: [read /]", "deny: [read ./a]")
    stack = PolicyStack(stack.root, stack.bounds, managed=("bound1",))
    request = ExecutionRequest(code="1", intents=(Intent("read", "/p/a"),))
    attempt = attempts(stack, FULL)
    found = explained(request, attempt(Asked(request, MONDAY)), attempt)
    assert told(found)[-1] == "have the administrator of bound1:2 take `deny: read ./a` back"
    assert found.account is not None
    assert [one.role for one in found.account.documents] == ["root", "managed"]


def test_nobody_can_open_what_belongs_to_licet() -> None:
    stack = PolicyStack(stack_of("allow: [read /]").root, sealed=("/s",))
    request = ExecutionRequest(code="1", intents=(Intent("read", "/s/key"),))
    attempt = attempts(stack, FULL)
    found = explained(request, attempt(Asked(request, MONDAY)), attempt)
    assert told(found) == [
        "do without `read /s/key` → allow",
        "nobody can open this: `/s` belongs to licet itself and is never opened",
    ]


@pytest.mark.parametrize(
    ("backend", "fields", "proposed"),
    [
        (SMALL, {"code": "def f():\n    yield 1\n1"}, ["remove line 2 → allow"]),
        (SMALL, {"code": "import json\nimport re\n1"}, ["remove lines 1 to 2 → allow"]),
        (SMALL, {"code": "1", "stdin": "x"}, ["do without standard input → allow"]),
        (SMALL, {"code": "1", "intents": ["read /p"]}, ["do without `read /p` → allow"]),
    ],
)
def test_without_a_sandbox_the_request_gives_way(
    backend: Descriptor, fields: dict[str, Any], proposed: list[str]
) -> None:
    found = explain("allow: [read .]", *[fields.pop("code")], backend, **fields)
    assert found.exit_code == 5
    assert [line for line in told(found) if "→" in line] == proposed
    assert found.repair[-1].kind == "enable_backend"


def test_a_requirement_or_a_limit_of_the_request_can_be_what_no_backend_holds() -> None:
    weak = replace(HELD, memory_limit=Enforcement(Level.not_enforced))
    lame = Descriptor("lame", "1", weak, Language("python"))
    found = explain("", "1", lame, limits=Limits(memory=1 << 20))
    assert told(found)[0] == "ask for no `memory` of its own → allow"
    found = explain("", "1", lame, requirements={Control.memory_limit: Level.enforced})
    assert told(found)[0] == "do not require `memory_limit` → allow"


def test_narrowing_to_what_the_code_shows_may_need_less_of_a_sandbox() -> None:
    weak = replace(HELD, network_filter=Enforcement(Level.not_enforced))
    lame = Descriptor("lame", "1", weak, Language("python"), frozenset({"read", "network"}))
    found = explain("allow: [read ./a, network a.example.com:443]", "open('/p/a/x')", lame)
    assert found.exit_code == 5
    assert told(found)[0] == "declare that it needs `read /p/a/x` alone → allow"


def test_a_further_decider_is_asked_about_each_change() -> None:
    def no_shell(request: Any, decision: Any) -> list[Ballot]:
        shell = any(intent.action == "shell" for intent in request.intents or ())
        return [Ballot("opa", "deny" if shell else None, "no shells today")]

    found = explain("allow: [shell]", intents=["shell"], deciders=no_shell)
    assert told(found) == [
        "do without `shell` → allow",
        "ask whoever runs the decider `opa`: no shells today",
    ]


def test_past_the_bound_one_irreducible_change_is_proposed() -> None:
    stack = stack_of("allow: [read ./a]")
    request = ExecutionRequest(code="1", intents=tuple(Intent("read", f"/x{n}") for n in range(9)))
    attempt = attempts(stack, FULL)
    [found] = repairs(Asked(request, MONDAY), attempt(Asked(request, MONDAY)), attempt, most=16)
    assert (len(found.edits), found.leads_to) == (9, "allow")
    rules = "\n".join(f"  - {{id: r{n}, deny: run, if: 'size(request.inputs) > {n}'}}" for n in range(4))
    stack = stack_of(f"rules:\n{rules}")
    request = ExecutionRequest(code="1", inputs={f"a{n}": n for n in range(6)}, limits=Limits(memory=1 << 20))
    attempt = attempts(stack, FULL)
    [found] = repairs(Asked(request, MONDAY), attempt(Asked(request, MONDAY)), attempt, most=30)
    assert (len(found.edits), found.leads_to) == (6, "allow")


@pytest.mark.parametrize(
    ("code", "decisions"),
    [
        ("import os\n" + "os.system('id')\n" * 40, 40),  # the screen names the first line of what is alike
        ("import os\n" + "".join(f"open('/x{n}')\n" for n in range(40)), 1),
    ],
)
def test_many_lines_are_found_in_few_decisions(code: str, decisions: int) -> None:
    request = ExecutionRequest(code=code)
    attempt, tried = attempts(stack_of(""), FULL), []

    def counting(asked: Asked) -> Prepared:
        tried.append(asked)
        return attempt(asked)

    [found] = repairs(Asked(request, MONDAY), attempt(Asked(request, MONDAY)), counting)
    assert found.text == "remove lines 2 to 41"
    assert len(tried) == decisions


TARGETS = ("/p/a", "/p/a/x", "/p/b", "/p")
ENTRIES = [f"{action} {target}" for action in ("read", "write") for target in TARGETS]
SOME = st.lists(st.sampled_from([*ENTRIES, "shell"]), max_size=3, unique=True)
CONDITIONS = [
    "if: {tenant: acme}",
    "during: {days: [mon], zone: UTC}",
    "during: {hours: '09:00-12:00', zone: UTC}",
    "unless: {group: oncall}",
]
RULES = st.lists(
    st.tuples(
        st.sampled_from(["deny", "ask"]),
        st.sampled_from([*ENTRIES, "shell", "run"]),
        st.sampled_from(CONDITIONS),
    ),
    max_size=2,
)


@st.composite
def policies(draw: st.DrawFn) -> PolicyStack:
    lines = [f"{effect}: {draw(SOME)}" for effect in ("allow", "ask", "deny")]
    rules = [
        f"{{id: r{n}, {effect}: {entry}, {condition}}}"
        for n, (effect, entry, condition) in enumerate(draw(RULES))
    ]
    return stack_of("\n".join([*lines, f"rules: [{', '.join(rules)}]"]))


REQUESTS = st.lists(st.sampled_from([*ENTRIES, "shell"]), max_size=3, unique=True).map(
    lambda texts: ExecutionRequest(code="1", intents=tuple(map(intent_of, texts)))
)


@settings(max_examples=150, deadline=None)
@given(stack=policies(), request_=REQUESTS)
def test_each_repair_leads_to_what_it_says(stack: PolicyStack, request_: ExecutionRequest) -> None:
    attempt, asked = attempts(stack, FULL), Asked(request_, MONDAY)
    before = passes(attempt(asked))
    for repair in repairs(asked, attempt(asked), attempt):
        after = attempt(applied(asked, repair.edits))
        assert passes(after) == repair.leads_to
        assert (before, repair.leads_to) in {("deny", "ask"), ("deny", "allow"), ("ask", "allow")}
        for fewer in itertools.combinations(repair.edits, len(repair.edits) - 1):
            worse = passes(attempt(applied(asked, fewer)))
            assert worse != repair.leads_to and worse != "allow"


def smallest(attempt: Attempt, asked: Asked, good: set[str]) -> int | None:
    """By trying everything: each intent kept, dropped or replaced by parts, now or at another hour."""
    declared = list(asked.request.intents or ())
    choices = []
    for intent in declared:
        inner = [t for t in TARGETS if intent.target and t != intent.target and t.startswith(intent.target)]
        sets = (c for size in range(1, len(inner) + 1) for c in itertools.combinations(inner, size))
        parts = [tuple(Intent(intent.action, target) for target in targets) for targets in sets]
        choices.append([(0, (intent,)), (1, ()), *((1, part) for part in parts)])
    hours = [(0, asked.at), *((1, asked.at + timedelta(hours=n)) for n in (2, 14, 23, 26))]
    candidates = sorted(
        (
            (cost + sum(c for c, _ in chosen), number, at, chosen)
            for number, chosen in enumerate(itertools.product(*choices))
            for cost, at in hours
        ),
        key=lambda one: one[:2],
    )
    for cost, _, at, chosen in candidates:
        intents = tuple(dict.fromkeys(intent for _, kept in chosen for intent in kept))
        request = asked.request.model_copy(update={"intents": intents})
        if passes(attempt(Asked(request, at))) in good:
            return cost
    return None


@settings(max_examples=60, deadline=None)
@given(stack=policies(), request_=REQUESTS)
def test_no_smaller_change_passes(stack: PolicyStack, request_: ExecutionRequest) -> None:
    attempt, asked = attempts(stack, FULL), Asked(request_, MONDAY)
    before = passes(attempt(asked))
    found = repairs(asked, attempt(asked), attempt)
    if before == "allow":
        return
    assert min((len(one.edits) for one in found if one.leads_to == "allow"), default=None) == smallest(
        attempt, asked, {"allow"}
    )
    if before == "deny":
        assert min((len(one.edits) for one in found), default=None) == smallest(
            attempt, asked, {"allow", "ask"}
        )
