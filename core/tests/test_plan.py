"""The seal: made by licet alone, for one plan, once."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from licet import plan as plans
from licet.contract import Enforcement, Level, SandboxEnforcementContract
from licet.environments.python import Python
from licet.errors import PlanNotSealed
from licet.plan import ExecutionPlan, Opened, Resumption, check, seal
from licet.request import Limits, Mount


def plan(**fields: Any) -> ExecutionPlan:
    base: dict[str, Any] = {
        "run_id": "R1",
        "backend": "monty",
        "code": "1",
        "inputs": {"a": 1},
        "stdin": b"",
        "environment": {},
        "workdir": "/w",
        "limits": Limits(wall_time=1),
        "opened": Opened(),
        "contract": SandboxEnforcementContract(),
        "plan_digest": "sha256:0",
        "policy_class": "sha256:1",
    }
    return ExecutionPlan(**{**base, **fields})


def refused(candidate: ExecutionPlan) -> None:
    with pytest.raises(PlanNotSealed) as problem:
        check(candidate)
    assert str(problem.value) == "the plan of run `R1` was not made by the runtime, or was used before"


def test_a_sealed_plan_is_accepted_once() -> None:
    sealed = seal(plan())
    check(sealed)
    refused(sealed)


def test_what_was_not_sealed_is_refused() -> None:
    refused(plan())
    refused(plan(seal="0" * 32))
    refused(plan(seal=""))


ALTERATIONS: dict[str, Any] = {
    "backend": "controlled_process",
    "code": "2",
    "inputs": {"a": 2},
    "stdin": b"x",
    "environment": {"A": "1"},
    "workdir": "/",
    "limits": Limits(wall_time=2),
    "opened": Opened(read=("/",)),
    "contract": SandboxEnforcementContract(timeout=Enforcement(Level.enforced)),
    "plan_digest": "sha256:2",
    "policy_class": "sha256:3",
    "tenant": "other",
    "files": (Mount("/w/a", "/b"),),
    "clock": "frozen",
    "async_tools": frozenset({"f"}),
    "warm": False,
    "python": Python("/p/bin/python", "/p", (), "sha256:4", "3.11.7"),
    "resumption": Resumption(b"x"),
}


@pytest.mark.parametrize("field", sorted(ALTERATIONS))
def test_an_altered_plan_is_refused_and_the_true_one_still_runs(field: str) -> None:
    sealed = seal(plan())
    refused(replace(sealed, **{field: ALTERATIONS[field]}))
    check(sealed)


def test_every_field_has_an_alteration() -> None:
    assert {*ALTERATIONS} | {"run_id", "seal"} == {*ExecutionPlan.__dataclass_fields__}


def test_a_copy_is_not_the_plan() -> None:
    sealed = seal(plan())
    for imitation in (replace(sealed), copy.copy(sealed), pickle.loads(pickle.dumps(sealed))):
        assert imitation == sealed
        refused(imitation)
    check(sealed)


def test_a_seal_does_not_move_to_another_plan() -> None:
    first, second = seal(plan()), seal(plan())
    refused(replace(second, seal=first.seal))
    assert first.seal != second.seal
    check(first)
    check(second)


def test_sealing_again_makes_a_plan_of_its_own() -> None:
    first = seal(plan())
    second = seal(first)
    check(first)
    check(second)


def test_a_plan_that_is_never_used_is_forgotten() -> None:
    sealed = seal(plan())
    key = sealed.seal
    assert key in plans._sealed
    del sealed
    gc.collect()
    assert key not in plans._sealed


def test_of_several_threads_one_is_accepted() -> None:
    sealed = seal(plan())

    def accepted(_: int) -> bool:
        try:
            check(sealed)
        except PlanNotSealed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(accepted, range(64))) == 1


def test_a_seal_is_no_part_of_what_is_shown() -> None:
    sealed = seal(plan())
    assert sealed.seal not in repr(sealed)
