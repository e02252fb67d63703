"""YAML 1.2 with places, strict: what a person could misread is an error.

Rules this module keeps:

- every list and mapping knows the line and column of what stands in it;
- plain scalars follow the core schema of YAML 1.2, so `no`, `on` and `1_000` are texts;
- aliases, anchors, explicit tags, other versions of YAML, duplicate keys, keys that are no text and second
  documents are refused;
- a file is UTF-8, with or without a byte order mark;
- the size, the depth, the length of a list and the number of values are bounded while it is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import yaml

from licet.errors import InvalidPolicy, Position

MAX_BYTES = 4 << 20
MAX_DEPTH = 32
MAX_NODES = 500_000
MAX_ITEMS = 20_000

_Loader: Any = getattr(yaml, "CLoader", yaml.Loader)

_CORE: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"(?:~|null|Null|NULL|)"), lambda _: None),
    (re.compile(r"(?:true|True|TRUE|false|False|FALSE)"), lambda text: text.lower() == "true"),
    (re.compile(r"[-+]?[0-9]{1,300}"), int),
    (re.compile(r"0o[0-7]{1,300}"), lambda text: int(text[2:], 8)),
    (re.compile(r"0x[0-9a-fA-F]{1,300}"), lambda text: int(text[2:], 16)),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"\.(?:nan|NaN|NAN)"), lambda _: float("nan")),
)


_RESOLVED = frozenset("~nNtTfF+-.0123456789")
"""What a plain scalar begins with that may be anything else than a text; an empty one is null."""


class Items(list[Any]):
    """A list that knows where each item stands, as (line, column), and the style of texts not plain."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[tuple[int, int]] = []
        self.styles: dict[int, str] = {}


class Fields(dict[str, Any]):
    """A mapping that knows where each key stands, as (line, column), and each text, with its style."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[str, tuple[int, int]] = {}
        self.starts: dict[str, tuple[int, int, str]] = {}


def load(data: bytes, file: str) -> Any:
    """Build the one document in `data`; an empty file is None.

    Raises:
        InvalidPolicy: the data is no document of the strict kind above; with file, line and column.
    """
    if len(data) > MAX_BYTES:
        raise InvalidPolicy(f"the file is larger than {MAX_BYTES >> 20} MiB", where=Position(file))
    try:
        return _Builder(file).build(yaml.parse(data.decode("utf-8-sig"), Loader=_Loader))
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InvalidPolicy(f"not UTF-8 at byte {problem.start}", where=Position(file, line)) from None
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        where = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file)
        raise InvalidPolicy(f"not valid YAML: {problem.problem}", where=where) from None
    except yaml.YAMLError:
        raise InvalidPolicy(
            "not valid YAML: a character that no YAML file can hold", where=Position(file)
        ) from None


def resolved(text: str) -> Any:
    """What a plain scalar stands for; the very same text, if it is one."""
    if not text or text[0] in _RESOLVED:
        for pattern, convert in _CORE:
            if pattern.fullmatch(text):
                return convert(text)
    return text


class _Builder:
    """Builds values from parser events with a stack of its own, so that depth can't exhaust Python's."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._stack: list[Items | Fields] = []
        self._keys: list[str | None] = []
        self._nodes = 0
        self._root: Any = None
        self._documents = 0

    def build(self, events: Iterator[Any]) -> Any:
        for event in events:
            self._take(event)
        return self._root

    def _take(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._refuse_anchor(event)
            self._add(self._scalar(event), event)
        elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
            self._refuse_anchor(event)
            self._open(event)
        elif kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
            self._stack.pop()
            self._keys.pop()
        elif kind is yaml.AliasEvent:
            self._refuse_anchor(event)
        elif kind is yaml.DocumentStartEvent:
            self._begin(event)

    def _begin(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            self._fail("a second document begins here; a policy file holds one", event)
        if event.version not in (None, (1, 2)):
            self._fail("the policy language is YAML 1.2", event)

    def _open(self, event: Any) -> None:
        self._refuse_tag(event)
        if len(self._stack) >= MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels", event)
        container: Items | Fields = Items() if type(event) is yaml.SequenceStartEvent else Fields()
        self._add(container, event)
        self._stack.append(container)
        self._keys.append(None)

    def _add(self, value: Any, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._fail(f"more than {MAX_NODES} values", event)
        mark = event.start_mark
        place = (mark.line + 1, mark.column + 1)
        if not self._stack:
            self._root = value
        elif isinstance(top := self._stack[-1], Items):
            if len(top) >= MAX_ITEMS:
                self._fail(f"more than {MAX_ITEMS} items in one list", event)
            if isinstance(value, str) and (style := _style(event)):
                top.styles[len(top)] = style
            top.append(value)
            top.places.append(place)
        elif (key := self._keys[-1]) is None:
            self._keys[-1] = self._key(top, value, event, place)
        else:
            top[key] = value
            if isinstance(value, str):
                top.starts[key] = (*place, _style(event))
            self._keys[-1] = None

    def _key(self, top: Fields, value: Any, event: Any, place: tuple[int, int]) -> str:
        if not isinstance(value, str):
            self._fail(f"a key has to be a text, not `{value}`; put it in quotes", event)
        if value in top:
            self._fail(f"the key `{value}` stands in line {top.places[value][0]} already", event)
        top.places[value] = place
        return value

    def _scalar(self, event: Any) -> Any:
        self._refuse_tag(event)
        return resolved(event.value) if event.implicit[0] else event.value

    def _refuse_anchor(self, event: Any) -> None:
        if event.anchor is not None:
            self._fail("anchors and aliases are not part of the policy language", event)

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            self._fail("explicit tags are not part of the policy language", event)

    def _fail(self, message: str, event: Any) -> NoReturn:
        mark = event.start_mark
        raise InvalidPolicy(message, where=Position(self._file, mark.line + 1, mark.column + 1))


def _style(event: Any) -> str:
    """How a text is written: "" for plain, a quotation mark, `|`, or `>` if its lines are folded."""
    folded = event.end_mark.line > event.start_mark.line and event.style != "|"
    return ">" if folded else event.style or ""
