"""From a request as written to its one canonical spelling."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import InvalidPolicy, InvalidRequest
from licet.normalize import normalize
from licet.policy import PolicySource, PolicyStack, load_stack
from licet.request import Change, ExecutionRequest, Intent, Limits, NormalizedRequest, Violation
from licet.settings import Settings

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]
CORPUS = Path(__file__).parent / "data/paths_hosts.jsonl"
ENV_ROWS = [
    row for line in CORPUS.read_text().splitlines() if (row := json.loads(line))["class"] == "env-name"
]


# Limits


def test_limits_are_lowered_to_the_policy_and_every_lowering_is_recorded(
    normalized: Normalized, stack_of: StackOf
) -> None:
    stack = stack_of("limits: {wall_time: 30s, memory: 256MiB}")
    asked = {"wall_time": "60s", "memory": "1MiB", "cpu_time": 5, "stdout": "2MiB"}
    found = normalized(stack=stack, limits=asked)
    assert (found.limits.wall_time, found.limits.memory) == (30.0, 1 << 20)
    assert (found.limits.cpu_time, found.limits.stdout) == (5.0, 1 << 20)
    assert found.changes == (
        Change("limits.wall_time", 60.0, 30.0, "policy allows no more"),
        Change("limits.stdout", 2 << 20, 1 << 20, "policy allows no more"),
    )


def test_a_changed_copy_of_limits_states_its_own() -> None:
    first = Limits(wall_time=1)
    assert first.stated() == {"wall_time": 1.0}
    assert first.model_copy(update={"wall_time": 9.0}).stated() == {"wall_time": 9.0}
    assert first.stated() == {"wall_time": 1.0}


def test_no_limit_asked_is_the_limit_of_the_policy(normalized: Normalized) -> None:
    found = normalized()
    assert (found.limits.wall_time, found.limits.code, found.limits.memory) == (60.0, 1 << 20, None)
    assert found.changes == ()


@given(asked=st.integers(1, 200), allowed=st.integers(1, 200))
def test_no_request_gets_more_than_policy_allows(asked: int, allowed: int) -> None:
    found = _normalize_under(allowed, asked)
    assert found.limits.memory == min(asked, allowed)
    assert bool(found.changes) == (asked > allowed)


def _normalize_under(allowed: int, asked: int) -> NormalizedRequest:
    from licet.policy.document import build
    from licet.policy.yaml import load

    text = f"licet: 1\nlimits: {{memory: {allowed}}}".encode()
    stack = PolicyStack(build(load(text, "f"), file="f", base=Path("/p")))
    request = ExecutionRequest(code="", limits={"memory": asked})
    return normalize(request, stack, directory="/w", host_environment={}, digest=lambda name, content: "")


# Code


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a\nb", "a\nb"),
        (b"a\xc3\xa9", "aé"),
        ("\ufeffa", "a"),
        (b"\xef\xbb\xbfa", "a"),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("", ""),
    ],
)
def test_code_is_text_with_one_kind_of_line_end(normalized: Normalized, raw: str | bytes, text: str) -> None:
    found = normalized(raw)
    assert (found.code, found.violations) == (text, ())
    assert bool(found.changes) == (len(text) < len(raw) and "é" not in text)


def test_what_was_done_to_code_is_recorded(normalized: Normalized) -> None:
    assert normalized("\ufeffa\r\n").changes == (
        Change("code", "byte order mark", "none", "a byte order mark is no part of the code"),
        Change("code", "carriage returns", "line feeds", "code has one kind of line end"),
    )


@pytest.mark.parametrize(
    ("raw", "place"), [(b"a = 1\nb = '\xff'", "byte 11 in line 2"), (b"\xff\xfea\x00", "byte 0 in line 1")]
)
def test_code_that_is_not_utf8_is_no_request(normalized: Normalized, raw: bytes, place: str) -> None:
    with pytest.raises(InvalidRequest) as problem:
        normalized(raw)
    assert str(problem.value) == f"the code is not UTF-8: {place}"
    assert problem.value.advice == "save it as UTF-8, without an encoding cookie"


@pytest.mark.parametrize(
    ("code", "violations"),
    [
        ("a\nb\0c", [("nul_byte", 2)]),
        ("a\0\0", [("nul_byte", 1)]),
        ("# coding: latin-1\n", [("encoding_cookie", 1)]),
        ("#!/usr/bin/python\n# -*- coding: latin-1 -*-\n", [("encoding_cookie", 2)]),
        ("\n# vim: set fileencoding=utf-7 :\n", [("encoding_cookie", 2)]),
        ("# coding: utf-8\n# coding: utf-7", [("encoding_cookie", 2)]),
        ("# coding: utf-8\n", []),
        ("# -*- coding: UTF8 -*-\n", []),
        ("# coding: utf-8-sig\n", []),
        ("x = 1\n# encoding: see below\n", []),  # Python looks at a second line only below a comment
        ("\n\n# coding: latin-1\n", []),
        ("x = '# coding: latin-1'\n", []),
        ("# coding: no-such-codec", [("encoding_cookie", 1)]),
    ],
)
def test_odd_forms_are_refused_not_repaired(
    normalized: Normalized, code: str, violations: list[tuple[str, int]]
) -> None:
    found = normalized(code)
    assert [(v.code, v.line) for v in found.violations] == violations
    assert found.code == code


def test_a_violation_names_the_encoding_and_what_to_do(normalized: Normalized) -> None:
    assert normalized("# coding: latin-1").violations == (
        Violation(
            "encoding_cookie",
            1,
            "the code says that its encoding is `latin-1`, but code is UTF-8 here",
            "remove the encoding comment",
        ),
    )


def test_guest_text_does_not_reach_the_codec_machinery(
    normalized: Normalized, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`codecs.lookup` imports by name and remembers every failure for ever."""
    monkeypatch.setattr("codecs.lookup", lambda name: pytest.fail(f"looked {name} up"))
    assert normalized("# coding: x" + "y" * 1000).violations[0].code == "encoding_cookie"


@pytest.mark.parametrize("raw", ["x" * 65, b"x" * 65, "é" * 33])
def test_too_much_code_is_refused_by_its_bytes(
    normalized: Normalized, stack_of: StackOf, raw: str | bytes
) -> None:
    found = normalized(raw, stack=stack_of("limits: {code: 64B}"))
    size = 66 if raw == "é" * 33 else 65
    assert found.code == ""
    assert found.violations == (
        Violation(
            "code_too_large",
            None,
            f"the code has {size} bytes, the limit `code` is 64",
            "send less code, or ask for a higher limit `code`",
        ),
    )
    assert normalized("é" * 32, stack=stack_of("limits: {code: 64B}")).violations == ()


def test_too_much_code_need_not_be_utf8(normalized: Normalized, stack_of: StackOf) -> None:
    found = normalized(b"\xff" * 65, stack=stack_of("limits: {code: 64B}"))
    assert [v.code for v in found.violations] == ["code_too_large"]


def test_too_much_input_is_refused(normalized: Normalized, stack_of: StackOf) -> None:
    found = normalized(stdin="é" * 9, stack=stack_of("limits: {stdin: 16B}"))
    assert (found.stdin, [v.code for v in found.violations]) == (b"", ["stdin_too_large"])
    assert normalized(stdin="é" * 8, stack=stack_of("limits: {stdin: 16B}")).stdin == "é".encode() * 8


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_code_is_normalised_or_refused(raw: str | bytes) -> None:
    from licet.policy.document import build
    from licet.policy.yaml import load

    stack = PolicyStack(build(load(b"licet: 1", "f"), file="f", base=Path("/p")))
    keep: dict[str, Any] = {"directory": "/w", "host_environment": {}, "digest": lambda name, content: name}
    try:
        once = normalize(ExecutionRequest(code=raw), stack, **keep)
    except InvalidRequest:
        assert isinstance(raw, bytes)
        return
    assert "\r" not in once.code
    if not once.code.startswith("\ufeff"):
        again = normalize(ExecutionRequest(code=once.code), stack, **keep)
        assert (again.code, again.changes, again.violations) == (once.code, (), once.violations)


# Environment


@pytest.mark.parametrize("row", ENV_ROWS, ids=lambda row: row["id"])
def test_env_rows_of_the_corpus(normalized: Normalized, tmp_path: Path, row: dict[str, Any]) -> None:
    """`allow` of the corpus is `pass_environment` of the settings; the policy passes on each name."""
    (name,) = row["names"]
    settings = Settings(pass_environment=tuple(row["allow"]))
    if row["answer"] == "request-error":
        with pytest.raises(InvalidRequest, match="is no name of an environment variable"):
            normalized(env={name: "x"})
        return
    assert row["answer"] == []
    (tmp_path / "p.yaml").write_text(f"licet: 1\nenv: {{{name}: pass}}\n")
    with pytest.raises(InvalidPolicy, match="would hand on a variable that settings do not permit"):
        load_stack(tmp_path / "p.yaml", PolicySource({}, tmp_path / "none", settings.may_pass))


def test_the_environment_comes_from_policy_alone(normalized: Normalized, stack_of: StackOf) -> None:
    stack = stack_of("env: {LANG: C.UTF-8, TZ: pass, GONE: pass, EMPTY: ''}")
    host = {"TZ": "UTC", "LANG": "de_DE", "SECRET": "s3cret"}
    found = normalized(
        stack=stack, host=host, env={"LANG": "C.UTF-8", "TZ": "CET", "SECRET": "x", "EMPTY": ""}
    )
    assert found.environment == {"LANG": "C.UTF-8", "TZ": "UTC", "EMPTY": ""}
    assert found.changes == (
        Change("env.TZ", "a value", "policy's value", "the environment comes from policy alone"),
        Change("env.SECRET", "a value", "unset", "the environment comes from policy alone"),
    )


def test_no_value_of_a_variable_is_recorded(normalized: Normalized) -> None:
    assert "hunter2" not in repr(normalized(env={"PASSWORD": "hunter2"}).changes)


@pytest.mark.parametrize("env", [{"A=B": "x"}, {"": "x"}, {"A\0B": "x"}, {"A": "x\0y"}])
def test_impossible_variables_are_no_request(normalized: Normalized, env: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="is no name of an environment variable, or its value holds NUL"):
        normalized(env=env)


# Paths and intents


def test_paths_are_canonical_and_relative_to_the_directory_of_the_run(
    normalized: Normalized, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to("work")
    intents = (Intent("read", "./a/../b/"), Intent("write", "/x//y"), Intent("network", "API.example:443"))
    found = normalized(directory=str(tmp_path), workdir="link", intents=intents)
    assert found.workdir == f"{tmp_path}/work"
    assert found.intents == (
        Intent("read", f"{tmp_path}/work/b"),
        Intent("write", "/x/y"),
        Intent("network", "api.example:443"),
    )


def test_no_workdir_is_the_directory(normalized: Normalized) -> None:
    assert normalized(directory="/w").workdir == "/w"
    assert normalized(directory="/w", workdir=Path("sub")).workdir == "/w/sub"


def test_intents_are_declared_once_and_run_goes_without_saying(normalized: Normalized) -> None:
    asked = (
        Intent("run"),
        Intent("read", "a"),
        Intent("read", "./a", source="granted", line=3, when="access"),
        Intent("tool", "find"),
        Intent("shell"),
    )
    assert normalized(intents=asked).intents == (
        Intent("read", "/w/a", "declared", None, "start"),
        Intent("tool", "find", "declared", None, "call"),
        Intent("shell"),
    )
    assert normalized(intents=()).intents == ()
    assert normalized(intents=None).intents is None


@pytest.mark.parametrize(
    ("intent", "reason"),
    [
        (Intent("read"), "the path `` can't be used: it is empty"),
        (Intent("read", "a\0b"), "the path `a\0b` can't be used: it holds a NUL byte"),
        (Intent("network", "a.example"), "`a.example` names no port; write `a.example:443`"),
        (
            Intent("network", "*.a.example:443"),
            "`*.a.example:443` has a `*` that is not a whole first label, as in `*.example.com:443`",
        ),
        (Intent("shell", "ls"), "`shell` takes no target, found `ls`"),
        (Intent("tool", "a b"), "`a b` is no name of a tool"),
    ],
)
def test_an_intent_that_cannot_be_understood_is_no_request(
    normalized: Normalized, intent: Intent, reason: str
) -> None:
    with pytest.raises(InvalidRequest) as problem:
        normalized(intents=(intent,))
    assert str(problem.value) == f"the intent `{intent}` can't be understood: {reason}"


def test_an_unknown_action_names_the_known_ones(normalized: Normalized) -> None:
    with pytest.raises(InvalidRequest) as problem:
        normalized(intents=(Intent("dance", "x"),))  # type: ignore[arg-type]
    assert str(problem.value) == "`dance` is no action"
    assert problem.value.advice == "known are run, read, write, network, shell, tool"


@pytest.mark.parametrize("workdir", ["a\0b", "x" * 300, "/proc/self/cwd", ""])
def test_an_impossible_workdir_is_no_request(normalized: Normalized, workdir: str) -> None:
    with pytest.raises(InvalidRequest, match=r"(?s)^`workdir` `.*` can't be used: (it|one) "):
        normalized(workdir=workdir)


def test_a_workdir_is_there_or_the_request_is_none(tmp_path: Path, stack_of: StackOf) -> None:
    (tmp_path / "file").write_text("")
    options: dict[str, Any] = {"host_environment": {}, "digest": lambda name, content: ""}
    for name in ("nowhere", "file", "file/below"):
        request = ExecutionRequest(code="1", workdir=name)
        why = "there is no such directory, or this user can't see it"
        with pytest.raises(InvalidRequest, match=f"^`workdir` `{name}` can't be used: {why}$"):
            normalize(request, stack_of(""), directory=str(tmp_path), **options)
    here = normalize(
        ExecutionRequest(code="1", workdir="."), stack_of(""), directory=str(tmp_path), **options
    )
    assert here.workdir == str(tmp_path)


def test_a_subject_may_have_any_name(normalized: Normalized) -> None:
    assert normalized(subject={"id": "\ud800"}).subject.id == "\ud800"
    with pytest.raises(InvalidRequest, match="`metadata` and `subject` hold"):
        normalized(subject={"id": "\ud800" * 70_000})


# Inputs and tools


@pytest.mark.parametrize("name", ["", "a b", "1a", "class", "None", "__name__"])
@pytest.mark.parametrize("kind", ["input", "tool"])
def test_names_are_such_that_code_can_use(normalized: Normalized, kind: str, name: str) -> None:
    fields = {f"{kind}s": {name: len}} if kind == "tool" else {"inputs": {name: 1}}
    with pytest.raises(InvalidRequest) as problem:
        normalized(**fields)
    assert str(problem.value) == f"the {kind} `{name}` has no name that code can use"


def test_one_name_is_one_thing(normalized: Normalized) -> None:
    with pytest.raises(InvalidRequest) as problem:
        normalized(inputs={"a": 1}, tools={"a": len})
    assert str(problem.value) == "`a` is both an input and a tool"


def test_an_input_that_cannot_cross_names_the_place(normalized: Normalized) -> None:
    with pytest.raises(InvalidRequest) as problem:
        normalized(inputs={"orders": [1, {"x": object()}]})
    assert str(problem.value).startswith("the inputs can't cross into a sandbox: `orders[1].x` is a `object`")
    assert problem.value.advice == "pass numbers, texts, bytes, dates, and lists and mappings of them"


def test_inputs_that_are_too_much_together_are_refused_not_cut(normalized: Normalized) -> None:
    """Each alone is within the budget; what is cut off would run unseen, or not run at all."""
    half = "x" * (3 << 20)
    assert normalized(inputs={"a": half}).inputs == {"a": half}
    with pytest.raises(InvalidRequest) as problem:
        normalized(inputs={"a": half, "b": half})
    assert str(problem.value) == (
        "the inputs can't cross into a sandbox: `b` is too much: more bytes than the budget allows"
    )


def test_inputs_are_copied_so_that_what_was_digested_runs(normalized: Normalized) -> None:
    orders: list[Any] = [1, (2, {"a": b"x"}), {3}]
    found = normalized(inputs={"orders": orders})
    orders.append("later")
    assert found.inputs == {"orders": [1, (2, {"a": b"x"}), {3}]}


# Digests


def test_each_digest_follows_its_own_field(normalized: Normalized, stack_of: StackOf) -> None:
    stack = stack_of("env: {TZ: pass}")
    base = normalized(stack=stack).digests.as_json()
    variants = {
        "code": normalized("2", stack=stack),
        "stdin": normalized(stack=stack, stdin="x"),
        "inputs": normalized(stack=stack, inputs={"a": 1}),
        "environment": normalized(stack=stack, host={"TZ": "UTC"}),
        "limits": normalized(stack=stack, limits={"memory": 5}),
        "workdir": normalized(stack=stack, workdir="/other"),
    }
    assert list(base) == list(variants)
    for name, variant in variants.items():
        changed = {key for key, value in variant.digests.as_json().items() if value != base[key]}
        assert changed == {name}


def test_digests_ignore_spelling(normalized: Normalized) -> None:
    one = normalized("\ufeffa\r\n", inputs={"a": 1, "b": 2}, limits={"memory": "1MiB"}, workdir="/w/x/..")
    other = normalized(b"a\n", inputs={"b": 2, "a": 1}, limits={"memory": 1 << 20}, workdir="/w")
    assert one.digests == other.digests


def test_digests_tell_pairs_apart(normalized: Normalized, stack_of: StackOf) -> None:
    one = normalized(stack=stack_of("env: {A: '1B2:3'}"))
    other = normalized(stack=stack_of("env: {A: '1', B2: '3'}"))
    assert one.digests.environment != other.digests.environment


def test_refused_code_can_be_recognised_and_its_size_is_known(
    normalized: Normalized, stack_of: StackOf
) -> None:
    refused = normalized("x" * 50, stack=stack_of("limits: {code: 10B}"))
    assert (refused.code, refused.code_bytes) == ("", 50)
    assert refused.digests.code == normalized("x" * 50).digests.code


def test_what_is_recorded_as_it_is_has_to_be_short(normalized: Normalized) -> None:
    with pytest.raises(InvalidRequest, match="`metadata` and `subject` hold 7"):
        normalized("1", metadata={"note": "x" * 70_000})
