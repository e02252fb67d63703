"""Reports about the text of code: what is sent, screened and run is one text, and it is read without harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from licet import Termination
from licet.backend import GuestError

BENIGN = Path(__file__).parents[1] / "data" / "benign.jsonl"


def test_report_source_text_02_byte_order_mark(on: Any, naive: Any, backend: str) -> None:
    sent = "\ufeffprint(1)\n"
    assert naive(sent).returncode == 1
    runtime = on(backend)
    for code in (sent, sent.encode()):
        result = runtime.run_sync(code)
        assert (result.success, result.stdout) == (True, "1\n")
        assert [change.requested for change in result.changes] == ["byte order mark"]
    for code in ("\ufeff" + sent, "x = 1\n" + sent):
        result = runtime.run_sync(code)
        assert (result.success, result.stdout) == (False, "")
        refused = [v.code for v in result.decision.violations] == ["deceptive_source"]
        assert refused or (result.error is not None and result.error.type == "SyntaxError")


def test_report_source_text_04_coding_cookie(
    row: Any, on: Any, naive: Any, backend: str, tmp_path: Path
) -> None:
    file = tmp_path / "work" / "cookie.py"
    file.write_text(row.code, "utf-8")
    run_file = f"import runpy\nrunpy.run_path({str(file)!r})"
    assert naive(run_file, env={"PYTHONIOENCODING": "utf-8"}).stdout == "Ã©\n".encode()
    result = on(backend).run_sync(row.code)
    assert (result.termination, result.stdout) == (Termination.policy_denied, "")
    violation = result.decision.violations[0]
    assert (violation.code, violation.line) == ("encoding_cookie", 1)
    # a cookie that changes nothing is no offence, and the text is never decoded again
    assert on(backend).run_sync("# coding: utf-8\nprint('é')").stdout == "é\n"


SHAPES = {
    "(": lambda n: "(" * n + "1" + ")" * n,
    "[": lambda n: "[" * n + "1" + "]" * n,
    "-": lambda n: "-" * n + "1",
    "a.": lambda n: "a" + ".b" * n,
    "f(": lambda n: "f(" * n + "1" + ")" * n,
    "lambda": lambda n: "lambda:" * n + "1",
    "if": lambda n: "1 if 1 else " * n + "1",
    "+": lambda n: "1" + "+1" * n,
}
TOO_DEEP = {
    "too many nested parentheses",
    "Source is too deeply nested",
    "the code is too complex for the parser",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_report_source_text_05_deep_nesting(on: Any, naive: Any, backend: str, shape: str) -> None:
    runtime = on(backend)
    for depth in (100, 200, 1000, 5000, 50000):
        result = runtime.run_sync(SHAPES[shape](depth))
        error = result.error
        if error is not None and error.type == "SyntaxError":
            assert error.message in TOO_DEEP
        elif result.termination is Termination.policy_denied:
            assert [v.code for v in result.decision.violations] == ["too_complex"]
        else:  # it was not too deep
            assert result.success or (error is not None and error.type == "NameError")
            assert depth <= 1000
    assert runtime.run_sync("1 + 1").value == 2
    deep = SHAPES[shape](50000)
    assert naive("import sys\ncompile(sys.stdin.read(), '', 'eval')", input=deep.encode()).returncode != 0


@pytest.mark.parametrize("code", ["", "\n", "# nothing", "# nothing here\n", "pass"])
def test_report_source_text_07_nothing_to_run(on: Any, backend: str, code: str) -> None:
    result = on(backend).run_sync(code)
    assert (result.success, result.stdout, result.stderr, result.value) == (True, "", "", None)


def test_report_source_text_07_a_text_alone_is_an_expression(on: Any, backend: str) -> None:
    """The corpus asks for None; here the rule of `report-source-text-08` holds, as in a REPL."""
    assert on(backend).run_sync('"doc"').value == "doc"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("x = 41\nx + 1  # answer\n", 42),
        ("x=1\nx", 1),
        ("x=1\nx;", 1),
        ("x=1\nx # c", 1),
        ("x=1; x", 1),
        ("if True:\n  1", None),
        ("x = 5", None),
        ("def d(f): return f\n@d\ndef g(): return 1", None),
        ("def d(f): return f\n@d\ndef g(): return 1\n\ng(\n)\n\n# end", 1),
        ("async def f():\n    return 3\n", None),
        ("if __name__ == '__main__':\n    x = 5\nx", 5),
        ("(1,\n 2)[0]", 1),
    ],
)
def test_report_source_text_08_last_value(on: Any, backend: str, code: str, value: object) -> None:
    result = on(backend).run_sync(code)
    assert (result.error, result.value) == (None, value)


def test_report_source_text_09_markdown_fence(on: Any, backend: str) -> None:
    runtime = on(backend)
    for fenced in ("```python\nprint(1)\n```", "\n```\nprint(1)\n```\n"):
        result = runtime.run_sync(fenced)
        assert (result.termination, result.exit_code, result.stdout) == (Termination.exited, 1, "")
        assert result.error is not None
        assert result.error.type == "SyntaxError"
        assert result.advice == "send the code alone, without the Markdown fence around it"
        # nothing was taken away on the way: what is shown, digested and run is what was sent
        assert (result.changes, result.backend) == ((), None)


def test_report_source_text_10_syntax_error(row: Any, on: Any, backend: str) -> None:
    result = on(backend).run_sync(row.code)
    assert result.termination is Termination.exited
    assert result.error == GuestError("SyntaxError", "invalid syntax", 1)
    assert result.advice == "correct it at column 7: `def f(:`"
    assert (result.decision.effect, result.decision.violations) == ("allow", ())
    assert (result.backend, result.stdout) == (None, "")
    second = on(backend).run_sync("x = 1\nx = = 2")
    assert (second.error, second.advice) == (
        GuestError("SyntaxError", "invalid syntax", 2),
        "correct it at column 5: `x = = 2`",
    )


def test_report_source_text_12_names_like_forbidden_ones(row: Any, on: Any, backend: str) -> None:
    assert "eval(" in row.code  # what a filter of substrings finds
    result = on(backend).run_sync(row.code)
    assert (result.success, result.stdout) == (True, "eval(\n")
    benign = [json.loads(line) for line in BENIGN.read_text("utf-8").splitlines()]
    friends = [item for item in benign if item["class"] == "false-friend-names"]
    assert len(friends) > 5
    strict = on("monty")
    for item in friends:
        decision = strict.decide(item["code"])
        assert (item["id"], decision.effect) == (item["id"], "allow")
