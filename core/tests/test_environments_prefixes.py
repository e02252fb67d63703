"""Interpreters that somebody else installed: found by names, probed under supervision, or refused."""

from __future__ import annotations

import os
import shutil
import sys
import venv
from pathlib import Path

import pytest
from licet.environments.prefixes import find_prefix, site_directories
from licet.environments.python import Python, this_identity, this_interpreter
from licet.errors import EnvironmentUnavailable, Position

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="laid out otherwise there")

MINOR = f"python3.{sys.version_info[1]}"


def made(folder: Path, **options: bool) -> Path:
    """A virtual environment of the interpreter that runs this, outside of any other one."""
    venv.EnvBuilder(with_pip=False, **options).create(folder)
    configuration = folder / "pyvenv.cfg"
    program, _ = this_interpreter()
    text = "\n".join(
        f"home = {os.path.dirname(program)}" if line.startswith("home") else line
        for line in configuration.read_text().splitlines()
    )
    configuration.write_text(text)
    return folder.resolve()


def refusal(folder: Path) -> tuple[str, str | None]:
    with pytest.raises(EnvironmentUnavailable) as problem:
        find_prefix(str(folder), Position("p.yaml", 3))
    assert problem.value.where == Position("p.yaml", 3)
    return problem.value.message.replace(f"{folder}", "PREFIX"), problem.value.advice


@pytest.mark.parametrize("symlinks", [True, False])
def test_a_virtual_environment_is_its_interpreter_and_its_packages(tmp_path: Path, symlinks: bool) -> None:
    folder = made(tmp_path / "v", symlinks=symlinks)
    found = find_prefix(str(folder))
    interpreter, prefix = this_interpreter()
    site = str(folder / "lib" / MINOR / "site-packages")
    assert found == Python(interpreter, prefix, (site,), found.digest, this_identity().version)
    assert site_directories(str(folder)) == (site,)


def test_packages_of_the_system_come_after_its_own_where_it_says_so(tmp_path: Path) -> None:
    found = find_prefix(str(made(tmp_path / "v", symlinks=True, system_site_packages=True)))
    own = str(tmp_path.resolve() / "v" / "lib" / MINOR / "site-packages")
    assert found.packages[0] == own
    assert found.packages[1:] == find_prefix(this_interpreter()[1]).packages


def test_the_digest_follows_what_is_installed(tmp_path: Path) -> None:
    folder = made(tmp_path / "v", symlinks=True)
    site = folder / "lib" / MINOR / "site-packages"
    before = find_prefix(str(folder)).digest
    assert find_prefix(str(folder)).digest == before
    (site / "alpha-1.0.dist-info").mkdir()
    after = find_prefix(str(folder)).digest
    (site / "alpha-1.0.dist-info").rename(site / "alpha-1.1.dist-info")
    assert len({before, after, find_prefix(str(folder)).digest}) == 3


def test_what_can_not_be_used_says_why(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "v"
    named = "name a virtual environment or an installation of CPython 3.11 or newer"
    assert refusal(folder) == ("there is no directory `PREFIX`", named)
    (folder / "bin").mkdir(parents=True)
    assert refusal(folder) == ("there is no Python in `PREFIX`", named)
    program = folder / "bin" / "python3"
    program.write_text("#!/bin/sh\necho hello\n")
    assert refusal(folder)[0] == "`PREFIX/bin/python3` can't be executed" or os.geteuid() != 0
    program.chmod(0o755)
    assert refusal(folder) == ("`PREFIX/bin/python3` does not answer as a Python does", named)
    program.write_text("#!/bin/sh\necho python 3 9 1 cpython\n")
    assert refusal(folder) == ("`PREFIX/bin/python3` is older than Python 3.11", named)
    program.write_text("#!/bin/sh\necho python 3 11 1 pypy\n")
    assert refusal(folder) == ("`PREFIX/bin/python3` is `pypy` and not CPython", named)


def test_nothing_that_anybody_could_write_to_is_run_or_given(tmp_path: Path) -> None:
    folder = made(tmp_path / "v", symlinks=True)
    site = folder / "lib" / MINOR / "site-packages"
    site.chmod(0o777)
    expected = f"anybody on this host may write to `PREFIX/lib/{MINOR}/site-packages`"
    assert refusal(folder) == (expected, f"run `chmod o-w {site}`")
    site.chmod(0o755)
    assert find_prefix(str(folder)).packages == (str(site),)
    other, ran = tmp_path.resolve() / "other", tmp_path / "ran"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python3").write_text(f"#!/bin/sh\ntouch {ran}\necho python 3 11 1 cpython\n")
    (other / "bin" / "python3").chmod(0o757)
    assert refusal(other)[0] == "anybody on this host may write to `PREFIX/bin/python3`"
    assert not ran.exists()


def test_an_environment_whose_interpreter_is_gone_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "v", symlinks=False)
    configuration = (folder / "pyvenv.cfg").read_text()
    home = this_interpreter()[0].rpartition("/")[0]
    (folder / "pyvenv.cfg").write_text(configuration.replace(home, "/nowhere"))
    message, advice = refusal(folder)
    assert message == "`PREFIX` was made from a Python in `/nowhere`, and there is none"
    assert advice == "make it anew"
    shutil.rmtree(folder / "bin")
    assert refusal(folder)[0] == "there is no Python in `PREFIX`"
