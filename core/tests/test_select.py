"""Selection: by contract and by what code needs, and a digest over all that decides what runs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.backend import Descriptor, Language
from licet.contract import Blocker, Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.decide import Decision, decide
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.request import CodeNeeds, Intent, NormalizedRequest, ScreenReport
from licet.select import Candidate, Offer, Proof, Selection, plan_digest, select

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]
Select = Callable[..., Selection]
PYTHON = Language("python")


def contract(*, without: tuple[str, ...] = (), **claims: Enforcement) -> SandboxEnforcementContract:
    """A contract that enforces everything, and has proved it, except for what a test says."""
    held = Enforcement(Level.enforced, "kernel", "a wall", (), Evidence.probed)
    every = {control.value: held for control in Control if control not in without}
    return SandboxEnforcementContract(**{**every, **claims})


DECLARED = SandboxEnforcementContract(
    **{control.value: Enforcement(Level.enforced, "kernel", "a wall") for control in Control}
)


def backend(name: str = "strong", **fields: Any) -> Descriptor:
    base: dict[str, Any] = {
        "version": "1.0",
        "sandbox_enforcement_contract": contract(),
        "language": PYTHON,
        "opens": frozenset(),
        "cost": 1.0,
    }
    return Descriptor(name, **{**base, **fields})


@pytest.fixture
def selected(normalized: Normalized, stack_of: StackOf) -> Select:
    def make(
        *offered: Descriptor | Offer,
        policy: str | list[str] = "",
        needs: CodeNeeds | None = None,
        inferred: tuple[Intent, ...] = (),
        **fields: Any,
    ) -> Selection:
        stack = stack_of(*([policy] if isinstance(policy, str) else policy))
        request = normalized(stack=stack, **fields)
        decision = decide(request, stack, ScreenReport(intents=inferred))
        offers = [one if isinstance(one, Offer) else Offer(one) for one in offered]
        return select(request, decision, needs or CodeNeeds(), stack, offers)

    return make


def blockers(selection: Selection, name: str) -> list[tuple[str, str, str, str]]:
    (candidate,) = [c for c in selection.candidates if c.name == name]
    assert candidate.satisfies == (not candidate.blockers)
    return [(b.what, b.asked, b.offered, b.because) for b in candidate.blockers]


def test_a_backend_that_holds_everything_is_chosen(selected: Select) -> None:
    found = selected(backend())
    assert found.candidates == (Candidate("strong", True, ()),)
    assert found.chosen is not None
    assert (found.backend, found.chosen.descriptor.version, found.chosen.opened) == (
        "strong",
        "1.0",
        Opened(),
    )
    assert found.chosen.requirements[Control.network_deny].because == "no `network` is opened"


def test_no_backend_is_no_choice(selected: Select) -> None:
    assert selected() == Selection((), None)
    assert selected().backend is None


def test_every_shortfall_of_every_candidate_is_listed(selected: Select) -> None:
    weak = backend(
        "weak",
        sandbox_enforcement_contract=contract(
            without=("network_deny", "cancellation"), timeout=Enforcement(Level.partial, "supervisor")
        ),
        language=Language(
            "small", frozenset({"class"}), frozenset({"math"}), frozenset({"len"}), stdin=False
        ),
        unavailable="no such kernel",
    )
    needs = CodeNeeds({"class": 2, "with": 3}, {"os": 4, "math": 5}, {"open": 6, "len": 7}, stdin=False)
    found = selected(
        weak,
        policy="allow: [read ./a]\nsandbox: {only: [other, strong]}",
        needs=needs,
        intents=(Intent("read", "/p/a"),),
        tools={"find": len},
        stdin="x",
    )
    assert found.chosen is None
    assert blockers(found, "weak") == [
        ("syntax", "class", "small lacks it", "line 2 uses it"),
        ("module", "os", "small lacks it", "line 4 imports it"),
        ("builtin", "open", "small lacks it", "line 6 uses it"),
        ("stdin", "standard input", "small has none", "the code or the request uses it"),
        ("opens read", "can be opened", "can't be opened", "an intent needs it"),
        ("opens tool", "can be opened", "can't be opened", "an intent needs it"),
        ("available", "available here", "unavailable", "no such kernel"),
        ("sandbox.only", "other, strong", "weak", "policy admits only these backends"),
        ("network_deny", "enforced", "not_enforced", "no `network` is opened"),
        ("cancellation", "enforced", "not_enforced", "every run can be cancelled"),
        ("timeout", "enforced", "partial", "the limit `wall_time`"),
    ]


def test_the_member_that_is_missing_is_named() -> None:
    language = Language("l", members={"a": frozenset("b"), "a.b": frozenset("c")})
    assert language.missing_member("a.x.y") == "a.x"
    assert language.missing_member("a.b.d") == "a.b.d"
    assert language.missing_member("a.b.c.d") is None
    assert language.missing_member("ab.x") is None


@pytest.mark.parametrize(
    ("needs", "language", "what"),
    [
        (CodeNeeds({"class": 1}), Language("l", frozenset({"class"})), ["syntax"]),
        (CodeNeeds({"class": 1}), Language("l", frozenset({"with"})), []),
        (CodeNeeds(modules={"os.path": 1}), Language("l", modules=frozenset({"os"})), ["module"]),
        (CodeNeeds(modules={"os.path": 1}), Language("l", modules=frozenset({"os", "os.path"})), []),
        (CodeNeeds(modules={"os": 1}), Language("l"), []),
        (CodeNeeds(modules={"os": 1}), Language("l", modules=frozenset()), ["module"]),
        (CodeNeeds(builtins={"open": 1}), Language("l", builtins=frozenset({"len"})), ["builtin"]),
        (CodeNeeds(builtins={"len": 1}), Language("l", builtins=frozenset({"len"})), []),
        (CodeNeeds(members={"a.b": 1}), Language("l"), []),
        (CodeNeeds(members={"a.b": 1}), Language("l", members={}), []),
        (CodeNeeds(members={"a.b": 1}), Language("l", members={"a": frozenset("b")}), []),
        (CodeNeeds(members={"a.b": 1}), Language("l", members={"a": frozenset("c")}), ["member"]),
        (CodeNeeds(members={"a.b.c": 1}), Language("l", members={"a": frozenset("b")}), []),
        (
            CodeNeeds(members={"a.b.c": 1}),
            Language("l", members={"a": frozenset("b"), "a.b": frozenset()}),
            ["member"],
        ),
        (CodeNeeds(stdin=True), Language("l", stdin=False), ["stdin"]),
        (CodeNeeds(stdin=True), Language("l"), []),
    ],
)
def test_a_backend_must_be_able_to_run_the_code(
    selected: Select, needs: CodeNeeds, language: Language, what: list[str]
) -> None:
    found = selected(backend(language=language), needs=needs)
    assert [blocker[0] for blocker in blockers(found, "strong")] == what


def test_a_backend_that_can_open_less_than_is_allowed_still_qualifies(selected: Select) -> None:
    policy = "allow: [read ./a, shell]"
    found = selected(backend(), policy=policy)
    assert found.chosen is not None
    assert found.chosen.opened == Opened()
    assert Control.shell_execution in found.chosen.requirements  # what it can't open, it has to hold shut


@pytest.mark.parametrize("source", ["declared", "inferred"])
def test_unless_an_intent_needs_it(selected: Select, source: str) -> None:
    intent = Intent("read", "/p/a", source)  # type: ignore[arg-type]
    fields: dict[str, Any] = {"intents": (intent,)} if source == "declared" else {"inferred": (intent,)}
    found = selected(
        backend(), backend("reader", opens=frozenset({"read"})), policy="allow: [read ./a]", **fields
    )
    assert [b[0] for b in blockers(found, "strong")] == ["opens read"]
    assert found.chosen is not None
    assert (found.backend, found.chosen.opened) == ("reader", Opened(read=("/p/a",)))


def test_evidence_counts(selected: Select) -> None:
    proved = contract()
    absent = replace(
        proved, shell_execution=Enforcement(Level.not_applicable, "language", evidence=Evidence.probed)
    )
    found = selected(
        backend("declared", sandbox_enforcement_contract=DECLARED),
        backend("proved", sandbox_enforcement_contract=proved, cost=9.0),
        backend("absent", sandbox_enforcement_contract=absent, cost=10.0),
    )
    assert found.backend == "proved"
    assert ("network_deny", "enforced (probed)", "enforced (declared)", "no `network` is opened") in blockers(
        found, "declared"
    )
    assert blockers(found, "absent") == []


def test_evidence_that_can_still_be_made_is_missing_and_no_shortfall(selected: Select) -> None:
    declared = backend(sandbox_enforcement_contract=DECLARED)
    found = selected(Offer(declared, provable=frozenset(Control)))
    assert found.chosen is not None
    assert found.chosen.missing == found.candidates[0].missing == tuple(found.chosen.requirements)
    assert found.chosen.descriptor is declared  # nothing is said to be proved that is not
    half = Offer(declared, provable=frozenset(Control) - {Control.timeout})
    found = selected(half)
    assert found.chosen is None
    assert [b[:3] for b in blockers(found, "strong")] == [
        ("timeout", "enforced (probed)", "enforced (declared)")
    ]


def test_what_no_attack_can_prove_is_not_missing_where_it_is_not_enforced(selected: Select) -> None:
    weak = backend(sandbox_enforcement_contract=contract(without=("network_deny",)))
    found = selected(Offer(weak, provable=frozenset(Control)))
    assert [b[:3] for b in blockers(found, "strong")] == [("network_deny", "enforced", "not_enforced")]


def test_a_policy_that_asks_for_declarations_misses_nothing(selected: Select) -> None:
    offer = Offer(backend(sandbox_enforcement_contract=DECLARED), provable=frozenset(Control))
    found = selected(offer, policy="sandbox: {evidence: declared}")
    assert found.chosen is not None
    assert (found.chosen.missing, found.candidates[0].missing, found.chosen.proof) == ((), (), None)


def test_a_refuted_claim_is_told_whether_it_is_asked_for_or_not(selected: Select) -> None:
    refuted = {
        Control.network_deny: "refuted here by attack `tcp` on D",
        Control.syscall_filter: "refuted here by attack `io_uring` on D",
    }
    weak = backend(sandbox_enforcement_contract=contract(without=("network_deny", "syscall_filter")))
    found = selected(Offer(weak, refuted=refuted), backend("other", cost=9.0))
    assert found.backend == "other"
    assert blockers(found, "strong") == [
        (
            "network_deny",
            "enforced",
            "not_enforced, refuted here by attack `tcp` on D",
            "no `network` is opened",
        )
    ]
    assert found.candidates[0].refuted == (
        "network_deny: refuted here by attack `tcp` on D",
        "syscall_filter: refuted here by attack `io_uring` on D",
    )


def test_what_was_inconclusive_says_so_in_the_shortfall(selected: Select) -> None:
    unproved = {Control.timeout: "not proved here by attack `busy` on D: it was late"}
    found = selected(Offer(backend(sandbox_enforcement_contract=DECLARED), unproved=unproved))
    told = {blocker[0]: blocker[2] for blocker in blockers(found, "strong")}
    assert told["timeout"] == "enforced (declared), not proved here by attack `busy` on D: it was late"
    assert told["cancellation"] == "enforced (declared)"


def test_the_proof_of_a_run_stands_for_the_receipts_that_it_relies_on(selected: Select) -> None:
    def proof(proofs: dict[Control, Proof]) -> Proof | None:
        found = selected(Offer(backend(), proofs=proofs))
        assert found.chosen is not None
        return found.chosen.proof

    timeout, cancellation = Proof("sha256:a", 5.0), Proof("sha256:b", 3.0)
    both = proof({Control.timeout: timeout, Control.cancellation: cancellation})
    assert both is not None
    assert both.when == 3.0
    assert both == proof({Control.cancellation: cancellation, Control.timeout: timeout})
    assert both != proof({Control.timeout: cancellation, Control.cancellation: timeout})
    unasked = {Control.timeout: timeout, Control.cancellation: cancellation, Control.syscall_filter: timeout}
    assert proof(unasked) == both
    assert proof({}) is None


LEAST, CHEAP, WIDE = (
    backend("least", cost=50.0),
    backend("cheap", opens=frozenset({"read"}), cost=1.0),
    backend("wide", opens=frozenset({"read", "write"}), cost=0.5),
)


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        ("", "least"),
        ("sandbox: {prefer: [wide]}", "wide"),
        ("sandbox: {prefer: [cheap, wide]}", "cheap"),
        ("sandbox: {prefer: [unheard-of]}", "least"),
        ("sandbox: {only: [cheap, wide]}", "cheap"),
        ("sandbox: {only: [cheap, wide], prefer: [least, wide]}", "wide"),
        ("sandbox: {only: []}", None),
    ],
)
def test_ranking_is_preference_then_least_power(selected: Select, policy: str, chosen: str | None) -> None:
    assert selected(LEAST, CHEAP, WIDE, policy=policy).backend == chosen
    assert selected(WIDE, CHEAP, LEAST, policy=policy).backend == chosen


def test_of_equal_power_the_cheaper_is_chosen_and_the_name_breaks_a_tie(selected: Select) -> None:
    assert selected(backend("a", cost=2.0), backend("b", cost=1.0)).backend == "b"
    assert selected(backend("b"), backend("a")).backend == "a"


def test_a_bound_narrows_only_and_cannot_prefer(selected: Select) -> None:
    policy = ["sandbox: {only: [least, cheap]}", "sandbox: {only: [cheap, wide], prefer: [wide]}"]
    found = selected(LEAST, CHEAP, WIDE, policy=policy)
    assert found.backend == "cheap"
    assert blockers(found, "wide") == [("sandbox.only", "cheap", "wide", "policy admits only these backends")]


def test_no_preference_makes_up_for_a_shortfall(selected: Select) -> None:
    weak = backend("weak", sandbox_enforcement_contract=contract(without=("memory_limit",)))
    policy = "sandbox: {prefer: [weak]}\nlimits: {memory: 1MiB}"
    found = selected(weak, backend(), policy=policy)
    assert found.backend == "strong"
    assert found.candidates[0] == Candidate(
        "weak", False, (Blocker("memory_limit", "enforced", "not_enforced", "the limit `memory`"),)
    )


# The plan digest


@pytest.fixture
def parts(
    normalized: Normalized, stack_of: StackOf
) -> tuple[NormalizedRequest, Decision, PolicyStack, Descriptor, Opened]:
    stack = stack_of("allow: [read ./a]")
    request = normalized(stack=stack)
    decision = decide(request, stack, ScreenReport())
    return request, decision, stack, backend(opens=frozenset({"read"})), decision.opened


Parts = tuple[NormalizedRequest, Decision, PolicyStack, Descriptor, Opened]


@pytest.mark.parametrize("field", ["code", "stdin", "inputs", "environment", "limits", "workdir"])
def test_the_plan_digest_changes_with_every_digest_of_the_request(parts: Parts, field: str) -> None:
    request, *rest = parts
    changed = replace(request, digests=replace(request.digests, **{field: "other"}))
    assert plan_digest(changed, *rest) != plan_digest(request, *rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "opened",
    [
        Opened(),
        Opened(read=("/p/b",)),
        Opened(read=("/p/a\udcff",)),
        Opened(read=("/p/a\\udcff",)),
        Opened(read=("/p/a",), write=("/p/a",)),
        Opened(read=("/p/a",), read_masked=("/p/a/s",)),
        Opened(read=("/p/a",), write_masked=("/p/a/s",)),
        Opened(read=("/p/a",), sealed=("/p/a/s",)),
        Opened(read=("/p/a",), network=("any",)),
        Opened(read=("/p/a",), network=("any",), network_masked=("a:1",)),
        Opened(read=("/p/a",), shell=True),
        Opened(read=("/p/a",), tools=("find",)),
    ],
)
def test_the_plan_digest_changes_with_what_is_opened(parts: Parts, opened: Opened) -> None:
    request, decision, stack, descriptor, before = parts
    assert before == Opened(read=("/p/a",))
    assert plan_digest(request, decision, stack, descriptor, opened) != plan_digest(*parts)


def test_a_path_that_is_no_utf8_has_a_digest_of_its_own(parts: Parts) -> None:
    request, decision, stack, descriptor, _ = parts
    raw, spelled = (
        plan_digest(request, decision, stack, descriptor, Opened(read=(p,))) for p in ("/\udcff", "/\\udcff")
    )
    assert raw != spelled


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"version": "1.1"},
        {"sandbox_enforcement_contract": contract(without=("orphan_cleanup",))},
        {"sandbox_enforcement_contract": contract(timeout=Enforcement(Level.partial))},
    ],
)
def test_the_plan_digest_changes_with_backend_version_and_levels(
    parts: Parts, change: dict[str, Any]
) -> None:
    request, decision, stack, descriptor, opened = parts
    assert plan_digest(request, decision, stack, replace(descriptor, **change), opened) != plan_digest(*parts)


def test_the_plan_digest_changes_with_the_policy(parts: Parts) -> None:
    request, decision, stack, descriptor, opened = parts
    changed = replace(decision, policy_digest="sha256:other")
    assert plan_digest(request, changed, stack, descriptor, opened) != plan_digest(*parts)


@pytest.mark.parametrize("policy", ["clock: frozen", "random: seeded"])
def test_the_plan_digest_changes_with_what_the_code_sees_of_the_world(
    parts: Parts, stack_of: StackOf, policy: str
) -> None:
    request, decision, _, descriptor, opened = parts
    other = stack_of(policy)
    assert plan_digest(request, decision, other, descriptor, opened) != plan_digest(*parts)


@pytest.mark.parametrize(
    ("policy", "blocker"),
    [
        ("clock: frozen", ("clock", "frozen", "real", "the code would read the clock of the machine")),
        ("random: seeded", ("random", "seeded", "real", "the code would get the randomness of the machine")),
    ],
)
def test_what_the_code_is_to_see_of_the_world_takes_a_backend_that_governs_it(
    selected: Select, policy: str, blocker: tuple[str, ...]
) -> None:
    key, *_ = blocker
    governing = backend("governing", governs=frozenset({key}), cost=9.0)
    found = selected(backend(), governing, policy=policy)
    assert found.backend == "governing"
    assert blockers(found, "strong") == [blocker]
    assert selected(backend(), governing, policy=f"{key}: real").backend == "strong"


NOTHING_ELSE: list[tuple[int, dict[str, Any]]] = [
    (0, {"metadata": {"a": "b"}}),
    (0, {"changes": ()}),
    (0, {"violations": ()}),
    (0, {"intents": ()}),
    (1, {"verdicts": ()}),
    (1, {"evidence": Evidence.declared}),
    (1, {"required": {Control.timeout: Level.enforced}}),
    (3, {"cost": 7.0}),
    (3, {"unavailable": "today"}),
    # probe results are no part of it: evidence is proved anew when an approved run resumes
    (3, {"sandbox_enforcement_contract": DECLARED}),
    (
        3,
        {
            "sandbox_enforcement_contract": contract(
                timeout=Enforcement(Level.enforced, "supervisor", "timer")
            )
        },
    ),
]


@given(st.lists(st.sampled_from(range(len(NOTHING_ELSE))), unique=True))
def test_the_plan_digest_changes_with_nothing_else(chosen: list[int]) -> None:
    from pathlib import Path

    from licet.normalize import normalize
    from licet.policy.document import build
    from licet.policy.yaml import load
    from licet.request import ExecutionRequest

    stack = PolicyStack(build(load(b"licet: 1\nallow: [read ./a]", "f"), file="f", base=Path("/p")))
    request = normalize(
        ExecutionRequest(code="1"),
        stack,
        directory="/w",
        host_environment={},
        digest=lambda name, content: name,
    )
    decision = decide(request, stack, ScreenReport())
    before: list[Any] = [request, decision, stack, backend(), decision.opened]
    after = list(before)
    for number in chosen:
        part, change = NOTHING_ELSE[number]
        after[part] = replace(after[part], **change)
    assert plan_digest(*after) == plan_digest(*before)


def test_the_chosen_plan_has_the_digest_of_its_own_opening(selected: Select) -> None:
    policy = "allow: [read ./a, write ./b]"
    reader, writer = (backend(name, opens=frozenset({name})) for name in ("read", "write"))
    one, other = selected(reader, policy=policy).chosen, selected(writer, policy=policy).chosen
    assert one is not None and other is not None
    assert (one.opened, other.opened) == (Opened(read=("/p/a",)), Opened(write=("/p/b",)))
    assert one.plan_digest != other.plan_digest
    assert one.plan_digest.startswith("sha256:") and len(one.plan_digest) == 71
