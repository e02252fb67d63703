"""What somebody is asked: whole, canonical, bound, and with what may deceive in it named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest
from licet import values
from licet.approvals.deceptions import Kind
from licet.approvals.forms import ApprovalRequest
from licet.approvals.showing import of_call, of_run
from licet.approvals.spelling import exact
from licet.calls import WaitingCall
from licet.contract import Enforcement, Level
from licet.decide import Ballot, tightened
from licet.plain import canonical
from licet.policy.parts import DEFAULT_APPROVAL, Approval
from licet.prepare import plan_of
from licet.request import Intent, Subject
from licet.tooling import tool
from matters import (
    ASKED,
    CALLS,
    EVERY,
    HELD,
    about_call,
    about_run,
    approved,
    digest,
    offer,
    prepared,
    refund,
)


def differing(one: ApprovalRequest, other: ApprovalRequest) -> set[str]:
    """The names of the fields that are not the same in both, or not in both."""
    return {name for name, _ in one.fields.items() ^ other.fields.items()}


def test_a_run_is_shown_whole() -> None:
    code = "total = 1\nprint(total)\n"
    request = about_run(
        code,
        "name: acme\nask: [read ./data]\nallow: [network api.example.com:443]\nenv: {LANG: C.UTF-8}\n",
        backend=offer(
            claims={**EVERY, "privilege_drop": replace(HELD, level=Level.partial, gaps=("forks",))}
        ),
        inputs={"b": [1, 2.5], "a": "é"},
        stdin=b"in",
        intents=(Intent("read", "/p/data"), Intent("network", "api.example.com:443")),
        metadata={"ticket": "T1"},
        subject=Subject(id="ann", on_behalf_of="bob", properties={"plan": "pro", "rate": 1.5}),
    )
    document = dict(request.document)
    sandbox = dict(document.pop("sandbox"))
    enforces = sandbox.pop("enforces")
    limits = document.pop("limits")
    policy = document.pop("policy")
    assert document == {
        "licet": 1,
        "id": "APPROVAL",
        "run_id": "RUN",
        "kind": "run",
        "digest": request.digest,
        "asked_at": "2026-03-07T12:00:00Z",
        "expires_at": "2026-03-07T12:30:00Z",
        "requester": {
            "type": "user",
            "id": "ann",
            "groups": [],
            "properties": {"plan": "pro", "rate": {"$type": "float", "value": "1.5"}},
            "on_behalf_of": "bob",
            "asserted_by": "caller",
        },
        "asks": [
            {
                "intent": {
                    "action": "read",
                    "target": "/p/data",
                    "source": "declared",
                    "line": None,
                    "when": "start",
                },
                "by": [{"document": "root", "line": 3, "rule": "ask: read ./data"}],
                "reason": "root:3 asks about it",
            }
        ],
        "also": document["also"],
        "intents": ["network api.example.com:443", "read /p/data"],
        "later": [],
        "ballots": [],
        "requirements": [
            {"count": 1, "from": [], "reviewer": "any", "expires": "1800.0", "unattended": "deny"}
        ],
        "code": code,
        "code_bytes": 23,
        "code_lines": 2,
        "previous": None,
        "inputs": {"a": '"\\u00e9"', "b": "[1,2.5]"},
        "stdin": "in",
        "files": [],
        "workdir": "/",
        "environment": {"LANG": "C.UTF-8"},
        "tools": {},
        "learn": False,
        "surroundings": {"clock": "real", "random": "real"},
        "call": None,
        "connection": None,
        "metadata": {"ticket": "T1"},
        "suspicious": [],
    }
    assert [one["intent"]["action"] for one in document["also"]] == ["run", "network"]
    assert policy == {"name": policy["name"], "digest": request.policy_digest}
    assert (limits["wall_time"], limits["recursion"]) == ("60.0", 1000)
    assert (sandbox["backend"], sandbox["version"], sandbox["not_enforced"]) == ("strong", "1.0", [])
    assert sandbox["opened"]["read"] == ["/p/data"]
    assert (enforces["privilege_drop"], enforces["network_deny"]) == ("partial/probed", "enforced/probed")
    assert sandbox["gaps"] == {"privilege_drop": ["forks"]}


def test_the_document_is_plain_json_in_its_one_spelling() -> None:
    request = about_run(inputs={"x": 0.1}, stdin=b"\xff", metadata={"é": "\ud800"})
    spelled = canonical(request.document)
    assert json.loads(spelled) == request.document
    assert request.shown == digest("shown", spelled)
    assert request.document["stdin"] == {"$type": "bytes", "base64": "/w=="}
    assert request.document["metadata"] == {"\\xe9": {"$type": "str", "base64": "7aCA"}}


def test_nothing_is_shortened() -> None:
    code = "x = 1\n" * 50_000
    request = about_run(code, inputs={"x": "y" * 200_000}, metadata={"m": "z" * 60_000})
    assert request.document["code"] == code
    assert request.document["code_lines"] == 50_000
    assert len(request.document["inputs"]["x"]) == 200_002
    assert len(request.document["metadata"]["m"]) == 60_000


def test_what_is_not_enforced_is_named() -> None:
    request = about_run(
        backend=offer(
            claims={**EVERY, "privilege_drop": Enforcement(), "syscall_filter": Enforcement(Level.planned)}
        )
    )
    assert request.document["sandbox"]["not_enforced"] == ["privilege_drop", "syscall_filter"]


def test_a_call_is_shown_with_its_arguments_as_they_are() -> None:
    request = about_call("A1", amount := Decimal("250"), code="refund('A1', x)\n")
    assert request.kind == "call"
    assert request.document["call"] == {
        "tool": "refund",
        "line": 1,
        "sequence": 1,
        "arguments": {"args": ['"A1"', values.exactly(amount)], "kwargs": {}},
        "bound": {"order": '"A1"', "amount": '{"$type":"decimal","value":"250"}'},
        "signature": "refund(order: str, amount: Any)",
        "touches": [],
        "idempotent": False,
    }
    assert [one["intent"]["target"] for one in request.document["asks"]] == ["refund"]
    assert request.document["code"] == "refund('A1', x)\n"
    assert request.requirements == (
        Approval.model_validate(
            {"count": 2, "from": ("finance",), "reviewer": "human", "expires": 86400.0, "unattended": "deny"}
        ),
    )
    assert (request.expires, request.document["expires_at"]) == (86400.0, "2026-03-08T12:00:00Z")


def test_an_argument_has_one_digest_however_it_was_passed() -> None:
    by_place = about_call("A1", Decimal("5"))
    by_name = about_call(called={"amount": Decimal("5"), "order": "A1"})
    assert by_place.fields == by_name.fields
    assert (by_place.shown, by_place.digest) != (by_name.shown, by_name.digest)
    assert differing(by_place, about_call("A1", Decimal("6"))) == {"arg:amount"}


def test_arguments_without_a_signature_go_by_place_and_no_name_hides_one() -> None:
    class Unknown:
        __signature__ = "none"

        def __call__(self, *args: Any, **kwargs: Any) -> None: ...

    def asked(*args: Any, **kwargs: Any) -> ApprovalRequest:
        return about_call(
            *args, called=kwargs, tools={"odd": Unknown()}, policy="ask: [tool odd]", code="odd()"
        )

    request = asked(1, 2, **{"0": 3, "name": 4})
    assert request.document["call"]["bound"] is None
    assert {one for one in request.fields if one.startswith("arg:")} == {
        "arg:0",
        "arg:1",
        "arg:'0'",
        "arg:name",
    }
    assert differing(request, asked(7, 2, **{"0": 3, "name": 4})) == {"arg:0"}
    assert differing(request, asked(1, 2, **{"0": 7, "name": 4})) == {"arg:'0'"}


def test_what_else_is_asked_or_decided_later_is_told_apart() -> None:
    policy = "ask: [run, tool refund]\nallow: [tool find]\n"
    request = about_run("1\n", policy, tools={"find": lambda: 1, "refund": refund}, intents=None)
    assert [one["intent"]["action"] for one in request.document["asks"]] == ["run"]
    declared = about_run(
        "1\n", policy, tools={"refund": refund}, intents=(Intent("tool", "refund"),)
    ).document
    assert [(one["intent"]["target"], one["effect"]) for one in declared["later"]] == [("refund", "ask")]
    assert [one["intent"]["action"] for one in declared["asks"]] == ["run"]
    assert declared["tools"]["refund"]["signature"] == "refund(order: str, amount: Any)"


RUNS: list[tuple[str, Mapping[str, Any], set[str]]] = [
    ("code", {"code": "2\n"}, {"code"}),
    ("stdin", {"stdin": b"x"}, {"stdin"}),
    ("an input", {"inputs": {"a": 2, "b": 1}}, {"input:a"}),
    ("an input more", {"inputs": {"a": 1, "b": 1, "c": 1}}, {"input:c"}),
    ("a limit", {"limits": {"wall_time": 1}}, {"limits"}),
    ("the directory", {"directory": "/tmp"}, {"workdir"}),
    ("a file", {"files": {"x.csv": "/p/data/x"}}, {"files", "intents", "opened"}),
    ("intents", {"intents": ()}, {"intents"}),
    ("a backend", {"backend": offer("2.0")}, {"backend"}),
    ("a contract", {"backend": offer(claims={**EVERY, "privilege_drop": Enforcement()})}, {"contract"}),
    ("a tool", {"tools": {"find": lambda: 1}}, {"tools", "opened"}),
    ("the environment", {"host": {"LANG": "x"}}, {"environment"}),
]


@pytest.mark.parametrize(("what", "change", "fields"), RUNS, ids=[one[0] for one in RUNS])
def test_each_part_of_a_run_has_a_field(what: str, change: Mapping[str, Any], fields: set[str]) -> None:
    policy = "ask: [run, read ./data]\nallow: [tool find]\nenv: {LANG: pass}\n"
    base: dict[str, Any] = {"inputs": {"a": 1, "b": 1}, "host": {"LANG": "C"}}
    before = about_run(policy=policy, **base)
    after = about_run(policy=policy, **{**base, **change})
    assert differing(before, after) == fields
    assert before.shown != after.shown


def test_the_policy_is_bound_and_no_field() -> None:
    one, other = about_run(policy="ask: [run]"), about_run(policy="ask: [run]\ndeny: [shell]")
    assert one.fields == other.fields
    assert one.policy_digest != other.policy_digest
    assert (one.shown, one.digest) != (other.shown, other.digest)
    again = about_run(policy="ask: [run]")
    assert (one.shown, one.digest, one.fields) == (again.shown, again.digest, again.fields)


def test_what_a_tool_touches_is_part_of_the_call() -> None:
    @tool(touches=["read /p/x"])
    def refund(order: str, amount: Any) -> str:
        return order

    one, other = about_call("A", 1), about_call("A", 1, tools=refund)
    assert differing(one, other) == {"tool"}
    assert other.document["call"]["touches"] == ["read /p/x"]


def test_equal_demands_are_one_and_the_earliest_end_counts() -> None:
    rules = "".join(
        f"  - {{id: r{n}, ask: run, approval: {{expires: {how}}}}}\n"
        for n, how in enumerate(("2h", "1h", "1h"))
    )
    request = about_run(policy=f"ask: [run]\nrules:\n{rules}")
    assert [one.expires for one in request.requirements] == [1800.0, 7200.0, 3600.0]
    assert request.expires == 1800.0
    forever = about_run(policy="ask: [run]\napproval: {expires: 100000000d}\n")
    assert forever.document["expires_at"] == "9999-12-31T23:59:59Z"


def test_the_last_that_was_approved_is_compared_with() -> None:
    before = about_run("a = 1\nb = 2\n", inputs={"x": 1})
    now = about_run("a = 1\nb = 3\n", inputs={"x": 1}, previous=approved(before, "bob", "eve"))
    assert now.document["previous"] == {
        "approval": "APPROVAL",
        "answered_at": "2026-03-07T14:00:00Z",
        "by": ["bob", "eve"],
        "diff": "--- code approved before\n+++ code now\n@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+b = 3\n ",
    }
    same = about_run("a = 1\nb = 2\n", inputs={"x": 1}, previous=approved(before, "bob"))
    assert same.document["previous"]["diff"] == ""


def test_a_change_of_inputs_or_arguments_is_in_the_difference_as_well() -> None:
    before, after = about_run(inputs={"x": 1}), {"inputs": {"x": 2}}
    diff = about_run(previous=approved(before, "bob"), **after).document["previous"]["diff"]
    assert diff.splitlines()[-2:] == ['-x = "1"', '+x = "2"']
    called = about_call("A1", 5)
    diff = about_call("A1", 6, previous=approved(called, "bob")).document["previous"]["diff"]
    assert (
        '-arguments.args[1] = "5"\n-bound.amount = "5"\n+arguments.args[1] = "6"\n+bound.amount = "6"' in diff
    )


def test_what_may_deceive_is_named_wherever_it_stands() -> None:
    request = about_run(
        "a = 1\nb = '\u202e'\np\u0430y = 1\nc = '\u200b\u200b'\nd = 'x\x1b'\n\uff45val(1)\n",
        inputs={"order": {"deep": ["x\u2066"]}},
        stdin="\x07",
        metadata={"note": "safe\u200d"},
        subject=Subject(id="ann\u202e"),
    )
    assert [tuple(one.values()) for one in request.document["suspicious"]] == [
        ("code", 2, "bidi", "U+202E", 1),
        ("code", 3, "homoglyph-mixed-script", "U+0430", 1),
        ("code", 4, "zero-width", "U+200B", 2),
        ("code", 5, "control", "U+001B", 1),
        ("code", 6, "normalized", "U+FF45", 1),
        ("stdin", None, "control", "U+0007", 1),
        ("input order", None, "bidi", "U+2066", 1),
        ("metadata", None, "zero-width", "U+200D", 1),
        ("requester", None, "bidi", "U+202E", 1),
    ]
    plain = about_run("prix = 'é'  # Привет, 世界\n", inputs={"order": ["naïve"]}, metadata={"note": "ok"})
    assert plain.document["suspicious"] == []


def test_arguments_are_looked_through() -> None:
    request = about_call("A\u202e1", 5)
    assert [tuple(one.values()) for one in request.document["suspicious"]] == [
        ("argument order", None, "bidi", "U+202E", 1)
    ]


def test_a_call_that_can_not_be_made_is_not_asked_about() -> None:
    made = prepared("1\n", CALLS, tools={"refund": refund})
    assert made.selection.chosen is not None
    plan = plan_of(made, made.selection.chosen, "RUN")
    for waiting, message in (
        (WaitingCall(1, "gone", "d", "[[], {}]"), "there is no tool `gone`"),
        (WaitingCall(1, "refund", "d", "[[1, 2, 3], {}]"), "takes 2 positional arguments, and 3 were given"),
    ):
        with pytest.raises(ValueError, match=message):
            of_call(made, plan, waiting, made.decision, "APPROVAL", ASKED, digest)


def test_without_a_backend_there_is_nothing_to_approve() -> None:
    made = prepared(backend=offer(claims={}))
    assert made.selection.chosen is None
    with pytest.raises(ValueError, match="no backend was chosen, so there is nothing to approve"):
        of_run(made, "RUN", "APPROVAL", ASKED, digest)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\x85", "\\x85"),
        ("\ud800", "\\ud800"),
        ({"é": 1}, {"\\xe9": 1}),
        ({"\ud83d\ude00": 1}, {"😀": 1}),
        (b"\xff", "\\xff"),
        ({"\\": 1}, {"\\\\": 1}),
    ],
)
def test_what_differs_is_held_differently(one: Any, other: Any) -> None:
    assert canonical(exact(one)) != canonical(exact(other))


def test_the_page_names_every_field_and_every_kind_of_suspicion() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "approval-document.md").read_text("utf-8")
    fields, kinds = (
        [
            name
            for row in re.findall(r"^\| (`[^|]+) \|", part, re.MULTILINE)
            for name in row[1:-1].split("`, `")
        ]
        for part in page.split("## What is suspicious")
    )
    assert sorted(fields) == sorted(about_run().document) == sorted(about_call("A", 1).document)
    assert kinds == [*get_args(Kind)]


def test_what_other_deciders_ask_is_shown_and_demands_an_approval() -> None:
    made = prepared("1\n", "allow: [network api.example.com:443]")
    ballot = Ballot("watch\u202e", "ask", "looks odd", "sha256:1")
    asking = replace(made, decision=tightened(made.decision, [ballot]))
    request = of_run(asking, "RUN", "APPROVAL", ASKED, digest)
    assert request.document["asks"] == []
    assert request.document["ballots"] == [
        {
            "decider": "watch\u202e",
            "effect": "ask",
            "reason": "looks odd",
            "policy_digest": "sha256:1",
        }
    ]
    assert [(one["where"], one["kind"]) for one in request.document["suspicious"]] == [("ballots", "bidi")]
    assert request.requirements == (DEFAULT_APPROVAL,)
    silent = of_run(
        replace(made, decision=replace(made.decision, effect="ask", demands=())),
        "RUN",
        "APPROVAL",
        ASKED,
        digest,
    )
    assert (silent.requirements, silent.expires) == ((DEFAULT_APPROVAL,), 1800.0)
