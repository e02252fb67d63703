"""The conformance kit: what whoever publishes a backend runs against it. Needs `licet[testing]`.

    from licet.testing import BackendSuite
    from licet_echo import Echo

    class TestEcho(BackendSuite):
        def make(self):
            return Echo()

The pieces, from the outside in:

- `suite`: the class to inherit from; it joins `description`, `lifecycle`, `cancellation`, `concurrency`,
  `endings`, `output`, `crossing`, `surroundings`, `suspension`, `leftovers`, `claims` and
  `boundaries`, each a few tests on one idea;
- `bench`: a backend and what is run on it; `host`: what its code talks to; `machine`: what can be left;
- `gaps`: known gaps as strict expected failures; `verdict`: what is said of a claim that did not hold;
- `strategies`: Hypothesis strategies for requests, policies, contracts and what they are made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.testing.bench import Bench, Ran
    from licet.testing.host import RecordingHost
    from licet.testing.suite import BackendSuite

__all__ = ["BackendSuite", "Bench", "Ran", "RecordingHost"]

_HOMES = {"BackendSuite": "suite", "Bench": "bench", "Ran": "bench", "RecordingHost": "host"}

# before any of them is imported, so that a failed assertion of an installed kit shows its values
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{name}"
        for name in (
            "boundaries",
            "cancellation",
            "claims",
            "concurrency",
            "crossing",
            "description",
            "endings",
            "leftovers",
            "lifecycle",
            "output",
            "suite",
            "surroundings",
            "suspension",
        )
    )
)

__getattr__ = attribute_importer(__name__, _HOMES)
