"""A request as bytes and back, as the store keeps it until its approval is over.

Rules this module keeps:

- what comes back is the request as it was asked, each text a text and each run of bytes bytes, in the
  directory that it was asked in;
- of tools only the names are kept: whoever goes on passes those very names again, and what the tools are is
  part of the plan that was approved;
- whatever can't be read, or was written by a later version, never runs.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from licet import toolkits, values
from licet.errors import SuspensionVoid
from licet.output import bounded
from licet.request import ExecutionRequest, Intent, Limits, Subject

VERSION = 1
_FIELDS = frozenset(ExecutionRequest.model_fields)
_START_AGAIN = "run the code again; what can't be read as it was asked never runs"


def freeze(request: ExecutionRequest, workdir: str) -> bytes:
    """A request as bytes; `workdir` is the absolute directory that it is asked in, whatever it says itself.

    Raises:
        ValueError: the directory is relative, or an input can't cross.
    """
    if not Path(workdir).is_absolute():
        raise ValueError(f"`{workdir}` is no absolute path, and depends on where the run goes on")
    said: dict[str, Any] = {
        "code": _content(request.code),
        "inputs": values.exactly(dict(request.inputs)),
        "stdin": _content(request.stdin),
        "workdir": workdir,
        "limits": request.limits.stated(),
        "env": dict(request.env),
        "intents": None if request.intents is None else [asdict(intent) for intent in request.intents],
        "tools": list(request.tools),
        "files": dict(request.files),
        "subject": request.subject.model_dump(),
        "requirements": dict(request.requirements),
        "metadata": dict(request.metadata),
        "learn": request.learn,
    }
    return json.dumps({"licet": VERSION, "request": said}, separators=(",", ":")).encode("ascii")


def thaw(frozen: bytes, tools: Any = None) -> ExecutionRequest:
    """The request that `freeze` made bytes of, with `tools` (see `ExecutionRequest.tools`) as its tools.

    Raises:
        SuspensionVoid: it can't be read, or the tools are not those by name that it was asked with.
    """
    said = _read(frozen)
    try:
        passed = toolkits.named(tools)
    except ValueError as problem:
        raise SuspensionVoid(f"`tools`: {problem}", advice="pass the tools that the run began with") from None
    _check_tools(said["tools"], passed)
    try:
        return ExecutionRequest(
            **{
                **said,
                "code": _text_or_bytes(said["code"]),
                "stdin": _text_or_bytes(said["stdin"]),
                "inputs": values.from_json(said["inputs"]),
                "limits": Limits(**said["limits"]),
                "intents": None
                if said["intents"] is None
                else tuple(Intent(**one) for one in said["intents"]),
                "subject": Subject(**said["subject"]),
                "tools": passed,
            }
        )
    except (ValidationError, ValueError, TypeError, KeyError) as problem:
        raise _void(bounded(str(problem).splitlines()[0], 200)) from None


def _read(frozen: bytes) -> dict[str, Any]:
    try:
        whole = values.parse(frozen)
    except ValueError:
        raise _void("it is no JSON") from None
    if not isinstance(whole, dict) or whole.keys() != {"licet", "request"}:
        raise _void("it does not begin as one")
    if whole["licet"] != VERSION:
        raise _void(f"it is of version {bounded(str(whole['licet']), 20)}, and this reads version {VERSION}")
    said = whole["request"]
    if not isinstance(said, dict) or said.keys() != _FIELDS:
        raise _void("it has other fields")
    workdir, names = said["workdir"], said["tools"]
    if not isinstance(workdir, str) or not Path(workdir).is_absolute():
        raise _void("its directory is no absolute path")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _void("it names no tools")
    return said


def _check_tools(names: list[str], passed: Mapping[str, Any]) -> None:
    for why, odd in (
        ("the run began with a tool that is not passed now", sorted(set(names) - passed.keys())),
        ("a tool is passed that the run did not begin with", sorted(passed.keys() - set(names))),
    ):
        if odd:
            raise SuspensionVoid(
                f"{why}: {', '.join(f'`{bounded(name, 80)}`' for name in odd[:10])}",
                advice=f"pass exactly these: {', '.join(sorted(names)) or 'none'}",
            )


def _content(content: str | bytes) -> dict[str, str]:
    if isinstance(content, str):
        return {"text": content}
    return {"base64": base64.b64encode(content).decode("ascii")}


def _text_or_bytes(said: Any) -> str | bytes:
    match said:
        case {"text": str(text)} if len(said) == 1:
            return text
        case {"base64": str(text)} if len(said) == 1:
            return base64.b64decode(text, validate=True)
    raise ValueError("code or standard input is neither text nor bytes")


def _void(why: str) -> SuspensionVoid:
    return SuspensionVoid(f"the request that was kept can't be read: {why}", advice=_START_AGAIN)
