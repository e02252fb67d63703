"""The worked policies of the docs, each asked on both sides of every condition in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from licet.contract import Control, Level
from licet.decide import Decision, decide_call
from licet.errors import InvalidPolicy
from licet.policy import PolicySource, PolicyStack, load_stack
from licet.policy.facts import CallFacts
from licet.policy.truth import Truth
from licet.prepare import Prepared, prepare
from licet.request import ExecutionRequest, Intent, Limits, Subject
from licet.requirements import require
from licet.select import Offer
from licet_controlled_process.claims import claimed
from licet_controlled_process.plugin import licet_backends as process_backends
from licet_monty.plugin import licet_backends as monty_backends
from licet_policies.plugin import licet_policy_packs

FOLDER = Path(__file__).parents[2] / "docs" / "examples" / "policies"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "worked-policies.md"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml") if not path.name.endswith(".test.yaml"))
MAY_PASS = frozenset(("LANG", "TZ", "ARTIFACT_TOKEN"))

WEDNESDAY = "2026-03-04T12:00:00+01:00"


def source(may_pass: frozenset[str] = MAY_PASS) -> PolicySource:
    return PolicySource(licet_policy_packs(), Path("/no-such-directory/policy.d"), may_pass.__contains__)


def takes_all(**given: Any) -> None:
    """A tool that fits every declaration."""


@cache
def policy(name: str) -> PolicyStack:
    return load_stack(FOLDER / f"{name}.yaml", source())


def person(name: str, *groups: str, **fields: Any) -> Subject:
    return Subject(id=name, groups=groups, **fields)


NOBODY = Subject()


def there(action: str, target: str) -> Intent:
    """An intent on a path beside the policies, or on a host."""
    path = str(FOLDER / target) if action in ("read", "write") else target
    return Intent(action, path)  # type: ignore[arg-type]


def asked(
    name: str,
    *intents: Intent,
    subject: Subject = NOBODY,
    at: str = WEDNESDAY,
    code: str = "1",
    offers: Sequence[Offer] = (),
    **fields: Any,
) -> Prepared:
    """Decide on a request that lists `intents`, or none at all: then all that is allowed is open."""
    request = ExecutionRequest(code=code, intents=intents or None, subject=subject, **fields)
    return decided(policy(name), request, at, offers)


def decided(stack: PolicyStack, request: ExecutionRequest, at: str, offers: Sequence[Offer] = ()) -> Prepared:
    return prepare(
        request,
        stack,
        offers,
        at=datetime.fromisoformat(at),
        directory=str(FOLDER),
        host_environment={"TZ": "Europe/Berlin", "ARTIFACT_TOKEN": "t0k3n", "HOME": "/home/ann"},
        digest=lambda part, content: part,
    )


def answer(name: str, intent: Intent, **fields: Any) -> str:
    """The answer to one intent of a request that lists it."""
    found = asked(name, intent, **fields).decision.verdicts
    return next(verdict.effect for verdict in found if verdict.intent.action == intent.action)


def running(name: str, **fields: Any) -> str:
    return asked(name, **fields).decision.effect


def call(name: str, tool: str, _for: Subject = NOBODY, _at: str = WEDNESDAY, /, **args: Any) -> Decision:
    prepared = asked(name, subject=_for, at=_at, tools={tool: takes_all})
    return decide_call(
        replace(prepared.facts, call=CallFacts(tool, args, prepared.stack.tools.get(tool))), prepared.stack
    )


def hits(decision: Decision) -> list[str]:
    return [hit.rule.id for hit in decision.hits]


def demands(decision: Decision) -> list[tuple[int | None, tuple[str, ...] | None, str | None, str | None]]:
    return [(one.count, one.sources, one.reviewer, one.unattended) for one in decision.demands]


def masked(prepared: Prepared) -> list[str]:
    return [Path(path).relative_to(FOLDER).as_posix() for path in prepared.decision.opened.read_masked]


def limits(prepared: Prepared, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(prepared.request.limits, name) for name in names)


def offers() -> tuple[Offer, ...]:
    """Both backends as they are at best: nothing refuted, and the process confined."""
    (monty,) = monty_backends()
    (process,) = process_backends()
    best = replace(process.describe(), sandbox_enforcement_contract=claimed(True, ()))
    return tuple(Offer(one, provable=frozenset(Control)) for one in (monty.describe(), best))


def blockers(prepared: Prepared) -> Mapping[str, list[str]]:
    return {
        candidate.name: [blocker.what for blocker in candidate.blockers]
        for candidate in prepared.selection.candidates
        if not candidate.satisfies
    }


def walls(prepared: Prepared) -> dict[str, str]:
    found = require(prepared.decision, prepared.request.limits, prepared.decision.opened)
    return {control.value: asked.level.value for control, asked in found.items()}


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# --- all of them


def test_there_are_eight_and_the_page_shows_each() -> None:
    assert FILES == [
        "ci-job.yaml",
        "contractors.yaml",
        "data-analysis.yaml",
        "five-tools.yaml",
        "notebook.yaml",
        "pure-compute.yaml",
        "tenants.yaml",
        "weekend-freeze.yaml",
    ]
    page = PAGE.read_text("utf-8")
    assert [name for name in FILES if f"](../examples/policies/{name})" not in page] == []


@pytest.mark.parametrize("name", FILES)
def test_each_loads_without_a_warning(name: str) -> None:
    stack = policy(name.removesuffix(".yaml"))
    assert stack.warnings == ()
    assert stack.root.name == f"worked/{name.removesuffix('.yaml')}"


# --- pure computation


def test_pure_compute_opens_nothing() -> None:
    for intent in (there("read", "a"), there("write", "a"), Intent("shell"), there("network", "x.com:443")):
        assert answer("pure-compute", intent) == "deny"
    prepared = asked("pure-compute", offers=offers())
    assert prepared.decision.effect == "allow"
    assert prepared.decision.opened == type(prepared.decision.opened)()
    assert prepared.selection.backend == "monty"
    assert prepared.request.environment == {"LANG": "C.UTF-8"}


def test_pure_compute_lowers_what_a_request_asks_for() -> None:
    prepared = asked("pure-compute", limits=Limits(wall_time=60, memory=MIB))
    assert limits(prepared, "wall_time", "memory", "stdout") == (5, MIB, 64 * KIB)


def test_pure_compute_refuses_chance() -> None:
    assert running("pure-compute", code="import random") == "deny"
    assert running("pure-compute", code="import math") == "allow"


# --- data analysis on a folder with pandas

PANDAS = "import pandas\npandas.read_csv('sales/may.csv').describe()"
ANALYST, SELLER = person("ann", "analysts"), person("bob", "sales")


@pytest.mark.parametrize(("subject", "effect"), [(ANALYST, "allow"), (SELLER, "deny"), (NOBODY, "deny")])
def test_raw_exports_are_for_analysts(subject: Subject, effect: str) -> None:
    assert answer("data-analysis", there("read", "sales/raw/may.csv"), subject=subject) == effect
    assert answer("data-analysis", there("read", "sales/may.csv"), subject=subject) == "allow"
    assert answer("data-analysis", there("write", "reports/may.html"), subject=subject) == "allow"
    assert answer("data-analysis", there("write", "sales/may.csv"), subject=subject) == "deny"


@pytest.mark.parametrize(("subject", "closed"), [(ANALYST, []), (SELLER, ["sales/raw"])])
def test_without_a_list_the_folder_opens_and_raw_exports_are_masked(
    subject: Subject, closed: list[str]
) -> None:
    prepared = asked("data-analysis", subject=subject)
    assert prepared.decision.opened.read == (str(FOLDER / "sales"),)
    assert prepared.decision.opened.write == (str(FOLDER / "reports"),)
    assert masked(prepared) == closed


def test_nothing_here_runs_pandas_on_a_folder_yet() -> None:
    """The page says so; the walls and the packages come with other backends."""
    files = (there("read", "sales"), there("write", "reports"))
    prepared = asked("data-analysis", *files, subject=ANALYST, code=PANDAS, offers=offers())
    assert prepared.decision.effect == "allow"
    assert blockers(prepared) == {
        "monty": ["module"],
        "controlled_process": [
            "filesystem_read_deny",
            "filesystem_write_deny",
            "network_deny",
            "unix_socket_deny",
            "shell_execution",
            "fresh_state",
            "memory_limit",
            "process_count_limit",
            "filesystem_bytes_limit",
        ],
    }


# --- five tools


def refund(amount: object, currency: str = "EUR") -> Decision:
    return call("five-tools", "refund", order="A1", amount=amount, currency=currency)


@pytest.mark.parametrize(
    ("amount", "effect"),
    [
        (0, "allow"),
        (100, "allow"),
        (Decimal("100.00"), "allow"),
        (Decimal("100.000000000000000000001"), "ask"),
        (101, "ask"),
        (10**30, "ask"),
        (Decimal("NaN"), "ask"),  # nobody can say that it is not more
        ("100", "ask"),  # a text is not an amount
    ],
)
def test_a_large_refund_needs_two_people_of_finance(amount: object, effect: str) -> None:
    decision = refund(amount)
    assert decision.effect == effect
    assert hits(decision) == (["big-refund"] if effect == "ask" else [])
    assert demands(decision) == ([(2, ("finance",), "human", "queue")] if effect == "ask" else [])


@pytest.mark.parametrize(("currency", "effect"), [("EUR", "allow"), ("USD", "allow"), ("XTS", "deny")])
def test_refunds_are_in_our_currencies(currency: str, effect: str) -> None:
    assert refund(5, currency).effect == effect


def test_a_large_refund_in_a_foreign_currency_is_denied_and_not_asked_about() -> None:
    decision = refund(500, "XTS")
    assert (decision.effect, decision.demands) == ("deny", ())
    assert hits(decision) == ["big-refund", "refund-in-our-currencies"]


@pytest.mark.parametrize(
    ("to", "effect"),
    [("ann@shop.example", "allow"), ("ann@elsewhere.example", "ask"), ("ann@shop.example.net", "ask")],
)
def test_mail_to_others_asks_a_person(to: str, effect: str) -> None:
    decision = call("five-tools", "send_mail", to=to, subject="Hi", text="Hi")
    assert decision.effect == effect
    assert demands(decision) == ([(1, (), "human", "deny")] if effect == "ask" else [])


def test_the_other_tools_are_called_freely_and_no_sixth_one_is() -> None:
    assert call("five-tools", "find_order", order="A1").effect == "allow"
    assert call("five-tools", "list_orders", customer="C1").effect == "allow"
    assert call("five-tools", "add_note", order="A1", text="x").effect == "allow"
    assert call("five-tools", "delete_order", order="A1").effect == "deny"


def test_before_a_call_its_rules_are_pending() -> None:
    decision = asked("five-tools", tools={"refund": takes_all}).decision
    assert decision.effect == "allow"
    assert [rule.id for rule in decision.pending] == [
        "big-refund",
        "refund-in-our-currencies",
        "mail-leaves-the-house",
    ]


# --- a job of the build

STORE, UPLOAD = there("network", "artifacts.example.com:443"), there("network", "upload.example.com:443")


def job(branch: str | None) -> Subject:
    return Subject(id="build-7", type="service", properties={} if branch is None else {"branch": branch})


@pytest.mark.parametrize(("branch", "effect"), [("main", "allow"), ("fix", "deny"), (None, "deny")])
def test_only_main_publishes(branch: str | None, effect: str) -> None:
    assert answer("ci-job", UPLOAD, subject=job(branch)) == effect
    assert answer("ci-job", STORE, subject=job(branch)) == "allow"
    opened = asked("ci-job", subject=job(branch)).decision.opened.network
    assert (str(UPLOAD.target) in opened) is (effect == "allow")


@pytest.mark.parametrize(
    ("subject", "effect"), [(job("main"), "allow"), (person("ann"), "deny"), (NOBODY, "deny")]
)
def test_the_build_runs_jobs_and_no_people(subject: Subject, effect: str) -> None:
    assert running("ci-job", subject=subject) == effect


def test_a_job_sees_its_token_and_no_other_variable() -> None:
    environment = asked("ci-job", subject=job("main")).request.environment
    assert environment == {"CI": "true", "ARTIFACT_TOKEN": "t0k3n"}


def test_the_token_needs_leave_of_the_settings() -> None:
    with pytest.raises(InvalidPolicy, match="would hand on a variable that settings do not permit"):
        load_stack(FOLDER / "ci-job.yaml", source(frozenset(("LANG", "TZ"))))


def test_a_job_demands_a_filter_of_the_network() -> None:
    levels = walls(asked("ci-job", subject=job("main")))
    assert levels["network_filter"] == levels["orphan_cleanup"] == "enforced"
    assert "network_deny" not in levels


# --- notebooks

STUDENT, STAFF = person("sue", "students"), person("ann", "staff")


@pytest.mark.parametrize(
    ("subject", "given"),
    [
        (STUDENT, (20, 512 * MIB, 64 * MIB)),
        (STAFF, (120, 2 * GIB, GIB)),
        (NOBODY, (20, 512 * MIB, 64 * MIB)),
    ],
)
def test_students_get_less(subject: Subject, given: tuple[int, ...]) -> None:
    assert limits(asked("notebook", subject=subject), "wall_time", "memory", "files") == given


@pytest.mark.parametrize(
    ("at", "subject", "effect"),
    [
        ("2026-03-03T07:59:59+01:00", STUDENT, "deny"),
        ("2026-03-03T08:00:00+01:00", STUDENT, "allow"),
        ("2026-03-03T17:59:59+01:00", STUDENT, "allow"),
        ("2026-03-03T18:00:00+01:00", STUDENT, "deny"),
        ("2026-07-03T06:30:00+00:00", STUDENT, "allow"),  # half past eight in Berlin, in summer
        ("2026-03-03T22:00:00+01:00", STAFF, "allow"),
        ("2026-03-03T22:00:00+01:00", NOBODY, "deny"),
    ],
)
def test_datasets_in_lecture_hours(at: str, subject: Subject, effect: str) -> None:
    assert call("notebook", "ask_dataset", subject, at).effect == effect
    assert call("notebook", "plot", subject, at).effect == "allow"


def test_packages_are_asked_about_where_somebody_sits() -> None:
    decision = asked("notebook", there("network", "pypi.example.com:443"), subject=STAFF).decision
    assert decision.effect == "ask"
    assert demands(decision) == [(1, (), "human", "deny")]


# --- many tenants


def tenant(name: str | None = "acme", plan: str | None = "enterprise") -> Subject:
    return Subject(id="a", tenant=name, properties={} if plan is None else {"plan": plan})


@pytest.mark.parametrize(
    ("plan", "given", "rules"),
    [
        ("free", (5, 128 * MIB, 10), ["plan-free", "plan-pro"]),
        ("pro", (30, 512 * MIB, 100), ["plan-pro"]),
        ("enterprise", (120, 2 * GIB, 1000), []),
        (None, (5, 128 * MIB, 10), ["plan-free", "plan-pro"]),
        ("Enterprise", (5, 128 * MIB, 10), ["plan-free", "plan-pro"]),  # texts are compared exactly
    ],
)
def test_limits_by_plan(plan: str | None, given: tuple[int, ...], rules: list[str]) -> None:
    prepared = asked("tenants", subject=tenant(plan=plan))
    assert limits(prepared, "wall_time", "memory", "tool_calls") == given
    assert [name for name in hits(prepared.decision) if name.startswith("plan")] == rules


@pytest.mark.parametrize(
    ("name", "acme", "globex"),
    [("acme", "allow", "deny"), ("globex", "deny", "allow"), ("other", "deny", "deny")],
)
def test_each_tenant_reads_its_own_folder(name: str, acme: str, globex: str) -> None:
    subject = tenant(name)
    assert answer("tenants", there("read", "tenants/acme/x"), subject=subject) == acme
    assert answer("tenants", there("read", "tenants/globex/x"), subject=subject) == globex
    closed = [f"tenants/{one}" for one, effect in (("acme", acme), ("globex", globex)) if effect == "deny"]
    assert masked(asked("tenants", subject=subject)) == closed


@pytest.mark.parametrize(("name", "effect"), [("acme", "allow"), ("initech", "deny"), (None, "deny")])
def test_a_suspended_tenant_runs_nothing_and_neither_does_who_may_be_it(
    name: str | None, effect: str
) -> None:
    prepared = asked("tenants", subject=tenant(name))
    assert prepared.decision.effect == effect
    truths = {hit.rule.id: hit.truth for hit in prepared.decision.hits}
    expected = {"initech": Truth.true, None: Truth.unknown}.get(name)
    assert truths.get("initech-is-suspended") is expected


# --- contractors

CONTRACTOR, BOTH = person("cy", "contractors"), person("cyd", "contractors", "hr")
EMPLOYEE, HR = person("eve", "sales"), person("hal", "hr")


@pytest.mark.parametrize(
    ("subject", "reading", "getting", "setting"),
    [
        (CONTRACTOR, "deny", "deny", "deny"),
        (BOTH, "deny", "deny", "deny"),
        (EMPLOYEE, "ask", "ask", "deny"),
        (HR, "allow", "allow", "allow"),
        (NOBODY, "deny", "deny", "deny"),
    ],
)
def test_who_sees_personnel_data(subject: Subject, reading: str, getting: str, setting: str) -> None:
    assert answer("contractors", there("read", "company/hr/pay.csv"), subject=subject) == reading
    assert answer("contractors", there("read", "company/plans.md"), subject=subject) == "allow"
    assert call("contractors", "payroll_get", subject).effect == getting
    assert call("contractors", "payroll_set", subject).effect == setting
    assert call("contractors", "find_person", subject).effect == "allow"


def test_hr_consents() -> None:
    decision = asked("contractors", there("read", "company/hr"), subject=EMPLOYEE).decision
    assert demands(decision) == [(1, ("hr",), "human", "queue")]


@pytest.mark.parametrize(("subject", "closed"), [(CONTRACTOR, True), (EMPLOYEE, True), (HR, False)])
def test_the_folder_opens_around_personnel_data(subject: Subject, closed: bool) -> None:
    prepared = asked("contractors", subject=subject)
    assert prepared.decision.effect == "allow"
    assert masked(prepared) == (["company/hr"] if closed else [])


# --- weekends

DEVELOPER, ON_CALL, MIGRATION = person("ann", "dev"), person("ola", "oncall"), person("mia", "migration")


@pytest.mark.parametrize(
    ("at", "developer", "migration"),
    [
        ("2026-02-28T00:00:00+01:00", "deny", "deny"),  # Saturday
        ("2026-03-01T23:59:59+01:00", "deny", "deny"),  # Sunday
        ("2026-03-02T00:00:00+01:00", "allow", "allow"),
        ("2026-03-06T23:59:59+01:00", "allow", "allow"),  # the Friday before the waiver
        ("2026-03-07T00:00:00+01:00", "deny", "allow"),
        ("2026-03-08T23:59:59+01:00", "deny", "allow"),
        ("2026-03-09T00:00:00+01:00", "allow", "allow"),
        ("2026-03-14T12:00:00+01:00", "deny", "deny"),  # the weekend after
        ("2026-03-06T23:30:00+00:00", "deny", "allow"),  # Saturday in Berlin already
        ("2026-07-03T22:30:00+00:00", "deny", "deny"),  # and in summer, by its clock
    ],
)
def test_the_freeze_its_exception_and_its_waiver(at: str, developer: str, migration: str) -> None:
    assert running("weekend-freeze", subject=DEVELOPER, at=at) == developer
    assert running("weekend-freeze", subject=MIGRATION, at=at) == migration
    assert running("weekend-freeze", subject=ON_CALL, at=at) == "allow"
    assert running("weekend-freeze", subject=NOBODY, at=at) == developer


def test_the_levels_named_here_are_those_of_the_contract() -> None:
    assert set(walls(asked("ci-job", subject=job("main"))).values()) == {Level.enforced.value}


def test_the_freeze_as_a_text_on_the_page_says_what_the_page_says(tmp_path: Path) -> None:
    (rule,) = re.findall(r"```yaml\n(- id: weekend-freeze\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    file = tmp_path / "freeze.yaml"
    file.write_text("licet: 1\nrules:\n" + rule)
    stack = load_stack(file, source())

    def effect(subject: Subject, at: str) -> str:
        return decided(stack, ExecutionRequest(code="1", subject=subject), at).decision.effect

    assert effect(DEVELOPER, "2026-03-07T12:00:00+01:00") == "deny"
    assert effect(MIGRATION, "2026-03-07T12:00:00+01:00") == "allow"
    assert effect(MIGRATION, "2026-02-28T12:00:00+01:00") == "allow"  # in which it is not quite the same
    assert effect(MIGRATION, "2026-03-14T12:00:00+01:00") == "deny"
    assert effect(ON_CALL, "2026-03-14T12:00:00+01:00") == "allow"
    assert effect(NOBODY, "2026-03-14T12:00:00+01:00") == "deny"
    assert effect(NOBODY, WEDNESDAY) == "allow"
