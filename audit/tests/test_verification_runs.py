"""Contradictions and outcomes: each effect has its grant, each run one end; what is missing explains."""

import tracemalloc
from collections.abc import Callable

import pytest
from forging import failed, told, verify
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit.verification import parts
from licet_audit.verification.approvals import Told
from licet_audit.verification.facts import Fact
from licet_audit.verification.runs import Runs, _Run, condense

Append = Callable[..., list[Record]]
Make = Callable[..., Entry]

ALLOWED = ["request", "allow", "authorized", "execute"]

SOUND = [
    [*ALLOWED, "call:1", "performed:1", "denied_call:2", "result"],
    ["request", "allow", "execute", "result"],
    ["request", "deny", "refusal"],
    ["request", "ask", "refused", "refusal"],
    [*ALLOWED, "access", "access", "result"],
    ["request", "refusal"],
]

CONTRADICTORY = {
    "it was denied before": (["request", "deny", "execute"], False),
    "it was denied before, whatever came then": (
        ["request", "deny", "allow", "authorized", "execute"],
        False,
    ),
    "its authorization was refused before": (["request", "ask", "refused", "execute"], False),
    "its authorization was refused before, whatever came then": (
        ["request", "ask", "refused", "authorized", "execute"],
        False,
    ),
    "it was executed before": ([*ALLOWED, "execute"], False),
    "it reaches something before it is executed": (["request", "allow", "access"], True),
    "its tool call 2 was performed, and nothing before it says that it may": (
        [*ALLOWED, "call:1", "performed:1", "performed:2"],
        True,
    ),
    "its tool call 1 was performed, and nothing before it says that it may": (
        [*ALLOWED, "call:1", "performed:1", "performed:1"],
        True,
    ),
    "nothing before it grants that": (["request", "execute"], True),
    "it had to be asked about, and no approval was spent on it": (
        ["request", "ask", "authorized", "execute"],
        True,
    ),
    "it calls a tool before it is executed": (["request", "allow", "call:1"], True),
    "its tool call 2 was denied, and performed": ([*ALLOWED, "denied_call:2", "performed:2"], False),
    "its result says that nothing was executed, but it was": ([*ALLOWED, "refusal"], False),
    "it reaches something that had to be asked about, and no approval was spent on it": (
        [*ALLOWED, "access:digest"],
        True,
    ),
    "it has a result without an execution, or a second one": (["request", "allow", "result"], True),
    "it is not under way: it has a result already, or never began": (["refusal"], True),
}


def facts(words: list[str], run_id: str = "r", first: int = 0) -> list[Fact]:
    split = [word.partition(":") for word in words]
    return [Fact(run_id, seq, what, about or None) for seq, (what, _, about) in enumerate(split, first)]


def contradictions(found: list[Fact]) -> list[tuple[int, str]]:
    runs = Runs()
    return [(one.seq, one.why) for fact in found if (one := runs.follow(fact))]


@pytest.mark.parametrize("words", SOUND, ids=" ".join)
def test_a_sound_run_contradicts_nothing(words: list[str]) -> None:
    assert contradictions(facts(words)) == []


@pytest.mark.parametrize("why", CONTRADICTORY)
def test_a_contradiction_is_found_where_it_is(why: str) -> None:
    words, lack = CONTRADICTORY[why]
    assert contradictions(facts(words)) == [(len(words) - 1, why.removesuffix(", whatever came then"))]
    runs = Runs()
    runs.gap(1)
    found = [runs.follow(fact) for fact in facts(words)]
    assert (found[-1] is None) == lack == (runs.explained == 1)


def test_an_approval_opens_a_target_for_the_rest_of_its_run_and_no_other_target() -> None:
    run = _Run()
    for fact in facts(ALLOWED):
        assert run.follow(fact) is None
    run.approve(Told(spent="digest"), "consumed")
    reach, other = (Fact("r", 9, "access", digest) for digest in ("digest", "other"))
    assert [run.follow(reach), run.follow(reach)] == [None, None]
    assert run.follow(other) is not None
    run.approve(Told(spent="other"), "consumed")
    run.approve(Told(back="other"), "failed_to_start")
    assert run.follow(other) is not None


@pytest.mark.parametrize("digest", [None, "digest"])
def test_a_run_that_is_whole_in_a_part_is_held_to_its_approvals(digest: str | None) -> None:
    found = facts([*ALLOWED, "access", "result"])
    found[-2] = found[-2]._replace(about=digest)
    assert (condense(found).whole == ["r"]) == (digest is None)


def test_questions_and_outcomes_of_connections_are_no_accesses(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    begun = [entry("decision", "a", effect="allow"), entry("execution", "a", "before")]
    asked = entry("access", "a", "before", effect="ask", call_digest="d")
    refused = entry("access", "a", allowed=False, call_digest="d")
    after = entry("access", "a", "after", outcome="connected")
    append([*begun, asked, refused, entry("access", "a", allowed=True), after, entry("result", "a", "after")])
    assert verify(state).status == "proven"
    begun = [entry("decision", "b", effect="allow"), entry("execution", "b", "before")]
    asked = entry("access", "b", "before", effect="ask", call_digest="d")
    append(
        [*begun, asked, entry("access", "b", allowed=True, call_digest="d"), entry("result", "b", "after")]
    )
    assert "no approval was spent on it" in failed(verify(state))["contradictions"]


def test_a_run_that_was_refused_is_not_whole_again_in_a_later_part(
    state: StateDirectory, append: Append, entry: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    append([entry("request", "a", text="a" * 5000), entry("authorization", "a", state="denied")])
    begun = (state.path / "log" / f"seg-{0:020d}.jsonl").stat().st_size
    more = [entry("request", "a"), entry("decision", "a", effect="allow"), entry("execution", "a", "before")]
    append([*more, entry("result", "a", "after")])
    monkeypatch.setattr(parts, "PART", begun)
    result = verify(state)
    assert (result.status, result.first_bad_seq, set(failed(result))) == ("tampered", 5, {"contradictions"})
    assert "its authorization was refused before" in failed(result)["contradictions"]


def test_a_second_result_is_found(state: StateDirectory, append: Append, entry: Make) -> None:
    append([entry("decision", "a", effect="allow"), entry("execution", "a", "before"), entry("result", "a")])
    assert verify(state).status == "proven"
    append([entry("result", "a")])
    result = verify(state)
    assert (result.status, result.first_bad_seq, set(failed(result))) == ("tampered", 4, {"contradictions"})
    assert failed(result)["contradictions"] == (
        f"record #4 at byte {result.first_bad_byte} of seg-{0:020d}.jsonl: run `a`: it has a result without "
        "an execution, or a second one"
    )


def test_a_gap_explains_as_many_as_it_counts_and_leaves_the_log_incomplete(
    state: StateDirectory, append: Append, entry: Make
) -> None:
    append(
        [entry("log", "", event="gap", missing=1), entry("execution", "a", "before"), entry("result", "a")]
    )
    result = verify(state)
    assert (result.status, set(failed(result))) == ("incomplete", {"gaps"})
    append([entry("execution", "b", "before"), entry("result", "b")])
    result = verify(state)
    assert (result.status, set(failed(result))) == ("tampered", {"gaps", "contradictions"})


def test_an_open_run_is_an_unknown_outcome(state: StateDirectory, append: Append, entry: Make) -> None:
    append([entry("decision", "a", effect="allow"), entry("execution", "a", "before")])
    assert told(verify(state), "outcomes") == (
        None,
        "begun and without a result yet: 1; ended as unknown: 0",
    )
    append([])  # the next writer closes what the one before left open
    assert told(verify(state), "outcomes") == (True, "every run that began has a result; 1 ended as unknown")


def test_runs_are_forgotten_with_their_results() -> None:
    runs = Runs()
    tracemalloc.start()
    try:
        for number in range(20_000):
            for fact in facts(["request", "deny", "refusal"], f"{number:026}"):
                assert runs.follow(fact) is None
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 10_000


def test_only_a_pruning_that_names_a_run_explains_its_missing_beginning() -> None:
    runs = Runs(begins_late=True)
    for run_id in ("a", "b"):
        for fact in facts(["result"], run_id):
            assert runs.follow(fact) is None
    assert [found.run_id for found in runs.unexplained({"a"})] == ["b"]


WORDS = (
    "request", "allow", "ask", "deny", "authorized", "refused", "execute", "call", "denied_call",
    "asked_call", "performed", "access", "result", "refusal",
)  # fmt: skip


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(WORDS)), max_size=40), st.data())
def test_judging_parts_finds_what_judging_all_finds(told: list[tuple[str, str]], data: st.DataObject) -> None:
    all_of_it = [Fact(run_id, seq, what) for seq, (run_id, what) in enumerate(told)]
    whole, parted = Runs(), Runs()
    expected = [found for fact in all_of_it if (found := whole.follow(fact))]
    cut = data.draw(st.integers(0, len(all_of_it)))
    found = []
    for part in (all_of_it[:cut], all_of_it[cut:]):
        condensed = condense(part)
        if parted.knows_any(condensed.whole):
            found += [one for fact in part if (one := parted.follow(fact))]
        else:
            parted.unknown += condensed.unknown
            found += [one for fact in condensed.facts if (one := parted.follow(fact))]
    assert found == expected
    assert (parted.unknown, parted.under_way) == (whole.unknown, whole.under_way)
