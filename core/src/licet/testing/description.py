"""Tests of what a backend says of itself: complete, plain, the same each time, and free of side effects."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest

from licet.backend import Backend, Descriptor, Language
from licet.contract import Boundary, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.errors import LaunchFailed
from licet.probe.standing import claims
from licet.request import ACTIONS
from licet.screen import FEATURES
from licet.testing.bench import Bench
from licet.testing.machine import look

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_BOUNDARIES = frozenset(get_args(Boundary))


class Description:
    """What `describe` returns, before and after anything ran."""

    def test_it_is_a_backend(self, bench: Bench) -> None:
        assert isinstance(bench.backend, Backend)

    def test_the_descriptor_is_a_plain_one(self, bench: Bench) -> None:
        """A subclass could answer differently each time it is asked."""
        assert type(bench.descriptor) is Descriptor
        assert type(bench.descriptor.language) is Language

    def test_it_has_a_name_and_a_version(self, bench: Bench) -> None:
        name, version = bench.descriptor.name, bench.descriptor.version
        assert isinstance(name, str)
        assert isinstance(version, str)
        assert _NAME.fullmatch(name), "policies name it in lower case: letters, digits, underscores"
        assert version.strip()

    def test_the_language_is_told_in_known_words(self, bench: Bench) -> None:
        language = bench.descriptor.language
        assert language.name.strip()
        assert language.lacks_syntax - set(FEATURES) == set()
        for names in (language.modules, language.builtins):
            assert names is None or isinstance(names, frozenset)
        for owner, members in (language.members or {}).items():
            assert language.modules is None or owner in language.modules or "." in owner
            assert isinstance(members, frozenset)

    def test_what_it_opens_are_actions(self, bench: Bench) -> None:
        assert bench.descriptor.opens - set(ACTIONS) == set()

    def test_its_cost_is_a_number(self, bench: Bench) -> None:
        assert math.isfinite(bench.descriptor.cost)
        assert bench.descriptor.cost >= 0

    def test_whoever_is_unavailable_says_why_and_refuses(self, backend: Backend, tmp_path: Path) -> None:
        reason = backend.describe().unavailable
        if reason is None:
            return
        assert reason.strip()
        with pytest.raises(LaunchFailed):
            asyncio.run(Bench(backend, tmp_path).execute("1"))

    def test_the_contract_is_a_plain_one(self, bench: Bench) -> None:
        """Isolation, levels and digest are derived from the claims, by licet and by nobody else."""
        contract = bench.descriptor.sandbox_enforcement_contract
        assert type(contract) is SandboxEnforcementContract
        derived = SandboxEnforcementContract(**{control.value: claim for control, claim in contract.items()})
        assert (contract.digest, contract.levels, contract.isolation) == (
            derived.digest,
            derived.levels,
            derived.isolation,
        )

    def test_claims_are_well_formed(self, bench: Bench) -> None:
        contract = bench.descriptor.sandbox_enforcement_contract
        found = [f"{control}: {fault}" for control, claim in contract.items() for fault in _faults(claim)]
        if found:
            pytest.fail("\n".join(found), pytrace=False)

    def test_it_says_the_same_each_time(self, bench: Bench) -> None:
        first = bench.descriptor
        others = sum(bench.descriptor is not first for _ in range(100))
        assert others == 0, "make the descriptor once: licet keeps by that object what it knows of a backend"

    def test_it_says_the_same_from_any_thread(self, bench: Bench) -> None:
        with ThreadPoolExecutor(4) as threads:
            told = list(threads.map(lambda _: _content(bench.backend), range(8)))
        assert told == [_content(bench.backend)] * 8

    def test_every_instance_says_the_same(self, bench: Bench, make_backend: Callable[[], Backend]) -> None:
        told = [_content(make_backend()) for _ in range(3)]
        assert told == [_content(bench.backend)] * 3

    def test_it_says_the_same_after_runs(self, bench: Bench) -> None:
        before = _content(bench.backend)
        asyncio.run(bench.execute("1"))
        asyncio.run(bench.execute("nobody"))
        assert _content(bench.backend) == before

    def test_describing_leaves_nothing(self, make_backend: Callable[[], Backend], tmp_path: Path) -> None:
        make_backend().describe()  # whatever is imported, is
        before = look(tmp_path)
        backends = [make_backend() for _ in range(3)]
        for backend in backends:
            backend.describe()
        assert look(tmp_path).beyond(before) == []


def _content(backend: Backend) -> dict[str, Any]:
    """All that a descriptor says, to be compared."""
    told = backend.describe()
    content = {name: getattr(told, name) for name in Descriptor.__slots__}
    contract: SandboxEnforcementContract = content.pop("sandbox_enforcement_contract")
    return content | {"contract": contract.as_json(), "isolation": contract.isolation}


def _faults(claim: Enforcement) -> Iterator[str]:
    """What is wrong with the form of one claim, in words."""
    if claim.boundary not in _BOUNDARIES:
        yield f"`{claim.boundary}` is no boundary"
    if claim.evidence is not Evidence.declared:
        yield f"evidence is `{claim.evidence}`; only licet's own attacks make evidence, a backend declares"
    if not all(isinstance(gap, str) and gap.strip() for gap in claim.gaps):
        yield "a gap says nothing"
    if claims(claim) and (claim.boundary == "none" or not claim.mechanism.strip()):
        yield "a claim names its boundary and the mechanism that holds it"
    if claim.level is Level.partial and not claim.gaps:
        yield "a partial claim names what it leaves open"
