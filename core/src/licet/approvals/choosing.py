"""Which approval services are asked: what settings name, out of what plugins and the program offer.

Rules this module keeps:

- what a program brings by itself is asked too, unless an administrator lists the services: then no others;
- a service that is named has to be there, once: who was to be asked and isn't may have said no;
- the terminal and the callbacks are a program's own: settings may name them for programs that have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from licet.approvals.services import ApprovalService
from licet.errors import InvalidSettings
from licet.output import bounded
from licet.settings import Settings

SHIPPED = ("queue", "webhook")
"""The services that licet's own plugin offers."""

BROUGHT = ("callback", "terminal")
"""The services that a program brings by itself, or doesn't."""


def chosen(
    settings: Settings,
    own: Sequence[ApprovalService],
    offered: Sequence[object],
    *,
    problems: Sequence[str] = (),
) -> tuple[ApprovalService, ...]:
    """The services to ask, those that settings name first and in their order.

    Raises:
        InvalidSettings: one that is named is not there, is there twice, or is no service.
    """
    named = settings.approvals.services or ()
    brought = [one for one in own if not settings.services_fixed or one.name in named]
    there = [*brought, *(one for one in map(_service, offered) if one.name in named)]
    for name in named:
        count = sum(one.name == name for one in there)
        if count == 0 and name not in BROUGHT:
            _missing(name, [one.name for one in map(_service, offered)], problems)
        if count > 1:
            raise InvalidSettings(
                f"the approval service `{bounded(name, 200)}` is offered {count} times",
                advice="enable one of the plugins that offer it",
            )
    order = {name: place for place, name in enumerate(named)}
    return tuple(sorted(there, key=lambda one: order.get(one.name, len(order))))


def _missing(name: str, offered: Sequence[str], problems: Sequence[str]) -> None:
    known = ", ".join(f"`{one}`" for one in sorted({*SHIPPED, *BROUGHT, *offered}))
    why = f"can't be used: {problems[0]}" if problems else "is not known"
    raise InvalidSettings(
        f"the approval service `{bounded(name, 200)}` {why}",
        advice=f"known ones are {known}; another needs its plugin, installed and in `enabled`",
    )


def _service(thing: object) -> ApprovalService:
    """A thing as the service that it is.

    Raises:
        InvalidSettings: it is none.
    """
    methods = all(callable(getattr(thing, name, None)) for name in ("ask", "collect", "close"))
    if methods and isinstance(getattr(thing, "name", None), str):
        return thing  # type: ignore[return-value]
    raise InvalidSettings(
        f"a plugin offers a `{type(thing).__name__}`, which is no approval service",
        advice="see the hook `licet_approval_service` in the reference of plugins",
    )
