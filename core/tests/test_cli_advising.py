"""How cards join advice, and how they say who else denies what is denied."""

from __future__ import annotations

from typing import Any

import pytest
from licet.cli import advising, because
from licet.report import Repair


def _labels(*kinds: str, most: int | None = None) -> list[str]:
    repairs = [Repair(kind, f"{kind} {place}") for place, kind in enumerate(kinds)]
    return [label for label, _ in advising.rows(repairs, most)]


def test_what_others_have_to_do_is_needed_together() -> None:
    assert _labels("remove_line", "allow", "allow", "change_policy") == ["you can", "or", "and", "and"]
    assert _labels("get_approval", "get_approval", "enable_backend") == ["you can", "and", "and"]


def test_what_the_caller_can_do_are_alternatives() -> None:
    assert _labels("remove_line", "several", "other_person", "change_policy") == ["you can", "or", "or", "or"]


def test_what_is_left_out_is_counted() -> None:
    shown = list(advising.rows([Repair("wait", str(n)) for n in range(4)], 2))
    assert shown == [("you can", "0"), ("or", "1"), ("", "and 2 more, see `licet explain --all`")]
    assert _labels(*["wait"] * 4, most=None) == ["you can", "or", "or", "or"]


def test_the_same_advice_is_given_once_and_counted_once() -> None:
    twice = [
        Repair("remove_line", "r"),
        Repair("allow", "a", 1),
        Repair("allow", "a", 7),
        Repair("allow", "b"),
    ]
    twice.append(Repair("remove_line", "r", 9))
    assert list(advising.rows(twice, 3)) == [("you can", "r"), ("or", "a"), ("and", "b")]
    asking = [Repair("wait", "w"), Repair("wait", "w", leads_to="ask")]
    assert list(advising.rows(asking, None)) == [("you can", "w"), ("or", "w, then it needs an approval")]


def test_advice_that_leads_to_a_question_says_so() -> None:
    assert list(advising.rows([Repair("wait", "w", leads_to="ask")], None)) == [
        ("you can", "w, then it needs an approval")
    ]


def _by(document: str, line: int, rule: str) -> dict[str, Any]:
    return {"document": document, "line": line, "rule": rule}


@pytest.mark.parametrize(
    ("effect", "by", "expected"),
    [
        ("deny", [_by("/r", 0, "no `read`")], "said"),
        ("deny", [_by("/r", 0, "no `read`"), _by("/o", 0, "no `read`")], "said; /o leaves it out"),
        ("deny", [_by("/r", 1, "x"), _by("/o", 9, "deny: shell")], "said; /o:9 denies it"),
        ("deny", [_by("/r", 1, "x"), _by("/o", 9, "freeze")], "said; the rule `freeze` (/o:9) denies it"),
        ("deny", [_by("/r", 1, "x"), _by("/o", 9, "allow: read /a")], "said; /o:9 allows only a part of it"),
        ("ask", [_by("/r", 1, "x"), _by("/o", 9, "ask: run")], "said; /o:9 asks about it"),
        ("allow", [_by("/r", 1, "allow: run"), _by("/o", 9, "allow: run")], "said"),
        ("deny", [], "said"),
    ],
)
def test_everybody_who_denies_or_asks_is_named(effect: str, by: list[dict[str, Any]], expected: str) -> None:
    assert because.reason("said", effect, by) == expected


def test_what_a_policy_grants_was_not_asked_for() -> None:
    intent = {"line": None, "source": "granted"}
    assert because.label(intent) == "granted"
    assert because.label({**intent, "source": "declared"}) == "asked"
    assert because.label({**intent, "line": 3, "source": "inferred"}) == "line 3"
