"""The environment of a new process on Windows, where names have no case.

Rules this module keeps: the block holds exactly what is given, and besides it only what no program can start
without (`NEEDED`), taken from the host where it is not given; two names for one variable are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

NEEDED = ("SystemRoot",)
"""Without it Windows finds neither its libraries nor its sockets."""


def block(given: Mapping[str, str], host: Mapping[str, str]) -> bytes:
    """Return the environment block, sorted as Windows wants it, in UTF-16LE.

    Raises:
        ValueError: a name or a value can't stand in it; the text tells which.
    """
    variables: dict[str, tuple[str, str]] = {}
    for name, value in given.items():
        _check(name, value)
        key = upcase(name)
        if key in variables:
            raise ValueError(f"`{variables[key][0]}` and `{name}` name the same variable here")
        variables[key] = (name, value)
    known = {upcase(name): value for name, value in host.items()}
    for name in NEEDED:
        key = upcase(name)
        if key not in variables and key in known:
            variables[key] = (name, known[key])
    lines = [f"{name}={value}\0" for _, (name, value) in sorted(variables.items())]
    return ("".join(lines or ["\0"]) + "\0").encode("utf-16-le", "surrogatepass")


def upcase(name: str) -> str:
    """The upper case that Windows compares by: character for character, so that no length changes."""
    return "".join(upper if len(upper := character.upper()) == 1 else character for character in name)


def _check(name: str, value: str) -> None:
    if not name or "=" in name or "\0" in name:
        raise ValueError(f"`{name}` can't be the name of a variable")
    if "\0" in value:
        raise ValueError(f"the value of `{name}` holds a NUL")
