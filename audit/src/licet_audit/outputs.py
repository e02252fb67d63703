"""What an export writes: whole or not at all, and never in the place of something.

Rules this module keeps:

- a file appears under its name when all of it is there and durable; a directory is filled where it stands,
  and taken away again if that fails;
- what exists already is an error, and stays as it is.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from licet.errors import LicetError, UsageError, reason_of
from licet.files import open_plain, sync_directory
from licet.output import bounded

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP file can hold
_BUFFER = 1 << 20
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class Folder(Protocol):
    """Takes files by their names, with `/` between folders, one after the other."""

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write one file."""
        ...


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that appears at `path` when the block ends well.

    Raises:
        UsageError: there is something at `path` already.
        LicetError: it can't be written.
    """
    refuse_taken(path)
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    with _failures(path):
        descriptor = open_plain(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(descriptor, "w+b", buffering=_BUFFER) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _name(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        sync_directory(path.parent)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Folder]:
    """A directory, or a ZIP file where the name ends so, with the same bytes for the same files.

    Raises:
        UsageError: there is something at `path` already.
        LicetError: it can't be written.
    """
    if path.suffix.lower() == ".zip":
        with new_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            yield _Zip(archive)
        return
    refuse_taken(path)
    with _failures(path):
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            raise _taken(path) from None
        try:
            yield _Directory(path)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        sync_directory(path.parent)


class _Directory:
    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write one file."""
        path = self._path / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb", buffering=_BUFFER) as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())


class _Zip:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Write one file."""
        entry = zipfile.ZipInfo(name, _EPOCH)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o600 << 16
        entry.create_system = 3  # as on Unix, wherever it is made
        with self._archive.open(entry, "w", force_zip64=True) as file:
            buffer = io.BufferedWriter(file, _BUFFER)
            buffer.writelines(chunks)
            buffer.flush()
            buffer.detach()


def _name(draft: Path, path: Path) -> None:
    """Give a finished file its name, if that is free; media for others often know no links."""
    try:
        try:
            os.link(draft, path)
        except OSError as problem:
            if problem.errno not in _NO_LINKS:
                raise
            os.close(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            draft.replace(path)
    except FileExistsError:
        raise _taken(path) from None


def refuse_taken(path: Path) -> None:
    """Say early that something is there already.

    Raises:
        UsageError: it is.
    """
    if os.path.lexists(path):
        raise _taken(path)


def refuse_inside(directory: Path, path: Path) -> None:
    """Say early that a place is in the log's own directory, where every name means something.

    Raises:
        UsageError: it is.
    """
    if path.resolve().is_relative_to(directory.resolve()):
        raise UsageError(
            f"`{bounded(str(path), 300)}` lies in the log's own directory",
            advice="write to another directory",
        )


def _taken(path: Path) -> UsageError:
    return UsageError(
        f"`{bounded(str(path), 300)}` exists already", advice="name another place, or move it aside"
    )


@contextlib.contextmanager
def _failures(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise LicetError(f"`{bounded(str(path), 300)}` can't be written: {reason_of(problem)}") from None
