"""`BackendSuite`: the tests that a backend has to pass, as a class to inherit from.

Rules this module keeps:

- what is asked of a backend follows from what its descriptor says, and from nothing else;
- each test has a backend of its own, made by `make` and closed at the end;
- a known gap is a strict expected failure; a gap that is closed, or is none, fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from licet.backend import Backend
from licet.probe.attack import Attack, Proof
from licet.probe.results import ProbeResult
from licet.testing import gaps
from licet.testing.bench import Bench
from licet.testing.boundaries import Boundaries
from licet.testing.calling import Calling
from licet.testing.cancellation import Cancellation
from licet.testing.claims import Claims, on_claims, probe, seen_from_outside
from licet.testing.concurrency import Concurrency
from licet.testing.crossing import Crossing
from licet.testing.description import Description
from licet.testing.endings import Endings
from licet.testing.environments import Environments
from licet.testing.leftovers import Leftovers
from licet.testing.lifecycle import Lifecycle
from licet.testing.output import Output
from licet.testing.surroundings import Surroundings
from licet.testing.suspension import Suspension

_BY_CLOCK = frozenset({Proof.overstayed, Proof.alive})


class BackendSuite(
    Description,
    Lifecycle,
    Endings,
    Output,
    Crossing,
    Surroundings,
    Calling,
    Environments,
    Suspension,
    Concurrency,
    Cancellation,
    Leftovers,
    Claims,
    Boundaries,
):
    """Inherit, and say how your backend is made; pytest finds the rest.

    `make` is called often. Some attacks run in a process of their own, which makes the backend anew from its
    class, without arguments. `known_gaps` maps what is known to fail to the reason: a test
    (`test_a_closed_sandbox_runs_nothing`), one variant of it (`test_...[late]`), or an attack on a claim
    (`network_deny/udp`). `thorough` is a mark for attacks that selection does not ask for, and for those that
    are judged by the clock: with it, `pytest -m` leaves them to a quiet machine.
    """

    known_gaps: ClassVar[Mapping[str, str]] = {}
    thorough: ClassVar[pytest.MarkDecorator | None] = None

    def make(self) -> Backend:
        """Make a backend.

        Raises:
            NotImplementedError: a suite without a backend.
        """
        raise NotImplementedError(f"`{type(self).__name__}` has no `make` that returns a backend")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each attack on a claim."""
        for name, choose in (("attack", lambda attack: True), ("ordinary", seen_from_outside)):
            if name in metafunc.fixturenames:
                chosen = [attack for attack in on_claims(self.make().describe()) if choose(attack)]
                metafunc.parametrize(name, [self._case(attack) for attack in chosen] or [_NONE])

    def _case(self, attack: Attack) -> object:
        demanding = not attack.quick or not _BY_CLOCK.isdisjoint(attack.proofs)
        marks = [self.thorough] if self.thorough is not None and demanding else []
        return pytest.param(attack, id=str(attack), marks=marks)

    @pytest.fixture
    def make_backend(self) -> Callable[[], Backend]:
        """What makes a backend, for tests that need several."""
        return self.make

    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        """A backend of this test's own, whether or not it can run here."""
        backend = self.make()
        yield backend
        asyncio.run(backend.close())

    @pytest.fixture
    def bench(self, backend: Backend, tmp_path: Path) -> Bench:
        """A backend that can run here, and a working directory."""
        reason = backend.describe().unavailable
        if reason is not None:
            pytest.skip(f"`{backend.describe().name}` can't run on this machine: {reason}")
        return Bench(backend, tmp_path)

    @pytest.fixture(scope="class")
    @classmethod
    def probed(cls, request: pytest.FixtureRequest) -> Mapping[tuple[str, str], ProbeResult]:
        """The results of all attacks that this session asks for, made together."""
        backend = cls().make()
        if backend.describe().unavailable is not None:
            return {}
        asked = (_variant(item) for item in request.session.items if getattr(item, "cls", None) is cls)
        attacks = [params["attack"] for _, params in asked if params.get("attack") is not None]
        results = asyncio.run(probe(backend, attacks))
        return {(result.control.value, result.variant): result for result in results}

    @pytest.fixture(autouse=True)
    def _known_gap(self, request: pytest.FixtureRequest) -> None:
        variant, params = _variant(request.node)
        why = gaps.reason(self.known_gaps, request.node.originalname, variant, "attack" in params)
        if why is not None:
            request.applymarker(pytest.mark.xfail(reason=why, strict=True))

    def test_known_gaps_are_gaps(self) -> None:
        """Each names a test or an attack, and has a reason."""
        assert gaps.faults(self.known_gaps, (name for name in dir(self) if name.startswith("test_"))) == []


def _variant(item: pytest.Item) -> tuple[str | None, Mapping[str, Any]]:
    """What tells a test from its siblings: an id, and its parameters."""
    callspec = getattr(item, "callspec", None)
    return (None, {}) if callspec is None else (callspec.id, callspec.params)


_NONE = pytest.param(None, id="none", marks=pytest.mark.skip("nothing is claimed that this could show"))
