"""Building an environment from a list of packages.

Rules this module keeps:

- it is made in a draft beside its place, checked, sealed, and renamed there in one step: whoever is killed
  halfway, or finds the disk full, leaves a draft that nobody uses and the next build removes;
- of two builds of one environment the later waits, and takes what the first has made;
- what was installed has to be what was listed, all of it and nothing else;
- no code of a package runs: wheels are unpacked and compiled.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from licet.environments import installers, store
from licet.environments.lockfile import LockFile, normalized
from licet.environments.manifest import NAME, PACKAGES, Manifest, seal_tree
from licet.environments.python import this_identity, this_interpreter
from licet.environments.store import Stored
from licet.errors import BuildFailed, reason_of
from licet.files import create_once
from licet.locks import lock_file

PATIENCE = 3600.0
"""Seconds that a build waits for another one of the same environment."""

_INSTALLED = re.compile(r"(.+)-[^-]+\.dist-info")


@dataclass(frozen=True, slots=True)
class Built:
    """An environment that is ready for use; `fresh` says that it was not there before."""

    stored: Stored
    fresh: bool


def build(lock: LockFile, heard: Callable[[str], None] = lambda line: None) -> Built:
    """Make sure that the environment of `lock` for this interpreter is in the store; blocks until it is.

    One that was changed since it was built is taken out and made anew. `heard` gets each line that the
    installer says.

    Raises:
        BuildFailed: it could not be made; nothing of it is left in use.
        EnvironmentUnavailable: there is no place for it.
    """
    home = store.made_home()
    path = home / store.key_of(lock)
    try:
        with lock_file(home / f".{path.name}.lock", PATIENCE) as held:
            if not held:
                raise BuildFailed(f"another process has been building `{path.name}` for an hour")
            store.drop_drafts(path)
            known = store.find(lock, whole=True)
            if known is not None and known.problem is None:
                return Built(known, fresh=False)
            if known is not None:
                heard(f"{known.problem}: building it anew")
                store.remove(path)
            _make(lock, path, heard)
    except OSError as problem:
        raise BuildFailed(
            f"`{problem.filename or path}` can't be written: {reason_of(problem)}",
            advice="free some space, or give this user that directory",
        ) from problem
    made = store.find(lock)
    if made is None or made.problem is not None:
        raise BuildFailed(f"`{path}` is not as it was built: {made.problem if made else 'it is gone'}")
    return Built(made, fresh=True)


def discard(path: Path) -> None:
    """Take the environment at `path` out of the store, once nobody builds it.

    Raises:
        BuildFailed: it is being built, or can't be removed.
    """
    try:
        with lock_file(path.with_name(f".{path.name}.lock"), 0) as held:
            if not held:
                raise BuildFailed(f"`{path.name}` is being built", advice="try again when it is done")
            store.drop_drafts(path)
            store.remove(path)
    except OSError as problem:
        raise BuildFailed(
            f"`{problem.filename or path}` can't be removed: {reason_of(problem)}",
            advice="look at who owns it",
        ) from problem


def _make(lock: LockFile, path: Path, heard: Callable[[str], None]) -> None:
    draft = store.draft_of(path)
    draft.mkdir(mode=0o700)
    try:
        _fill(lock, draft, path, heard)
        draft.rename(path)
    except BaseException:
        with contextlib.suppress(OSError):
            store.remove(draft)
        raise


def _fill(lock: LockFile, draft: Path, path: Path, heard: Callable[[str], None]) -> None:
    interpreter, _ = this_interpreter()
    work, target, listed = draft / "work", draft / PACKAGES, draft / "work" / "requirements.txt"
    work.mkdir()
    target.mkdir()
    listed.write_text("".join(f"{line}\n" for line in lock.lines), "utf-8")
    tool, begins = installers.installer(interpreter, work)
    command = installers.install_command(tool, begins, interpreter, listed, target)
    installers.insist(command, work, heard, tool)
    _check(lock, target)
    # a file that is no Python of this version stays uncompiled, as in any installation
    installers.call(_compiling(interpreter, target, path / PACKAGES), work, lambda line: None)
    store.remove(work.rename(store.draft_of(path)))
    made = Manifest(lock.lines, this_identity(), tool, seal_tree(target))
    create_once(draft / NAME, made.spelled())
    (draft / NAME).chmod(0o444)
    if hasattr(os, "sync"):
        os.sync()  # a rename must not outlive what it names
    draft.chmod(0o555)


def _compiling(interpreter: str, target: Path, later: Path) -> tuple[str, ...]:
    """Compile so that code is found where it will lie, and believed without a look at its source's time."""
    options = ("-q", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(target), "-p", str(later))
    return (interpreter, "-I", "-S", "-m", "compileall", *options, str(target))


def _check(lock: LockFile, target: Path) -> None:
    """Compare what is installed with the list; which version and content it has was the hash's to say."""
    found = {
        normalized(match[1])
        for name in os.listdir(target)  # noqa: PTH208
        if (match := _INSTALLED.fullmatch(name)) is not None
    }
    listed = {one.name for one in lock.requirements}
    if strange := sorted(found - listed):
        raise BuildFailed(
            f"`{strange[0]}` was installed and is not in the list",
            advice="look for further requirements in the installer's configuration",
        )
    if missing := sorted({one.name for one in lock.requirements if not one.marker} - found):
        raise BuildFailed(f"`{missing[0]}` is in the list and was not installed")
