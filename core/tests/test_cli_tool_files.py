"""Files of tools: imported once, digested as they were run, and never at the word of a stranger."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from licet.cli import app, inputs, tool_files
from licet.errors import InvalidRequest, SuspensionVoid, UsageError
from licet.request import ExecutionRequest

SHOP = """\
import dataclasses
import licet
from helper import RATE

@dataclasses.dataclass
class Order:
    name: str

@licet.tool(touches=["network pay.example.com:443"])
def refund(order: str, amount: int) -> str:
    return f"{Order(order).name} {amount * RATE}"

again = refund
find = licet.Tool("find", lambda name: name)
not_a_tool = print
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper.py").write_text("RATE = 2\n")
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    return file


def document(said: str | None, workdir: Path, **requester: str) -> dict[str, Any]:
    who = {"id": inputs.os_user().id, "asserted_by": "os", **requester}
    metadata = {} if said is None else {"tools": said}
    return {"metadata": metadata, "workdir": str(workdir), "requester": who}


def test_marked_functions_and_tools_are_taken_once(shop: Path) -> None:
    file = tool_files.load("shop.py")
    assert sorted(file.tools) == ["find", "refund"]
    assert file.tools["refund"].handler("o1", 2) == "o1 4"
    assert [str(act) for act in file.tools["refund"].touches] == ["network pay.example.com:443"]
    assert file.digest == hashlib.sha256(SHOP.encode()).hexdigest()


def test_the_request_says_which_file_and_the_same_file_is_taken_again(shop: Path, tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    request = tool_files.given(ExecutionRequest(code="1", workdir=str(below)), "shop.py")
    said = request.metadata["tools"]
    assert said == f"../shop.py sha256:{hashlib.sha256(SHOP.encode()).hexdigest()}"
    assert sorted(tool_files.again(document(said, below))) == sorted(request.tools) == ["find", "refund"]
    assert tool_files.again(document(None, below)) == {}
    assert tool_files.again({}) == {}  # an approval whose content is gone


def test_a_changed_file_is_not_imported(shop: Path, tmp_path: Path) -> None:
    said = tool_files.given(ExecutionRequest(code="1"), "shop.py").metadata["tools"]
    shop.write_text(SHOP + "raise SystemExit('imported')\n")
    with pytest.raises(SuspensionVoid, match=r"shop.py` was changed since this run was asked about") as found:
        tool_files.again(document(said, tmp_path))
    assert found.value.advice is not None
    shop.unlink()
    with pytest.raises(UsageError, match=r"shop.py` can't be read: no such file"):
        tool_files.again(document(said, tmp_path))


@pytest.mark.parametrize(
    "requester", [{"asserted_by": "caller"}, {"asserted_by": "token"}, {"id": "somebody else"}]
)
def test_metadata_of_others_imports_nothing(shop: Path, tmp_path: Path, requester: dict[str, str]) -> None:
    said = tool_files.given(ExecutionRequest(code="1"), "shop.py").metadata["tools"]
    shop.write_text("raise SystemExit('imported')\n")
    with pytest.raises(SuspensionVoid, match="tools are imported for who asked for them"):
        tool_files.again(document(said, tmp_path, **requester))


@pytest.mark.parametrize("said", ["shop.py", "shop.py sha256:00", "sha256:" + "0" * 64, ""])
def test_what_names_no_file_with_its_digest_is_refused(shop: Path, tmp_path: Path, said: str) -> None:
    with pytest.raises(SuspensionVoid, match="names no file of tools"):
        tool_files.again(document(said, tmp_path))


def test_a_request_file_can_not_name_tools_of_this_host(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "request.yaml").write_text("code: '1'\nmetadata: {tools: shop.py}\n")
    assert app.execute(["run", "request.yaml"]) == 2
    assert "a request can't say `tools` in its metadata" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("import licet\n\n1 / 0\n", "ZeroDivisionError: division by zero", 3),
        ("def f(:\n", "the file of tools is no Python: invalid syntax", 1),
        ("raise SystemExit('bye')\n", "SystemExit: bye", 1),
        ("import missing_of_all\n", "ModuleNotFoundError: No module named 'missing_of_all'", 1),
        ("def f():\n    raise ValueError('a\\x1b[2Jb')\nf()\n", "ValueError: a\x1b[2Jb", 2),
        ("x = '\0'\n", "null bytes", 0),
    ],
)
def test_a_file_that_does_not_import_says_where(shop: Path, text: str, said: str, line: int) -> None:
    shop.write_text(text)
    with pytest.raises(UsageError) as found:
        tool_files.load("shop.py")
    assert said in found.value.message
    assert found.value.where is not None
    assert (found.value.where.file, found.value.where.line) == (str(shop), line)


def test_errors_of_a_file_reach_the_terminal_escaped(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop.write_text("raise ValueError('\\x1b[2J\\u202e')\n")
    assert app.execute(["explain", "-c", "1", "--tools", "shop.py"]) == 2
    shown = capsys.readouterr().err
    assert r"ValueError: \x1b[2J\u202e" in shown
    assert "shop.py:1" in shown
    assert "Traceback" not in shown


def test_a_file_without_tools_and_one_with_two_of_a_name_are_refused(shop: Path) -> None:
    shop.write_text("x = 1\n")
    with pytest.raises(UsageError, match="defines no tool"):
        tool_files.load("shop.py")
    shop.write_text("import licet\na = licet.Tool('f', print)\nb = licet.Tool('f', len)\n")
    with pytest.raises(InvalidRequest, match="two tools are called `f`"):
        tool_files.load("shop.py")


def test_what_explain_chooses_opens_the_tools(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop.parent / "licet.yaml").write_text("licet: 1\nallow: [tool find]\nsandbox: {evidence: declared}\n")
    without = ["explain", "-c", "find('x')", "--policy", "licet.yaml", "--json"]
    digests = []
    for arguments in (without, [*without, "--tools", "shop.py"]):
        assert app.execute(arguments) == 0
        digests.append(json.loads(capsys.readouterr().out)["plan_digest"])
    assert digests[0] != digests[1]  # it covers all that is opened


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["a.py"], "`FILE`"),
        (["-c", "1"], "`-c`"),
        (["--timeout", "5s"], "`--timeout`"),
        (["--tools", "shop.py"], "`--tools`"),
        (["--wait", "5s"], "`--wait`"),
        (["--learn"], "`--learn`"),
        (["--shell"], "`--shell`"),
        (["--input", "a=1"], "`--input`"),
    ],
)
def test_nothing_can_be_said_again_of_a_run_that_goes_on(
    shop: Path, capsys: pytest.CaptureFixture[str], more: list[str], named: str
) -> None:
    assert app.execute(["run", "--resume", "01JD7K0000000000000000000R", "--json", *more]) == 2
    assert f"{named} can't be given with `--resume`" in capsys.readouterr().err
