"""From files to a stack: what bounds what, what is sealed, and when the digest changes."""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.contract import Control, Evidence, Level
from licet.errors import InvalidPolicy
from licet.policy import PolicySource, PolicyStack, load_stack, watch
from licet.policy.document import build
from licet.policy.yaml import load

StackOf = Callable[..., PolicyStack]


class Files:
    """A directory of policies. Its managed directory and its packs are made when a test writes into them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = PolicySource({}, root / "managed")

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            path = self.root / f"{name.replace('__', '/')}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"licet: 1\n{text}\n")

    def pack(self, name: str, text: str) -> None:
        self.write(**{f"packs__{name}": text})
        packs = {**self.source.packs, name: self.root / f"packs/{name}.yaml"}
        self.source = replace(self.source, packs=packs)

    def load(self, name: str = "root") -> PolicyStack:
        return load_stack(name if ":" in name else self.root / f"{name}.yaml", self.source)

    def refusal(self, name: str = "root") -> tuple[str, str | None]:
        with pytest.raises(InvalidPolicy) as problem:
            self.load(name)
        return str(problem.value).replace(f"{self.root}/", ""), problem.value.advice

    def names(self, stack: PolicyStack) -> list[str]:
        return [os.path.relpath(document.file, self.root) for document in stack.documents]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(Path(os.path.realpath(tmp_path)))


def test_bounds_are_transitive_and_relative_to_the_file_that_names_them(files: Files) -> None:
    files.write(
        root="within: [./orgs/acme.yaml]",
        orgs__acme="within: [../law.yaml, ./more.yaml]",
        orgs__more="",
        law="",
        managed__machine="within: [../law.yaml]",
    )
    found = files.names(files.load())
    assert found[0] == "root.yaml"
    assert sorted(found[1:]) == ["law.yaml", "managed/machine.yaml", "orgs/acme.yaml", "orgs/more.yaml"]


def test_managed_bounds_apply_to_every_policy_even_to_packs(files: Files) -> None:
    files.write(managed__b="", managed__a="", root="")
    (files.root / "managed/notes.txt").write_text("no policy")
    files.pack("compute", "")
    assert files.names(files.load("licet:compute"))[1:] == ["managed/a.yaml", "managed/b.yaml"]
    assert files.names(files.load())[1:] == ["managed/a.yaml", "managed/b.yaml"]


def test_a_pack_can_be_a_bound(files: Files) -> None:
    files.pack("nothing", "deny: [run]")
    files.write(root="within: [licet:nothing]")
    assert [document.file for document in files.load().bounds] == ["licet:nothing"]


def test_a_managed_policy_that_would_never_be_read_is_an_error(files: Files) -> None:
    files.write(root="", managed__a="")
    (files.root / "managed/b.yml").write_text("licet: 1\ndeny: [run]\n")
    message, advice = files.refusal()
    assert message == "managed: `b.yml` would never be read, since managed policies end in `.yaml`"
    assert advice == "have the administrator of this machine rename it"


def test_a_team_that_keeps_content_keeps_none_under_an_organisation_that_forbids_it(files: Files) -> None:
    files.write(root="extends: ./pack.yaml\naudit: {content: kept}", pack="audit: {content: digest}")
    assert files.load().content_mode == "kept"
    files.write(root="within: [./org.yaml]\naudit: {content: kept}", org="audit: {content: digest}")
    assert files.load().content_mode == "digest"
    files.write(root="", managed__org="audit: {content: kept}")
    assert files.load().content_mode == "digest"


def test_no_managed_directory_is_no_bound(files: Files) -> None:
    files.write(root="")
    assert files.load().bounds == ()


UNREADABLE = "can't be read: no such file or directory"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"root": "within: [./gone.yaml]"}, f"root.yaml:2:10: the policy `gone.yaml` {UNREADABLE}"),
        ({"root": "extends: ./gone.yaml"}, f"root.yaml:2:1: the policy `gone.yaml` {UNREADABLE}"),
        (
            {"root": "within: [./a.yaml]", "a": "within: [./b.yaml]"},
            f"a.yaml:2:10: the policy `b.yaml` {UNREADABLE}",
        ),
        ({"root": "within: ./gone.yaml"}, f"root.yaml:2:1: the policy `gone.yaml` {UNREADABLE}"),
        (
            {"root": "within: [./a]", "a__x": ""},
            "root.yaml:2:10: the policy `a` can't be read: is a directory",
        ),
        ({"root": "", "managed__x": "alow: []"}, "managed/x.yaml:2:1: unknown key `alow`"),
        ({"root": 'within: ["a\\0b"]'}, "root.yaml:2:10: the path `a\0b` can't be used: it holds a NUL byte"),
        ({"root": 'extends: "a\\0b"'}, "root.yaml:2:1: the path `a\0b` can't be used: it holds a NUL byte"),
        (
            {"root": "within: [/proc/self/environ]"},
            "root.yaml:2:10: the path `/proc/self/environ` can't be used: "
            "it goes through a link that is different for every process",
        ),
    ],
)
def test_a_bound_that_cannot_be_read_refuses(files: Files, texts: dict[str, str], message: str) -> None:
    files.write(**texts)
    assert files.refusal()[0] == message


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files of all kinds")
@pytest.mark.parametrize("which", ["root.yaml", "bound.yaml", "base.yaml", "managed/machine.yaml"])
def test_a_pipe_is_refused_at_once(files: Files, which: str) -> None:
    files.write(root="extends: ./base.yaml\nwithin: [./bound.yaml]", base="", bound="", managed__machine="")
    (files.root / which).unlink()
    os.mkfifo(files.root / which)
    message, advice = files.refusal()
    assert message.endswith("can't be read: not a plain file")
    assert advice == "name a plain file"


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files of all kinds")
@pytest.mark.parametrize("which", ["root.yaml", "managed/machine.yaml"])
def test_a_device_is_refused_even_where_a_link_may_lead_to_it(files: Files, which: str) -> None:
    files.write(root="", managed__machine="")
    (files.root / which).unlink()
    (files.root / which).symlink_to("/dev/zero")
    assert files.refusal()[0].endswith("the policy `/dev/zero` can't be read: not a plain file")


def test_what_is_said_of_a_long_path_is_short(files: Files) -> None:
    files.write(root=f"within: [./{'x' * 5000}]")
    message, _ = files.refusal()
    assert message.endswith("…` can't be used: it is longer than 4095 bytes")
    assert len(message) < 400


def test_the_root_that_does_not_exist_says_how_to_make_one(files: Files) -> None:
    assert files.refusal() == (
        "command line: the policy `root.yaml` can't be read: no such file or directory",
        "name a file that exists, or make one with `licet policy init`",
    )


def test_a_managed_directory_that_cannot_be_listed_refuses(files: Files) -> None:
    files.write(root="")
    (files.root / "managed").touch()
    message, advice = files.refusal()
    assert message.endswith("managed: the managed policies can't be listed: not a directory")
    assert advice == "ask the administrator of this machine; nothing runs without them"


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs root, to become somebody else"
)
def test_a_managed_directory_that_this_user_may_not_read_refuses() -> None:
    with tempfile.TemporaryDirectory() as directory:  # not in tmp_path, which only its owner may enter
        Path(directory).chmod(0o755)
        files = Files(Path(os.path.realpath(directory)))
        files.write(root="", managed__x="deny: [run]")
        (files.root / "managed").chmod(0o700)
        os.seteuid(65534)
        try:
            message, _ = files.refusal()
        finally:
            os.seteuid(0)
    assert message.endswith("managed: the managed policies can't be listed: permission denied")


def test_a_missing_pack_names_the_known_ones(files: Files) -> None:
    files.write(root="extends: licet:compte")
    assert files.refusal() == (
        "root.yaml:2:1: there is no policy pack `licet:compte`",
        "install `licet-policies`",
    )
    files.pack("compute", "")
    files.pack("data", "")
    assert files.refusal()[1] == "known packs are `licet:compute`, `licet:data`"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            {"root": "extends: ./root.yaml"},
            "root.yaml:2:1: `extends` runs in a circle: root.yaml → root.yaml",
        ),
        (
            {"root": "extends: ./a.yaml", "a": "extends: ./b.yaml", "b": "extends: ./a.yaml"},
            "b.yaml:2:1: `extends` runs in a circle: root.yaml → a.yaml → b.yaml → a.yaml",
        ),
        (
            {"root": "within: [./root.yaml]"},
            "root.yaml:2:10: `within` runs in a circle: root.yaml → root.yaml",
        ),
        (
            {"root": "within: [./a.yaml]", "a": "within: [./root.yaml]"},
            "a.yaml:2:10: `within` runs in a circle: root.yaml → a.yaml → root.yaml",
        ),
    ],
)
def test_circles_are_refused(files: Files, texts: dict[str, str], message: str) -> None:
    files.write(**texts)
    assert files.refusal()[0] == message


def test_a_shared_bound_is_no_circle_and_counts_once(files: Files) -> None:
    files.write(root="within: [./a.yaml, ./b.yaml]", a="within: [./c.yaml]", b="within: [./c.yaml]", c="")
    assert sorted(files.names(files.load())) == ["a.yaml", "b.yaml", "c.yaml", "root.yaml"]


def test_a_hundred_bounds_are_enough(files: Files) -> None:
    files.write(root="", **{f"managed__b{n:03}": "" for n in range(101)})
    assert files.refusal()[0].endswith("managed: more than 100 bounds")


def test_extends_is_joined_before_anything_else_looks(files: Files) -> None:
    files.write(
        root="extends: ./base/base.yaml\nallow: [read ./mine]",
        base__base="allow: [read ./theirs]\nwithin: [./bound.yaml]\nlimits: {memory: 1MiB}",
        base__bound="",
    )
    stack = files.load()
    assert [entry.target for entry in stack.root.allow] == [f"{files.root}/mine", f"{files.root}/base/theirs"]
    assert files.names(stack) == ["root.yaml", "base/bound.yaml"]
    assert stack.limits.memory == 1 << 20


@pytest.mark.parametrize(
    ("policy", "message", "advice"),
    [
        (
            "allow: [read ./a/b]\nask: [read ./a]",
            "root.yaml:2:9: `allow: read ./a/b` can never matter: `ask: read ./a` in root.yaml:3:7 covers it",
            "write `ask: read ./a except ./a/b`, or take one of the two out",
        ),
        (
            "ask: [read ./a]\ndeny: [read .]",
            "root.yaml:2:7: `ask: read ./a` can never matter: `deny: read .` in root.yaml:3:8 covers it",
            "write `deny: read . except ./a`, or take one of the two out",
        ),
        (
            "allow: [shell]\nask: [shell]",
            "root.yaml:2:9: `allow: shell` can never matter: `ask: shell` in root.yaml:3:7 covers it",
            "take one of the two out",
        ),
        (
            "allow: ['network a.example.com:443']\nask: ['network *.example.com:443']",
            "root.yaml:2:9: `allow: network a.example.com:443` can never matter: "
            "`ask: network *.example.com:443` in root.yaml:3:7 covers it",
            "write `ask: network *.example.com:443 except a.example.com:443`, or take one of the two out",
        ),
    ],
)
def test_a_dead_entry_is_an_error_that_says_how_to_write_it(
    files: Files, policy: str, message: str, advice: str
) -> None:
    files.write(root=policy)
    assert files.refusal() == (message, advice)


@pytest.mark.parametrize(
    "policy",
    [
        "allow: [read ./a]\nask: [read ./a/b]",
        "allow: [read ./a/b]\nask: [read ./a except ./a/b]",
        "allow: ['network a.example.com:443']\nask: ['network *.example.com:443 except a.example.com']",
        "allow: [read ./a, read ./a/b, read ./a]",
        "allow: [tool a*]\nask: [tool '*' except '*b']",
        "deny: [run, run, shell]",
    ],
)
def test_what_still_matters_is_no_dead_entry(files: Files, policy: str) -> None:
    files.write(root=policy.replace("tool '*' except '*b'", '"tool * except *b"'))
    assert files.load().warnings == ()


def test_an_entry_dead_only_after_extends_is_an_error_too(files: Files) -> None:
    files.write(root="extends: ./base.yaml\nallow: [read ./a/b]", base="ask: [read ./a]")
    assert files.refusal()[0] == (
        "root.yaml:3:9: `allow: read ./a/b` can never matter: `ask: read ./a` in base.yaml:2:7 covers it"
    )


def test_dead_entries_of_bounds_are_errors_too(files: Files) -> None:
    files.write(root="", managed__x="allow: [shell]\ndeny: [shell]")
    assert files.refusal()[0].startswith("managed/x.yaml:2:9: `allow: shell` can never matter")


def test_an_entry_that_a_bound_kills_is_a_warning(files: Files) -> None:
    files.write(
        root="within: [./org.yaml]\nallow: [read ./a, read ./b, shell, read workdir]",
        org="name: acme/org\nallow: [read ./b/c]\ndeny: [shell]",
    )
    stack = files.load()
    assert [warning.replace(f"{files.root}/", "") for warning in stack.warnings] == [
        "root.yaml:3:9: `allow: read ./a` opens nothing: the bound `acme/org` denies all of it",
        "root.yaml:3:29: `allow: shell` opens nothing: the bound `acme/org` denies all of it",
    ]


def test_env_pass_needs_the_permission_of_the_host(files: Files) -> None:
    files.write(root="env: {TZ: pass, AWS_SECRET: pass, FOO: set}")
    files.source = replace(files.source, may_pass=lambda name: name == "TZ")
    assert files.refusal() == (
        "root.yaml: `env: {AWS_SECRET: pass}` would hand on a variable that settings do not permit",
        "state its value, or have it added to `pass_environment` in the settings",
    )


def test_every_file_that_was_read_is_sealed(files: Files) -> None:
    files.pack("compute", "")
    files.write(
        root="extends: ./base.yaml\nwithin: [./org.yaml]",
        base="extends: licet:compute",
        org="",
        managed__x="",
    )
    stack = load_stack(files.root / "root.yaml", files.source, sealed=[files.root / ".licet"])
    expected = [
        "root.yaml",
        "base.yaml",
        "packs/compute.yaml",
        "org.yaml",
        "managed/x.yaml",
        ".licet",
        "managed",
    ]
    assert {*stack.sealed} == {f"{files.root}/{name}" for name in expected}


def test_links_on_the_way_to_a_policy_are_sealed_too(files: Files) -> None:
    """Whoever may replace the link chooses the policy of the next run."""
    files.write(shared__policy="within: [./org.yaml]", shared__org="")
    (files.root / "conf").symlink_to("shared")
    (files.root / "root.yaml").symlink_to("conf/policy.yaml")
    stack = files.load()
    expected = ["root.yaml", "conf", "shared/policy.yaml", "shared/org.yaml", "managed"]
    assert {*stack.sealed} == {f"{files.root}/{name}" for name in expected}


def test_a_linked_policy_reads_paths_from_where_it_really_is(files: Files) -> None:
    files.write(shared__policy="allow: [read ./data]")
    (files.root / "root.yaml").symlink_to("shared/policy.yaml")
    assert [entry.target for entry in files.load().root.allow] == [f"{files.root}/shared/data"]


# Links out of the directory


@pytest.mark.parametrize(("key", "place"), [("within: [./org.yaml]", "2:10"), ("extends: ./org.yaml", "2:1")])
def test_a_link_that_leaves_the_directory_of_the_file_that_names_it_is_refused(
    files: Files, key: str, place: str
) -> None:
    """Whoever may write where the link leads would write this policy."""
    files.write(conf__root=key, elsewhere__org="")
    (files.root / "conf/org.yaml").symlink_to("../elsewhere/org.yaml")
    message, advice = files.refusal("conf/root")
    assert message == (
        f"conf/root.yaml:{place}: `conf/org.yaml` is reached through the link `conf/org.yaml`, "
        "which leaves `conf`, the directory of the file that names it"
    )
    assert advice == f"name the file itself: `{files.root}/elsewhere/org.yaml`"


def test_a_link_that_comes_back_by_another_link_outside_is_refused(files: Files) -> None:
    files.write(conf__root="within: [./org.yaml]", conf__real="")
    (files.root / "outside").symlink_to("conf/real.yaml")
    (files.root / "conf/org.yaml").symlink_to("../outside")
    assert "is reached through the link `conf/org.yaml`, which leaves" in files.refusal("conf/root")[0]


def test_links_inside_the_directory_and_names_outside_it_are_fine(files: Files) -> None:
    files.write(conf__root="within: [./org.yaml, ../law.yaml]", conf__v2__org="", law="")
    (files.root / "conf/now").symlink_to("v2")
    (files.root / "conf/org.yaml").symlink_to("now/org.yaml")
    assert files.names(files.load("conf/root"))[1:] == ["conf/v2/org.yaml", "law.yaml"]


def test_the_command_line_and_the_administrator_may_use_links(files: Files) -> None:
    files.write(shared__policy="", managed__x="", elsewhere__law="")
    (files.root / "root.yaml").symlink_to("shared/policy.yaml")
    (files.root / "managed/y.yaml").symlink_to("../elsewhere/law.yaml")
    assert files.names(files.load()) == ["shared/policy.yaml", "managed/x.yaml", "elsewhere/law.yaml"]


# Pins


def pin_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


OTHER = "a" * 64


def test_a_pinned_bound_has_the_bytes_of_its_pin(files: Files) -> None:
    files.write(org="deny: [shell]")
    pin = pin_of(files.root / "org.yaml")
    files.write(root=f"within: [{{file: ./org.yaml, sha256: {pin.upper()}}}]")
    stack = files.load()
    assert files.names(stack) == ["root.yaml", "org.yaml"]
    assert stack.sources[stack.bounds[0].file] == pin

    files.write(org="deny: [shell] # a comment is a change")
    found = pin_of(files.root / "org.yaml")
    assert files.refusal() == (
        f"root.yaml:2:10: `org.yaml` is pinned to sha256 {pin}, but its content has {found}",
        f"review what changed in it, then write `sha256: {found}`",
    )


def test_what_changed_behind_a_pin_is_told_before_what_is_wrong_with_it(files: Files) -> None:
    files.write(root=f"within:\n- file: ./org.yaml\n  sha256: {OTHER}", org="no: policy")
    assert files.refusal()[0].startswith("root.yaml:3:3: `org.yaml` is pinned to")


def test_a_pack_can_be_pinned(files: Files) -> None:
    files.pack("nothing", "deny: [run]")
    pin = pin_of(files.root / "packs/nothing.yaml")
    files.write(root=f"within: {{file: licet:nothing, sha256: {pin}}}")
    assert files.load().sources["licet:nothing"] == pin
    files.write(root=f"within: {{file: licet:nothing, sha256: {OTHER}}}")
    assert files.refusal()[0] == (
        f"root.yaml:2:1: `licet:nothing` is pinned to sha256 {OTHER}, but its content has {pin}"
    )


def test_every_pin_on_a_bound_counts_not_the_first_alone(files: Files) -> None:
    files.write(org="")
    pin = pin_of(files.root / "org.yaml")
    files.write(
        root=f"within: [{{file: ./org.yaml, sha256: {pin}}}, ./team.yaml]",
        team=f"within: [{{file: ./org.yaml, sha256: {OTHER}}}]",
    )
    assert files.refusal()[0].startswith("team.yaml:2:10: `org.yaml` is pinned to")


def test_a_managed_bound_can_not_be_pinned_away(files: Files) -> None:
    files.write(managed__x="deny: [run]")
    pin = pin_of(files.root / "managed/x.yaml")
    files.write(root=f"within: [{{file: ./managed/x.yaml, sha256: {pin}}}]")
    assert files.names(files.load()) == ["root.yaml", "managed/x.yaml"]
    files.write(root=f"within: [{{file: ./managed/x.yaml, sha256: {OTHER}}}]")
    assert "is pinned to" in files.refusal()[0]


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ("{file: ./org.yaml, sha: 12}", "root.yaml:2:28: unknown key `within.sha`"),
        (
            "{file: ./org.yaml, sha256: abc}",
            "root.yaml:2:28: `within.sha256`: expected 64 hexadecimal digits, found `abc`",
        ),
        (
            "{file: ./org.yaml, sha256: null}",
            "root.yaml:2:28: `within.sha256`: expected 64 hexadecimal digits, found `None`",
        ),
        (
            f"{{file: ./org.yaml, sha256: {'0' * 64}}}",
            "root.yaml:2:28: `within.sha256`: expected 64 hexadecimal digits, found `0`",
        ),
        (f"{{sha256: {OTHER}}}", "root.yaml:2:1: `within`: expected a file, or a list of files"),
        ("{file: [./org.yaml]}", "root.yaml:2:1: `within`: expected a file, or a list of files"),
        ("[[./org.yaml]]", "root.yaml:2:10: `within`: expected a file, or a list of files"),
        ("7", "root.yaml:2:1: `within`: expected a file, or a list of files"),
    ],
)
def test_a_malformed_pin_is_an_error_and_never_a_pin_less(files: Files, within: str, message: str) -> None:
    files.write(root=f"within: {within}", org="")
    found = files.refusal()[0]
    assert found == message


def test_pins_and_comments_are_no_part_of_the_digest(files: Files) -> None:
    files.write(org="deny: [shell]", root="within: [./org.yaml]")
    before = files.load()
    pin = pin_of(files.root / "org.yaml")
    files.write(root=f"# pinned\nwithin: [{{file: ./org.yaml, sha256: {pin}}}]")
    after = files.load()
    assert after.digest == before.digest
    assert after.sources != before.sources


def test_sources_name_every_file_that_was_read(files: Files) -> None:
    files.pack("compute", "")
    files.write(root="extends: ./base.yaml\nwithin: [./org.yaml]", base="extends: licet:compute", org="")
    told = {os.path.relpath(name, files.root) if "/" in name else name for name in files.load().sources}
    assert told == {"root.yaml", "base.yaml", "licet:compute", "org.yaml"}


# Bad input


def test_a_bomb_of_aliases_is_refused_at_the_first(files: Files) -> None:
    lines = ["allow: &a [run, run]"] + [f"k{n}: &k{n} [*a, *a, *a, *a, *a, *a, *a, *a]" for n in range(9)]
    files.write(root="\n".join(lines))
    assert files.refusal()[0] == "root.yaml:2:8: anchors and aliases are not part of the policy language"


def test_ten_megabytes_are_not_even_read_to_their_end(files: Files) -> None:
    files.write(root="# " + "x" * (10 << 20))
    assert files.refusal()[0] == "root.yaml: the file is larger than 4 MiB"


def test_a_hundred_thousand_entries_are_refused_where_they_become_too_many(files: Files) -> None:
    files.write(root="deny:\n" + "- tool t\n" * 100_000)
    assert files.refusal()[0] == "root.yaml:20003:3: more than 20000 items in one list"
    deny = "deny:\n" + "".join(f"- tool t{n}\n" for n in range(10_000))
    files.write(root=deny + "allow:\n" + "".join(f"- tool u{n}\n" for n in range(10_001)))
    assert files.refusal() == (
        "root.yaml:10002:3: more than 20000 entries in one policy",
        "write patterns; what nothing allows is denied without an entry",
    )
    files.write(root=deny + "allow:\n" + "".join(f"- tool u{n}\n" for n in range(10_000)))
    assert len(files.load().root.entries) == 20_000


@pytest.mark.parametrize(
    "text",
    [
        "allow:\n" + "".join(f"- read ./a except ./a/{n}\n" for n in range(600)),
        "allow:\n- read ./a" + "".join(f" except ./a/{n}" for n in range(1100)) + "\n",
        "allow:\n" + "- tool t\n" * 1100,
        "rules:\n- id: r\n  deny:\n" + "".join(f"  - tool a*{n}*b\n" for n in range(1100)),
    ],
)
def test_entries_that_overlap_without_end_are_refused(files: Files, text: str) -> None:
    files.write(root=text)
    message, advice = files.refusal()
    assert message.endswith("` overlap more than 1000000 times")
    assert advice == "repeat no target, and gather what you except of it in one entry or in `deny`"


def test_files_that_extend_one_another_without_end_are_refused(files: Files) -> None:
    files.write(root="extends: ./e0.yaml", **{f"e{n}": f"extends: ./e{n + 1}.yaml" for n in range(300)})
    assert files.refusal()[0] == "e98.yaml:2:1: more than 100 files extend one another"


def test_an_unknown_version_is_refused_in_every_file(files: Files) -> None:
    files.write(root="within: [./org.yaml]", org="")
    (files.root / "org.yaml").write_text("licet: 2\n")
    assert files.refusal()[0] == "org.yaml:1:1: `licet`: this licet reads version 1, found `2`"


def test_a_file_that_is_no_text_is_refused_at_its_line(files: Files) -> None:
    files.write(root="within: [./org.yaml]")
    (files.root / "org.yaml").write_bytes(b"licet: 1\nname: caf\xe9\n")
    assert files.refusal()[0] == "org.yaml:2: not UTF-8 at byte 18"


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="needs root, to become somebody else"
)
def test_a_bound_that_this_user_may_not_read_refuses() -> None:
    with tempfile.TemporaryDirectory() as directory:  # not in tmp_path, which only its owner may enter
        Path(directory).chmod(0o755)
        files = Files(Path(os.path.realpath(directory)))
        files.write(root="within: [./org.yaml]", org="deny: [run]")
        (files.root / "org.yaml").chmod(0o600)
        os.seteuid(65534)
        try:
            message, advice = files.refusal()
        finally:
            os.seteuid(0)
    assert message == "root.yaml:2:10: the policy `org.yaml` can't be read: permission denied"
    assert advice == "let this user read it"


def test_a_file_that_changes_at_each_reading_is_refused(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(root="")
    versions = iter(range(100))

    def read_and_rewrite(path: Path, limit: int) -> bytes:
        content = path.read_bytes()
        files.write(root="#" * next(versions))
        return content

    monkeypatch.setattr(watch, "read_plain", read_and_rewrite)
    assert files.refusal() == (
        "root.yaml: the policy changes while it is read",
        "try again; write a new version beside the old one, then rename it",
    )
    assert next(versions) == 3


def test_half_a_file_is_read_again(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write(root="allow: [shell")  # the writer is at work
    whole = "allow: [shell]\ndeny: [run]"

    def read_before_it_is_written(path: Path, limit: int) -> bytes:
        content = path.read_bytes()
        files.write(root=whole)
        monkeypatch.undo()
        return content

    monkeypatch.setattr(watch, "read_plain", read_before_it_is_written)
    assert [entry.text for entry in files.load().root.deny] == ["run"]


# The values of a stack


def test_limits_are_the_roots_or_the_default_lowered_by_bounds(stack_of: StackOf) -> None:
    stack = stack_of(
        "limits: {wall_time: 10m, memory: 2GiB}",
        "limits: {wall_time: 90s, files: 1MiB}",
        "limits: {wall_time: 2m}",
    )
    assert stack.limits.stated() == {
        "wall_time": 90.0,
        "memory": 2 << 30,
        "files": 1 << 20,
        "code": 1 << 20,
        "stdin": 1 << 20,
        "stdout": 1 << 20,
        "stderr": 1 << 20,
        "output": 16 << 20,
        "recursion": 1000,
        "tool_calls": 1000,
    }


def test_a_bound_that_asks_for_less_evidence_than_the_default_lowers_nothing(stack_of: StackOf) -> None:
    assert stack_of("", "sandbox: {evidence: declared}").evidence is Evidence.probed
    assert stack_of("sandbox: {evidence: declared}", "").evidence is Evidence.declared


@pytest.mark.parametrize(
    ("documents", "warm"),
    [
        (("",), True),
        (("sandbox: {warm: true}",), True),
        (("sandbox: {warm: false}",), False),
        (("sandbox: {warm: true}", "sandbox: {warm: false}"), False),
        (("sandbox: {warm: false}", "sandbox: {warm: true}"), False),
    ],
)
def test_one_document_that_wants_no_warm_worker_is_enough(
    stack_of: StackOf, documents: tuple[str, ...], warm: bool
) -> None:
    assert stack_of(*documents).warm is warm


def test_bounds_combine_by_the_stricter_answer(stack_of: StackOf) -> None:
    stack = stack_of(
        "sandbox: {require: {timeout: partial}, evidence: declared, only: [a, b], prefer: [b]}\n"
        "screen: {mode: report, modules: {deny: [ctypes]}}\naudit: {mode: best_effort, content: kept}\n"
        "env: {A: '1', B: '2'}",
        "sandbox: {require: {timeout: enforced, cancellation: partial}, evidence: read_back, only: [b, c],\n"
        "  prefer: [a]}",
        "screen: {modules: {deny: [os]}}\nenv: {A: other, C: '3'}",
    )
    assert stack.requirements == {Control.timeout: Level.enforced, Control.cancellation: Level.partial}
    assert (stack.evidence, stack.only, stack.prefer) == (Evidence.read_back, frozenset({"b"}), ("b",))
    assert (stack.screen_mode, stack.audit_mode, stack.content_mode) == ("report", "best_effort", "kept")
    assert stack.denied_modules == {"ctypes", "os"}
    assert stack.environment == {"A": "1"}


@pytest.mark.parametrize(
    ("root", "bound", "expected"),
    [
        ("", "", ("refuse", "required", "digest")),
        (
            "screen: {mode: report}\naudit: {mode: best_effort, content: kept}",
            "",
            ("report", "best_effort", "kept"),
        ),
        (
            "screen: {mode: report}\naudit: {mode: best_effort, content: kept}",
            "screen: {mode: refuse}\naudit: {mode: required, content: digest}",
            ("refuse", "required", "digest"),
        ),
        (
            "",
            "screen: {mode: report}\naudit: {mode: best_effort, content: kept}",
            ("refuse", "required", "digest"),
        ),
    ],
)
def test_the_stricter_mode_wins_and_only_the_root_loosens(
    stack_of: StackOf, root: str, bound: str, expected: tuple[str, str, str]
) -> None:
    stack = stack_of(root, bound)
    assert (stack.screen_mode, stack.audit_mode, stack.content_mode) == expected


def test_the_default_evidence_is_probed_and_all_backends_are_admitted(stack_of: StackOf) -> None:
    stack = stack_of("")
    assert (stack.evidence, stack.only, stack.prefer) == (Evidence.probed, None, ())


def test_a_stack_is_named_by_file_and_digest(files: Files) -> None:
    files.write(root="")
    stack = files.load()
    assert stack.name == f"root.yaml@{stack.digest[7:11]}"


LINES = {
    "allow": ["read ./a", "read ./a", "write ./b except ./b/x except ./b/y", "tool t"],
    "deny": ["read ./a/s", "shell"],
}
EQUAL = [
    "allow: [tool t, read ./a, write ./b except ./b/y except ./b/x]\ndeny: [shell, read ./a/s]",
    "# a comment\ndeny:   # another\n  - read ./a/s\n  - shell\n"
    "allow: ['read ./a/', 'read  a', write ./b except b/x except ./b/y, tool t]",
    "deny: [read ./a/s, shell, shell]\n"
    "allow: [read ./x/../a, tool t, write ./b except ./b/x except ./b/y except ./b/x]",
]


@pytest.mark.parametrize("other", EQUAL)
def test_the_digest_is_stable_under_order_repetition_layout_and_comments(
    stack_of: StackOf, other: str
) -> None:
    texts = "\n".join(f"{effect}: {entries}" for effect, entries in LINES.items())
    assert stack_of(texts).digest == stack_of(other).digest


def test_the_digest_does_not_depend_on_the_order_of_sets(stack_of: StackOf) -> None:
    one = stack_of(
        "sandbox: {only: [a, b]}\nscreen: {modules: {deny: [x, y]}}", "deny: [shell]", "deny: [run]"
    )
    other = stack_of(
        "sandbox: {only: [b, a]}\nscreen: {modules: {deny: [y, x, y]}}", "deny: [run]", "deny: [shell]"
    )
    assert one.digest == other.digest


def test_the_order_of_within_is_not_part_of_the_digest(files: Files) -> None:
    files.write(a="deny: [shell]", b="deny: [run]", root="within: [./a.yaml, ./b.yaml]")
    before = files.load().digest
    files.write(root="within: [./b.yaml, ./a.yaml]")
    assert files.load().digest == before


MEANINGS = [
    "",
    "allow: [shell]",
    "ask: [shell]",
    "deny: [shell]",
    "allow: [run]",
    "allow: [read ./a]",
    "allow: [write ./a]",
    "allow: [read ./b]",
    "allow: [read ./a except ./a/b]",
    "allow: [read workdir]",
    "limits: {memory: 1MiB}",
    "limits: {memory: 2MiB}",
    "limits: {wall_time: 1s}",
    "env: {}",
    "env: {A: '1'}",
    "env: {A: '2'}",
    "env: {A: pass}",
    "screen: {mode: report}",
    "screen: {modules: {deny: [a]}}",
    "sandbox: {require: {timeout: enforced}}",
    "sandbox: {require: {timeout: partial}}",
    "sandbox: {evidence: probed}",
    "sandbox: {only: []}",
    "sandbox: {only: [a]}",
    "sandbox: {prefer: [a, b]}",
    "sandbox: {prefer: [b, a]}",
    "audit: {mode: best_effort}",
    "audit: {content: kept}",
]


def test_the_digest_changes_with_every_meaning_and_every_place(stack_of: StackOf) -> None:
    digests = [stack_of(text).digest for text in MEANINGS]
    digests += [stack_of("", text).digest for text in MEANINGS]
    assert len({*digests}) == len(digests)


@given(st.permutations(MEANINGS[1:10]), st.permutations(["/s", "/t", "/u"]))
def test_the_digest_ignores_the_order_of_bounds(texts: list[str], sealed: list[str]) -> None:
    def stack(texts: list[str], sealed: list[str]) -> PolicyStack:
        documents = [build(load(f"licet: 1\n{t}".encode(), "f"), file="f", base=Path("/p")) for t in texts]
        return PolicyStack(
            build(load(b"licet: 1", "f"), file="f", base=Path("/p")), tuple(documents), tuple(sealed)
        )

    assert stack(texts, sealed).digest == stack(MEANINGS[1:10], ["/s", "/t", "/u"]).digest
