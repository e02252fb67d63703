"""Kleene logic, against a slow reference that tries both values for all that is not known."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.policy.truth import Truth, both, certain, either, negated

TRUTHS = st.sampled_from(Truth)
LISTS = st.lists(TRUTHS, max_size=6)


def outcomes(truths: list[Truth]) -> list[tuple[bool, ...]]:
    """Every way in which the unknown ones may turn out."""
    ways = [(True, False) if one is Truth.unknown else (one is Truth.true,) for one in truths]
    return list(product(*ways))


def settled(answers: set[bool]) -> Truth:
    return certain(answers.pop()) if len(answers) == 1 else Truth.unknown


@given(LISTS)
def test_a_conjunction_is_known_when_every_outcome_agrees(truths: list[Truth]) -> None:
    assert both(truths) is settled({all(way) for way in outcomes(truths)})


@given(LISTS)
def test_a_disjunction_is_known_when_every_outcome_agrees(truths: list[Truth]) -> None:
    assert either(truths) is settled({any(way) for way in outcomes(truths)})


@given(LISTS)
def test_de_morgan_holds(truths: list[Truth]) -> None:
    assert negated(both(truths)) is either(negated(one) for one in truths)


@given(TRUTHS)
def test_negating_twice_changes_nothing(truth: Truth) -> None:
    assert negated(negated(truth)) is truth


@given(LISTS, st.randoms())
def test_order_never_matters(truths: list[Truth], random: object) -> None:
    shuffled = list(truths)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert (both(shuffled), either(shuffled)) == (both(truths), either(truths))


def test_nothing_is_a_true_conjunction_and_a_false_disjunction() -> None:
    assert both(()) is Truth.true
    assert either(()) is Truth.false


def test_a_conjunction_reads_no_further_than_it_must() -> None:
    rest = iter([Truth.unknown, Truth.false, Truth.true])
    assert both(rest) is Truth.false
    assert list(rest) == [Truth.true]


def test_a_truth_is_no_bool() -> None:
    with pytest.raises(TypeError, match="three values"):
        assert Truth.false
