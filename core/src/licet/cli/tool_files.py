"""Tools from a file of the host: a Python file that its owner trusts, imported, and named to who approves.

Rules this module keeps:

- the bytes that are digested are those that are run; what the file itself imports is not covered;
- a request that says `tools` in its metadata says that it came with such a file, so nothing but this module
  may say so on the command line;
- a run that goes on takes its tools from the same bytes or not at all, and only if it was this user's command
  that asked for it: metadata of others never makes this process import anything.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from licet import toolkits
from licet.cli import inputs
from licet.errors import Position, SuspensionVoid, UsageError
from licet.output import bounded
from licet.request import ExecutionRequest, Tool
from licet.tooling import toolkit

KEY = "tools"
"""The key of a request's metadata that names the file, relative to its working directory, and its digest."""

_MODULE = "licet_tools_of_host"
_SAID = re.compile(r"(?P<path>.+) sha256:(?P<digest>[0-9a-f]{64})", re.DOTALL)


@dataclass(frozen=True)
class ToolFile:
    """The tools of the file at `path`, whose bytes have the SHA-256 `digest`, in hexadecimal."""

    path: str
    digest: str
    tools: Mapping[str, Tool]

    def given_to(self, request: ExecutionRequest) -> ExecutionRequest:
        """The request with these tools, which says where they come from."""
        base = request.workdir or os.getcwd()  # noqa: PTH109 (as the request itself is completed)
        said = f"{os.path.relpath(self.path, base)} sha256:{self.digest}"
        return request.model_copy(
            update={"tools": dict(self.tools), "metadata": {**request.metadata, KEY: said}}
        )


def given(request: ExecutionRequest, path: str | None) -> ExecutionRequest:
    """The request with the tools of the file at `path`; None: without.

    Raises:
        UsageError: the file can't be imported or holds no tool, or the request speaks for one itself.
    """
    if KEY in request.metadata:
        raise UsageError(
            f"a request can't say `{KEY}` in its metadata: that names a file of tools",
            advice="give the file with `--tools`",
        )
    return request if path is None else load(path).given_to(request)


def load(path: str) -> ToolFile:
    """Import a file and take the tools that it defines: what `licet.tool` marks, and every `Tool`.

    Raises:
        UsageError: it can't be read or imported, or holds no tool.
        InvalidRequest: a tool in it is malformed, or two have one name.
    """
    return _imported(os.path.realpath(path), inputs.read_file(path))


def again(document: Mapping[str, Any]) -> Mapping[str, Tool]:
    """The tools of a run that goes on, whose approval shows `document`; none where its content is gone.

    Raises:
        SuspensionVoid: it did not come from a command of this user, or its file is another one now.
        UsageError: the file can't be imported.
    """
    if (said := document.get("metadata", {}).get(KEY)) is None:
        return {}
    requester, user = document["requester"], inputs.os_user()
    if (requester["asserted_by"], requester["id"]) != ("os", user.id):
        raise SuspensionVoid(
            f"tools are imported for who asked for them: {requester['id']}, and this is {user.id}",
            advice="let the program or the person that began this run resume it",
        )
    if (found := _SAID.fullmatch(said)) is None:
        raise SuspensionVoid(f"`{bounded(said, 200)}` names no file of tools with its digest")
    path = os.path.realpath(os.path.join(document["workdir"], found["path"]))  # noqa: PTH118 (kept as it is spelled)
    data = inputs.read_file(path)
    if (digest := hashlib.sha256(data).hexdigest()) != found["digest"]:
        raise SuspensionVoid(
            f"`{bounded(path, 200)}` was changed since this run was asked about: its SHA-256 is {digest}, "
            f"it was {found['digest']}",
            advice="put the file back as it was, or run the code again, which asks anew",
        )
    return _imported(path, data).tools


def _imported(path: str, data: bytes) -> ToolFile:
    module = ModuleType(_MODULE)
    module.__file__ = path
    sys.modules[_MODULE] = module  # dataclasses and pickles look there
    directory = str(Path(path).parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        exec(compile(data, path, "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as problem:
        where = Position(path, problem.lineno or 0)
        raise UsageError(f"the file of tools is no Python: {problem.msg}", where=where) from None
    except (Exception, SystemExit) as problem:
        raise _failed(path, problem) from None
    found = {id(value): value for value in vars(module).values() if _is_tool(value)}
    if not found:
        raise UsageError(
            f"`{bounded(path, 200)}` defines no tool",
            advice="mark its functions with `@licet.tool`",
        )
    return ToolFile(path, hashlib.sha256(data).hexdigest(), toolkit(list(found.values())))


def _is_tool(value: object) -> bool:
    return isinstance(value, Tool) or isinstance(getattr(value, toolkits.MARK, None), Tool)


def _failed(path: str, problem: BaseException) -> UsageError:
    """What its import raised, and where in the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == path]
    said = traceback.format_exception_only(problem)[-1].strip()
    message = f"the file of tools can't be imported: {bounded(said, 300)}"
    return UsageError(message, where=Position(path, (lines or [0])[-1] or 0))
