"""Checking the types of a request's code, before anything of it runs.

Rules this module keeps:

- it is checked for the backend that would run it, with stubs of its own tools, inputs and files;
- nothing runs, and nothing is recorded; what could not be checked is never told as if nothing was found.
"""

from __future__ import annotations

from collections.abc import Mapping

from licet.backend import Backend
from licet.errors import TypesUnchecked
from licet.prepare import Prepared
from licet.stubs import stubs_of
from licet.type_checker import TypeChecker, TypeFinding


async def check_types(prepared: Prepared, backends: Mapping[str, Backend]) -> tuple[TypeFinding, ...]:
    """What the type checker of the backend that was chosen objects to.

    Raises:
        TypesUnchecked: no backend was chosen, it has no type checker, or that gave up.
    """
    request, chosen = prepared.request, prepared.selection.chosen
    if (wrong := prepared.syntax_error) is not None:
        return (TypeFinding(wrong.line or 1, 1, "invalid-syntax", wrong.message),)
    if request.violations:
        raise TypesUnchecked(f"the code is refused as it is: {request.violations[0].message}")
    if chosen is None:
        raise TypesUnchecked("no backend can run this here", advice="see `licet explain` for what it lacks")
    backend = backends[chosen.descriptor.name]
    if not isinstance(backend, TypeChecker):
        raise TypesUnchecked(f"the backend `{chosen.descriptor.name}` has no type checker")
    opened = chosen.opened
    stubs = stubs_of(
        (request.tools[name] for name in opened.tools),
        prepared.stack,
        request.inputs,
        opens_files=bool(opened.read or opened.write),
    )
    return await backend.check_types(request.code, stubs)
