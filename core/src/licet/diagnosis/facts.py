"""What the facts of a host mean for sandboxes, and what an administrator could switch on. Pure.

Rules this module keeps:

- advice is given only for what is missing here, and names the exact setting;
- a fact that could not be found out says so, and advises nothing.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from licet.diagnosis.machine import Machine

_SCOPES = 6  # the Landlock ABI that keeps code from signalling and tracing
_SOCKETS = 4  # the one that knows TCP


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: its `name`, what was `found`, and what could be switched on, None if nothing is missing."""

    name: str
    found: str
    advice: str | None = None


def facts(machine: Machine) -> tuple[Fact, ...]:
    """All that counts of a host, with advice."""
    return tuple(_facts(machine))


def _facts(machine: Machine) -> Iterator[Fact]:
    yield Fact("system", f"{machine.kernel}, {machine.python}")
    if machine.container is not None:
        yield Fact("container", f"yes ({machine.container}): kernel settings are those of its host")
    yield _user(machine)
    yield _supervision(machine)
    if machine.platform == "linux":
        yield _landlock(machine)
        yield _seccomp(machine)
        yield _namespaces(machine)
        yield _io_uring(machine)
        yield _tracing(machine)
        yield _cgroups(machine)
        yield _kvm(machine)


def _user(machine: Machine) -> Fact:
    if machine.user != 0:
        return Fact("user", "an ordinary user" if machine.user is None else f"ordinary, uid {machine.user}")
    return Fact(
        "user",
        "root, which weakens claims: code that runs as root can strike its supervisor from within the kernel",
        "run licet as an ordinary user (in a systemd unit: `User=NAME`)",
    )


def _supervision(machine: Machine) -> Fact:
    if machine.supervision is None:
        return Fact("supervision", "process trees can be kept and ended")
    return Fact("supervision", f"no process backend: {machine.supervision}")


def _landlock(machine: Machine) -> Fact:
    if machine.landlock >= _SCOPES:
        return Fact("landlock", f"ABI {machine.landlock}: files, TCP ports, signals")
    newer = "boot a kernel of Linux 6.12 or later"
    if machine.landlock > 0:
        known = "files, TCP ports" if machine.landlock >= _SOCKETS else "files"
        found = f"ABI {machine.landlock}: {known}, no signals: code can strike its supervisor"
        return Fact("landlock", found, newer)
    if machine.landlock_refusal == errno.EOPNOTSUPP:
        return Fact(
            "landlock",
            "built into the kernel, and switched off at boot",
            "add `landlock` to the kernel parameter `lsm=` (such as `lsm=landlock,lockdown,yama`) and boot",
        )
    if machine.landlock_refusal == errno.EPERM:
        return Fact(
            "landlock",
            "refused by a filter around this process",
            "permit `landlock_create_ruleset` in the seccomp profile of the container",
        )
    return Fact("landlock", "none", f"{newer}, built with `CONFIG_SECURITY_LANDLOCK=y`")


def _seccomp(machine: Machine) -> Fact:
    if machine.seccomp is None:
        return _unknown("seccomp")
    if machine.seccomp == 0:
        return Fact("seccomp", "system calls can be filtered")
    return Fact("seccomp", "no filters", "boot a kernel built with `CONFIG_SECCOMP_FILTER=y`")


def _namespaces(machine: Machine) -> Fact:
    name = "namespaces"
    if machine.namespaces is None or machine.nested is None:
        return _unknown(name)
    if machine.namespaces == machine.nested == 0:
        return Fact(name, "a view of files, network and processes of its own can be made")
    settings = machine.settings
    if settings.get("user/max_user_namespaces") == "0":
        return Fact(name, "switched off", "set `sysctl user.max_user_namespaces=15000`")
    if settings.get("kernel/unprivileged_userns_clone") == "0":
        return Fact(name, "for root alone", "set `sysctl kernel.unprivileged_userns_clone=1`")
    if settings.get("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return Fact(
            name,
            "kept from ordinary users by AppArmor",
            "give this interpreter an AppArmor profile with the rule `userns,`, "
            "or set `sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
        )
    if machine.container is not None:
        return Fact(
            name,
            f"refused ({_error(machine.namespaces or machine.nested)})",
            "permit `unshare` and `clone` with new namespaces in the seccomp profile of the container",
        )
    return Fact(
        name,
        f"refused ({_error(machine.namespaces or machine.nested)})",
        "boot a kernel built with `CONFIG_USER_NS=y`, and see which security module refuses them",
    )


def _io_uring(machine: Machine) -> Fact:
    if machine.io_uring is None:
        return _unknown("io_uring")
    if machine.io_uring != 0:
        return Fact("io_uring", f"closed ({_error(machine.io_uring)})")
    return Fact(
        "io_uring",
        "open: an interface to the kernel that filters of system calls do not see into",
        "set `sysctl kernel.io_uring_disabled=2`, unless a program here needs it",
    )


def _tracing(machine: Machine) -> Fact:
    scope = machine.settings.get("kernel/yama/ptrace_scope")
    if scope is not None and scope != "0":
        return Fact("tracing", f"bounded by Yama (ptrace_scope {scope})")
    advice = "set `sysctl kernel.yama.ptrace_scope=1`"
    if scope is None:
        advice = "boot a kernel built with `CONFIG_SECURITY_YAMA=y`, and `yama` in `lsm=`"
    return Fact("tracing", "a process may trace every other one of its user", advice)


def _cgroups(machine: Machine) -> Fact:
    groups, name = machine.cgroups, "cgroups"
    if not groups.missing:
        versions = " and ".join(sorted({str(place.version) for place in groups.places.values()}))
        bounded = ", ".join(sorted(groups.places))
        return Fact(name, f"version {versions}, this user can bound {bounded} of a whole tree")
    reasons = "; ".join(dict.fromkeys(missing.reason for missing in groups.missing.values()))
    advice = dict.fromkeys(missing.advice for missing in groups.missing.values() if missing.advice)
    return Fact(
        name,
        f"this user can't bound {', '.join(sorted(groups.missing))} of a whole tree: {reasons}",
        ", or ".join(advice) or None,
    )


def _kvm(machine: Machine) -> Fact:
    if machine.kvm is None:
        return _unknown("kvm")
    if machine.kvm == 0:
        return Fact("kvm", "a kernel of its own can be started")
    if machine.kvm in (errno.EACCES, errno.EPERM):
        return Fact("kvm", "kept from this user", "add this user to the group `kvm` (`usermod -aG kvm NAME`)")
    return Fact(
        "kvm",
        f"none ({_error(machine.kvm)})",
        "switch on virtualisation in firmware or hypervisor, then `modprobe kvm_intel` or `modprobe kvm_amd`",
    )


def _unknown(name: str) -> Fact:
    return Fact(name, "could not be found out")


def _error(number: int) -> str:
    return errno.errorcode.get(number, str(number))
