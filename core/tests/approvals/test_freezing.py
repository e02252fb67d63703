"""A request that was frozen is, thawed, the request that was asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.approvals.freezing import freeze, thaw
from licet.contract import Control, Level
from licet.errors import SuspensionVoid
from licet.request import ExecutionRequest, Intent, Subject
from licet.testing import strategies

HERE = "/no-such-root"


def refund(order: str) -> None:
    pass


texts = st.text(max_size=20)
names = st.dictionaries(texts, texts, max_size=2)
properties = st.dictionaries(
    texts, st.one_of(texts, st.integers(), st.booleans(), st.floats(allow_nan=False))
)
whole = st.builds(
    lambda request, rest: request.model_copy(update=rest),
    strategies.requests(),
    st.fixed_dictionaries(
        {
            "workdir": strategies.paths(),
            "code": st.one_of(texts, st.binary(max_size=20), st.just("\ud800")),
            "stdin": st.one_of(texts, st.binary(max_size=20)),
            "env": names,
            "files": names,
            "metadata": names,
            "learn": st.booleans(),
            "requirements": st.dictionaries(st.sampled_from(Control), st.sampled_from(Level)),
            "subject": st.builds(lambda said: Subject(id="ada", properties=said, session="s"), properties),
            "tools": st.sampled_from([{}, {"refund": refund}]),
        }
    ),
)


@given(whole)
def test_thawed_it_is_the_request_that_was_frozen(request: ExecutionRequest) -> None:
    assert thaw(freeze(request, str(request.workdir)), request.tools) == request


@given(strategies.requests())
def test_every_request_goes_on_in_the_directory_that_it_was_asked_in(request: ExecutionRequest) -> None:
    assert thaw(freeze(request, HERE)) == request.model_copy(update={"workdir": HERE})


def test_what_is_written_and_what_is_bytes_stay_apart() -> None:
    text, data = ExecutionRequest(code="1", stdin="a"), ExecutionRequest(code=b"1", stdin=b"a")
    assert (thaw(freeze(text, HERE)).code, thaw(freeze(text, HERE)).stdin) == ("1", "a")
    assert (thaw(freeze(data, HERE)).code, thaw(freeze(data, HERE)).stdin) == (b"1", b"a")


def test_intents_come_back_whole() -> None:
    request = ExecutionRequest(code="1", intents=(Intent("read", "data", line=3), Intent("shell")))
    assert thaw(freeze(request, HERE)).intents == request.intents


def test_a_relative_directory_is_refused() -> None:
    with pytest.raises(ValueError, match="`data` is no absolute path"):
        freeze(ExecutionRequest(code="1"), "data")


def test_an_input_that_can_not_cross_is_refused() -> None:
    with pytest.raises(ValueError, match="can't cross"):
        freeze(ExecutionRequest(code="1", inputs={"x": object()}), HERE)


def test_tools_are_passed_again_by_name() -> None:
    frozen = freeze(ExecutionRequest(code="1", tools={"refund": refund}), HERE)
    assert thaw(frozen, [refund]).tools == {"refund": refund}
    with pytest.raises(SuspensionVoid, match="a tool that is not passed now: `refund`") as missing:
        thaw(frozen)
    assert missing.value.advice == "pass exactly these: refund"
    with pytest.raises(SuspensionVoid, match="a tool is passed that the run did not begin with: `find`"):
        thaw(frozen, {"refund": refund, "find": refund})
    with pytest.raises(SuspensionVoid, match="`int` is no source of tools"):
        thaw(frozen, 3)


def without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda whole: whole["request"].pop(name)


def setting(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda whole: whole["request"].update({name: value})


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole.update(licet=2),
        lambda whole: whole.update(more=1),
        *(without(name) for name in ExecutionRequest.model_fields),
        setting("more", 1),
        setting("workdir", "data"),
        setting("workdir", None),
        setting("tools", "refund"),
        setting("code", "1"),
        setting("code", {"text": "1", "base64": "MQ=="}),
        setting("code", {"base64": "!"}),
        setting("inputs", '{"x": {"$type": "nothing"}}'),
        setting("inputs", "3"),
        setting("limits", {"wall_time": -1}),
        setting("limits", {"more": 1}),
        setting("intents", [{"act": "read"}]),
        setting("subject", {"id": 3}),
        setting("requirements", {"network_deny": "much"}),
        setting("env", {"A": 3}),
        setting("learn", "perhaps"),
    ],
)
def test_what_can_not_be_read_never_runs(damage: Callable[[dict[str, Any]], object]) -> None:
    said = json.loads(freeze(ExecutionRequest(code="1"), HERE))
    damage(said)
    with pytest.raises(SuspensionVoid, match="the request that was kept can't be read"):
        thaw(json.dumps(said).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"licet": 1}'])
def test_what_is_no_request_never_runs(data: bytes) -> None:
    with pytest.raises(SuspensionVoid):
        thaw(data)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with pytest.raises(SuspensionVoid):
        thaw(data)
