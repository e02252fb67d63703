"""Which cases are to be tried under which policy: files of tests, and the policies that they are about.

Rules this module keeps:

- a file of tests is read as strictly as a policy: an unknown key is an error with its place;
- whatever way leads to a policy, it is tried once, its own cases first;
- where nothing is found, that is an error: what tests nothing must not look tested.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from licet.errors import InvalidPolicy, Position, UsageError, reason_of
from licet.files import read_plain
from licet.policy import PolicyStack
from licet.policy.cases import Case, check_circumstances, parse_cases
from licet.policy.problems import unknown
from licet.policy.references import PACK_PREFIX
from licet.policy.yaml import MAX_BYTES, Fields, load

SUFFIX = ".test.yaml"
USUAL = "licet.yaml"
KEYS = ("policy", "given", "tests")


@dataclass(frozen=True, slots=True)
class TestFile:
    """A `*.test.yaml`: the policy that it names, as a path or `licet:PACK`, and its cases."""

    path: Path
    policy: str
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """A policy, and the files of tests that are about it."""

    policy: str
    files: tuple[TestFile, ...]

    def cases(self, stack: PolicyStack) -> tuple[Case, ...]:
        """All its cases; `stack` is the policy, loaded: what its rules hold comes first.

        Cases in a bound are for who tests that file; those of a bound that only rehearses can be tried
        nowhere else, since such a file is no policy by itself.
        """
        documents = (stack.root, *stack.rehearsed)
        inline = (case for one in documents for rule in one.rules for case in rule.tests)
        return (*inline, *(case for file in self.files for case in file.cases))


def suites_of(names: Iterable[str]) -> tuple[Suite, ...]:
    """What to try for `names`: policies, `licet:PACK`, files of tests, and directories.

    A directory stands for all files of tests below it, and for the `licet.yaml` in it.

    Raises:
        InvalidPolicy: a file of tests is wrong; with the place.
        UsageError: a directory holds nothing to try.
    """
    policies: dict[str, tuple[str, list[TestFile]]] = {}
    seen: set[str] = set()
    for name in names:
        for found in _found(name):
            if not found.endswith(SUFFIX):
                policies.setdefault(_known_as(found), (found, []))
            elif (real := os.path.realpath(found)) not in seen:
                seen.add(real)
                file = read_tests(Path(found))
                policies.setdefault(_known_as(file.policy), (file.policy, []))[1].append(file)
    return tuple(Suite(policy, tuple(files)) for policy, files in policies.values())


def _known_as(policy: str) -> str:
    return policy if policy.startswith(PACK_PREFIX) else os.path.realpath(policy)


def _found(name: str) -> Iterator[str]:
    if name.startswith(PACK_PREFIX) or not Path(name).is_dir():
        yield name
        return
    directory = Path(name)
    found = [str(directory / USUAL)] if (directory / USUAL).is_file() else []
    for folder, folders, files in os.walk(directory, onerror=_refuse):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        found += [str(Path(folder) / one) for one in sorted(files) if one.endswith(SUFFIX)]
    if not found:
        raise UsageError(
            f"`{name}` holds neither `{USUAL}` nor any `*{SUFFIX}`",
            advice="name a policy, a file of tests, or a directory that holds some",
        )
    yield from found


def _refuse(problem: OSError) -> NoReturn:
    message = f"`{problem.filename}` can't be searched for tests: {reason_of(problem)}"
    raise UsageError(message) from None


def read_tests(path: Path) -> TestFile:
    """Read a file of tests.

    Raises:
        InvalidPolicy: it can't be read, or is none; with the place.
    """
    file = str(path)
    try:
        tree = load(read_plain(path, MAX_BYTES + 1, follow=True), file)
    except OSError as problem:
        raise InvalidPolicy(f"the tests can't be read: {reason_of(problem)}", where=Position(file)) from None
    if not isinstance(tree, Fields):
        raise InvalidPolicy(
            "a file of tests is a mapping with `policy` and `tests`",
            where=Position(file),
            advice="begin with `policy: ./licet.yaml`",
        )
    for key in tree:
        if key not in KEYS:
            raise unknown(
                f"unknown key `{key}` in a file of tests", key, KEYS, Position(file, *tree.places[key])
            )
    policy = _policy(tree, file, path.parent)
    given = None
    if "given" in tree:
        given = check_circumstances(tree["given"], file, Position(file, *tree.places["given"]))
    where = Position(file, *tree.places.get("tests", (1, 1)))
    cases = parse_cases(tree.get("tests"), file, where, given=given)
    if not cases:
        raise InvalidPolicy("this file holds no test", where=where, advice="take it out, or write one")
    return TestFile(path, policy, cases)


def _policy(tree: Fields, file: str, beside: Path) -> str:
    named = tree.get("policy")
    if not isinstance(named, str) or not named:
        raise InvalidPolicy(
            f"`policy` names a policy, found `{named}`"
            if "policy" in tree
            else "the key `policy` is missing",
            where=Position(file, *tree.places.get("policy", (1, 1))),
            advice="such as `policy: ./licet.yaml`, or `policy: licet:compute`",
        )
    return named if named.startswith(PACK_PREFIX) else os.path.normpath(beside / named)
