"""Which answers count, and what they come to (rules 16 and 17).

Rules this module keeps:

- every requirement is met on its own, by as many different persons as it asks for; one person counts for each
  that she fits, and answers once;
- two ids are one person's if they differ in case, in compatible characters, or in characters that nobody
  sees; who asserts them makes no difference;
- the requester counts where one person, whoever that is, is all that is asked for; else neither she nor whom
  she acts for ever does;
- of a different tenant than the requester's, nobody counts; a person without one stands for the host;
- one no of somebody who counts is the end, also after the grant, if a human says it;
- a grant reaches as far as all who gave it agree, and never beyond what was asked.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from licet.approvals.clocks import Moment, age
from licet.approvals.forms import Answer, ApprovalRequest, Given, Person, Reach
from licet.output import bounded
from licet.policy.parts import DEFAULT_APPROVAL, Approval

_SHOWN = 80  # characters of what somebody else wrote, in a sentence of ours
_NAMED = ("arg:", "input:")
_CODE = "code"


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an answer does not count, and what would."""

    why: str
    advice: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class Missing:
    """A requirement that is not met yet, and how many persons more it takes."""

    requirement: Approval
    persons: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What the answers come to so far; `reach` is that of the grant, if it was given."""

    state: Literal["pending", "granted", "denied", "expired"]
    missing: tuple[Missing, ...] = ()
    reach: Reach | None = None


def standing(request: ApprovalRequest, given: Sequence[Given], now: Moment) -> Standing:
    """What the answers `given`, in the order in which they were taken, come to `now`."""
    counted: list[Given] = []
    seen, reach = request.asked, None
    for one in given:
        late = age(request.asked, seen, one.at) >= (reach or request).expires
        if late or objection(request, counted, one.answer, one.at) is not None:
            continue
        seen = one.at
        counted.append(one)
        if not one.answer.approve:
            return Standing("denied")
        if reach is None and not _missing(request, counted):
            reach = _reach(request, counted)
    expired = age(request.asked, seen, now) >= (reach or request).expires
    missing = tuple(_missing(request, counted))
    if expired:
        return Standing("expired", missing, reach)
    return Standing("granted", (), reach) if reach else Standing("pending", missing)


def objection(
    request: ApprovalRequest, given: Sequence[Given], answer: Answer, at: Moment
) -> Objection | None:
    """Why `answer`, given at `at`, does not count after those `given`, all of which do; None if it counts."""
    person = answer.person
    if answer.shown != request.shown:
        return Objection(
            "the answer is to another document than the one that is asked about",
            f"read it with `licet approvals show {request.id}`, and answer what it shows",
        )
    if not (who := identity(person.id)):
        return Objection("the answer says not who gave it", "answer through a service that knows who answers")
    if any(who == identity(one.answer.person.id) for one in given):
        return Objection(
            f"`{bounded(person.id, _SHOWN)}` has answered already",
            f"have somebody else answer, or end it with `licet approvals revoke {request.id}`",
        )
    reasons = [_unfit(one, request, person) for one in _requirements(request)]
    if None not in reasons:
        why = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
        asked = ", and ".join(str(one) for one in _requirements(request)) or "nobody"
        return Objection(f"`{bounded(person.id, _SHOWN)}` may not answer: {why}", f"it takes {asked}")
    granted = not _missing(request, given)
    if not answer.approve:
        if granted and person.reviewer != "human":
            return Objection(
                "it is granted already, and only a human can take that back",
                f"say so at a terminal with `licet approvals deny {request.id}`",
            )
        return None
    if granted:
        return Objection("it is granted already, and takes no more approvals", "there is nothing to do")
    last = given[-1].at if given else request.asked
    return _unreachable(request, answer, age(request.asked, last, at))


def identity(id: str) -> str:
    """The one spelling of a person's id; empty for one that names nobody."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", id).casefold())
    seen = "".join(character for character in text if unicodedata.category(character) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", seen).strip()


def is_requester(request: ApprovalRequest, person: Person) -> bool:
    """Whether a person is the one who asks, or for whom is asked."""
    requester = request.requester
    asking = {identity(id) for id in (requester.id, requester.on_behalf_of) if id is not None}
    return identity(person.id) in asking


def field_of(request: ApprovalRequest, name: str) -> str | None:
    """The field of `request` that a person means by `name`, if that may vary; None if it may not."""
    if name in request.fields and (name == _CODE or name.startswith(_NAMED)):
        return name
    found = [prefix + name for prefix in _NAMED if prefix + name in request.fields]
    return found[0] if len(found) == 1 else None


def _requirements(request: ApprovalRequest) -> tuple[Approval, ...]:
    return tuple(dict.fromkeys(one.over(DEFAULT_APPROVAL) for one in request.requirements))


def _missing(request: ApprovalRequest, given: Iterable[Given]) -> list[Missing]:
    """The requirements that the approving ones of `given` don't meet."""
    persons = {identity(one.answer.person.id): one.answer.person for one in given if one.answer.approve}
    missing = []
    for requirement in _requirements(request):
        fitting = sum(_unfit(requirement, request, person) is None for person in persons.values())
        if fitting < (requirement.count or 1):
            missing.append(Missing(requirement, (requirement.count or 1) - fitting))
    return missing


def _unfit(requirement: Approval, request: ApprovalRequest, person: Person) -> str | None:
    """Why a person does not count for a requirement."""
    tenant = request.requester.tenant
    if tenant is not None and person.tenant is not None and tenant != person.tenant:
        return f"it is of the tenant `{bounded(tenant, _SHOWN)}`"
    if requirement.reviewer == "human" and person.reviewer != "human":
        return "policy asks for a human, who answers at a terminal or with a signed token that says so"
    if requirement.sources and not set(requirement.sources) & set(person.groups):
        return f"policy asks for somebody of {' or '.join(f'`{group}`' for group in requirement.sources)}"
    anybody = not requirement.sources and requirement.count == 1
    if not anybody and is_requester(request, person):
        return "whoever asks, or is asked for, can't approve it"
    return None


def _unreachable(request: ApprovalRequest, answer: Answer, passed: float) -> Objection | None:
    """Why a grant can't reach as far as an approving answer says, `passed` seconds after the asking."""
    if answer.scope == "session" and request.requester.session is None:
        return Objection("there is no session that the approval could hold for", "approve it once")
    if answer.vary and answer.scope != "shape":
        return Objection(
            f"what may vary is said of a shape, not of `{answer.scope}`", "use the scope `shape`"
        )
    for name in answer.vary:
        if field_of(request, name) is None:
            known = sorted(field for field in request.fields if field_of(request, field) is not None)
            return Objection(
                f"`{bounded(name, _SHOWN)}` can't vary here",
                f"these can: {bounded(', '.join(known), 4 * _SHOWN) or 'nothing'}",
            )
    uses = answer.uses
    if uses is not None and (uses < 1 or (answer.scope == "once" and uses != 1)):
        return Objection(
            f"an approval of scope `{answer.scope}` can't have {uses} uses",
            "give it one use or more, and the scope `session` or `shape` for more than one",
        )
    if answer.expires is not None and not (math.isfinite(answer.expires) and answer.expires > passed):
        return Objection(
            f"the approval would expire before it was given: {passed:.0f} s have passed since the asking",
            "give it a longer time, which counts from the asking",
        )
    return None


def _reach(request: ApprovalRequest, counted: Iterable[Given]) -> Reach:
    """What all who approve agree on."""
    answers = [one.answer for one in counted if one.answer.approve]
    expires = min([request.expires, *(one.expires for one in answers if one.expires is not None)])
    scopes = {one.scope for one in answers}
    if len(scopes) > 1 or "once" in scopes:
        return Reach(expires=expires)
    vary = frozenset.intersection(*(frozenset(_varied(request, one)) for one in answers))
    uses = min((one.uses for one in answers if one.uses is not None), default=None)
    return Reach(scopes.pop(), vary, uses, expires)


def _varied(request: ApprovalRequest, answer: Answer) -> Iterable[str]:
    return (name for said in answer.vary if (name := field_of(request, said)) is not None)
