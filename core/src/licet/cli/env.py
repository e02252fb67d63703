"""`licet env`: the environments that policies name by a list of packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from licet.errors import UsageError

if TYPE_CHECKING:
    from licet.environments.lockfile import LockFile
    from licet.environments.store import Stored

_POLICY = "licet.yaml"


@click.group()
def env() -> None:
    """Build, check, list and remove the environments of `python: {packages: FILE}`."""


@env.command("build")
@click.argument("lockfile", required=False)
@click.option("--policy", help="Build what this policy names (default: `licet.yaml` here).")
@click.option("--check", is_flag=True, help="Build nothing: read every file of what was built, and compare.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def build_environment(lockfile: str | None, policy: str | None, check: bool, as_json: bool) -> int:
    """Download, verify and keep the packages of LOCKFILE, or of a policy, for this interpreter.

    The list is pip's requirements format, each line pinned with `==` and hashed with `--hash=sha256:`. Only
    wheels are taken, so no code of a package runs. Where they come from is for pip's configuration to say.

    \b
    Exit codes: 0 built, or there already · 1 with --check: not built, or not as it was built · 2 usage, or an
    invalid list · 8 it could not be built
    """
    from licet.cli.terminal import put, put_json
    from licet.environments.building import build
    from licet.environments.store import find

    lock = _lock(lockfile, policy)
    if check:
        return _tell_check(lock, find(lock, whole=True), as_json=as_json)
    made = build(lock, (lambda line: None) if as_json else (lambda line: put(f"{line}\n", err=True)))
    if as_json:
        put_json(_json(made.stored) | {"fresh": made.fresh})
    else:
        _show(made.stored, "good", "built" if made.fresh else "built before, and as it was built")
    return 0


@env.command("list")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def list_environments(as_json: bool) -> int:
    """List every environment in the store, with what it is for; reads all of each, and compares."""
    from licet.cli.terminal import put_json, put_table
    from licet.environments.store import stored
    from licet.units import show_size

    found = stored(whole=True)
    if as_json:
        put_json({"environments": [_json(one) for one in found]})
        return 0
    rows = [
        (
            one.key,
            str(one.manifest.identity) if one.manifest else "",
            str(len(one.manifest.requirements)) if one.manifest else "",
            show_size(one.manifest.size) if one.manifest else "",
            one.problem or "as it was built",
        )
        for one in found
    ]
    put_table(("environment", "for", "packages", "size", "state"), rows, prose=1)
    return 0


@env.command("remove")
@click.argument("names", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON document to stdout.")
def remove_environments(names: tuple[str, ...], as_json: bool) -> int:
    """Remove the environments NAMES, or those whose names begin so, from the store."""
    from licet.cli.terminal import put_json, say
    from licet.environments.building import discard
    from licet.environments.store import stored

    known = stored()
    wanted = {one.key: one.path for one in (_one(name, known) for name in names)}
    for path in wanted.values():
        discard(path)
    removed = list(wanted)
    if as_json:
        put_json({"removed": removed})
    else:
        say(f"removed {', '.join(removed)}")
    return 0


def _lock(lockfile: str | None, policy: str | None) -> LockFile:
    """The list that the command line means.

    Raises:
        UsageError: it means two, or a policy without one.
        InvalidPolicy: the policy, or the list, is missing or wrong.
    """
    from licet.cli.policy.stacks import stack_of
    from licet.environments.lockfile import read_lock

    if lockfile is not None and policy is not None:
        raise UsageError("both a list and a policy are named", advice="name one of the two")
    if lockfile is not None:
        return read_lock(Path(lockfile))
    wish = stack_of(policy or _POLICY).python
    if wish is None or wish.lock is None:
        says = "names no packages" if wish is None else f"uses what is there: {wish}"
        raise UsageError(
            f"there is nothing to build: `{policy or _POLICY}` {says}",
            advice="name a list of packages, or write `python: {packages: FILE}` in the policy",
        )
    return wish.lock


def _tell_check(lock: LockFile, found: Stored | None, *, as_json: bool) -> int:
    from licet.cli.terminal import put_json
    from licet.environments.python import store_path
    from licet.environments.store import Stored, key_of

    if found is None:
        home = store_path() or Path()
        found = Stored(key_of(lock), home / key_of(lock), problem="it is not built")
    if as_json:
        put_json(_json(found))
    else:
        _show(found, "bad" if found.problem else "good", found.problem or "as it was built")
    return 1 if found.problem else 0


def _one(name: str, known: tuple[Stored, ...]) -> Stored:
    found = [one for one in known if name and one.key.startswith(name)]
    if len(found) != 1:
        many = "more than one environment begins" if found else "no environment begins"
        raise UsageError(f"{many} with `{name}`", advice="`licet env list` shows them")
    return found[0]


def _show(one: Stored, tone: Any, heading: str) -> None:
    from licet.cli.terminal import Card, put, show_card
    from licet.units import show_size

    rows = [("lies in", str(one.path))]
    if (made := one.manifest) is not None:
        rows += [("for", str(made.identity)), ("by", made.tool), ("digest", one.digest)]
        rows += [("holds", f"{len(made.files)} files, {show_size(made.size)}")]
        rows += [("packages" if not n else "", line) for n, line in enumerate(_named(one))]
    show_card(Card(tone, heading, one.key, rows))
    if one.problem is None:
        put(f"{one.path}\n")


def _named(one: Stored) -> list[str]:
    """The requirements, without their hashes."""
    return [line.partition(" --hash=")[0] for line in one.manifest.requirements] if one.manifest else []


def _json(one: Stored) -> dict[str, Any]:
    made = one.manifest
    return {
        "key": one.key,
        "path": str(one.path),
        "problem": one.problem,
        "digest": one.digest or None,
        "for": str(made.identity) if made else None,
        "tool": made.tool if made else None,
        "packages": _named(one),
        "files": len(made.files) if made else None,
        "bytes": made.size if made else None,
    }
