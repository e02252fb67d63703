"""Indexes find what a walk over all entries finds, in the same order."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import paths
from licet.errors import Position
from licet.policy.index import EntryIndex, HostIndex, PathIndex, crowded, dead_entries
from licet.policy.patterns import Effect, Pattern, network, parse
from licet.request import Action
from licet.testing import strategies

HERE = Position("policy", 1)
TREE = ["/", "/a", "/a/b", "/a/b/c", "/a/d", "/a-b", "/a.b", "/ab", "/a0", "/e"]
GLOBS = ["*", "find*", "*_all", "f*d*", "find", "find_all", "pay", "p*y", "**"]
NAMES = ["find", "find_all", "pay", "zz"]
WORDS = ("any", "private")
EFFECTS = st.sampled_from(["allow", "ask", "deny"])


def entry(action: Action, target: str, gaps: Iterable[str], effect: Effect) -> Pattern | None:
    """An entry that says this, or None if it can't be said."""
    try:
        text = " except ".join([f"{action} {target}".strip(), *gaps])
        return parse(text, effect, base="/", where=HERE)
    except ValueError:
        return None


def entries_of(action: Action) -> st.SearchStrategy[list[Pattern]]:
    """Entries of one action, as a policy would bring them: in any order, more than once, with exceptions."""
    targets = {
        "network": strategies.host_patterns().map(str),
        "tool": st.sampled_from(GLOBS),
        "shell": st.just(""),
    }.get(action, st.sampled_from(TREE))
    gaps = st.lists(targets, max_size=2) if action != "shell" else st.just([])
    one = st.builds(entry, st.just(action), targets, gaps, EFFECTS).filter(lambda made: made is not None)
    return st.lists(one, max_size=8)  # type: ignore[arg-type]


def targets_of(action: Action) -> st.SearchStrategy[str]:
    """What is asked: single targets, and what other entries name."""
    if action == "network":
        return st.one_of(strategies.hosts(), strategies.host_patterns()).map(str)
    return st.sampled_from([*NAMES, *GLOBS] if action == "tool" else TREE)


ACTIONS: list[Action] = ["read", "write", "network", "tool"]
ASKED = st.sampled_from(ACTIONS).flatmap(
    lambda action: st.tuples(st.just(action), entries_of(action), targets_of(action))
)


@given(ASKED)
def test_an_index_finds_what_covers_a_target(asked: tuple[Action, list[Pattern], str]) -> None:
    action, entries, target = asked
    found = EntryIndex(action, entries).covering(target)
    assert found == [place for place, one in enumerate(entries) if one.covers(target)]


@given(ASKED)
def test_an_index_finds_what_touches_a_target(asked: tuple[Action, list[Pattern], str]) -> None:
    action, entries, target = asked
    found = EntryIndex(action, entries).touching(target)
    assert found == [place for place, one in enumerate(entries) if one.touches(target)]


PAIRS = st.sampled_from([*ACTIONS, "shell"]).flatmap(
    lambda action: st.tuples(st.just(action), entries_of(action), entries_of(action))
)


@given(PAIRS)
def test_an_index_finds_the_first_that_shadows(pair: tuple[Action, list[Pattern], list[Pattern]]) -> None:
    action, entries, others = pair
    index = EntryIndex(action, entries)
    for other in others:
        assert index.first_cover(other) == next((one for one in entries if one.shadows(other)), None)


MIXED = st.lists(st.sampled_from([*ACTIONS, "shell"]).flatmap(entries_of), max_size=3).map(
    lambda groups: [one for group in groups for one in group]
)


@given(MIXED, MIXED, MIXED)
def test_dead_entries_are_those_of_a_slow_walk(
    deny: list[Pattern], ask: list[Pattern], allow: list[Pattern]
) -> None:
    slow = [
        (one, next(other for other in stronger if other.shadows(one)))
        for stronger, group in ((deny, ask), ([*deny, *ask], allow))
        for one in group
        if any(other.shadows(one) for other in stronger)
    ]
    assert list(dead_entries(deny, ask, allow)) == slow


@given(st.lists(st.sampled_from(TREE)), st.sampled_from(TREE))
def test_paths_are_found_by_containment(targets: list[str], asked: str) -> None:
    index = PathIndex(targets)
    assert sorted(index.around(asked)) == [n for n, one in enumerate(targets) if paths.contains(one, asked)]
    inside = [n for n, one in enumerate(targets) if one != asked and paths.contains(asked, one)]
    assert sorted(index.inside(asked)) == inside


@given(st.lists(strategies.host_patterns()), st.one_of(strategies.hosts(), strategies.host_patterns()))
def test_hosts_are_found_by_what_they_cover(targets: list, asked: object) -> None:  # type: ignore[type-arg]
    index = HostIndex(targets)
    assert sorted(index.around(asked)) == [n for n, one in enumerate(targets) if one.covers(asked)]  # type: ignore[arg-type]
    meeting = [n for n, one in enumerate(targets) if one.meet(asked) is not None]
    assert sorted(index.touching(asked)) == meeting  # type: ignore[arg-type]


def test_entries_of_other_actions_are_no_part_of_an_index() -> None:
    read, write = (parse(f"{action} /a", "deny", base="/", where=HERE) for action in ("read", "write"))
    index = EntryIndex("read", [write, read])
    assert (index.entries, index.covering("/a/b")) == ((read,), [0])
    assert index.first_cover(write) is None


@pytest.mark.parametrize("action", ["shell", "run"])
def test_without_targets_every_entry_is_found(action: Action) -> None:
    one = parse(action, "deny", base="/", where=HERE)
    assert EntryIndex(action, [one]).covering(None) == [0]


def test_everything_covers_a_target_that_is_not_known() -> None:
    entries = [parse(f"network {t}", "deny", base="/", where=HERE) for t in ("a.example", "any")]
    assert EntryIndex("network", entries).covering(None) == [1]
    assert EntryIndex("network", entries).covering(str(network("10.0.0.1:80"))) == [1]


@pytest.mark.parametrize(
    ("texts", "most", "found"),
    [
        (["read /a", "read /a/b", "read /c"], 4, None),  # one over `/a`, two over `/a/b`, one over `/c`
        (["read /a", "read /a/b", "read /c"], 3, "read /c"),
        (["read /a except /a/b"], 4, None),  # the entry and its exception, for each of two targets
        (["read /a except /a/b"], 3, "read /a except /a/b"),
        (["read /a", "write /a", "shell"], 3, None),
    ],
)
def test_overlaps_are_counted_for_every_target(texts: list[str], most: int, found: str | None) -> None:
    entry = crowded([parse(text, "deny", base="/", where=HERE) for text in texts], most)
    assert (entry and entry.text) == found


def test_a_look_up_does_not_look_at_every_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = (f"read /a/{n} except /a/{n}/keys" for n in range(2000))
    entries = [parse(text, "allow", base="/", where=HERE) for text in texts]
    index = EntryIndex("read", entries)
    looked: list[Pattern] = []
    takes_out = Pattern.takes_out
    monkeypatch.setattr(Pattern, "takes_out", lambda self, t: looked.append(self) or takes_out(self, t))
    assert index.covering("/a/7/x") == [7]
    assert looked == [entries[7]]
