"""Tests of the interpreter and the packages that a plan names, for a backend that has `environments`.

Rules this module keeps: what is given is a folder of this test's own, beside the library of this interpreter;
a name that no library has tells it from everything else.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from licet.environments.python import Python, this_identity, this_interpreter
from licet.testing.bench import Bench

_NAME = "licet_given_package"
_CODE = f"import {_NAME}\n{_NAME}.answer()"


class Environments:
    """Code has the packages that its plan names, in their order, and none without one."""

    def test_packages_are_given(self, bench: Bench, tmp_path: Path) -> None:
        ran = bench.run(_CODE, python=_given(bench, _package(tmp_path, "one", 1)))
        assert (ran.ended, ran.outcome.value) == (("exited", 0), 1)

    def test_and_to_no_other_run(self, bench: Bench, tmp_path: Path) -> None:
        given = _given(bench, _package(tmp_path, "one", 1))
        for python, value in ((given, 1), (None, None), (given, 1)):
            ran = bench.run(_CODE, python=python)
            assert ran.outcome.value == value
            error = None if ran.outcome.error is None else ran.outcome.error.type
            assert error == (None if python else "ModuleNotFoundError")

    def test_of_two_folders_the_first_counts(self, bench: Bench, tmp_path: Path) -> None:
        one, two = _package(tmp_path, "one", 1), _package(tmp_path, "two", 2)
        for first, second, value in ((one, two, 1), (two, one, 2)):
            assert bench.run(_CODE, python=_given(bench, first, second)).outcome.value == value

    def test_the_library_goes_before_packages(self, bench: Bench, tmp_path: Path) -> None:
        folder = _package(tmp_path, "one", 1)
        (folder / "string.py").write_text("digits = 'forged'\n")
        ran = bench.run("import string\nstring.digits", python=_given(bench, folder))
        assert ran.outcome.value == "0123456789"

    def test_nothing_of_a_package_runs_unasked(self, bench: Bench, tmp_path: Path) -> None:
        folder = _package(tmp_path, "one", 1)
        for name, text in (
            ("begin.pth", "import sys; sys.given = 1\n"),
            ("sitecustomize.py", "import sys\nsys.given = 2\n"),
            ("usercustomize.py", "import sys\nsys.given = 3\n"),
        ):
            (folder / name).write_text(text)
        ran = bench.run("import sys\nhasattr(sys, 'given')", python=_given(bench, folder))
        assert (ran.ended, ran.outcome.value) == (("exited", 0), False)


def _given(bench: Bench, *folders: Path) -> Python:
    if not bench.descriptor.environments:
        pytest.skip(f"`{bench.descriptor.name}` gives code its own interpreter alone")
    interpreter, prefix = this_interpreter()
    digest = "sha256:" + "0" * 64
    return Python(interpreter, prefix, tuple(map(str, folders)), digest, this_identity().version)


def _package(above: Path, name: str, answer: int) -> Path:
    folder = above.resolve() / name
    (folder / _NAME).mkdir(parents=True)
    (folder / _NAME / "__init__.py").write_text("from ._inner import answer\n")
    (folder / _NAME / "_inner.py").write_text(f"def answer():\n    return {answer}\n")
    return folder
