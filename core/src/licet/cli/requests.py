"""Requests as files: everything that `licet run` takes from its options, in one JSON or YAML document.

Rules this module keeps:

- a file is a request by its name alone (`.json`, `.yaml`, `.yml`), since code may look like a request;
- it never says for whom a run is: the subject comes from the operating system;
- an unknown key is an error with its place; what only a program can pass is refused by name;
- the paths `code_file`, `stdin_file`, `workdir` and those of `files` start at the directory of the file,
  those of intents at `workdir`, which is the current directory where the file states none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from licet.cli import inputs as reading
from licet.errors import InvalidPolicy, InvalidRequest, Position
from licet.output import bounded
from licet.policy.advice import nearest
from licet.policy.patterns import canonical_target
from licet.policy.yaml import Fields, Items, load
from licet.request import ACTIONS, Action, ExecutionRequest, Intent

SUFFIXES = (".json", ".yaml", ".yml")

KEYS = (
    "code",
    "code_file",
    "inputs",
    "stdin",
    "stdin_file",
    "files",
    "workdir",
    "limits",
    "intents",
    "metadata",
    "requirements",
)
_REFUSED = {
    "subject": "a request file can't say for whom it is: that comes from the operating system",
    "tools": "tools are functions, which no request can hold: give a file of them with `--tools`",
    "env": "the environment of a run comes from its policy",
}


def is_request(name: str | None) -> bool:
    """Whether a file of this name holds a request, and not code."""
    return name is not None and name.lower().endswith(SUFFIXES)


def read_request(name: str) -> ExecutionRequest:
    """The request in a file, on behalf of the user of the operating system.

    Raises:
        UsageError: the file, or one that it names, can't be read.
        InvalidRequest: it holds no request; with the place of the first problem.
    """
    return _Reader(name).request()


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._base = Path(name).absolute().parent
        self._tree = _parsed(reading.read_file(name), name)

    def request(self) -> ExecutionRequest:
        tree = self._tree
        for key in tree:
            if key in _REFUSED:
                raise self._wrong(key, _REFUSED[key], f"take `{key}` out")
            if key not in KEYS:
                raise self._wrong(key, f"unknown key `{bounded(key, 80)}` in a request", nearest(key, KEYS))
        workdir = self._path("workdir") if tree.get("workdir") is not None else None
        fields: dict[str, Any] = {
            "code": self._content("code"),
            "stdin": self._content("stdin"),
            "intents": self._intents(workdir or str(Path.cwd())),
            "workdir": workdir,
            "files": self._files(),
            **{key: tree[key] for key in ("inputs", "limits", "metadata", "requirements") if key in tree},
        }
        if fields["code"] is None:
            raise InvalidRequest(
                "the request has no code", where=Position(self._name), advice="give it `code` or `code_file`"
            )
        fields["stdin"] = fields["stdin"] or b""
        try:
            return ExecutionRequest(**fields, subject=reading.os_user())
        except ValidationError as problem:
            first = problem.errors(include_url=False)[0]
            spelled = ".".join(str(part) for part in first["loc"])
            message = first["msg"].removeprefix("Value error, ")
            raise self._wrong(
                str(first["loc"][0]), f"`{spelled}`: {message[:1].lower()}{message[1:]}"
            ) from None

    def _content(self, key: str) -> str | bytes | None:
        """A text, or what stands in the file that `KEY_file` names."""
        named = f"{key}_file"
        if named in self._tree:
            if key in self._tree:
                raise self._wrong(named, f"both `{key}` and `{named}` are given", "give one of them")
            return reading.read_file(self._path(named))
        text = self._tree.get(key)
        if text is not None and not isinstance(text, str):
            raise self._wrong(key, f"`{key}` needs a text, found `{bounded(str(text), 80)}`")
        return text

    def _path(self, key: str) -> str:
        path = self._tree[key]
        if not isinstance(path, str) or not path or "\0" in path:
            raise self._wrong(key, f"`{key}` needs a path, found `{bounded(str(path), 80)}`")
        return str(self._base / path)

    def _files(self) -> dict[str, str]:
        """Files by the names that the code has for them; paths start at the directory of the request."""
        files = self._tree.get("files") or {}
        if not isinstance(files, dict):
            raise self._wrong("files", "`files` needs a mapping of names to paths")
        for name, path in files.items():
            if not isinstance(name, str) or not isinstance(path, str) or not path or "\0" in path:
                raise self._wrong("files", f"`files` needs a path for `{bounded(str(name), 80)}`")
        return {name: str(self._base / path) for name, path in files.items()}

    def _intents(self, workdir: str) -> tuple[Intent, ...] | None:
        listed = self._tree.get("intents")
        if listed is None:
            return None
        if not isinstance(listed, list):
            raise self._wrong("intents", "`intents` needs a list of texts such as `read ./data`")
        places = listed.places if isinstance(listed, Items) else [None] * len(listed)
        return tuple(self._intent(one, workdir, at) for one, at in zip(listed, places, strict=True))

    def _intent(self, text: object, workdir: str, at: tuple[int, int] | None) -> Intent:
        where = Position(self._name, *at) if at else Position(self._name)
        action, _, target = text.partition(" ") if isinstance(text, str) else ("", "", "")
        if action not in ACTIONS:
            raise InvalidRequest(
                f"expected an intent such as `read ./data`, found `{bounded(str(text), 80)}`",
                where=where,
                advice=f"begin it with one of {', '.join(ACTIONS)}",
            )
        kind: Action = action
        try:
            return Intent(kind, canonical_target(kind, target.strip(), base=workdir))
        except ValueError as problem:
            shown = bounded(str(text), 80)
            raise InvalidRequest(
                f"the intent `{shown}` can't be understood: {problem}", where=where
            ) from None

    def _wrong(self, key: str, message: str, advice: str | None = None) -> InvalidRequest:
        at = self._tree.places.get(key) if isinstance(self._tree, Fields) else None
        return InvalidRequest(message, where=Position(self._name, *(at or ())), advice=advice)


def _parsed(data: bytes, name: str) -> Mapping[str, Any]:
    tree = _json(data, name) if name.lower().endswith(".json") else _yaml(data, name)
    if not isinstance(tree, dict):
        raise InvalidRequest(
            "a request is a mapping that holds `code` or `code_file`",
            where=Position(name),
            advice="to run this as code, give it through `-`: `licet run - < FILE`",
        )
    return tree


def _json(data: bytes, name: str) -> Any:
    try:
        return reading.parse_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as problem:
        raise InvalidRequest(f"not UTF-8 at byte {problem.start}", where=Position(name)) from None
    except json.JSONDecodeError as problem:
        where = Position(name, problem.lineno, problem.colno)
        raise InvalidRequest(f"not valid JSON: {problem.msg.lower()}", where=where) from None
    except (ValueError, RecursionError) as problem:
        raise InvalidRequest(f"not valid JSON: {bounded(str(problem), 300)}", where=Position(name)) from None


def _yaml(data: bytes, name: str) -> Any:
    try:
        return load(data, name)
    except InvalidPolicy as problem:
        raise InvalidRequest(problem.message, where=problem.where, advice=problem.advice) from None
