"""One policy file as a value: every key of the language, and what is refused where."""

from pathlib import Path
from typing import Any

import pytest
from licet.contract import Control, Evidence, Level
from licet.errors import InvalidPolicy
from licet.policy.document import RESERVED, PolicyDocument, build, join
from licet.policy.index import closing
from licet.policy.yaml import load

WHOLE = """\
licet: 1
name: acme/agents
extends: licet:compute
within: [./org.yaml, licet:nothing, /etc/bound.yaml]
allow: [read ./data, write ./out, "network api.example.com:443", tool find_order]
ask:   ["network *.example.com:443 except api.example.com:443"]
deny:  [read ./data/secrets]
limits: {wall_time: 60s, cpu_time: 30s, memory: 2GiB, processes: 1, code: 1MiB, stdin: 1MiB, stdout: 1MiB,
  stderr: 1MiB, output: 16MiB, files: 1GiB, recursion: 500, tool_calls: 20}
env: {LANG: C.UTF-8, TZ: pass, ANSWER: "no"}
screen: {mode: report, modules: {deny: [ctypes]}}
sandbox: {require: {network_deny: enforced, timeout: partial}, evidence: probed, only: [monty],
  prefer: [monty]}
audit: {mode: best_effort, content: kept}
mode: enforce
"""


def document(text: str, base: str = "/p") -> PolicyDocument:
    return build(load(text.encode(), "f.yaml"), file="f.yaml", base=Path(base))


def refusal(text: str) -> tuple[str, str | None]:
    with pytest.raises(InvalidPolicy) as problem:
        document(text)
    return str(problem.value), problem.value.advice


def test_every_key_of_the_language_is_read() -> None:
    read = document(WHOLE)
    assert (read.name, read.extends, read.mode) == ("acme/agents", "licet:compute", "enforce")
    assert [bound.path for bound in read.within] == ["/p/org.yaml", "licet:nothing", "/etc/bound.yaml"]
    assert [str(entry.where) for entry in read.allow] == [
        "f.yaml:5:9",
        "f.yaml:5:22",
        "f.yaml:5:35",
        "f.yaml:5:66",
    ]
    assert (read.ask[0].target, read.ask[0].excepts) == ("*.example.com:443", ("api.example.com:443",))
    assert [entry.effect for entry in (*read.allow[:1], *read.ask, *read.deny)] == ["allow", "ask", "deny"]
    assert read.limits.stated() == {
        "wall_time": 60.0,
        "cpu_time": 30.0,
        "memory": 2 << 30,
        "processes": 1,
        "code": 1 << 20,
        "stdin": 1 << 20,
        "stdout": 1 << 20,
        "stderr": 1 << 20,
        "output": 16 << 20,
        "files": 1 << 30,
        "recursion": 500,
        "tool_calls": 20,
    }
    assert read.env == {"LANG": "C.UTF-8", "TZ": "pass", "ANSWER": "no"}
    assert (read.screen.mode, read.screen.modules.deny) == ("report", ("ctypes",))
    assert read.sandbox.require == {Control.network_deny: Level.enforced, Control.timeout: Level.partial}
    assert (read.sandbox.evidence, read.sandbox.only, read.sandbox.prefer) == (
        Evidence.probed,
        ("monty",),
        ("monty",),
    )
    assert (read.audit.mode, read.audit.content) == ("best_effort", "kept")


def test_the_least_policy_says_nothing() -> None:
    read = document("licet: 1")
    assert (read.allow, read.ask, read.deny, read.within, read.extends) == ((), (), (), (), None)
    assert (read.env, read.screen.mode, read.sandbox.only, read.audit.mode) == (None, None, None, None)
    assert read.limits.stated() == {}


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_reserved_keys_are_known_and_refused(key: str) -> None:
    assert refusal(f"licet: 1\n{key}: {{}}") == (
        f"f.yaml:2:1: `{key}` ({RESERVED[key]}) is not yet supported",
        "take it out; licet refuses what it would not enforce",
    )


def test_reserved_are_exactly_the_keys_of_the_design_that_do_nothing_yet() -> None:
    assert {*RESERVED} == {"secrets", "session"}


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        ("licet: 1\nalow: [run]", "f.yaml:2:1: unknown key `alow`", "did you mean `allow`?"),
        ("licet: 1\nrulez: []", "f.yaml:2:1: unknown key `rulez`", "did you mean `rules`?"),
        ("licet: 1\nfile: x", "f.yaml:2:1: unknown key `file`", None),
        (
            "licet: 1\nlimits: {wal_time: 1s}",
            "f.yaml:2:10: unknown key `limits.wal_time`",
            "did you mean `wall_time`?",
        ),
        ("licet: 1\nscreen:\n  mod: refuse", "f.yaml:3:3: unknown key `screen.mod`", "did you mean `mode`?"),
        (
            "licet: 1\nscreen: {modules: {denny: []}}",
            "f.yaml:2:20: unknown key `screen.modules.denny`",
            "did you mean `deny`?",
        ),
        ("licet: 1\nsandbox: {onyl: []}", "f.yaml:2:11: unknown key `sandbox.onyl`", "did you mean `only`?"),
        (
            "licet: 1\naudit: {contents: kept}",
            "f.yaml:2:9: unknown key `audit.contents`",
            "did you mean `content`?",
        ),
        (
            "licet: 1\nsandbox: {require: {network_denny: enforced}}",
            "f.yaml:2:21: unknown name `network_denny`",
            "did you mean `network_deny`?",
        ),
        ("licet: 1\nqqq: 1\nrrr: 2", "f.yaml:2:1: unknown key `qqq` (and 1 more, in line 3)", None),
    ],
)
def test_unknown_keys_have_a_place_and_a_near_name(text: str, message: str, advice: str | None) -> None:
    found, given = refusal(text)
    assert found == message
    assert given == advice if advice else given and given.startswith("known are ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml: a policy is a mapping that begins with `licet: 1`"),
        ("[]", "f.yaml: a policy is a mapping that begins with `licet: 1`"),
        ("just text", "f.yaml: a policy is a mapping that begins with `licet: 1`"),
        ("name: x", "f.yaml:1: the version is missing"),
        ("licet: 2", "f.yaml:1:1: `licet`: this licet reads version 1, found `2`"),
        ("licet: true", "f.yaml:1:1: `licet`: this licet reads version 1, found `True`"),
        ("licet: 1.0", "f.yaml:1:1: `licet`: this licet reads version 1, found `1.0`"),
        ("licet: '1'", "f.yaml:1:1: `licet`: this licet reads version 1, found the text `1`"),
        ("licet: 1\nallow: run", "f.yaml:2:1: `allow`: expected a list of entries such as `read ./data`"),
        ("licet: 1\nallow:", "f.yaml:2:1: `allow`: expected a list of entries such as `read ./data`"),
        ("licet: 1\nallow:\n- run\n- 7", "f.yaml:4:3: expected an entry such as `read ./data`, found `7`"),
        ("licet: 1\ndeny:\n- raed ./x", "f.yaml:3:3: `raed ./x` begins with no action"),
        ("licet: 1\nmode: off", "f.yaml:2:1: `mode`: input should be 'enforce' or 'dry_run', found `off`"),
        ("licet: 1\nwithin: [1]", "f.yaml:2:10: `within`: expected a file, or a list of files"),
        ("licet: 1\nlimits: {memory: 0}", "f.yaml:2:10: `limits.memory`: `0` bounds nothing"),
        (
            "licet: 1\nlimits: {processes: 0x" + "f" * 300 + "}",
            "f.yaml:2:10: `limits.processes`: `a number of 1200 bits` bounds nothing",
        ),
        ("licet: 1\nlimits: {wall_time: .inf}", "f.yaml:2:10: `limits.wall_time`: `inf` bounds nothing"),
        ("licet: 1\nenv: {A: 1}", "f.yaml:2:1: `env`: `A` needs a text, or `pass`; put `1` in quotes"),
        ("licet: 1\nenv: {A: no}", None),
        ('licet: 1\nenv: {"A=B": x}', "f.yaml:2:1: `env`: `A=B` is no name of an environment variable"),
        ('licet: 1\nenv: {"": x}', "f.yaml:2:1: `env`: `` is no name of an environment variable"),
        ('licet: 1\nenv: {A: "\\0"}', "f.yaml:2:1: `env`: the value of `A` holds a NUL byte"),
        ("licet: 1\nenv: [A]", "f.yaml:2:1: `env`: input should be a valid dictionary"),
        (
            "licet: 1\nsandbox: {require: {timeout: planned}}",
            "f.yaml:2:11: `sandbox.require`: `timeout` can be required as `partial` or `enforced`",
        ),
        (
            "licet: 1\nsandbox: {evidence: sworn}",
            "f.yaml:2:11: `sandbox.evidence`: input should be 'declared', 'read_back' or 'probed'",
        ),
        (
            "licet: 1\nscreen: {mode: maybe}",
            "f.yaml:2:10: `screen.mode`: input should be 'refuse' or 'report'",
        ),
        ("licet: 1\nlimits: 5", "f.yaml:2:1: `limits`: input should be a valid dictionary"),
        ("licet: 1\nextends: [a]", "f.yaml:2:1: `extends`: input should be a valid string"),
    ],
)
def test_wrong_values_are_refused_at_their_place(text: str, message: str | None) -> None:
    if message is None:
        document(text)
    else:
        assert refusal(text)[0].startswith(message)


def joined(mine: str, parent: str) -> PolicyDocument:
    return join(document(f"licet: 1\n{mine}"), document(f"licet: 1\n{parent}", base="/q"))


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_lists_of_entries_join(effect: str) -> None:
    both = joined(f"{effect}: [read ./a]", f"{effect}: [read ./a, shell]")
    assert [entry.target for entry in getattr(both, effect)] == ["/p/a", "/q/a", None]


def test_within_joins_each_relative_to_its_own_file() -> None:
    within = joined("within: [./a.yaml]", "within: [./b.yaml]").within
    assert [(bound.path, bound.base) for bound in within] == [("/p/a.yaml", "/p"), ("/q/b.yaml", "/q")]


@pytest.mark.parametrize(
    ("mine", "parent", "path", "expected"),
    [
        ("limits: {memory: 1MiB}", "limits: {memory: 2MiB, wall_time: 1s}", "limits.memory", 1 << 20),
        ("limits: {memory: 1MiB}", "limits: {memory: 2MiB, wall_time: 1s}", "limits.wall_time", 1.0),
        ("limits: {memory: 4MiB}", "limits: {memory: 2MiB}", "limits.memory", 4 << 20),
        ("env: {A: mine}", "env: {A: theirs, B: theirs}", "env", {"A": "mine", "B": "theirs"}),
        ("", "env: {A: theirs}", "env", {"A": "theirs"}),
        ("screen: {modules: {deny: [a]}}", "screen: {modules: {deny: [b]}}", "screen.modules.deny", ("a",)),
        ("screen: {modules: {deny: [a]}}", "screen: {mode: report}", "screen.mode", "report"),
        ("sandbox: {only: [a]}", "sandbox: {only: [b], prefer: [c]}", "sandbox.only", ("a",)),
        ("sandbox: {only: [a]}", "sandbox: {only: [b], prefer: [c]}", "sandbox.prefer", ("c",)),
        ("sandbox: {only: []}", "sandbox: {only: [b]}", "sandbox.only", ()),
        (
            "sandbox: {require: {timeout: partial}}",
            "sandbox: {require: {timeout: enforced, cancellation: enforced}}",
            "sandbox.require",
            {Control.timeout: Level.partial, Control.cancellation: Level.enforced},
        ),
        ("audit: {mode: required}", "audit: {mode: best_effort, content: kept}", "audit.mode", "required"),
        ("audit: {mode: required}", "audit: {mode: best_effort, content: kept}", "audit.content", "kept"),
        ("name: mine", "name: theirs", "name", "mine"),
        ("", "name: theirs", "name", None),
    ],
)
def test_mappings_merge_by_key_and_every_other_value_is_mine(
    mine: str, parent: str, path: str, expected: object
) -> None:
    found: Any = joined(mine, parent)
    for name in path.split("."):
        found = getattr(found, name)
    assert found == expected


def test_what_a_grandparent_states_holds_through_a_silent_parent() -> None:
    grandparent = document("licet: 1\nlimits: {memory: 1MiB}\nenv: {A: x}\nsandbox: {prefer: [a]}")
    parent = join(document("licet: 1\nlimits: {wall_time: 1s}"), grandparent)
    mine = join(document("licet: 1\nenv: {B: y}"), parent)
    assert mine.limits.stated() == {"wall_time": 1.0, "memory": 1 << 20}
    assert mine.env == {"A": "x", "B": "y"}
    assert mine.sandbox.prefer == ("a",)


def test_a_document_binds_workdir_everywhere_and_only_where_it_stands() -> None:
    read = document("licet: 1\nallow: [read workdir, write ./x]\ndeny: [read workdir/keys]")
    assert [(number, entry.target) for number, entry in read.index.bind("/w")] == [(0, "/w"), (2, "/w/keys")]
    assert document("licet: 1\nallow: [read ./x]").index.bind("/w") == ()


@pytest.mark.parametrize(
    ("bound", "entry", "nothing"),
    [
        ("deny: [read ./a]", "read ./a/b", True),
        ("deny: [read ./a/b]", "read ./a", False),
        ("allow: [read ./c]", "read ./a", True),
        ("allow: [read ./a/b]", "read ./a", False),
        ("ask: [read ./a]", "read ./a/b", False),
        ("allow: [write ./c]", "read ./a", False),
        ("allow: ['network any']", "network a.example:1", False),
        ("allow: ['network b.example:1']", "network a.example:1", True),
        ("deny: [shell]", "shell", True),
        ("allow: [shell]", "shell", False),
    ],
)
def test_whether_a_bound_leaves_anything_of_an_entry(bound: str, entry: str, nothing: bool) -> None:
    (root_entry,) = document(f"licet: 1\nallow: ['{entry}']").allow
    read = document(f"licet: 1\n{bound}")
    assert closing(read.deny, (*read.allow, *read.ask))(root_entry) == nothing


def test_every_setting_knows_where_it_stands_and_whose_it_was_before_extends() -> None:
    mine = document("licet: 1\nname: mine\nlimits: {memory: 1MiB}\nenv:\n  A: x")
    parent = build(
        load(b"licet: 1\nname: pack\nlimits: {memory: 2MiB, files: 1MiB}\nlearn: true", "pack"),
        file="pack",
        base=Path("/p"),
    )
    places = {".".join(path): str(place) for path, place in join(mine, parent).places.items()}
    assert places == {
        "licet": "f.yaml:1:1",
        "name": "f.yaml:2:1",
        "limits": "f.yaml:3:1",
        "limits.memory": "f.yaml:3:10",
        "limits.files": "pack:3:24",
        "env": "f.yaml:4:1",
        "env.A": "f.yaml:5:3",
        "learn": "pack:4:1",
    }


@pytest.mark.parametrize("key", ["file", "places"])
def test_what_a_document_knows_of_itself_is_no_key(key: str) -> None:
    assert refusal(f"licet: 1\n{key}: x")[0] == f"f.yaml:2:1: unknown key `{key}`"


def test_a_copy_of_a_document_derives_anew() -> None:
    read = document("licet: 1\nallow: [read /a]\napproval: {count: 2}")
    assert (read.index.covering("read", "/b"), read.demands.count) == ([], 2)
    other = document("licet: 1\nallow: [read /b]")
    copied = read.model_copy(update={"allow": other.allow, "approval": other.approval})
    assert (copied.index.covering("read", "/b"), copied.demands.count) == (list(other.allow), 1)
