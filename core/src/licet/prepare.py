"""The pure stages of a run: what a request comes to under one policy, with what is on offer.

Rules this module keeps:

- normalize → screen → decide → select → explain, each from the values before it;
- nothing here looks at a clock, reads a policy or attacks a backend: all of that comes in as arguments (a
  path is made canonical, which looks at links);
- whoever asks what would happen calls the very function that decides what happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from licet.decide import Decision, decide
from licet.normalize import Digest, normalize
from licet.policy import PolicyStack
from licet.report import Explanation, explain
from licet.request import CodeNeeds, ExecutionRequest, NormalizedRequest, Violation
from licet.screen import screen
from licet.select import Offer, Selection, select


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request after its pure stages, with what they were made under.

    `stack` is the policy of the whole run, to its last tool call; `at` is when it was asked: aware, in UTC.
    """

    stack: PolicyStack
    at: datetime
    request: NormalizedRequest
    decision: Decision
    needs: CodeNeeds
    selection: Selection
    explanation: Explanation
    syntax_error: Violation | None


def prepare(
    asked: ExecutionRequest,
    stack: PolicyStack,
    offers: Sequence[Offer],
    *,
    at: datetime,
    directory: str,
    host_environment: Mapping[str, str],
    digest: Digest,
) -> Prepared:
    """Decide on `asked` under `stack` at the instant `at`, and select among `offers`.

    `directory`, `host_environment` and `digest` are those of `normalize`.

    Raises:
        InvalidRequest: the request can't be understood.
    """
    request = normalize(asked, stack, directory=directory, host_environment=host_environment, digest=digest)
    seen = screen(request.code, denied_modules=stack.denied_modules)
    decision = decide(request, stack, seen)
    needs = seen.needs if seen.syntax_error is None else CodeNeeds()
    selection = select(request, decision, needs, stack, offers)
    return Prepared(
        stack=stack,
        at=at,
        request=request,
        decision=decision,
        needs=needs,
        selection=selection,
        explanation=explain(decision, selection, stack, seen.syntax_error),
        syntax_error=seen.syntax_error,
    )


def choose_again(prepared: Prepared, offers: Sequence[Offer]) -> Prepared:
    """The same request and decision, with the selection made from other `offers`."""
    selection = select(prepared.request, prepared.decision, prepared.needs, prepared.stack, offers)
    explanation = explain(prepared.decision, selection, prepared.stack, prepared.syntax_error)
    return replace(prepared, selection=selection, explanation=explanation)
