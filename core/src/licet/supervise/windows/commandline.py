"""A list of arguments as the one text that Windows hands to a program.

Rules this module keeps: a program that splits its command line by the rules of the C runtime gets exactly the
arguments that were given; there is no shell, and nothing that would start one is accepted.
"""

from __future__ import annotations

import re

LONGEST = 32_766
"""UTF-16 units that a command line may have, without its end."""

_PLAIN = re.compile(r'[^\s"]+')
_TO_DOUBLE = re.compile(r'(\\*)("|\Z)')
_BATCH = (".bat", ".cmd")


def join(arguments: tuple[str, ...]) -> str:
    """Return the command line of `arguments`, the first of which names the program.

    Raises:
        ValueError: no command line says this, or it would be read by other rules; the text tells why.
    """
    program, *rest = arguments
    if '"' in program:
        raise ValueError("the path of a program holds a quotation mark")
    if program.rstrip(" .").lower().endswith(_BATCH):
        raise ValueError("a batch file is run by a shell, which reads arguments by rules of its own")
    line = " ".join((f'"{program}"', *map(quote, rest)))
    if len(line.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST:
        raise ValueError(f"the command line is longer than {LONGEST} characters")
    return line


def quote(argument: str) -> str:
    """Quote one argument: backslashes count only before a quotation mark, and are doubled there."""
    if _PLAIN.fullmatch(argument):
        return argument
    return '"' + _TO_DOUBLE.sub(lambda found: found[1] * 2 + (found[2] and '\\"'), argument) + '"'
