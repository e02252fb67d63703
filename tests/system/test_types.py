"""Types are checked before anything runs, and never decide anything."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cli import licet
from licet import Runtime
from licet.errors import TypesUnchecked
from licet.record import MemoryLog
from licet.type_checker import TypeFinding

DECLARED = "licet: 1\nextends: licet:compute\nsandbox: {evidence: declared}\n"


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def findings(code: str, **fields: object) -> tuple[tuple[TypeFinding, ...], MemoryLog]:
    log = MemoryLog()

    async def check() -> tuple[TypeFinding, ...]:
        async with Runtime("licet:compute", log=log) as runtime:
            return await runtime.check_types(code, **fields)

    return asyncio.run(check()), log


def test_code_is_checked_with_its_inputs_and_nothing_is_recorded() -> None:
    found, log = findings("x + 1\nmissing", inputs={"x": "text"})
    assert [(one.line, one.code) for one in found] == [
        (1, "unsupported-operator"),
        (2, "unresolved-reference"),
    ]
    assert list(log.records()) == []
    assert findings("x + 1", inputs={"x": 1})[0] == ()


def test_code_that_can_t_be_parsed_is_a_finding() -> None:
    [found], _ = findings("x = 1\ny = (")
    assert (found.line, found.code) == (2, "invalid-syntax")


def test_what_is_not_checked_says_so() -> None:
    with pytest.raises(TypesUnchecked, match="NUL"):
        findings("x\0")
    with pytest.raises(TypesUnchecked, match="no backend can run this here"):
        asyncio.run(Runtime("licet:compute", backends=[], log=MemoryLog()).check_types("1"))


def test_explain_tells_findings_and_decides_as_without_them() -> None:
    Path("a.py").write_text("y: int = 'a'\nmissing\n")
    plain, checked = licet("explain", "a.py"), licet("explain", "a.py", "--types")
    assert (plain.code, checked.code) == (0, 0)
    assert "unresolved-reference" not in plain.err
    assert (
        'line 1      Object of type `Literal["a"]` is not assignable to `int`   invalid-assignment'
        in checked.err
    )
    assert "line 2      Name `missing` used when not defined   unresolved-reference" in checked.err
    said = licet("explain", "a.py", "--types", "--json")
    assert [(one["line"], one["column"], one["code"]) for one in said.json["types"]] == [
        (1, 10, "invalid-assignment"),
        (2, 1, "unresolved-reference"),
    ]
    assert said.json["types_unchecked"] is None
    assert "types" not in licet("explain", "a.py", "--json").json


def test_explain_tells_a_clean_bill_from_none() -> None:
    assert "types       nothing to object to" in licet("explain", "-c", "1 + 1", "--types").err
    Path("p.yaml").write_text(DECLARED.replace("declared}", "declared, only: [controlled_process]}"))
    unchecked = licet("explain", "-c", "1 + 1", "--types", "--policy", "p.yaml", "--json")
    assert unchecked.json["types"] is None
    assert unchecked.json["types_unchecked"] in (
        "no backend can run this here",
        "the backend `controlled_process` has no type checker",
    )


def test_a_run_has_no_code_to_check() -> None:
    refused = licet("explain", "01JD7M", "--types")
    assert (refused.code, "give the file of its code" in refused.err) == (2, True)
