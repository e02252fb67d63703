"""The text of code before it is parsed: is it safe to parse, and does it show what it is?

Rules this module keeps:

- nothing here is worse than linear in the length of the text;
- what CPython's parser takes too long or too much memory for is refused before: dotted names and format
  fields cost it the square of their number (a 1 MB f-string takes 3.11 more than a minute), and a syntax
  node costs about a kilobyte;
- what remains too deep for the parser is refused by the parser itself, and becomes a violation here; it is
  parsed on a stack that is large enough for that;
- warnings that parsing gives neither show nor become errors.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from encodings.aliases import aliases as _CODECS

from licet.output import bounded
from licet.request import Violation
from licet.screen.codes import violation
from licet.screen.room import with_room
from licet.screen.rules import words

MAX_CHARACTERS = 1 << 20
MAX_TOKENS = 100_000
MAX_DOTTED_NAME = 4_000
MAX_EXCERPT = 80
_MAX_FIELD_COST = 1 << 31
_SMALL = 1 << 14

_FILE = "<licet screen>"
_QUIET = re.escape(_FILE)
_DOTTED = re.compile(r"\w++(?:\s*+\.\s*+\w++){16,}+")
_TOKEN = re.compile(
    r"""[A-Za-z]{0,2}(?:
        \"{3}(?:[^"\\]|\\.|"(?!""))*+(?:\"{3}|\Z)? | '{3}(?:[^'\\]|\\.|'(?!''))*+(?:'{3}|\Z)?
      | "(?:[^"\\\n]|\\.)*+["\n]? | '(?:[^'\\\n]|\\.)*+['\n]?
    ) | \#[^\n]*+ | \w++ | [^\w\s]""",
    re.DOTALL | re.VERBOSE,
)
_ATOM = re.compile(r"\w+|[^\w\s]")
_UNPARSABLE = re.compile("[\0\ud800-\udfff]")
_CONTROL = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
_INVISIBLE = re.compile(
    "[\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
_LOOKALIKE = re.compile("[ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο\u0400-\u052f\u0530-\u058f\u13a0-\u13ff]")
_LATIN = re.compile("[A-Za-z]")
_IGNORABLE = re.compile("[\u034f\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_NO_CODE = re.compile(r"[ \t\f]*(?:#.*)?")
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_PLAIN_CODECS = words("utf utf8 utf_8 u8 ascii us_ascii utf8_ucs2 utf8_ucs4 cp65001")
_MORE_CODECS = words("raw_unicode_escape unicode_escape idna punycode undefined mbcs oem palmos utf_8_sig")


def complexity(code: str) -> Violation | None:
    """Return the violation of code that is too large or costly to parse, else None."""
    if len(code) > MAX_CHARACTERS:
        return violation("too_complex", None, f"{len(code)} characters of code, at most {MAX_CHARACTERS}")
    if code.count(".") > 16:
        for match in _DOTTED.finditer(code):
            if match.end() - match.start() > MAX_DOTTED_NAME:
                return violation(
                    "too_complex", _line(code, match.start()), "a dotted name of excessive length"
                )
    if len(code) > _SMALL:
        return _volume(code)
    return None


def _volume(code: str) -> Violation | None:
    tokens = field_cost = 0
    for match in _TOKEN.finditer(code):
        text = match[0]
        tokens += 1
        if text[-1] in "\"'" and "f" in text[:2].lower():
            tokens += len(_ATOM.findall(text))
            field_cost += text.count("{") * len(text)
        if tokens > MAX_TOKENS or field_cost > _MAX_FIELD_COST:
            return violation(
                "too_complex", _line(code, match.start()), f"more than {MAX_TOKENS} pieces of syntax"
            )
    return None


def deception(code: str) -> list[Violation]:
    """Return what in the text hides code from a reader: control and bidi characters, odd names, cookies."""
    found = []
    control = _CONTROL.search(code)
    if control is not None:
        found.append(_hidden(code, control.start()))
    if "coding" in code:
        found += _cookies(code)
    if not code.isascii():
        invisible = _INVISIBLE.search(code, 1 if code.startswith("\ufeff") else 0)
        if invisible is not None:
            found.append(_hidden(code, invisible.start()))
        found += _odd_names(code)
    return found


def unparsable(code: str) -> Violation | None:
    """Return the violation of text that is no text at all (NUL, lone surrogates), else None."""
    match = _UNPARSABLE.search(code)
    return None if match is None else _hidden(code, match.start())


def _hidden(code: str, offset: int) -> Violation:
    return violation(
        "deceptive_source", _line(code, offset), f"character U+{ord(code[offset]):04X} in the code"
    )


def _cookies(code: str) -> list[Violation]:
    found = []
    found_code = False
    for number, line in enumerate(_LINE_END.split(code.removeprefix("\ufeff"), maxsplit=2)[:2], 1):
        if number == 2 and found_code:
            break
        found_code = not _NO_CODE.fullmatch(line)
        match = _COOKIE.match(line)
        name = match[1].lower().replace("-", "_").replace(".", "_") if match else ""
        known = name in _CODECS or name in _CODECS.values() or name in _MORE_CODECS
        if known and name not in _PLAIN_CODECS:
            found.append(violation("deceptive_source", number, f"source encoding `{name}`"))
    return found


def _odd_names(code: str) -> list[Violation]:
    """Names that an interpreter reads as other letters than a reader sees."""
    found = []
    seen: set[str] = set()
    for match in _TOKEN.finditer(code):
        word = match[0]
        unseen = _IGNORABLE.match(word)  # invisible, and part of the name before it
        if word.isascii() or word in seen or not (unseen or word.isidentifier()):
            continue
        seen.add(word)
        folded = any(unicodedata.normalize("NFKC", sign).isascii() for sign in word if not sign.isascii())
        if unseen or folded or (_LOOKALIKE.search(word) and _LATIN.search(word)):
            found.append(violation("deceptive_source", _line(code, match.start()), f"name {word[:40]!a}"))
    return found[:16]


def _line(code: str, offset: int) -> int:
    return code.count("\n", 0, offset) + 1


def parse(code: str) -> ast.Module | Violation:
    """Parse code that passed `complexity` and `unparsable`.

    Returns the tree, or a violation: `too_complex` when it is too deep, `syntax_error` when it is no Python.
    """
    for _ in range(3):
        if not _quiet():
            warnings.filterwarnings("ignore", module=_QUIET)
        try:
            return with_room(lambda: _tree(code.removeprefix("\ufeff")))
        except SyntaxError as error:
            if _quiet():
                line = min(error.lineno or 1, code.count("\n") + 1)
                message = (error.msg or "invalid syntax").split(" (<")[0]
                return Violation("syntax_error", line, message, _advice(code, error))
        except (MemoryError, RuntimeError, OverflowError):  # too deep, or no room to parse it in
            return violation("too_complex", None, "deeply nested code")
        except ValueError as error:
            return Violation("syntax_error", None, str(error), "correct the code")
    return violation("too_complex", None, "warnings of the parser can't be kept apart")


def _tree(code: str) -> ast.Module:
    tree = compile(code, _FILE, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    return tree


def _advice(code: str, error: SyntaxError) -> str:
    if code.lstrip().startswith("```"):
        return "send the code alone, without the Markdown fence around it"
    text, column = (error.text or "").rstrip(), error.offset or 0
    if not text or column < 1:
        return "correct the code"
    start = max(column - MAX_EXCERPT // 2, 0) if len(text) > MAX_EXCERPT else 0
    return f"correct it at column {column}: `{'…' if start else ''}{bounded(text[start:], MAX_EXCERPT)}`"


def _quiet() -> bool:
    """Whether the first warning filter is the one that drops what the parser says about `_FILE`.

    `warnings.catch_warnings` is not safe with threads: it would bring back another thread's filters. One
    filter that names nothing but our pseudo file harms nobody, and is put first again where it no longer is.
    """
    first = warnings.filters[0] if warnings.filters else None
    return first is not None and first[0] == "ignore" and getattr(first[3], "pattern", None) == _QUIET
