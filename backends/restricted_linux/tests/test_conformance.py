"""Restricted Linux passes the kit that every backend has to pass."""

from __future__ import annotations

import pytest
from licet.testing import BackendSuite
from licet_restricted_linux.backend import RestrictedLinux


class TestRestrictedLinux(BackendSuite):
    """Attacks that want a quiet machine, or that selection does not ask for, run with `pytest -m soak`."""

    thorough = pytest.mark.soak

    def make(self) -> RestrictedLinux:
        return RestrictedLinux()
