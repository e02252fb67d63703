"""Each line of the design's "Requirements follow from the decision"."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from licet.contract import Control, Evidence, Level, Requirement
from licet.decide import Decision
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.request import ACTIONS, Limits
from licet.requirements import openable, require

StackOf = Callable[..., PolicyStack]
Decided = Callable[..., Decision]
ALWAYS = {"environment_allowlist", "fresh_state", "cancellation"}
WALLS = {
    "network_deny",
    "unix_socket_deny",
    "filesystem_read_deny",
    "filesystem_write_deny",
    "shell_execution",
}
ALL = Opened(read=("/",), write=("/",), network=("any",), shell=True)


@pytest.fixture
def required(decided: Decided, stack_of: StackOf) -> Callable[..., Mapping[Control, Requirement]]:
    def make(opened: Opened, policy: str = "", **limits: object) -> Mapping[Control, Requirement]:
        return require(decided(stack_of(policy)), Limits(**limits), opened)

    return make


Required = Callable[..., Mapping[Control, Requirement]]


def test_nothing_opened_demands_every_wall(required: Required) -> None:
    asked = required(Opened())
    assert {*asked} == WALLS | ALWAYS
    assert {requirement.level for requirement in asked.values()} == {Level.enforced}


def test_everything_opened_demands_no_wall_and_of_supervision_what_can_be_had(required: Required) -> None:
    """Code with all rights of the user can reach its supervisor too."""
    asked = required(ALL, wall_time=5, memory=5)
    assert {control: requirement.level for control, requirement in asked.items()} == {
        "environment_allowlist": "partial",
        "fresh_state": "partial",
        "cancellation": "partial",
        "timeout": "partial",
        "process_tree_cleanup": "partial",
        "memory_limit": "enforced",
    }


@pytest.mark.parametrize(
    "kept_back",
    [
        {"read_masked": ("/a",)},
        {"write_masked": ("/a",)},
        {"network_masked": ("a.x.com",)},
        {"network": ("a.x.com:443",)},
        {"shell": False},
        {"read": ("/a",)},
    ],
)
def test_with_anything_kept_back_supervision_has_to_hold(
    required: Required, kept_back: dict[str, Any]
) -> None:
    asked = required(replace(ALL, **kept_back), wall_time=5)
    assert {requirement.level for requirement in asked.values()} == {Level.enforced}


@pytest.mark.parametrize(
    ("opened", "walls"),
    [
        (Opened(read=("/a",)), WALLS),
        (Opened(read=("/",)), WALLS - {"filesystem_read_deny"}),
        (Opened(write=("/",)), WALLS - {"filesystem_write_deny"}),
        (Opened(read=("/",), read_masked=("/a",)), WALLS),
        (Opened(write=("/",), write_masked=("/a",)), WALLS),
        (Opened(read=("/",), write_masked=("/a",)), WALLS - {"filesystem_read_deny"}),
        (Opened(shell=True), WALLS - {"shell_execution"}),
        (Opened(network=("any",)), WALLS - {"network_deny"} | {"network_filter"}),
        (Opened(network=("private",)), WALLS - {"network_deny"} | {"network_filter"}),
        (Opened(network=("any", "private")), WALLS - {"network_deny", "unix_socket_deny"}),
        (Opened(network=("a.x.com:443",)), WALLS - {"network_deny"} | {"network_filter"}),
        (Opened(network=("any", "a.x.com:443")), WALLS - {"network_deny"} | {"network_filter"}),
        (
            Opened(network=("any", "private", "a.x.com:443")),
            WALLS - {"network_deny", "unix_socket_deny"},
        ),
        (
            Opened(network=("any", "private"), network_masked=("10.0.0.1",)),
            WALLS - {"network_deny"} | {"network_filter"},
        ),
        (
            Opened(network=("any",), network_masked=("a.x.com",)),
            WALLS - {"network_deny"} | {"network_filter"},
        ),
        (Opened(tools=("find",)), WALLS),
    ],
)
def test_what_is_not_opened_has_to_be_held(required: Required, opened: Opened, walls: set[str]) -> None:
    assert {*required(opened)} == walls | ALWAYS


@pytest.mark.parametrize(
    ("limit", "controls"),
    [
        ("wall_time", {"timeout", "process_tree_cleanup"}),
        ("cpu_time", {"cpu_time_limit"}),
        ("memory", {"memory_limit"}),
        ("processes", {"process_count_limit"}),
        ("stdout", {"stdout_limit"}),
        ("stderr", {"stderr_limit"}),
        ("files", {"filesystem_bytes_limit"}),
        ("code", set()),
        ("stdin", set()),
        ("output", set()),
        ("recursion", set()),
        ("tool_calls", set()),
    ],
)
def test_a_limit_demands_the_control_of_its_name(required: Required, limit: str, controls: set[str]) -> None:
    asked = required(Opened(), **{limit: 5})
    assert {*asked} == WALLS | ALWAYS | controls
    for control in controls:
        assert asked[Control(control)] == Requirement(Level.enforced, f"the limit `{limit}`", Evidence.probed)


def test_every_limit_has_a_line_here() -> None:
    rows = test_a_limit_demands_the_control_of_its_name.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {limit for limit, _ in rows} == {*Limits.model_fields}


def test_policy_and_request_add_and_never_take_away(required: Required) -> None:
    policy = "sandbox: {require: {separate_kernel: enforced, network_deny: partial}}"
    asked = required(Opened(read=("/",)), policy)
    assert asked[Control.separate_kernel] == Requirement(
        Level.enforced, "required by policy or request", Evidence.probed
    )
    assert asked[Control.network_deny] == Requirement(
        Level.enforced, "no `network` is opened", Evidence.probed
    )
    assert {*asked} == WALLS - {"filesystem_read_deny"} | ALWAYS | {"separate_kernel"}
    asked = required(ALL, "sandbox: {require: {environment_allowlist: enforced}}")
    assert asked[Control.environment_allowlist].level is Level.enforced


def test_every_requirement_asks_for_the_evidence_of_the_policy(required: Required) -> None:
    asked = required(Opened(), "sandbox: {evidence: declared}", wall_time=1)
    assert {requirement.evidence for requirement in asked.values()} == {Evidence.declared}
    assert {requirement.evidence for requirement in required(Opened()).values()} == {Evidence.probed}


def test_every_requirement_has_a_reason(required: Required) -> None:
    asked = required(Opened(network=("a:1",)), "sandbox: {require: {orphan_cleanup: partial}}", memory=1)
    assert all(requirement.because for requirement in asked.values())


WIDE = Opened(
    read=("/a",),
    write=("/b",),
    read_masked=("/a/s",),
    write_masked=("/b/s",),
    sealed=("/a/own",),
    network=("any",),
    network_masked=("a.x.com",),
    shell=True,
    tools=("find",),
)


def test_a_backend_that_opens_everything_opens_what_is_allowed() -> None:
    assert openable(WIDE, frozenset(ACTIONS)) == WIDE


@pytest.mark.parametrize(
    ("opens", "expected"),
    [
        ((), Opened(sealed=("/a/own",))),
        (("read",), Opened(read=("/a",), read_masked=("/a/s",), sealed=("/a/own",))),
        (("write",), Opened(write=("/b",), write_masked=("/b/s",), sealed=("/a/own",))),
        (("network",), Opened(network=("any",), network_masked=("a.x.com",), sealed=("/a/own",))),
        (("shell",), Opened(shell=True, sealed=("/a/own",))),
        (("tool",), Opened(tools=("find",), sealed=("/a/own",))),
    ],
)
def test_a_backend_opens_only_what_it_can(opens: tuple[str, ...], expected: Opened) -> None:
    assert openable(WIDE, frozenset(opens)) == expected  # type: ignore[arg-type]


def test_requirements_follow_from_what_the_candidate_would_open(required: Required) -> None:
    """A backend that can't open the network has to hold it shut, though policy would open it."""
    narrow = openable(ALL, frozenset({"read", "write", "shell"}))
    assert {*required(narrow)} == ALWAYS | {"network_deny", "unix_socket_deny"}
