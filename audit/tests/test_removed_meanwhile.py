"""Verifying a log while content is erased: that passes for no loss, and a loss for no erasure."""

from collections.abc import Callable

import pytest
from forging import failed, told
from kept import Trail
from licet.state import StateDirectory
from licet_audit.verification import verify as verifying
from licet_audit.verification.judge import Judge
from licet_audit.verification.outside import Outside
from licet_audit.verification.reading import Reading

Meanwhile = Callable[[Callable[[], object]], None]


@pytest.fixture
def trail(state: StateDirectory, capsys: pytest.CaptureFixture[str]) -> Trail:
    return Trail(state, capsys)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Have something done once, after the log was listed and before it is read."""

    def arrange(do: Callable[[], object]) -> None:
        judged, left = Reading.judged, [do]

        def late(reading: Reading, outside: Outside) -> Judge:
            if left:
                left.pop()()
            return judged(reading, outside)

        monkeypatch.setattr(Reading, "judged", late)

    return arrange


def test_what_is_erased_meanwhile_is_not_missing(trail: Trail, meanwhile: Meanwhile) -> None:
    trail.run("R1")
    meanwhile(lambda: trail("erase", "R1", "--yes", "--reason", "x"))
    result = verifying.verify(trail.state)
    assert (result.status, result.records) == ("proven", 6)
    assert told(result, "content") == (True, "0 kept and intact, 2 erased as records say")


def test_what_is_erased_meanwhile_in_a_new_segment_is_not_missing(trail: Trail, meanwhile: Meanwhile) -> None:
    trail.segment_bytes = 1000
    trail.run("R1", between=((), ()))

    def do() -> None:
        trail.run("R2", between=((), ()))
        assert trail("erase", "R1", "R2", "--yes", "--reason", "x").code == 0

    meanwhile(do)
    result = verifying.verify(trail.state)
    assert (result.status, failed(result)) == ("proven", {})
    assert told(result, "content") == (True, "0 kept and intact, 4 erased as records say")


def test_what_is_lost_meanwhile_is_missing(trail: Trail, meanwhile: Meanwhile) -> None:
    trail.run("R1")

    def do() -> None:
        trail.run("R2")
        for file in (trail.state.path / "content").rglob(trail.committed["R1"]["code"]):
            file.unlink()

    meanwhile(do)
    result = verifying.verify(trail.state)
    assert (result.status, set(failed(result))) == ("incomplete", {"content"})
    assert "(1 in all)" in failed(result)["content"]


def test_a_segment_that_is_gone_again_and_again_is_told(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail.run("R1")
    listed = verifying.snapshot(trail.state)
    (trail.state.path / "log" / listed[0].path.name).unlink()
    monkeypatch.setattr(verifying, "snapshot", lambda state: listed)
    assert verifying.verify(trail.state).status == "unverifiable"
