"""The YAML of policies: version 1.2, strict, bounded, with places."""

import itertools
import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import InvalidPolicy
from licet.policy.yaml import _CORE, _RESOLVED, MAX_BYTES, MAX_ITEMS, Fields, Items, load


def read(text: str) -> Any:
    return load(text.encode(), "f.yaml")


def refused(data: str | bytes) -> str:
    with pytest.raises(InvalidPolicy) as problem:
        load(data if isinstance(data, bytes) else data.encode(), "f.yaml")
    return str(problem.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("17", 17),
        ("-3", -3),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("1.5", 1.5),
        (".5e3", 500.0),
        ("-.inf", -math.inf),
        ("2001-01-01", "2001-01-01"),
        ("60s", "60s"),
        ("=", "="),
        ("'no'", "no"),
        ('"17"', "17"),
        ("|\n  17\n", "17\n"),
        (">-\n  a\n  b\n", "a b"),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    found = read(f"k: {text}")["k"]
    assert (found, type(found)) == (value, type(value))


def test_nan_is_a_number() -> None:
    assert math.isnan(read("k: .nan")["k"])


def test_everything_knows_its_place() -> None:
    tree = read("licet: 1\nlimits: {wall_time: 60s,\n  memory: 1GiB}\nallow:\n- read ./a\n-   run\n")
    assert isinstance(tree, Fields)
    assert tree.places == {"licet": (1, 1), "limits": (2, 1), "allow": (4, 1)}
    assert tree["limits"].places == {"wall_time": (2, 10), "memory": (3, 3)}
    assert isinstance(tree["allow"], Items)
    assert tree["allow"].places == [(5, 3), (6, 5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "f.yaml:3:1: the key `a` stands in line 1 already"),
        ("x: {a: 1, a: 1}", "f.yaml:1:11: the key `a` stands in line 1 already"),
        ("a: &x 1", "f.yaml:1:4: anchors and aliases are not part of the policy language"),
        ("&x a: 1", "f.yaml:1:1: anchors and aliases are not part of the policy language"),
        ("a: &x [1]", "f.yaml:1:4: anchors and aliases are not part of the policy language"),
        ("a: *x", "f.yaml:1:4: anchors and aliases are not part of the policy language"),
        ("a: !!str 1", "f.yaml:1:4: explicit tags are not part of the policy language"),
        (
            "a: !!python/object/apply:os.system ['id']",
            "f.yaml:1:4: explicit tags are not part of the policy language",
        ),
        ("a: ! 1", "f.yaml:1:4: explicit tags are not part of the policy language"),
        ("a: !!map {}", "f.yaml:1:4: explicit tags are not part of the policy language"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document begins here; a policy file holds one"),
        ("%YAML 1.1\n---\na: 1", "f.yaml:1:1: the policy language is YAML 1.2"),
        ("1: a", "f.yaml:1:1: a key has to be a text, not `1`; put it in quotes"),
        ("true: a", "f.yaml:1:1: a key has to be a text, not `True`; put it in quotes"),
        ("? [a]\n: b", "f.yaml:1:3: a key has to be a text, not `[]`; put it in quotes"),
        ("{~: a}", "f.yaml:1:2: a key has to be a text, not `None`; put it in quotes"),
        ("a: [1", "f.yaml:2:1: not valid YAML: did not find expected ',' or ']'"),
        ("a: b: c", "f.yaml:1:5: not valid YAML: mapping values are not allowed in this context"),
        ("\tb: 1", "f.yaml:1:1: not valid YAML: found character that cannot start any token"),
        ("a: \0", "f.yaml: not valid YAML: a character that no YAML file can hold"),
        ("a: \x1b[31m", "f.yaml: not valid YAML: a character that no YAML file can hold"),
    ],
)
def test_what_could_be_misread_is_refused_at_its_place(text: str, message: str) -> None:
    assert refused(text) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\nb: \xff", "f.yaml:2: not UTF-8 at byte 8"),
        ("a: 1".encode("utf-16"), "f.yaml:1: not UTF-8 at byte 0"),
        (b"a: \xed\xa0\x80", "f.yaml:1: not UTF-8 at byte 3"),
    ],
)
def test_a_file_is_utf8(data: bytes, message: str) -> None:
    assert refused(data) == message


def test_a_byte_order_mark_is_no_part_of_it() -> None:
    tree = load(b"\xef\xbb\xbflicet: 1", "f.yaml")
    assert (tree, tree.places) == ({"licet": 1}, {"licet": (1, 1)})
    assert load(b"a: 1\r\nb: 2\r\n", "f.yaml") == {"a": 1, "b": 2}


def test_no_merge_keys() -> None:
    assert read("<<: {a: 1}") == {"<<": {"a": 1}}


@pytest.mark.parametrize("character", ["x", "é"])
def test_a_file_has_a_size(character: str) -> None:
    just = f"# {character}\n" + "#\n" * 10
    assert load(just.encode(), "f.yaml") is None
    assert refused("# " + character * MAX_BYTES) == "f.yaml: the file is larger than 4 MiB"


@pytest.mark.parametrize(
    ("opening", "message"),
    [
        ("[", "not valid YAML: exceeded maximum nesting depth"),  # libyaml's own limit comes first
        ("{a: ", "nested deeper than 32 levels"),
        ("- ", "nested deeper than 32 levels"),
        ("? ", "a key has to be a text, not `{}`; put it in quotes"),
    ],
)
def test_depth_is_bounded_before_anything_overflows(opening: str, message: str) -> None:
    assert refused(opening * 100_000).partition(": ")[2] == message


def test_32_levels_are_enough_and_the_limit() -> None:
    assert read("[" * 32 + "]" * 32) is not None
    assert "nested deeper" in refused("[" * 33 + "]" * 33)


def test_a_list_has_a_length() -> None:
    assert len(read("- a\n" * MAX_ITEMS)) == MAX_ITEMS
    assert refused("- a\n" * (MAX_ITEMS + 1)) == "f.yaml:20001:3: more than 20000 items in one list"


def test_a_file_has_a_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("licet.policy.yaml.MAX_NODES", 5)
    assert read("a: [b, c]\n") == {"a": ["b", "c"]}
    assert refused("a: [b, c, d]") == "f.yaml:1:11: more than 5 values"


def test_every_plain_scalar_that_is_no_text_begins_as_the_short_cut_expects() -> None:
    """The slow reference: all patterns of the core schema, tried on everything short."""
    alphabet = "~nulNUtrefaFTo0x1.-+eE _i"
    for text in map("".join, itertools.product(alphabet, repeat=3)):
        if any(pattern.fullmatch(text) for pattern, _ in _CORE):
            assert text[0] in _RESOLVED


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    # a number with an exponent and no point is a text in YAML 1.1, which the other library writes
    st.text(st.characters(codec="ascii"), max_size=8).filter(
        lambda text: not re.fullmatch(r"[-+]?[0-9]+[eE][-+]?[0-9]+", text)
    ),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(TREES)
def test_what_another_library_writes_reads_back(tree: object) -> None:
    written = yaml.safe_dump({"k": tree}, default_flow_style=False, allow_unicode=True)
    assert read(written.replace("!!null ", "")) == {"k": tree}


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"%@`#,? \n\t0~"), max_size=40))
def test_any_text_is_read_or_refused_with_the_file(text: str) -> None:
    try:
        read(text)
    except InvalidPolicy as problem:
        assert str(problem).startswith("f.yaml:")
