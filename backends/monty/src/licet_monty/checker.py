"""The type checker that Monty brings, asked about code that must not run.

Rules this module keeps:

- what is checked ends in a line that no parser accepts, whatever stands before it, so that none of it can
  run, whatever its comments tell the checker to be silent about;
- each check has a worker of its own that is ended with it: no code is looked at where other code was;
- time, memory and findings are bounded; what exceeds them is said to be unchecked, never to be sound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from licet.errors import TypesUnchecked
from licet.output import bounded
from licet.type_checker import TypeFinding

from licet_monty.pool import Pool
from licet_monty.walls import Entrance

MOST_FINDINGS = 100
CHECK_S = 5.0
"""How long the worker may take, in seconds; it is killed a second later if it does not notice."""

_MEMORY = 256 << 20  # the checker itself takes 6 MiB
_MOST_MESSAGE = 500
_STOP = "\n(]"  # closes nothing that is open, and is closed by nothing


def check(entrance: Entrance, code: str, stubs: str) -> tuple[TypeFinding, ...]:
    """What the checker objects to in `code`; blocks, and runs nothing.

    Raises:
        LaunchFailed: no worker could be started.
        TypesUnchecked: the checker gave up.
    """
    import pydantic_monty

    pool = Pool(entrance, 1)
    try:
        with pool.start().checkout(
            limits={"max_memory": _MEMORY, "max_feed_duration_secs": CHECK_S},
            type_check=True,
            type_check_stubs=stubs,
            type_check_format="json",
        ) as session:
            session.feed_start(code + _STOP, print_callback=_nothing)
    except pydantic_monty.MontyTypingError as problem:
        return tuple(_findings(problem.display(), code.count("\n") + 1))
    except (pydantic_monty.MontyError, RuntimeError, OSError) as problem:
        raise TypesUnchecked(
            f"the type checker gave up: {bounded(str(problem), 300)}", advice="check shorter code"
        ) from None
    finally:
        pool.close()
    raise TypesUnchecked("the type checker said nothing of a line that is wrong")


def _findings(text: str, lines: int) -> Iterator[TypeFinding]:
    """The findings in the checker's words that are about the code and not about the line after it."""
    found: Iterable[Mapping[str, Any]] = json.loads(text)
    inside = [one for one in found if one["location"]["row"] <= lines]
    for one in inside[:MOST_FINDINGS]:
        place = one["location"]
        message = bounded(one["message"], _MOST_MESSAGE)
        yield TypeFinding(place["row"], place["column"], bounded(one["code"] or "", 100), message)


def _nothing(stream: Literal["stdout", "stderr"], text: str) -> None:
    """What code prints that does not run."""
