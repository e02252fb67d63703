"""What can be bounded, where, and why not: the words in which the other modules speak of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Ungrouped(Exception):
    """No group can be made as it was asked for, and why."""


class Resource(StrEnum):
    """What a group bounds, or counts, for all that are in it."""

    memory = "memory"
    """Bytes of all kinds: of processes, of files in memory, of shared pages, of the kernel for them."""
    pids = "pids"
    """Tasks: processes, and the threads of each."""
    cpu = "cpu"
    """Time on processors. It is counted; no group ends anybody for it."""

    @property
    def controller(self) -> str:
        """Its name where it is a hierarchy of its own (version 1)."""
        return "cpuacct" if self is Resource.cpu else str(self)

    @property
    def needed(self) -> frozenset[str]:
        """The controllers that a group of version 2 needs for it: time is counted in each."""
        return frozenset() if self is Resource.cpu else frozenset({str(self)})


@dataclass(frozen=True, slots=True)
class Place:
    """A group below which groups can be made, and what has to be done there before (version 2 alone).

    `enable` are controllers that it does not hand down yet. `leave` says that this process has to move into
    a group below it first, because a group hands down nothing while processes are in it.
    """

    version: int
    folder: str
    enable: frozenset[str] = frozenset()
    leave: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """Why something can't be bounded here, and what an administrator could change, where there is such."""

    reason: str
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """What groups can bound here, and why they can't bound the rest; each resource is in one of the two."""

    places: Mapping[Resource, Place] = field(default_factory=dict)
    missing: Mapping[Resource, Missing] = field(default_factory=dict)

    def bases(self) -> dict[str, tuple[Place, frozenset[Resource]]]:
        """The places by folder, each with all that is bounded there."""
        found: dict[str, tuple[Place, frozenset[Resource]]] = {}
        for resource, place in self.places.items():
            first, before = found.get(place.folder, (place, frozenset()))
            enable = first.enable | place.enable
            both = Place(place.version, place.folder, enable, first.leave or place.leave)
            found[place.folder] = both, before | {resource}
        return found
