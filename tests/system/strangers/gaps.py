"""Suites with known gaps: all of them open; one closed; one misspelt, and one without a reason."""

from __future__ import annotations

from typing import ClassVar

from licet.testing import BackendSuite
from test_dishonest import Boaster


class TestOpen(BackendSuite):
    make = Boaster
    known_gaps: ClassVar = {"network_deny/internals": "there is no wall yet"}


class TestClosed(BackendSuite):
    make = Boaster
    known_gaps: ClassVar = {
        "test_a_claim_withstands": "there is no wall yet",
        "test_the_descriptor_is_a_plain_one": "long gone",
    }


class TestMisspelt(BackendSuite):
    make = Boaster
    known_gaps: ClassVar = {"network_deny/smoke": "signals", "network_deny/udp": ""}
