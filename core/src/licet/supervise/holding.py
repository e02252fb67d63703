"""What holds a run, and where such holders come from, as `licet.supervise.process` needs them.

A keeper of its own, one that waited for it, or a room in a jail: the run is told what happens by lines on a
control socket, and ends all of it by hanging up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Container

    from licet.supervise.jail.spec import Written
    from licet.supervise.keeper import Ends
    from licet.supervise.spec import Reason, Spec, Used


class Holder(Protocol):
    """Holds one run. `pid` is the parent of its main process, `control` the socket; `fresh` if it is new.

    `look_each` is after how many seconds it has to be asked again what the run has used up; None if nothing
    is counted while it goes on. `listener` is where the kernel asks about its calls, if it does.
    """

    pid: int
    control: int
    fresh: bool
    look_each: float | None
    listener: int | None

    def message(self, spec: Spec) -> bytes:
        """What it has to be sent before the run begins."""
        ...

    def hear(self) -> bytes | None:
        """What it says: b"" once it is gone, None if there is nothing now."""
        ...

    def settled(self) -> None:
        """Wait until the code may begin: a few milliseconds at most."""
        ...

    def look(self, guest: int, spec: Spec) -> dict[str, str]:
        """What the system shows of the main process, by the control that it bears on; its walls stand.

        Raises:
            NotTaken: something is not as it was set up.
        """
        ...

    def used_up(self) -> Reason | None:
        """The limit that the run has passed so far, if it is one that ends nobody by itself."""
        ...

    def reached(self) -> Container[Reason]:
        """The limits that were in the way of something, by counters of the kernel; asked once it is over."""
        ...

    def used(self, told: Used) -> Used:
        """What the run has used, where more is known than it was `told`."""
        ...

    def written(self) -> tuple[Written, ...]:
        """Where the code could write; whoever asks closes the descriptors."""
        ...

    def hang_up(self) -> None:
        """Have it end the run and itself, whoever else holds the socket."""
        ...

    def kill(self) -> None:
        """Kill it."""
        ...

    def wait(self) -> None:
        """Return once it is dead."""
        ...


class Supplier(Protocol):
    """Gives runs their holders; from any thread."""

    def find(self, ends: Ends, spec: Spec) -> Holder | None:
        """Return a holder that was given `ends`; None if the run has to start a keeper of its own.

        Raises:
            OSError: the run can't begin, and why.
        """
        ...

    def part(self, holder: Any, /, *, well: bool) -> None:
        """Take leave of a holder whose run is over; `well` if it ended by itself."""
        ...
