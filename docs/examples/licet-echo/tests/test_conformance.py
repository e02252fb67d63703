"""Echo against the conformance kit of licet."""

from __future__ import annotations

from licet.testing import BackendSuite
from licet_echo import Echo


class TestEcho(BackendSuite):
    """Every claim is attacked, on this machine."""

    def make(self) -> Echo:
        return Echo()
