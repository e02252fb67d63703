"""Interpreters and packages that code may be given: built from a pinned list, or found in a prefix.

A run never builds and never downloads: it is given what `licet env build` has put into the store, or what
lies in a prefix, or it is refused. The pieces, from the inside out:

- `python`: what a plan says of an interpreter and its packages, and what a policy asks for;
- `lockfile`: the pinned and hashed list, read strictly;
- `manifest`: all that lies in a built environment, written down and compared;
- `store`: where environments lie, found by what they were made from; `installers` and `building` put them in;
- `prefixes`: an interpreter that somebody else installed;
- `finding`: from what a policy asks for to what a plan says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.environments.building import Built, build
    from licet.environments.finding import Environments
    from licet.environments.lockfile import LockFile, read_lock
    from licet.environments.python import Identity, Python, PythonWish, this_interpreter
    from licet.environments.store import Stored, find, stored

__all__ = [
    "Built",
    "Environments",
    "Identity",
    "LockFile",
    "Python",
    "PythonWish",
    "Stored",
    "build",
    "find",
    "read_lock",
    "stored",
    "this_interpreter",
]

_HOMES = {
    "Built": "building",
    "Environments": "finding",
    "Identity": "python",
    "LockFile": "lockfile",
    "Python": "python",
    "PythonWish": "python",
    "Stored": "store",
    "build": "building",
    "find": "store",
    "read_lock": "lockfile",
    "stored": "store",
    "this_interpreter": "python",
}

__getattr__ = attribute_importer(__name__, _HOMES)
