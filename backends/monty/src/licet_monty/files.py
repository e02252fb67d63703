"""File operations of the code, each asked of the host first and then done on the run's view of its files.

Rules this module keeps:

- of a call only those arguments are read whose type Monty itself has checked (`tests/test_files.py` attacks
  that): paths, texts, bytes and flags;
- each operation is one of `licet.writes.view`; nothing here touches a file;
- text is UTF-8 without exceptions, read with any kind of line end and written with `\\n`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import pydantic_monty
from licet.plan import ExecutionPlan
from licet.writes.found import Kind
from licet.writes.staged import Staged
from licet.writes.view import MOST_READ, FileView

if TYPE_CHECKING:
    from pydantic_monty import ExternalResult

Allows = Callable[[Literal["read", "write"], str], bool]

_LINE_END = re.compile("\r\n?")
_OS_ERRORS: Mapping[type[OSError], str] = {
    FileNotFoundError: "FileNotFoundError",
    FileExistsError: "FileExistsError",
    IsADirectoryError: "IsADirectoryError",
    NotADirectoryError: "NotADirectoryError",
    PermissionError: "PermissionError",
}


class Files:
    """The files of one run, in the words of Monty; `came_upon` is what it knew before it was suspended."""

    def __init__(
        self, plan: ExecutionPlan, allows: Allows, came_upon: Mapping[str, Any] | None = None
    ) -> None:
        memory = plan.limits.memory
        self._view = FileView(
            plan.opened,
            allows,
            mounts=plan.files,
            storage=plan.limits.files,
            most_read=MOST_READ if memory is None else min(memory, MOST_READ),
            came_upon=came_upon,
        )

    @property
    def is_changed(self) -> bool:
        """Whether the code has changed anything."""
        return self._view.is_changed

    def came_upon(self) -> dict[str, Any]:
        """What the code came upon, as plain data."""
        return self._view.came_upon()

    @property
    def used(self) -> int:
        """Bytes that the code has written, and that are still there."""
        return self._view.used

    def staged(self) -> Staged:
        """What the code wrote."""
        return self._view.staged()

    def answer(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ExternalResult:
        """Do what one of `FILE_CALLS` asks for.

        Raises:
            StorageFull: the code has written more than it may.
        """
        try:
            return {"return_value": _ACTS[name](self._view, args, kwargs)}
        except UnicodeDecodeError as problem:
            return {"exc_type": "UnicodeDecodeError", "message": str(problem)}
        except OSError as problem:
            kind = next((name for kind, name in _OS_ERRORS.items() if isinstance(problem, kind)), "OSError")
            return {"exc_type": kind, "message": str(problem)}  # type: ignore[typeddict-item]


Act = Callable[[FileView, tuple[Any, ...], Mapping[str, Any]], Any]


def _open(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> pydantic_monty.MontyFileHandle:
    path, mode = str(args[0]), str(args[1])
    if "w" in mode:
        view.write(path)
    elif "a" in mode:
        view.append(path)
    else:
        view.check_readable(path)
    return pydantic_monty.MontyFileHandle(path, mode)


def _read_text(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> str:
    text = view.read(str(args[0])).decode()
    return _LINE_END.sub("\n", text) if "\r" in text else text


def _write_text(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> int:
    view.write(str(args[0]), args[1].encode())
    return len(args[1])


def _write_bytes(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> int:
    view.write(str(args[0]), args[1])
    return len(args[1])


def _append_text(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> int:
    view.append(str(args[0]), args[1].encode())
    return len(args[1])


def _append_bytes(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> int:
    view.append(str(args[0]), args[1])
    return len(args[1])


def _make(view: FileView, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    view.make(str(args[0]), parents=kwargs.get("parents") is True, exist_ok=kwargs.get("exist_ok") is True)


def _names(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> list[PurePosixPath]:
    return [args[0] / name for name, _ in view.names(str(args[0]))]


def _scan(view: FileView, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[pydantic_monty.ScanEntry]:
    path, depth = str(args[0]), kwargs.get("max_depth")
    return [_entry(view, path, relative, kind) for relative, kind in view.tree(path, depth)]


def _entry(view: FileView, path: str, relative: str, kind: Kind) -> pydantic_monty.ScanEntry:
    led_to = view.leads_to(f"{path.rstrip('/')}/{relative}") if kind == "link" else kind
    return pydantic_monty.ScanEntry(relative, led_to == "directory", led_to == "file", kind == "link")


def _stat(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> pydantic_monty.StatResult:
    found = view.stat(str(args[0]))
    if found.kind == "directory":
        return pydantic_monty.StatResult.dir_stat(found.mode & 0o777, found.mtime)
    return pydantic_monty.StatResult.file_stat(found.size, found.mode & 0o777, found.mtime)


def _is(kind: Kind) -> Act:
    def act(view: FileView, args: tuple[Any, ...], _: Mapping[str, Any]) -> bool:
        found = view.find(str(args[0]))
        return found is not None and found.kind == kind

    return act


_ACTS: Mapping[str, Act] = {
    "open": _open,
    "Path.append_bytes": _append_bytes,
    "Path.append_text": _append_text,
    "Path.exists": lambda view, args, _: view.find(str(args[0])) is not None,
    "Path.is_dir": _is("directory"),
    "Path.is_file": _is("file"),
    "Path.is_symlink": lambda view, args, _: view.is_link(str(args[0])),
    "Path.iterdir": _names,
    "Path.mkdir": _make,
    "Path.read_bytes": lambda view, args, _: view.read(str(args[0])),
    "Path.read_text": _read_text,
    "Path.rename": lambda view, args, _: view.rename(str(args[0]), str(args[1])),
    "Path.resolve": lambda view, args, _: view.resolve(str(args[0])),
    "Path.rmdir": lambda view, args, _: view.remove_directory(str(args[0])),
    "Path.scan": _scan,
    "Path.stat": _stat,
    "Path.unlink": lambda view, args, _: view.remove(str(args[0])),
    "Path.write_bytes": _write_bytes,
    "Path.write_text": _write_text,
}

FILE_CALLS = frozenset(_ACTS)
"""The names of the system calls that are about files."""
