"""Logs to report on: an ordinary one of many cases, and one with something hostile in every field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from licet.record import Entry, Kept

HOSTILE = {
    "script": "<script>document.title='canary-ran'</script>",
    "image": "<img src=x onerror=\"document.title='canary-ran'\">",
    "svg": "<svg onload=\"document.title='canary-ran'\"><animate onbegin=alert(1) attributeName=x>",
    "attribute": "\" onmouseover=\"document.title='canary-ran'\" style=\"color:red\" class=\"canary",
    "single": "' onfocus='document.title=1' autofocus canary='",
    "style": "</style><canary-tag>*{display:none}</style>",
    "textarea": "</title></textarea></pre></bdi></details></article><canary-tag>",
    "comment": "--><!--<canary-tag>--><canary-tag>",
    "cdata": "]]><canary-tag><![CDATA[",
    "link": "<a href=\"javascript:document.title='canary-ran'\">click</a> https://evil.example.net/canary",
    "import": "@import url(https://evil.example.net/canary.css); background:url(https://evil.example.net/c)",
    "base": "<base href=https://evil.example.net/><meta http-equiv=refresh content='0;url=https://evil.example.net'>",
    "template": "{{ 7*7 }}{% raw %}{{ config }}<canary-tag>",
    "entity": "&lt;canary-tag&gt;&#60;canary-tag&#62;",
    "bidi": "abc\u202egnp.exe\u2066\u2069 \u200b\u200d\ufeff",
    "rtl": "שלום עולם",
    "controls": "\x00\x01\x07\x08\x1b[31mred\x1b]0;canary\x07\r\n\x85\u2028\u2029",
    "homoglyph": "аdmin",
    "combining": "z\u0300\u0301\u0302\u0303" + "\u0336" * 50,
    "long": "A" * 100_000,
    "unbroken": "/" + "x" * 4000,
}  # fmt: skip

CONTROLS = ("network_deny", "memory_limit", "timeout", "filesystem_read_deny")


def _time(number: int, step: int) -> str:
    return f"2026-11-{1 + number // 24 % 28:02d}T{number % 24:02d}:00:{step:02d}.000000000Z"


def entries(
    number: int, bodies: list[tuple[str, str | None, dict[str, Any]]], kept: tuple[Kept, ...] = ()
) -> list[Entry]:
    """One run of these records, one second between two of them."""
    run_id = f"01RUN{number:021d}"
    return [
        Entry(
            kind, run_id, body, _time(number, step), 10**9 * (1 + step), phase, kept=kept if not step else ()
        )  # type: ignore[arg-type]
        for step, (kind, phase, body) in enumerate(bodies)
    ]


def request(subject: str = "ada", **more: Any) -> tuple[str, None, dict[str, Any]]:
    """The record of a request."""
    who = {"id": subject, "type": "agent", "tenant": "acme", "on_behalf_of": "eve", "asserted_by": "caller"}
    body = {
        "subject": who,
        "code_bytes": 12,
        "digests": {"code": "hmac-sha256:00ff"},
        "intents": ["run", "read /data"],
        "limits": {"wall_time": "2.0", "memory": 134217728},
        "workdir": "/srv/acme",
        "licet": "0.1.0",
        "screen": "1",
    }
    return "request", None, body | more


def decision(effect: str, **more: Any) -> tuple[str, None, dict[str, Any]]:
    """The record of a decision about `read /data`, with one rule."""
    verdict = {
        "intent": "read /data",
        "source": "declared",
        "line": 3,
        "when": "start",
        "effect": effect,
        "by": ["acme.yaml:7 keep-out"],
        "reason": f"the rule `keep-out` makes it {effect}",
    }
    rule = {
        "rule": "keep-out",
        "where": "acme.yaml:7:3",
        "truth": "true",
        "leaves": [{"clause": "unless", "text": "group: staff", "truth": "false", "why": "in no group"}],
    }
    body = {
        "effect": effect,
        "policy": "acme.yaml@12ab",
        "policy_digest": "sha256:12ab",
        "documents": ["acme.yaml"],
    }
    demands = ["1 person of finance"] if effect == "ask" else []
    return "decision", None, body | {"verdicts": [verdict], "rules": [rule], "demands": demands} | more


SELECTION = (
    "selection",
    None,
    {
        "backend": "monty",
        "candidates": [
            {"name": "monty", "satisfies": True, "blockers": [], "refuted": []},
            {
                "name": "other",
                "satisfies": False,
                "blockers": ["timeout: asked enforced, offered planned"],
                "refuted": ["timeout"],
            },
        ],
        "required": dict.fromkeys(CONTROLS, "enforced"),
        "evidence": "sha256:beef",
        "plan_digest": "sha256:cafe",
    },
)  # fmt: skip
EXECUTION = (
    "execution",
    "before",
    {
        "backend": "monty",
        "version": "1.4",
        "plan_digest": "sha256:cafe",
        "isolation": "language",
        "contract": "sha256:c0ffee",
        "claimed": dict.fromkeys(CONTROLS, "enforced") | {"separate_kernel": "not_enforced"},
        "opened": {"read": ["/data"], "network": [], "tools": ["refund"], "shell": False},
    },
)


def result(termination: str, **more: Any) -> tuple[str, str, dict[str, Any]]:
    """The record of a result."""
    body = {
        "termination": termination,
        "success": termination == "exited",
        "usage": {"wall_time": "0.25", "cpu_time": "0.125", "peak_memory": 1048576, "bytes_written": None},
        "configured": {"timeout": "2.0", "memory_limit": "134217728"},
        "observed": {"memory_limit": "rlimit read back"},
        "unknown": ["network_deny", "timeout", "filesystem_read_deny"],
        "stdout_bytes": 5,
        "digests": {"stdout": "hmac-sha256:11"},
    }
    return "result", "after", body | more


def call(number: int, effect: str, outcome: str | None) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The records of a call of a tool."""
    verdict = {"intent": "tool refund", "effect": effect, "reason": f"refunds are {effect}", "by": []}
    body = {"sequence": number, "tool": "refund", "call_digest": "hmac-sha256:22", "effect": effect}
    yield "tool_call", "before", body | {"verdict": verdict, "rules": []}
    if outcome is not None:
        yield "tool_call", "after", {"sequence": number, "tool": "refund", "outcome": outcome}


def access(action: str, target: str, *, allowed: bool) -> tuple[str, None, dict[str, Any]]:
    """The record of an access."""
    return "access", None, {"action": action, "target": target, "allowed": allowed}


RECEIPT = ("attack", "outcome", "observed", "twin", "digest")
PROBE = (
    "probe",
    "after",
    {
        "backend": "monty",
        "leaked": 1,
        "results": [
            dict(zip(RECEIPT, ("timeout/spin", "held", "killed", "ran", "sha256:01"), strict=True)),
            dict(zip(RECEIPT, ("memory_limit/grow", "leaked", "grew", "grew", "sha256:02"), strict=True)),
        ],
    },
)  # fmt: skip
GRANTED = ("authorization", None, {"state": "granted", "reason": "finance agreed"})


def approved(first: int) -> list[tuple[str, None, dict[str, Any]]]:
    """The records of an approval that is asked for by record `first`, granted and spent."""
    demand = {"count": 1, "from": ["finance"], "reviewer": "human", "expires": "60.0", "unattended": "deny"}
    who = {"id": "grace", "groups": ["finance"], "reviewer": "human", "asserted_by": "token"}
    reach = {"scope": "once", "vary": [], "uses": 1, "expires": "60.0"}
    bodies: list[dict[str, Any]] = [
        {
            "event": "asked",
            "of": "run",
            "digest": "sha256:cafe",
            "shown": "hmac-sha256:0d0c",
            "fields": {},
            "policy_digest": "sha256:12ab",
            "requirements": [demand],
            "requester": {"id": "ada", "type": "agent", "on_behalf_of": "eve", "asserted_by": "caller"},
            "expires": "60.0",
            "services": ["terminal"],
        },
        {
            "event": "answered",
            "answer": "approve",
            "person": who,
            "self": False,
            "service": "terminal",
            "shown": "hmac-sha256:0d0c",
            **reach,
            "reason": "as agreed",
            "token": None,
            "counts": True,
            "objection": None,
        },
        {"event": "granted", "reach": reach, "by": ["grace"]},
        {"event": "consuming", "use": 1, "digest": "sha256:cafe", "covered": None},
        {"event": "consumed", "use": 1, "consuming": first + 3},
    ]
    return [("approval", None, {"approval": "01APPROVAL", **body}) for body in bodies]


def ordinary() -> list[list[Entry]]:
    """Seven runs: allowed, denied, granted, with denied acts, timed out, without an end, and attacks."""
    kept = (Kept("stdout", b"<canary-tag>kept & shown</canary-tag>\nline two\n", b"s" * 32),)
    calls = [*call(1, "allow", "returned"), *call(2, "deny", "refused"), *call(3, "allow", None)]
    acts = [*calls, access("read", "/data/a", allowed=True), access("read", "/etc/passwd", allowed=False)]
    refused = result("policy_denied", detail="read is denied", executed=False)
    stories: list[tuple[list[Any], tuple[Kept, ...]]] = [
        ([request(), decision("allow"), SELECTION, EXECUTION, result("exited")], kept),
        ([request("bob"), decision("deny"), SELECTION, refused], ()),
        ([request(), decision("ask"), SELECTION, *approved(13), GRANTED, EXECUTION, result("exited")], ()),
        ([request(), decision("allow"), SELECTION, EXECUTION, *acts, result("exited")], ()),
        ([request(), decision("allow"), SELECTION, EXECUTION, result("timeout")], ()),
        ([request(), decision("allow"), SELECTION, EXECUTION], ()),
        ([PROBE], ()),
    ]
    return [entries(number, story, kept) for number, (story, kept) in enumerate(stories)]


def hostile() -> list[list[Entry]]:
    """One run for each hostile text, which is every text and every key of all of its records."""
    found = []
    for number, text in enumerate(HOSTILE.values()):
        story = [request(), decision("deny"), SELECTION, *approved(0), GRANTED, EXECUTION]
        story += call(1, "deny", "refused")
        story += [
            access("read", "/x", allowed=False),
            PROBE,
            result("exited", error={"type": "E", "line": 1}),
        ]
        bodies = [(kind, phase, _replaced(body, text)) for kind, phase, body in story]
        found.append(entries(number, bodies, (Kept("stdout", text.encode("utf-8", "replace")),)))
    return found


_MEANT = frozenset({"effect", "allowed"})  # what decides which parts of a card there are
_ASCII_KEYS = 40  # characters of a key that a hostile text becomes


def _replaced(value: Any, text: str, key: str = "") -> Any:
    if isinstance(value, dict):
        inner = {name: _replaced(one, text, name) for name, one in value.items()}
        return inner | {text.encode("ascii", "backslashreplace").decode()[:_ASCII_KEYS]: text}
    if isinstance(value, list):
        return [_replaced(one, text, key) for one in value]
    return text if isinstance(value, str) and key not in _MEANT else value
