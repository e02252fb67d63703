"""How a run is called, on every system: `run_blocking`, and what goes with it.

Rules this module keeps: the system decides who supervises, a keeper where there is `fork`, a Job Object on
Windows; what a caller sees is the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from licet.supervise.spec import ProcessOutcome, Spec
from licet.supervise.stop import Stop

if TYPE_CHECKING:
    from licet.supervise.asking import Asking
    from licet.supervise.holding import Supplier

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], bool]

GRACE = 2.0
"""Seconds that a run has to be gone once it is ended."""


def run_blocking(
    spec: Spec,
    on_output: OnOutput,
    stop: Stop | None = None,
    launcher: Supplier | None = None,
    asking: Asking | None = None,
) -> ProcessOutcome:
    """Run `spec` to its end, and return once nothing of it is left.

    `on_output` gets every piece of output as it comes, in this thread; its first False ends the run with
    `output_limit`, and so does an exception, which is raised again at the end. `stop` ends the run from
    another thread. A `launcher` makes the start cheaper from the third run on, where it can. `asking` is who
    answers what the code asks for, its calls of tools and its connections; what that raises ends the run, and
    is raised again at the end. What the code does never raises.

    Raises:
        ValueError: an input can't cross to the code.
        NotImplementedError: the code has tools, and nobody answers them, or nothing carries them here.
    """
    if spec.tools and (asking is None or os.name == "nt"):
        raise NotImplementedError("nothing carries the calls of these tools")
    if os.name == "nt":
        from licet.supervise.windows import process as windows

        return windows.run_blocking(spec, on_output, stop)
    from licet.supervise import process

    return process.run_blocking(spec, on_output, stop, launcher, asking)
