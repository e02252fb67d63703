"""Jails: runs in namespaces of their own, with a root that shows what is opened, no more (Linux).

- `spec`: what a jail shows; `interpreter`: what an interpreter is made of; `layout`: what is mounted where;
- `standing`: what this host lets a jail be made of;
- `launcher`: gives runs their rooms, see `licet.supervise.run`; `room`: one of them, seen from the host;
- `message`: what is sent; `_launcher`, `_root`, `_room`, `_system`: what runs in the child.

A launcher is a clean interpreter in a root of its own. Each run begins in a fork of it, in fresh user, mount,
process, network, IPC, host name and control group namespaces, with fresh storage, behind Landlock and a list
of system calls, as nobody and without any capability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.supervise.jail.interpreter import Installation, Needs, needs, trusted
    from licet.supervise.jail.launcher import JailLauncher
    from licet.supervise.jail.spec import Jail, Written
    from licet.supervise.jail.standing import Ground, ground

__all__ = [
    "Ground",
    "Installation",
    "Jail",
    "JailLauncher",
    "Needs",
    "Written",
    "ground",
    "needs",
    "trusted",
]

_HOMES = {
    "Ground": "standing",
    "Installation": "interpreter",
    "Jail": "spec",
    "JailLauncher": "launcher",
    "Needs": "interpreter",
    "Written": "spec",
    "ground": "standing",
    "needs": "interpreter",
    "trusted": "interpreter",
}

__getattr__ = attribute_importer(__name__, _HOMES)
