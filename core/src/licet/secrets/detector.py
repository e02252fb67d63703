"""The detector that others keep: the rules of Kingfisher, which run in this process and ask nobody.

Rules this module keeps:

- a text is read in windows, so that it takes time in proportion to the text, whatever the text is; each
  has a part of the one before, so that nothing is cut apart that is shorter than that part;
- private keys of many lines are not its to find: their rule may take long, and `shapes` knows them;
- of a key in two parts both go: rules call one of them a helper, and that may be the secret one;
- it finds, and never tries out what it found: nothing of its validation or revocation is imported;
- where it says a secret is, the secret must stand; where it does not, every place counts where it stands.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from licet.scrubbing import Secret, plain

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

_guard = threading.Lock()

_SECRET_PART = re.compile(r"(?<!public-)(?:secret|key|token|passphrase|password)(?:\.\d+)?$")
"""How the name of a rule ends that finds the secret part of a key in two parts."""

_BEGIN = re.compile("-----BEGIN", re.IGNORECASE | re.ASCII)
_WINDOW = 64 << 10  # characters
_SHARED = 8 << 10  # characters
_PATIENCE_S = 10.0  # for one window


def secrets(text: str) -> Iterator[Secret]:
    """Every secret that a rule finds in `text`; some may be found twice.

    Raises:
        TimeoutError: the rules took too long.
        ValueError: a rule found what does not stand in the text.
    """
    text = _BEGIN.sub("     BEGIN", text)
    for first in range(0, max(len(text) - _SHARED, 1), _WINDOW - _SHARED):
        window = text[first : first + _WINDOW]
        if not plain(window):
            for one in _in_window(window):
                yield Secret(one.kind, first + one.start, first + one.end)


def _in_window(text: str) -> Iterator[Secret]:
    data = text.encode("utf-8", "replace")  # half a surrogate pair becomes one `?`
    findings = scanner().scan(data, timeout=_PATIENCE_S)
    parts = frozenset[str]().union(*(_parts_of(one.rule_id) for one in findings if one.visible))
    found = [
        (one.location["start_offset"], one.location["end_offset"], one.secret, one.rule_id)
        for one in findings
        if one.visible or one.rule_id in parts
    ]
    done = characters = 0
    for start, end, secret, rule in sorted(found):
        if not secret:
            continue
        if data[start:end] != secret.encode():
            yield from _anywhere(text, secret, kind_of(rule))
            continue
        characters += len(data[done:start].decode())
        done = start
        yield Secret(kind_of(rule), characters, characters + len(secret))


def _anywhere(text: str, secret: str, kind: str) -> Iterator[Secret]:
    start = text.find(secret)
    if start < 0:
        raise ValueError("a rule found what does not stand in the text")
    while start >= 0:
        yield Secret(kind, start, start + len(secret))
        start = text.find(secret, start + len(secret))


@lru_cache(maxsize=1024)
def kind_of(rule: str) -> str:
    """The kind that a rule finds: its name without that of its collection."""
    name = re.split(r"[./]", rule, maxsplit=1)[-1] if "/" not in rule else rule.rsplit("/", 1)[1]
    return re.sub(r"[^a-z0-9]+", "_", name.lower())[:60].strip("_") or "secret"


@lru_cache(maxsize=1024)
def _parts_of(rule: str) -> frozenset[str]:
    """The rules that find the other part of what `rule` finds, if that part is secret too."""
    others = (each["rule_id"] for each in scanner().rules.detail(rule)["depends_on_rule"])
    return frozenset(other for other in others if _SECRET_PART.search(other))


def is_installed() -> bool:
    """Whether the rules are there; nothing of them is loaded."""
    return find_spec("kingfisher_sdk") is not None


def scanner() -> Scanner:
    """The scanner of this process; the first call loads its rules, which takes from half a second to five."""
    with _guard:
        return _scanner()


@lru_cache(maxsize=1)
def _scanner() -> Scanner:
    from kingfisher_sdk import Rules, Scanner

    return Scanner(Rules(confidence="medium"), base64=False)
