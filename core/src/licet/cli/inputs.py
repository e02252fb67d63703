"""From the command line to a request: code, inputs, standard input, intents and limits.

Rules this module keeps:

- a pipe may stand for a file of code or input (process substitution), and is read to its end;
- what is larger than `MAX_READ` is refused, never cut;
- an error repeats only the beginning of what was given.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from licet.errors import UsageError
from licet.output import bounded
from licet.policy.patterns import canonical_target
from licet.request import Action, ExecutionRequest, Intent, Limits, Subject

MAX_READ = 256 << 20
"""How much of a file is read at most, in bytes; what policy admits is far less."""


def read_code(file: str | None, code: str | None) -> bytes | str:
    """The code from `-c`, a file, or `-` for standard input.

    Raises:
        UsageError: none or two of them were given, or the file can't be read.
    """
    if (file is None) == (code is None):
        raise UsageError("name one file, `-` for standard input, or give code with `-c`")
    if code is not None:
        return code
    assert file is not None
    return read_file(file)


def read_stdin(file: str | None, code_file: str | None) -> bytes:
    """What the code gets as standard input.

    Raises:
        UsageError: the file can't be read, or both the code and its input would come from stdin.
    """
    if file is None:
        return b""
    if file == code_file == "-":
        raise UsageError("the code and its input can't both come from standard input")
    return read_file(file)


def read_inputs(given: Iterable[str]) -> dict[str, Any]:
    """Inputs written as `NAME=JSON` or `NAME=@FILE`.

    Raises:
        UsageError: one of them is malformed; the message says which and where.
    """
    inputs: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"`--input {_short(text)}` is no `NAME=JSON` or `NAME=@FILE`")
        if name in inputs:
            raise UsageError(f"the input `{_short(name)}` is given twice")
        inputs[name] = _json(name, _text(value[1:]) if value.startswith("@") else value)
    return inputs


def named_files(given: Iterable[str]) -> dict[str, str]:
    """Files written as `NAME=PATH`, by name; paths are relative to the current directory.

    Raises:
        UsageError: one of them is malformed.
    """
    files: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise UsageError(f"`--file {_short(text)}` is no `NAME=PATH`")
        if name in files:
            raise UsageError(f"the file `{_short(name)}` is given twice")
        files[name] = os.path.abspath(path)  # noqa: PTH100 (a Path would not keep a last slash)
    return files


def intents(
    read: Sequence[str], write: Sequence[str], network: Sequence[str], shell: bool
) -> tuple[Intent, ...] | None:
    """The intents that flags declare; None if there are none. Paths are relative to the current
    directory.

    Raises:
        UsageError: a target is malformed.
    """
    spelled: list[tuple[Action, str]] = [
        *(("read", target) for target in read),
        *(("write", target) for target in write),
        *(("network", target) for target in network),
        *((("shell", ""),) if shell else ()),
    ]
    if not spelled:
        return None
    found = []
    for action, target in spelled:
        try:
            found.append(Intent(action, canonical_target(action, target, base=str(Path.cwd()))))
        except ValueError as problem:
            raise UsageError(
                f"`--{action} {_short(target)}` can't be understood: {bounded(str(problem), 300)}"
            ) from None
    return tuple(found)


def request(
    code: bytes | str,
    *,
    inputs: dict[str, Any],
    stdin: bytes,
    files: dict[str, str],
    declared: tuple[Intent, ...] | None,
    timeout: str | None,
) -> ExecutionRequest:
    """Put a request together, on behalf of the user of the operating system.

    Raises:
        UsageError: the timeout is no duration.
    """
    from licet import units

    try:
        limits = Limits(wall_time=units.duration(timeout)) if timeout is not None else Limits()
    except ValueError as problem:
        raise UsageError(f"`--timeout`: {problem}") from None
    return ExecutionRequest(
        code=code,
        inputs=inputs,
        stdin=stdin,
        files=files,
        intents=declared,
        limits=limits,
        subject=os_user(),
    )


def os_user() -> Subject:
    """The user that the operating system vouches for, never one from the environment."""
    if sys.platform == "win32":
        return Subject(type="user", id=os.getlogin(), asserted_by="os")
    import pwd

    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid:{uid}"
    return Subject(type="user", id=name, asserted_by="os")


def os_groups() -> tuple[str, ...]:
    """The groups of this process, as the operating system names them; none where it has none."""
    if sys.platform == "win32":
        return ()
    import grp

    found = []
    for number in sorted({os.getgid(), *os.getgroups()}):
        try:
            found.append(grp.getgrgid(number).gr_name)
        except KeyError:
            found.append(f"gid:{number}")
    return tuple(found)


def _json(name: str, source: str) -> Any:
    try:
        return parse_json(source)
    except json.JSONDecodeError as problem:
        place = f"line {problem.lineno}, column {problem.colno}"
        raise UsageError(
            f"the input `{_short(name)}` is no JSON: {problem.msg.lower()} ({place})",
            advice=f"write texts in quotes, such as `--input '{_short(name)}=\"text\"'`",
        ) from None
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"the input `{_short(name)}` can't be used: {bounded(str(problem), 300)}") from None


def parse_json(source: str) -> Any:
    """The one JSON value in `source`; a key stands in an object once.

    Raises:
        json.JSONDecodeError: it is none; with line and column.
        ValueError: a key stands in it twice, or it has a number that JSON has not.
        RecursionError: it is nested too deep.
    """
    return json.loads(source, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key stands in it twice")
    return content


def _no_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is no JSON number")


def _text(file: str) -> str:
    try:
        return read_file(file).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UsageError(f"`{_short(file)}` is not UTF-8 at byte {problem.start}") from None


def read_file(file: str) -> bytes:
    """All of a file, or of standard input for `-`.

    Raises:
        UsageError: it can't be read, or is larger than `MAX_READ`.
    """
    try:
        with open(0, "rb", closefd=False) if file == "-" else Path(file).open("rb") as opened:
            data = opened.read(MAX_READ + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise UsageError(f"`{_short(file)}` can't be read: {reason[:1].lower()}{reason[1:]}") from None
    if len(data) > MAX_READ:
        raise UsageError(f"`{_short(file)}` is larger than {MAX_READ >> 20} MiB")
    return data


def _short(given: str) -> str:
    return bounded(given, 80)
