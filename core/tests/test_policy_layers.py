"""The entries of a document are found as a walk over all of them would, wherever a run binds them to."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import paths
from licet.errors import InvalidPolicy, Position
from licet.policy.layers import Entries
from licet.policy.patterns import Effect, Pattern, parse
from licet.request import Action

TARGETS = ["/", "/a", "/a/b", "/a/b/c", "/d", "workdir", "workdir/b", "workdir/b/c"]
ASKED = ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/d", "/e"]
EFFECTS: list[Effect] = ["allow", "ask", "deny"]
ACTIONS: list[Action] = ["read", "write"]


def entry(action: Action, effect: Effect, target: str, gaps: list[str]) -> Pattern | None:
    """An entry, or None if it can't be said."""
    try:
        text = " except ".join([f"{action} {target}", *gaps])
        return parse(text, effect, base="/", where=Position("policy", 1))
    except ValueError:
        return None


ENTRIES = st.lists(
    st.builds(
        entry,
        st.sampled_from(ACTIONS),
        st.sampled_from(EFFECTS),
        st.sampled_from(TARGETS),
        st.lists(st.sampled_from(TARGETS), max_size=2),
    ).filter(lambda made: made is not None),
    max_size=8,
)


@given(ENTRIES, st.sampled_from(["/a", "/d"]), st.sampled_from(ASKED), st.sampled_from(ACTIONS))
def test_bound_entries_are_found_as_by_a_walk(
    given_entries: list[Pattern], workdir: str, asked: str, action: Action
) -> None:
    entries = Entries(given_entries)
    here = entries.bound(entries.bind(workdir))
    bound = [one.bind(workdir) for one in given_entries]
    mine = [one for one in bound if one.action == action]
    assert here.covering(action, asked) == [one for one in mine if one.covers(asked)]
    assert here.touching(action, asked) == [one for one in mine if one.touches(asked)]
    points = {target for one in mine for target in (one.target, *one.excepts) if target is not None}
    assert here.points(action) == points
    inside = {point for point in points if point != asked and paths.contains(asked, point)}
    assert here.points_inside(action, asked) == inside
    assert here.mentions(action) == any(one.effect != "deny" for one in mine)
    assert here.name(action) == bool(mine)


def test_what_was_bound_for_one_run_is_not_found_in_another() -> None:
    read = parse("read workdir", "allow", base="/", where=Position("policy", 1))
    entries = Entries([read])
    here, there = (entries.bound(entries.bind(workdir)) for workdir in ("/a", "/d"))
    assert [one.covering("read", "/a") for one in (here, there, entries)] == [[read.bind("/a")], [], []]


def test_where_an_entry_can_not_be_bound_the_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    entries = Entries([parse("read workdir/loop", "allow", base="/", where=Position("policy", 3))])
    with pytest.raises(InvalidPolicy, match="policy:3: `read workdir/loop` can't be used here"):
        entries.bind(str(tmp_path))
