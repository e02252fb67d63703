"""The screen answers for every text, in bounded time, and changes nothing around it."""

from __future__ import annotations

import ast
import json
import random
import signal
import string
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from licet.request import ScreenReport
from licet.screen import FEATURES, VERSION, VIOLATIONS, room, screen
from licet.screen.codes import violation
from licet.screen.exemptions import CHECKS
from licet.screen.findings import MAX_VIOLATIONS
from licet.screen.modules import INSTANCES, PROPERTIES, RULES
from licet.screen.names import METHODS
from licet.screen.source import MAX_CHARACTERS

DATA = Path(__file__).parent / "data"
SAMPLES: list[str] = [
    json.loads(line)["code"]
    for name in ("screen_escapes", "screen_benign", "screen_evasions", "screen_ordinary")
    for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]
TOO_DEEP = "too_complex"

NASTY: list[tuple[str, str, list[str]]] = [
    ("a row of signs", "-" * 100_000 + "1", [TOO_DEEP]),
    ("nots", "not " * 60_000 + "1", [TOO_DEEP]),
    ("lambdas", "lambda:" * 40_000 + "1", [TOO_DEEP]),
    ("attributes", "a" + ".b" * 100_000, [TOO_DEEP]),
    ("sums", "+".join(["1"] * 100_000), [TOO_DEEP]),
    ("calls", "f" + "()" * 40_000, [TOO_DEEP]),
    ("elifs", "if a: pass\n" + "elif b: pass\n" * 18_000, [TOO_DEEP]),
    ("conditionals", "1 if 1 else " * 18_000 + "2", [TOO_DEEP]),
    ("powers", "2**" * 20_000 + "2", [TOO_DEEP]),
    ("a dotted import", "import " + "a." * 32_000 + "b", [TOO_DEEP]),
    ("a dotted import from", "from " + "a." * 32_000 + "b import c", [TOO_DEEP]),
    ("a list of a megabyte", "[" + "1," * 500_000 + "]", [TOO_DEEP]),
    ("an f-string of a megabyte", 'f"' + "{x}" * 300_000 + '"', [TOO_DEEP]),
    ("a string of a megabyte", 'x = "' + "a" * (1 << 20 - 1) + '"', []),
    ("a comment of a megabyte", "#" * (1 << 20), []),
    ("more than a megabyte", "#" * (MAX_CHARACTERS + 1), [TOO_DEEP]),
    ("open quotes", "'\\'" * 30_000, []),
    ("assignments that double", "a0 = ''\n" + "".join(f"a{n + 1} = a{n} + a{n}\n" for n in range(60)), []),
    ("a name of itself", "x = x + x\nopen(x)", []),
    (
        "aliases backwards",
        "".join(f"a{n + 1} = a{n}\n" for n in reversed(range(2_000))) + "import os as a0",
        [],
    ),
    ("many meanings", "".join(f"import m{n} as x\n" for n in range(3_000)), [TOO_DEEP]),
    (
        "exceptions backwards",
        "".join(f"a{n + 1} = a{n}\n" for n in reversed(range(5_000))) + "try: pass\nexcept E as a0: a9.obj",
        ["internal_attribute"],
    ),
    ("doors", "f(k=1)\n" * 8_000 + "x.os\n" * 5_000, ["indirect_module"]),
    ("a sum of cut fields", "''.format\nx = " + "+".join(["'{0.'"] * 900), ["format_field"]),
    ("brackets without end", "(" * (1 << 20), [TOO_DEEP]),
    ("deep f-strings", "f'{" * 300_000, [TOO_DEEP]),
    ("format specs in format specs", "f'{1:" + "{1:" * 10_000 + "}" * 10_000 + "}'", []),
    ("dots behind calls", "a" + ".a()" * 200_000, [TOO_DEEP]),
    ("patterns", "match a:\n case " + "[" * 90_000, []),
    ("letters that grow", "\ufb03" * ((1 << 20) - 1), ["deceptive_source"]),
    ("cookies", "#" + "coding= " * 100_000, []),
    ("nested assignments", "(a:=" * 150 + "1" + ")" * 150, []),
    ("brackets", "(" * 199 + "1" + ")" * 199, []),
    ("NUL", "a\0b", ["deceptive_source"]),
    ("a lone surrogate", '"\ud800"', ["deceptive_source"]),
    ("a byte order mark", "\ufeffx = 1", []),
    ("nothing", "", []),
    ("a form feed", "if 1:\n\f    x = 1", []),
]


@pytest.mark.parametrize(("code", "codes"), [case[1:] for case in NASTY], ids=[case[0] for case in NASTY])
def test_hostile_text_is_answered_in_time(code: str, codes: list[str]) -> None:
    started = time.perf_counter()
    report = screen(code)
    assert time.perf_counter() - started < 5
    assert sorted({item.code for item in report.violations}) == codes


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("x = 1\ny = (", 2, "'(' was never closed"),
        ("x = = 1", 1, "invalid syntax"),
        ("x = " + "9" * 5_000, 1, None),
        ("  x = 1", 1, "unexpected indent"),
        ("(" * 300, 1, "too many nested parentheses"),
        ("x = 1\n" * 3 + "'", 4, "unterminated string literal (detected at line 4)"),
    ],
)
def test_a_syntax_error_is_no_violation(code: str, line: int, message: str | None) -> None:
    report = screen(code)
    assert report.violations == ()
    assert report.intents == ()
    assert report.syntax_error is not None
    assert (report.syntax_error.code, report.syntax_error.line) == ("syntax_error", line)
    assert report.syntax_error.message == message or message is None


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("def f(:\n    pass", "correct it at column 7: `def f(:`"),
        ("x = 1\n    y = 2", "correct it at column 4: `    y = 2`"),
        ("é = (1 +* 2)", "correct it at column 9: `é = (1 +* 2)`"),
        ("a" * 500 + " = = 1", f"correct it at column 504: `…{'a' * 36} = = 1`"),
        ("x = = 1;" + "b" * 500, f"correct it at column 5: `x = = 1;{'b' * 71}…`"),
        ("```python\nx = 1\n```", "send the code alone, without the Markdown fence around it"),
        ("\ufeff\ufeffx", "correct it at column 1: `\ufeffx`"),
    ],
)
def test_a_syntax_error_shows_where_it_is(code: str, advice: str) -> None:
    error = screen(code).syntax_error
    assert error is not None
    assert error.advice == advice


def test_a_syntax_error_does_not_hide_deceptive_text() -> None:
    report = screen("x = = 1 # \u202e")
    assert [item.code for item in report.violations] == ["deceptive_source"]
    assert report.syntax_error is not None


def well_formed(report: ScreenReport) -> None:
    assert all(item.code in VIOLATIONS and item.message and item.advice for item in report.violations)
    assert len(report.violations) <= MAX_VIOLATIONS + 1
    for intent in report.intents:
        assert intent.source == "inferred"
        assert intent.line is not None and intent.line >= 1
        assert intent.excerpt is not None and len(intent.excerpt) <= 80
    assert set(report.needs.syntax) <= set(FEATURES)
    if report.syntax_error is not None:
        assert report.intents == () and not report.needs.modules


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_is_answered(code: str) -> None:
    well_formed(screen(code))


_SNIPPETS = sorted({token for sample in SAMPLES for token in sample.split() if len(token) < 20})


@given(st.lists(st.sampled_from([*_SNIPPETS, "\n", "\n    ", " ", "(", ")", ":", "="]), max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_heap_of_tokens_is_answered(tokens: list[str]) -> None:
    well_formed(screen(" ".join(tokens)))


@given(st.sampled_from(SAMPLES), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_damaged_program_is_answered(code: str, chance: random.Random) -> None:
    signs = list(code)
    for _ in range(chance.randint(1, 6)):
        position = chance.randrange(len(signs) + 1)
        signs[position : position + chance.randint(0, 5)] = chance.choice(
            ["", chance.choice(string.printable), "\n"]
        )
    well_formed(screen("".join(signs)))


@given(st.lists(st.sampled_from(SAMPLES), min_size=2, max_size=2))
@settings(max_examples=100, deadline=None)
def test_adding_harmless_code_before_never_hides_an_attack(pair: list[str]) -> None:
    """Code that is refused alone is refused after any prelude, unless that binds its names."""
    attack = 'import os as attack_os\nattack_os.system("id")\n"".__class__.__subclasses__()\n'
    try:
        ast.parse(pair[0] + "\n" + attack)
    except SyntaxError:
        return
    report = screen(pair[0] + "\n" + attack)
    assert {"shell"} <= {intent.action for intent in report.intents}
    assert {"internal_attribute"} <= {item.code for item in report.violations}


def test_the_same_code_gets_the_same_report() -> None:
    for code in SAMPLES:
        assert screen(code) == screen(code)


def test_parsing_gives_no_warnings_and_leaves_the_filters_alone() -> None:
    code = 'x = "\\d"\ny = 1 is 1\nz = 0x1for x in y\nassert (x, 1)\n'
    for action in ("error", "always", "default"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            before = list(warnings.filters)
            report = screen(code)
            after = [item for item in warnings.filters if "licet" not in str(item[3])]
        assert caught == []
        assert after == [item for item in before if "licet" not in str(item[3])]
        assert report.syntax_error is None


def test_threads_do_not_disturb_each_other() -> None:
    code = 'x = "\\d"\neval("1")\n'
    expected = screen(code)
    reports: list[ScreenReport] = []
    escaped: list[Any] = []

    def work() -> None:
        try:
            reports.extend(screen(code) for _ in range(50))
        except BaseException as error:
            escaped.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert escaped == []
    assert reports == [expected] * 200


def test_a_deep_caller_gets_an_answer_too() -> None:
    def deep(levels: int) -> ScreenReport:
        return deep(levels - 1) if levels else screen("+".join(["1"] * 500))

    well_formed(deep(700))


_SMALL_STACK = """
import threading, sys, ast
from licet.screen import screen
seen = []
screen('x = 1')
code = "lambda:" * 3000 + "1"
threading.stack_size(256 << 10)
worker = threading.Thread(target=lambda: seen.append({look}))
worker.start()
worker.join()
print(seen, threading.stack_size())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="stacks are reserved otherwise there")
def test_no_stack_is_too_small_for_the_parser() -> None:
    program = _SMALL_STACK.format(look="[item.code for item in screen(code).violations]")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, f"[['too_complex']] {256 << 10}\n")


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info[:2] != (3, 11), reason="measured on this Python alone"
)
def test_the_twin_that_parses_where_it_stands_takes_the_process_down() -> None:
    program = _SMALL_STACK.format(look="ast.parse(code)")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (-signal.SIGSEGV, "")


def test_where_no_thread_can_start_nothing_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(room, "ample", lambda: False)
    assert screen("import os\nos.fork()  # on a thread of its own").intents
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert [item.code for item in screen("x = 1  # on none").violations] == ["too_complex"]


def test_the_tables_agree_with_each_other() -> None:
    judged = [*RULES.values(), *(rule for _, rule in METHODS.values())]
    assert {rule.violation for rule in judged} - {""} <= set(VIOLATIONS)
    assert {rule.unless for rule in judged} - {""} == set(CHECKS)
    assert not [rule for rule in judged if rule.violation and rule.effects]
    assert {*INSTANCES.values(), *PROPERTIES.values()} <= {*INSTANCES.values()}
    assert all(not path.startswith(".") and "{" not in path and " " not in path for path in RULES)


def test_every_code_and_feature_has_a_sentence_of_its_own() -> None:
    for table in (VIOLATIONS, FEATURES):
        assert len(set(table.values())) == len(table)
        assert all(text and not text.endswith(".") for text in table.values())
    assert all(violation(code, 1, "x").advice for code in VIOLATIONS)
    assert VERSION
