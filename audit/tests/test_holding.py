"""Holds: what is held can't be erased, who says so and why is told, and only a record ends it."""

import pytest
from kept import DAY, Trail
from licet.record import Entry
from licet.state import StateDirectory
from licet_audit.reader import LogReader
from licet_audit.retention.survey import survey

YES = ("--reason", "request 17", "--yes")
CASE = ("--reason", "case 4711")


@pytest.fixture
def trail(state: StateDirectory, capsys: pytest.CaptureFixture[str]) -> Trail:
    trail = Trail(state, capsys)
    trail.run("R1", id="ada", tenant="a")
    trail.run("R2", id="eve", tenant="a", time="2026-06-01T10:00:00.000000000Z")
    return trail


@pytest.mark.parametrize(
    ("what", "held"),
    [
        (("R1",), ["R1"]),
        (("--subject", "eve"), ["R2"]),
        (("--tenant", "a"), ["R1", "R2"]),
        (("--tenant", "a", "--subject", "ada"), ["R1"]),
        (("--before", "2026-05-15"), ["R1"]),
        (("--since", "2026-05-15"), ["R2"]),
        (("--tenant", "b"), []),
    ],
)
def test_what_is_held_stays(trail: Trail, what: tuple[str, ...], held: list[str]) -> None:
    hold = trail("hold", *what, *CASE, "--json").json["hold"]
    for run in ("R1", "R2"):
        ran = trail("erase", run, *YES)
        assert ran.code == (1 if run in held else 0)
        assert trail.states(run) == ({"intact"} if run in held else {"missing"})
        if run in held:
            assert f"the run {run} is on hold (hold {hold}, set " in ran.err
            assert "case 4711" in ran.err
            assert f"licet audit release {hold}" in ran.err


def test_nothing_of_a_choice_goes_while_a_part_of_it_is_held(trail: Trail) -> None:
    trail("hold", "R1", *CASE)
    refused = trail("erase", "--tenant", "a", *YES, "--json")
    assert refused.code == 1
    assert refused.json["error"]["slug"] == "held"
    assert trail.states("R2") == {"intact"}
    rest = trail("erase", "--tenant", "a", "--skip", *YES, "--json")
    assert (rest.code, rest.json["runs"]) == (0, ["R2"])
    assert [one["run_id"] for one in rest.json["held"]] == ["R1"]
    assert trail("erase", "--tenant", "a", "--dry-run").code == 1


def test_a_hold_keeps_runs_that_come_after_it(trail: Trail) -> None:
    trail("hold", "--subject", "ada", *CASE)
    trail.run("R3", id="bot", on_behalf_of="ada")
    assert trail("erase", "R3", *YES).code == 1


def test_what_was_released_may_go(trail: Trail) -> None:
    first = trail("hold", "R1", *CASE, "--json").json["hold"]
    second = trail("hold", "--tenant", "a", "--reason", "tax", "--json").json["hold"]
    assert trail("release", first.lower(), "--reason", "case closed").code == 0
    assert second in trail("erase", "R1", *YES).err
    assert trail("release", second, "--reason", "over").code == 0
    assert trail("erase", "R1", *YES).code == 0
    (_, ended) = trail.records("released")
    assert (ended.entry.body["hold"], ended.entry.body["reason"]) == (second, "over")
    assert LogReader(trail.state).verify().status == "proven"


def test_the_list_shows_those_in_force(trail: Trail) -> None:
    first = trail("hold", "R1", *CASE, "--json").json
    second = trail("hold", "--tenant", "a", "--since", "2026-05-01", *CASE, "--json").json
    assert trail("hold", "--list", "--json").json == [first, second]
    assert first["what"] == {"runs": ["R1"], "subject": None, "tenant": None, "since": None, "before": None}
    trail("release", first["hold"], "--reason", "over")
    shown = trail("hold", "--list").out
    assert first["hold"] not in shown
    assert second["hold"] in shown
    assert "tenant a, since 2026-05-01 00:00:00" in shown


def test_a_hold_says_how_many_runs_it_keeps_now(trail: Trail) -> None:
    assert "2 runs in this log now" in trail("hold", "--tenant", "a", *CASE).err


def test_files_beside_the_log_release_nothing(trail: Trail) -> None:
    trail("hold", "R1", *CASE)
    for file in trail.state.path.iterdir():
        if file.is_file() and file.name != "id":
            file.unlink()
    assert trail("erase", "R1", *YES).code == 1


def test_a_record_of_a_hold_that_was_edited_lets_nothing_go(trail: Trail) -> None:
    trail("hold", "R1", *CASE)
    segment = next((trail.state.path / "log").iterdir())
    held = segment.read_bytes()
    trail.run("R9", between=[[Entry("access", "R9", {"n": n}, DAY, 1) for n in range(300)]])  # fills a tile
    segment.write_bytes(segment.read_bytes().replace(b'"event":"held"', b'"event":"herd"', 1))
    assert held not in segment.read_bytes()
    ran = trail("erase", "R1", *YES)
    assert (ran.code, trail.states("R1")) == (7, {"intact"})


@pytest.mark.parametrize("what", [None, {}, {"runs": 1}, {"runs": None, "subject": 3}])
def test_a_hold_that_cannot_be_understood_holds_everything(trail: Trail, what: object) -> None:
    from licet_audit.chain import log_entry

    trail.append([log_entry("held", hold="H1", what=what, reason="r", by="b", since=DAY)])
    found = survey(trail.state)
    assert all(found.holding(run) for run in found.runs.values())
    assert "everything" in trail("hold", "--list").out
    assert trail("release", "H1", "--reason", "it was damaged").code == 0
    assert trail("erase", "R1", *YES).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hold",), "nothing is chosen"),
        (("hold", "R1"), "a reason is missing"),
        (("hold", "R9", *CASE), "no run in this log has an id that begins with `R9`"),
        (("hold", "R", *CASE), "`R` may mean `R1` or `R2`"),
        (("hold", "--list", "R1"), "`--list` sets no hold"),
        (("hold", "--since", "soon", *CASE), "`--since soon` is no time"),
        (("release", "X", *CASE), "no hold in force has an id that begins with `X`"),
        (("release", "X"), "a reason is missing"),
    ],
)
def test_bad_input_is_told_and_nothing_recorded(
    trail: Trail, arguments: tuple[str, ...], message: str
) -> None:
    before = len(trail.records())
    ran = trail(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert len(trail.records()) == before


def test_ids_that_begin_alike_are_told_apart(trail: Trail) -> None:
    first, second = (trail("hold", "R1", *CASE, "--json").json["hold"] for _ in range(2))
    ran = trail("release", first[:4], *CASE)
    assert ran.code == 2
    assert f"`{first[:4]}` may mean `{first}` or `{second}`" in ran.err
