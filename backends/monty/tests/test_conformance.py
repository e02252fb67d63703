"""Monty passes the kit that every backend has to pass."""

from __future__ import annotations

import pytest
from licet.testing import BackendSuite
from licet_monty.backend import MontyBackend


class TestMonty(BackendSuite):
    """The attacks that selection does not ask for run with `pytest -m soak`."""

    slow = pytest.mark.soak

    def make(self) -> MontyBackend:
        return MontyBackend(workers=2)
