"""Entries put into the text of a policy: all else stays, and what is added reads as its neighbours do."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.policy.yaml import load
from licet.workbench.yamltext import NotEditable, with_allowed

ONE = ("read ./new",)
TWO = ("read ./new", "tool find")


@pytest.mark.parametrize(
    ("before", "entries", "after"),
    [
        ("licet: 1\n", TWO, "licet: 1\nallow:\n  - read ./new\n  - tool find\n"),
        ("licet: 1", ONE, "licet: 1\nallow:\n  - read ./new\n"),
        ("licet: 1\n# the end\n", ONE, "licet: 1\n# the end\nallow:\n  - read ./new\n"),
        ("---\nlicet: 1\n...\n", ONE, "---\nlicet: 1\nallow:\n  - read ./new\n...\n"),
        ("  licet: 1\n", ONE, "  licet: 1\n  allow:\n    - read ./new\n"),
        ("licet: 1\nallow: []\n", TWO, "licet: 1\nallow: [read ./new, tool find]\n"),
        (
            "allow: [read ./a] # mine\nlicet: 1\n",
            TWO,
            "allow: [read ./a, read ./new, tool find] # mine\nlicet: 1\n",
        ),
        ("licet: 1\nallow: [ read ./a ,]\n", TWO, "licet: 1\nallow: [ read ./a , read ./new, tool find,]\n"),
        (
            "allow: [\n  read ./a, # why, and why\n  'read ./b' # so\n]\nlicet: 1\n",
            TWO,
            "allow: [\n  read ./a, # why, and why\n  'read ./b', # so\n"
            "  read ./new,\n  tool find\n]\nlicet: 1\n",
        ),
        (
            "allow: [\n  read ./a, # a, b\n]\nlicet: 1\n",
            TWO,
            "allow: [\n  read ./a, # a, b\n  read ./new,\n  tool find,\n]\nlicet: 1\n",
        ),
        (
            "allow:\n  - read ./a # a\n  - read ./b   # b\n\n# about deny\ndeny: [shell]\n",
            TWO,
            "allow:\n  - read ./a # a\n  - read ./b   # b\n"
            "  - read ./new\n  - tool find\n\n# about deny\ndeny: [shell]\n",
        ),
        ("allow: [shell,\n  read ./a] # a\n", ONE, "allow: [shell,\n  read ./a,\n  read ./new] # a\n"),
        ("allow:\n- read ./a\n", ONE, "allow:\n- read ./a\n- read ./new\n"),
        ("allow:\n  -  read ./a", ONE, "allow:\n  -  read ./a\n  -  read ./new\n"),
        ("{licet: 1}\n", TWO, "{licet: 1, allow: [read ./new, tool find]}\n"),
        ("{licet: 1, allow: [shell]}", ONE, "{licet: 1, allow: [shell, read ./new]}"),
        ("licet: 1\r\nallow:\r\n  - shell\r\n", ONE, "licet: 1\r\nallow:\r\n  - shell\r\n  - read ./new\r\n"),
        ("licet: 1\r\nenv: {A: b}\r\n", ONE, "licet: 1\r\nenv: {A: b}\r\nallow:\r\n  - read ./new\r\n"),
        ("licet: 1\n", ("read ./a: b",), 'licet: 1\nallow:\n  - "read ./a: b"\n'),
        ("licet: 1\n", ("read ./a #b",), 'licet: 1\nallow:\n  - "read ./a #b"\n'),
        ("allow: [shell]\n", ("read ./a, b",), 'allow: [shell, "read ./a, b"]\n'),
        ("licet: 1\n", ("read ./ä",), "licet: 1\nallow:\n  - read ./ä\n"),
        ("licet: 1\n", ("read ./\u202ea",), 'licet: 1\nallow:\n  - "read ./\\U0000202ea"\n'),
    ],
)
def test_entries_stand_where_a_person_would_put_them(
    before: str, entries: tuple[str, ...], after: str
) -> None:
    assert with_allowed(before, entries) == after
    kept = (load(before.encode(), "") or {}).get("allow", [])
    assert load(after.encode(), "")["allow"] == [*kept, *entries]


@pytest.mark.parametrize("text", ["", "- a\n", "{}", "allow: 1\n", "a: [", "allow:\n  ? x\n"])
def test_what_has_no_place_for_them_is_refused(text: str) -> None:
    with pytest.raises(NotEditable):
        with_allowed(text, ONE)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda t: f"read ./{t}"), min_size=1
    )
)
def test_whatever_the_name_it_is_read_back(entries: list[str]) -> None:
    for text in ("licet: 1\n", "allow: [shell]\n", "allow:\n  - shell\n"):
        assert load(with_allowed(text, entries).encode(), "")["allow"][-len(entries) :] == entries


def test_every_policy_of_this_repository_can_be_added_to() -> None:
    root = Path(__file__).parents[2]
    files = [file for file in root.glob("policies/src/**/*.yaml") if b"licet:" in file.read_bytes()]
    assert files
    for file in files:
        text = file.read_text("utf-8")
        said = load(text.encode(), "")
        assert load(with_allowed(text, TWO).encode(), "") == {**said, "allow": [*said.get("allow", []), *TWO]}
