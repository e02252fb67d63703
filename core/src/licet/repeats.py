"""Requests that come again and again are prepared once.

Rules this module keeps:

- only a request that brings nothing but short code and limits, under a policy without rules, is known again:
  what `prepare` makes of it follows from what is compared here;
- what is known counts under the very policy and the very offers that it was made under, for one directory,
  with the links in it that the policy names as they are now, for one passed environment and one Python;
- what is kept is bounded by number and size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from licet import paths
from licet.digests import Digest
from licet.environments.python import Python
from licet.errors import InvalidPolicy
from licet.policy import PolicyStack
from licet.policy.facts import Facts
from licet.prepare import Clock, Prepared, prepare
from licet.request import ExecutionRequest
from licet.rules import Rules
from licet.select import Offer

MOST_CODE = 8 << 10
"""Characters of code that is known again."""

MOST_KEPT = 256
"""How many requests are known."""

_PLAIN = frozenset({"code", "limits"})


class Repeats:
    """`prepare`, for requests of which some are the same as before; for any thread."""

    def __init__(self) -> None:
        self._under = _Under(None, (), None)

    def prepared(
        self,
        asked: ExecutionRequest,
        stack: PolicyStack,
        offers: Sequence[Offer],
        *,
        at: datetime,
        directory: str,
        host_environment: Mapping[str, str],
        digest: Digest,
        clock: Clock,
        python: Python | None = None,
    ) -> Prepared:
        """What `prepare` makes of a request without other deciders.

        Raises:
            InvalidRequest, InvalidPolicy: as `prepare` does.
        """
        began = clock()
        under = self._under
        if under.stack is not stack or under.offers is not offers or under.digest is not digest:
            under = self._under = _Under(stack, offers, digest)
        key = under.key(asked, directory, host_environment, python)
        known = under.kept.get(key) if key is not None else None
        if known is not None:
            return _now(known, at, {"request": clock() - began, "decision": 0, "selection": 0})
        prepared = prepare(
            asked,
            stack,
            offers,
            at=at,
            directory=directory,
            host_environment=host_environment,
            digest=digest,
            python=python,
            clock=clock,
        )
        # the targets of intents are looked at on the host, and links may have changed meanwhile
        if (
            key is not None
            and not prepared.report.intents
            and key == under.key(asked, directory, host_environment, python)
        ):
            if len(under.kept) >= MOST_KEPT:
                under.kept.clear()
            under.kept[key] = prepared
        return prepared


class _Under:
    """What is known under one policy, with one set of offers."""

    def __init__(self, stack: PolicyStack | None, offers: Sequence[Offer], digest: Digest | None) -> None:
        self.stack = stack
        self.offers = offers
        self.digest = digest
        self.kept: dict[Any, Prepared] = {}
        self._usable = stack is not None and not (stack.has_rules or stack.rehearsed)
        self._passed = (
            tuple(name for name, value in stack.environment.items() if value == "pass") if stack else ()
        )

    def key(
        self,
        asked: ExecutionRequest,
        directory: str,
        environment: Mapping[str, str],
        python: Python | None,
    ) -> Any:
        """What has to be the same for a request to be known; None if it never is."""
        code = asked.code
        if self.stack is None or not self._usable or type(code) is not str or len(code) > MOST_CODE:
            return None
        given = asked.model_fields_set
        if not given <= _PLAIN:
            return None
        limits = asked.limits if len(given) > 1 else None
        try:
            rules = Rules.of(self.stack, paths.spelled(directory))
        except (ValueError, InvalidPolicy):
            return None
        return code, limits, directory, rules, python, tuple([environment.get(name) for name in self._passed])


def _now(known: Prepared, at: datetime, took_ns: Mapping[str, int]) -> Prepared:
    """What is known, as it is at another instant."""
    facts, account = known.facts, known.explanation.account
    return Prepared(
        known.stack,
        Facts(facts.subject, at, facts.request, facts.language),
        known.request,
        known.decision,
        known.needs,
        known.selection,
        replace(known.explanation, account=account and replace(account, at=at)),
        known.syntax_error,
        known.report,
        took_ns,
        known.shared,
        known.python,
    )
