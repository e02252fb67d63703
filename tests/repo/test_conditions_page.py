"""The page about conditions says what the code does: every field and key, and examples that compile."""

from __future__ import annotations

import re
from pathlib import Path

from licet.errors import Position
from licet.policy import during, leaves
from licet.policy.cel import engine
from licet.policy.cel.schema import CALL_VARIABLES, INTENT, MESSAGES, VARIABLES
from licet.policy.conditions import build, check_calls
from licet.policy.signatures import KINDS, parse_tools
from licet.policy.yaml import Fields, Items, load

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conditions.md"
LANGUAGE = PAGE.with_name("policy.md")
TEXT = PAGE.read_text("utf-8")
EXAMPLES = [load(block.encode(), PAGE.name) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.S)]


def section(page: Path, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    return re.split(r"\n#{2,3} ", page.read_text("utf-8").split(heading, 1)[1], maxsplit=1)[0]


def rows(heading: str) -> dict[str, str]:
    """The first two columns of the tables below a heading."""
    listed = re.findall(r"^\| `([^`|]+)` \| ([^|]*?) \|", section(PAGE, heading), re.MULTILINE)
    return {name: kind.strip() for name, kind in listed}


def test_every_field_is_listed_with_its_type_and_no_other() -> None:
    fields = {f"{path}.{name}": str(kind) for path, table in MESSAGES.items() for name, kind in table.items()}
    expected = {**fields, **{name: str(kind) for name, kind in INTENT.items()}}
    expected["request.metadata"] = "map of string"
    listed = rows("### What a text may read")
    variables = {name for name in listed if name in (*VARIABLES, *CALL_VARIABLES)}
    assert variables == {"language", "now", "tool", "args"}
    assert {name: kind for name, kind in listed.items() if name not in variables} == expected


def test_every_key_is_listed_and_no_other() -> None:
    mappings, windows = (section(LANGUAGE, name) for name in ("### Keys of a mapping", "### During"))
    listed = "".join(re.findall(r"^\|[^|]*\|", mappings, re.MULTILINE))
    assert set(re.findall(r"`([\w.]+): [^`]+`", listed)) == set(leaves.KEYS)
    [example] = re.findall(r"```yaml\n(.*?)```", windows, re.DOTALL)
    assert set(load(example.encode(), LANGUAGE.name)["during"]) == set(during.KEYS)


def test_every_type_of_parameters_is_listed() -> None:
    listed = re.findall(r"^\| `([a-z]+)`", TEXT.split("### Arguments of tools", 1)[1], re.MULTILINE)
    assert set(listed) == set(KINDS)


def test_every_example_compiles() -> None:
    declared = next(tree for tree in EXAMPLES if isinstance(tree, Fields))
    tools = parse_tools(declared["tools"], PAGE.name, Position(PAGE.name))
    rules = [rule for tree in EXAMPLES if isinstance(tree, Items) for rule in tree]
    built = {
        rule["id"]: build(rule, file=PAGE.name, engine=engine, calls="tool" in rule.get("ask", ""))
        for rule in rules
    }
    for condition in built.values():
        check_calls(condition, tools)
    assert {name: len(condition.leaves) for name, condition in built.items()} == {
        "big-refund": 1,
        "weekend": 2,
        "contractors": 3,
        "dated-waiver": 2,
        "freeze": 1,
        "night-shift": 1,
    }
    assert [name for name, condition in built.items() if condition.reads_call] == ["big-refund"]
