"""Progress of a pass whose length is not known before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def counted(text: str) -> Iterator[Callable[[], None]]:
    """Around a pass that calls what this gives for each thing it has looked at."""
    from licet.cli.progress import Steps

    with Steps(text) as steps:
        yield steps.step
