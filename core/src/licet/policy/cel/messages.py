"""What the library says, in the words of a policy.

Rules this module keeps: a message names what the author wrote, never a message or a function of the library;
what is not understood is passed on in one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from licet.policy.advice import nearest
from licet.policy.cel.schema import CALL_VARIABLES, INTENT, VARIABLES, fields_of
from licet.policy.signatures import Signature

_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): ([^\n]*)")
_FIELD = re.compile(r"undefined field '([^']*)' not found in struct 'licet\.(\w+)'")
_NAME = re.compile(r"undeclared reference to '([^']*)'")
_OVERLOAD = re.compile(r"found no matching overload for '([^']*)' applied to '(.*)'")
_SYNTAX = re.compile(r"Syntax error: (.*)")
_ABSENT = re.compile(r'No value with name "([^"]*)"')
_KEY = re.compile(r'Key not found in map : "?(.*?)"?$')
_FAILED_OVERLOAD = re.compile(r"No matching overloads found : (\S+?)\((.*)\)")

_PATHS = {"Subject": "subject", "Request": "request", "Limits": "request.limits", "Args": "args"}
_TYPES = (
    ("google.protobuf.Timestamp", "timestamp"),
    ("google.protobuf.Duration", "duration"),
    ("licet.", ""),
)


def compile_error(text: str, signature: Signature | None, calls: bool) -> tuple[int, int, str, str | None]:
    """Line and column (1-based, in characters), message and advice of a refusal by the compiler."""
    match = _ERROR.search(text)
    if match is None:
        if "recursion" in text:
            return 1, 1, "the condition is nested too deep", "split it into a list of shorter texts"
        return 1, 1, _one_line(text), None
    line, column, words = int(match[1]), int(match[2]), match[3].removesuffix(" [INVALID_ARGUMENT]")
    if (name := _NAME.search(words)) and (dot := name[1].rfind(".")) > 0:
        column = max(1, column - dot)  # of `a.b.c` it tells the last dot, and nobody knows `a`
    return line, column, *_explain(words, signature, calls)


def _explain(words: str, signature: Signature | None, calls: bool) -> tuple[str, str | None]:
    if match := _FIELD.search(words):
        path = _PATHS.get(match[2], "an intent")
        known: Iterable[str] = fields_of(path, signature) or INTENT
        shown = f"`{path}`" if path in _PATHS.values() else path
        return f"`{match[1]}` is no field of {shown}", nearest(match[1], known)
    if match := _NAME.search(words):
        name = match[1].partition(".")[0]
        if name in CALL_VARIABLES and not calls:
            return (
                f"`{name}` is known only where a tool is called",
                "read it in a rule about tools, such as `ask: tool NAME`",
            )
        return f"unknown name `{name}`", nearest(name, [*VARIABLES, *(CALL_VARIABLES if calls else ())])
    if match := _OVERLOAD.search(words):
        return f"`{match[1].strip('_@')}` does not fit {_types(match[2].strip('()'))}", None
    if match := _SYNTAX.search(words):
        return f"not valid CEL: {match[1].partition(' expecting')[0]}", None
    return _types(words), None


def type_name(name: str) -> str:
    """A type of the library, as the docs call it."""
    return _types(name).lower()


def _types(words: str) -> str:
    for theirs, ours in _TYPES:
        words = words.replace(theirs, ours)
    return words


def unknown(error: str, unreadable: Mapping[str, str], text: str) -> str:
    """Why the evaluation of `text` has no answer; never shows what a request holds."""
    if match := _ABSENT.search(error):
        name = match[1].removeprefix("has ")
        return (
            f"`{name}` can't be read: {unreadable[name]}" if name in unreadable else f"`{name}` is not known"
        )
    if match := _KEY.search(error):
        return f"there is no `{match[1]}`" if match[1] in text else "a key that it reads is not there"
    if match := _FAILED_OVERLOAD.search(error):
        return f"`{match[1].strip('_@')}` does not fit {match[2].replace('int64', 'int')}"
    return next(
        (words for sign, words in _FAILURES.items() if sign in error.lower()), "it can't be evaluated"
    )


_FAILURES = {
    "iteration budget": "it takes more than the 10,000 steps that a condition may take",
    "overflow": "a number in it grows too large",
    "out of range": "a number in it grows too large",
    "divide by zero": "it divides by zero",
    "modulus by zero": "it divides by zero",
    "index error": "a list in it is shorter",
    "convert": "a text in it can't be converted",
    "conversion": "a text in it can't be converted",
    "non-message": "a value in it has no fields",
}


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    line = re.sub(r"^[A-Z_]+: ", "", line)
    line = re.sub(r" \[[A-Z_]+\]$", "", line)
    line = line[:1].lower() + line[1:]
    return line if len(line) <= 200 else f"{line[:199]}…"
