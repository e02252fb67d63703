"""The controlled process passes the kit that every backend has to pass."""

from __future__ import annotations

import pytest
from licet.testing import BackendSuite
from licet_controlled_process.backend import ControlledProcess


class TestControlledProcess(BackendSuite):
    """The attacks that selection does not ask for run with `pytest -m soak`."""

    slow = pytest.mark.soak

    def make(self) -> ControlledProcess:
        return ControlledProcess()
