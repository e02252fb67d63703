"""Requests that are known again: the same as prepared anew, and forgotten with what they rested on."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from licet import bodies
from licet.plain import canonical
from licet.policy import PolicyStack
from licet.policy.load import PolicySource, load_stack
from licet.prepare import Prepared, prepare
from licet.repeats import MOST_CODE, MOST_KEPT, Repeats
from licet.request import ExecutionRequest, Limits, as_request

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def digest(name: str, content: bytes) -> str:
    return f"{name}:{content.hex()}"


@pytest.fixture
def stack(tmp_path: Path) -> PolicyStack:
    return written(tmp_path, "")


def written(folder: Path, more: str) -> PolicyStack:
    file = folder / "p.yaml"
    file.write_text(f"licet: 1\nname: p\nallow: [run]\n{more}")
    return load_stack(str(file), PolicySource({}, folder / "none"))


class Asker:
    """Prepares again and again, and counts what was prepared anew."""

    def __init__(self, stack: PolicyStack, monkeypatch: pytest.MonkeyPatch) -> None:
        self.anew = 0
        self.repeats = Repeats()
        self.given: dict[str, Any] = {
            "directory": str(Path.cwd()),
            "host_environment": {},
            "digest": digest,
        }
        self.stack = stack
        self.offers = ()
        monkeypatch.setattr("licet.repeats.prepare", self._prepare)

    def _prepare(self, *args: Any, **kwargs: Any) -> Prepared:
        self.anew += 1
        return prepare(*args, **kwargs)

    def __call__(self, asked: ExecutionRequest, at: datetime = AT, **other: Any) -> Prepared:
        given = {**self.given, **other, "clock": itertools.count().__next__}
        return self.repeats.prepared(asked, self.stack, self.offers, at=at, **given)


@pytest.fixture
def ask(stack: PolicyStack, monkeypatch: pytest.MonkeyPatch) -> Asker:
    return Asker(stack, monkeypatch)


def code(text: str = "1 + 1", **fields: Any) -> ExecutionRequest:
    return as_request(text, fields)


def test_what_is_known_is_what_would_be_prepared(ask: Asker) -> None:
    ask(code())
    later = AT + timedelta(seconds=7)
    known = ask(code(), later)
    assert ask.anew == 1
    anew = prepare(code(), ask.stack, ask.offers, at=later, **ask.given)
    assert replace(known, took_ns={}) == replace(anew, took_ns={}, explanation=known.explanation)
    assert known.explanation.as_json() == anew.explanation.as_json()
    bare = {**bodies.request(known), "took_ns": {}}
    assert canonical(bare) == canonical({**bodies.request(anew), "took_ns": {}})
    assert bare["at"] == later.isoformat()


def test_a_record_is_not_changed_by_the_next(ask: Asker) -> None:
    first = bodies.request(ask(code()))
    bodies.request(ask(code(), AT + timedelta(1)), "span", "run")
    assert first["at"] == AT.isoformat()
    assert "caller_span" not in first


@pytest.mark.parametrize(
    "other",
    [
        code("2 + 2"),
        code(limits=Limits(wall_time=1.0)),
        code(inputs={"x": 1}),
        code(metadata={"a": "b"}),
        code(env={"A": "b"}),
        code(intents=()),
        code(stdin="x"),
    ],
)
def test_another_request_is_prepared_anew(ask: Asker, other: ExecutionRequest) -> None:
    ask(code())
    found = ask(other)
    assert ask.anew == 2
    assert (
        found.explanation.as_json()
        == prepare(other, ask.stack, ask.offers, at=AT, **ask.given).explanation.as_json()
    )


def test_limits_are_known_by_their_values(ask: Asker) -> None:
    for wall_time in (1.0, 2.0, 1.0, 2.0):
        assert ask(code(limits=Limits(wall_time=wall_time))).request.limits.wall_time == wall_time
    assert ask.anew == 2


def test_another_directory_policy_or_set_of_offers_has_its_own(ask: Asker, tmp_path: Path) -> None:
    ask(code())
    assert ask(code(), directory="/").request.workdir == "/"
    ask.stack = written(tmp_path, "limits: {wall_time: 3s}\n")
    assert ask(code()).request.limits.wall_time == 3.0
    ask.offers = []
    ask(code())
    assert ask.anew == 4


def test_a_variable_that_is_passed_is_looked_at_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Asker(written(tmp_path, "env: {A: pass}\n"), monkeypatch)
    for value in ("x", "y", "x"):
        assert ask(code(), host_environment={"A": value, "B": value}).request.environment == {"A": value}
    assert ask(code(), host_environment={}).request.environment == {}
    assert ask.anew == 3


def test_under_rules_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Asker(
        written(tmp_path, "rules: [{id: late, if: {after: '2026-03-02T00:00Z'}, deny: [run]}]\n"), monkeypatch
    )
    assert ask(code()).decision.effect == "allow"
    assert ask(code(), AT + timedelta(days=9)).decision.effect == "deny"
    assert ask.anew == 2


def test_code_whose_paths_were_looked_at_is_not_known(ask: Asker) -> None:
    for _ in range(2):
        ask(code("open('/x/y').read()"))
    assert ask.anew == 2


def test_links_that_the_policy_names_are_looked_at_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path.resolve() / "work"
    work.mkdir()
    ask = Asker(_reading(tmp_path), monkeypatch)
    for target in ("one", "two"):
        (work / "data").unlink(missing_ok=True)
        (tmp_path / target).mkdir()
        (work / "data").symlink_to(tmp_path / target)
        for _ in range(2):
            found = ask(code(), directory=str(work))
            assert found.decision.opened.read == (str(tmp_path.resolve() / target),)
    assert ask.anew == 2


def _reading(folder: Path) -> PolicyStack:
    file = folder / "p.yaml"
    file.write_text("licet: 1\nname: p\nallow: [run, read workdir/data]\n")
    return load_stack(str(file), PolicySource({}, folder / "none"))


def test_what_is_kept_is_bounded(ask: Asker) -> None:
    for _ in range(2):
        ask(code("#" * (MOST_CODE + 1)))
    assert ask.anew == 2
    for number in range(MOST_KEPT + 5):
        ask(code(str(number)))
    assert len(ask.repeats._under.kept) <= MOST_KEPT
