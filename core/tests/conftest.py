"""Stacks and requests made in memory, so that tests of the pure core say only what they are about."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from licet.decide import Decision, decide
from licet.normalize import normalize
from licet.policy import PolicyStack
from licet.request import ExecutionRequest, Intent, NormalizedRequest, ScreenReport
from licet.testing.strategies import document_of

sys.path.insert(0, str(Path(__file__).parent))  # for `puppet`, under pytest's importlib mode

BASE = "/p"
"""The directory that relative paths of these policies are taken from; it does not exist."""

StackOf = Callable[..., PolicyStack]
Normalized = Callable[..., NormalizedRequest]
Decided = Callable[..., Decision]


@pytest.fixture
def stack_of() -> StackOf:
    """Make a stack of YAML texts, the root first; `licet: 1` is put before each."""

    def make(*texts: str, sealed: tuple[str, ...] = ()) -> PolicyStack:
        documents = [
            document_of(f"licet: 1\n{text}\n", name, BASE)
            for text, name in zip(texts, ("root", *(f"bound{n}" for n in range(1, 9))), strict=False)
        ]
        return PolicyStack(documents[0], tuple(documents[1:]), sealed)

    return make


@pytest.fixture
def normalized(stack_of: StackOf) -> Normalized:
    """Normalise a request, by default under a policy that says nothing."""

    def make(
        code: str | bytes = "1",
        *,
        stack: PolicyStack | None = None,
        host: Mapping[str, str] | None = None,
        directory: str = "/w",
        **fields: Any,
    ) -> NormalizedRequest:
        return normalize(
            ExecutionRequest(code=code, **fields),
            stack or stack_of(""),
            directory=directory,
            host_environment=host or {},
            digest=lambda name, content: hashlib.sha256(name.encode() + b"\0" + content).hexdigest(),
            is_directory=lambda path: True,
        )

    return make


@pytest.fixture
def decided(normalized: Normalized) -> Decided:
    """Decide `declared` intents (None: all that is allowed) and `inferred` ones under a stack."""

    def make(
        stack: PolicyStack,
        declared: list[Intent] | None = None,
        inferred: tuple[Intent, ...] = (),
        *,
        report: ScreenReport | None = None,
        **fields: Any,
    ) -> Decision:
        intents = None if declared is None else tuple(declared)
        request = normalized(stack=stack, intents=intents, **fields)
        return decide(request, stack, report or ScreenReport(intents=inferred))

    return make


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate of 127.0.0.1 that vouches for itself."""
    made = tmp_path / "own.pem"
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    about = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    where = ("-keyout", made, "-out", tmp_path / "cert")
    subprocess.run((*new, *where, *about), check=True, capture_output=True)
    made.write_bytes(made.read_bytes() + (tmp_path / "cert").read_bytes())
    return made
