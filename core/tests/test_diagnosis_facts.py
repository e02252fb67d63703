"""Advice from made-up hosts: what is missing is named with its setting, and what is there is left alone."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from typing import Any

import pytest
from licet.diagnosis.facts import Fact, facts
from licet.diagnosis.machine import Machine, measure
from licet.supervise.cgroups import Groups, Missing, Place, Resource

LACKING = Missing("it is not handed down", "do this, or that")
WHOLE = Machine(
    kernel="Linux 6.18",
    python="CPython 3.11.7",
    user=1000,
    landlock=7,
    seccomp=0,
    namespaces=0,
    nested=0,
    io_uring=errno.EPERM,
    kvm=0,
    cgroups=Groups(places=dict.fromkeys(Resource, Place(2, "/group"))),
    settings={"kernel/yama/ptrace_scope": "1", "user/max_user_namespaces": "15000"},
)


def fact(name: str, **changes: Any) -> Fact:
    (found,) = [one for one in facts(replace(WHOLE, **changes)) if one.name == name]
    return found


def test_a_host_that_lacks_nothing_gets_no_advice() -> None:
    assert [one.name for one in facts(WHOLE) if one.advice is not None] == []


@pytest.mark.parametrize(
    ("name", "changes", "advice"),
    [
        ("user", {"user": 0}, "run licet as an ordinary user (in a systemd unit: `User=NAME`)"),
        ("landlock", {"landlock": 5}, "boot a kernel of Linux 6.12 or later"),
        (
            "landlock",
            {"landlock": 0, "landlock_refusal": errno.EOPNOTSUPP},
            "add `landlock` to the kernel parameter `lsm=` (such as `lsm=landlock,lockdown,yama`) and boot",
        ),
        (
            "landlock",
            {"landlock": 0, "landlock_refusal": errno.ENOSYS},
            "boot a kernel of Linux 6.12 or later, built with `CONFIG_SECURITY_LANDLOCK=y`",
        ),
        (
            "landlock",
            {"landlock": 0, "landlock_refusal": errno.EPERM},
            "permit `landlock_create_ruleset` in the seccomp profile of the container",
        ),
        ("seccomp", {"seccomp": errno.EINVAL}, "boot a kernel built with `CONFIG_SECCOMP_FILTER=y`"),
        (
            "namespaces",
            {"namespaces": errno.ENOSPC, "settings": {"user/max_user_namespaces": "0"}},
            "set `sysctl user.max_user_namespaces=15000`",
        ),
        (
            "namespaces",
            {"namespaces": errno.EPERM, "settings": {"kernel/unprivileged_userns_clone": "0"}},
            "set `sysctl kernel.unprivileged_userns_clone=1`",
        ),
        (
            "namespaces",
            {"nested": errno.EPERM, "settings": {"kernel/apparmor_restrict_unprivileged_userns": "1"}},
            "give this interpreter an AppArmor profile with the rule `userns,`, "
            "or set `sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
        ),
        (
            "namespaces",
            {"namespaces": errno.EPERM, "container": "/.dockerenv"},
            "permit `unshare` and `clone` with new namespaces in the seccomp profile of the container",
        ),
        (
            "namespaces",
            {"namespaces": errno.EINVAL},
            "boot a kernel built with `CONFIG_USER_NS=y`, and see which security module refuses them",
        ),
        (
            "io_uring",
            {"io_uring": 0},
            "set `sysctl kernel.io_uring_disabled=2`, unless a program here needs it",
        ),
        (
            "tracing",
            {"settings": {"kernel/yama/ptrace_scope": "0"}},
            "set `sysctl kernel.yama.ptrace_scope=1`",
        ),
        (
            "tracing",
            {"settings": {}},
            "boot a kernel built with `CONFIG_SECURITY_YAMA=y`, and `yama` in `lsm=`",
        ),
        ("cgroups", {"cgroups": Groups(missing=dict.fromkeys(Resource, LACKING))}, "do this, or that"),
        ("cgroups", {"cgroups": Groups(missing={Resource.pids: Missing("who knows")})}, None),
        (
            "cgroups",
            {"cgroups": Groups(missing={Resource.memory: LACKING, Resource.cpu: Missing("no", "wait")})},
            "do this, or that, or wait",
        ),
        ("kvm", {"kvm": errno.EACCES}, "add this user to the group `kvm` (`usermod -aG kvm NAME`)"),
        (
            "kvm",
            {"kvm": errno.ENOENT},
            "switch on virtualisation in firmware or hypervisor, "
            "then `modprobe kvm_intel` or `modprobe kvm_amd`",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_setting(
    name: str, changes: dict[str, Any], advice: str | None
) -> None:
    assert fact(name, **changes).advice == advice
    others = [one.name for one in facts(replace(WHOLE, **changes)) if one.advice is not None]
    assert set(others) <= {name, "tracing"}  # made-up settings leave out that of tracing


@pytest.mark.parametrize("name", ["seccomp", "namespaces", "io_uring", "kvm"])
def test_what_could_not_be_found_out_advises_nothing(name: str) -> None:
    assert fact(name, **{name: None}) == Fact(name, "could not be found out")


def test_which_controllers_are_lacking_is_said() -> None:
    groups = Groups({Resource.cpu: Place(2, "/")}, dict.fromkeys((Resource.pids, Resource.memory), LACKING))
    found = fact("cgroups", cgroups=groups).found
    assert found == "this user can't bound memory, pids of a whole tree: it is not handed down"
    hybrid = Groups(
        {Resource.cpu: Place(1, "/a"), Resource.pids: Place(1, "/b"), Resource.memory: Place(2, "/")}
    )
    found = fact("cgroups", cgroups=hybrid).found
    assert found == "version 1 and 2, this user can bound cpu, memory, pids of a whole tree"


def test_root_and_a_missing_scope_say_what_they_weaken() -> None:
    assert "weakens claims" in fact("user", user=0).found
    assert fact("landlock", landlock=5).found == (
        "ABI 5: files, TCP ports, no signals: code can strike its supervisor"
    )
    assert fact("landlock", landlock=1).found == "ABI 1: files, no signals: code can strike its supervisor"


def test_another_system_is_asked_nothing_about_linux() -> None:
    windows = Machine(platform="win32", kernel="Windows 11", supervision="they need Job Objects here")
    assert [one.name for one in facts(windows)] == ["system", "user", "supervision"]
    assert [one.advice for one in facts(windows)] == [None, None, None]


def test_a_host_is_measured_and_stays_as_it_was() -> None:
    before = os.getpid(), sorted(os.environ)
    machine = measure()
    assert (os.getpid(), sorted(os.environ)) == before
    assert machine.platform == sys.platform
    if sys.platform == "linux":
        assert None not in (
            machine.seccomp,
            machine.namespaces,
            machine.nested,
            machine.io_uring,
            machine.kvm,
        )
        assert (machine.landlock == 0) == (machine.landlock_refusal != 0)
    assert [one.name for one in facts(machine)][:1] == ["system"]
