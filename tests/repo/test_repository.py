"""The house keeps its own rules: what docs list exists, and what must not be committed is not."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from licet import errors, hookspecs
from licet.backend import Termination
from licet.contract import Control
from licet.workbench.lint.findings import Code

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("needs the git checkout")
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_registry_host_no_lock_file_is_committed() -> None:
    hosts = re.compile(r"[a-z]hosted\.org|://[^ ]*/simple\b|://registry\.|://deb\.")
    for path in tracked():
        assert path.name != "uv.lock"
        if path.suffix in (".py", ".toml", ".md", ".yaml", ".yml", "") and path.name != "test_repository.py":
            assert hosts.search(path.read_text("utf-8", "replace")) is None, path


def test_every_error_has_its_entry_in_the_docs() -> None:
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    slugs = {
        thing.slug
        for thing in vars(errors).values()
        if isinstance(thing, type) and issubclass(thing, errors.LicetError)
    }
    assert {slug for slug in slugs if f"## `{slug}`" not in page} == set()


def test_every_control_and_termination_is_explained_in_the_docs() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md"))
    assert [name for name in (*Control, *Termination) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", ["controls", "telemetry"])
def test_pages_made_from_the_code_say_what_it_says(name: str) -> None:
    generator = runpy.run_path(str(DOCS / f"{name}.py"))
    current = generator["PAGE"].read_text("utf-8") == generator["page"]()
    assert current, f"the page of {name} is old: write it anew with `uv run python docs/{name}.py`"


def test_every_hook_is_in_the_docs() -> None:
    page = (DOCS / "reference" / "plugins.md").read_text("utf-8")
    hooks = [name for name in vars(hookspecs) if name.startswith("licet_")]
    assert hooks
    assert [name for name in hooks if f"`{name}" not in page] == []


def test_versions_agree() -> None:
    members = ["core", "policies", "audit", "backends/monty", "backends/controlled_process"]
    projects = [tomllib.loads((ROOT / m / "pyproject.toml").read_text())["project"] for m in members]
    assert len({project["version"] for project in projects}) == 1


def test_relative_links_in_the_docs_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_no_file_and_no_function_is_too_long_to_read() -> None:
    for path in tracked():
        if path.suffix != ".py" or "/src/" not in str(path):
            continue
        text = path.read_text("utf-8")
        assert text.count("\n") <= 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                assert node.end_lineno is not None
                length = node.end_lineno - node.lineno + 1
                assert length <= 60, f"{path}: {node.name} has {length} lines"


def test_everything_that_a_policy_check_can_find_is_in_the_docs() -> None:
    page = (DOCS / "reference" / "policy.md").read_text("utf-8")
    assert [code for code in get_args(Code) if f"`{code}`" not in page] == []
