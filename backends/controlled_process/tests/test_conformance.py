"""The controlled process passes the kit that every backend has to pass."""

from __future__ import annotations

import pytest
from licet.testing import BackendSuite
from licet_controlled_process.backend import ControlledProcess


class TestControlledProcess(BackendSuite):
    """Attacks that want a quiet machine, or that selection does not ask for, run with `pytest -m soak`."""

    thorough = pytest.mark.soak

    def make(self) -> ControlledProcess:
        return ControlledProcess()
