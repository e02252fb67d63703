"""Tests of what code sees of the world, for a backend that says that it `governs` it.

Rules this module keeps: what a backend does not govern is skipped; time and randomness are those of the host
that a test brings, so that a reading of the machine shows itself.
"""

from __future__ import annotations

import pytest

from licet.backend import Surrounding
from licet.surroundings import ByteStream
from licet.testing.bench import Bench, Ran
from licet.testing.host import RecordingHost

_INSTANT = 1_000_000_000.25
_CLOCKS = (
    "import time\n[time.time(), time.time()]",
    "import datetime\nnow = datetime.datetime.now(datetime.timezone.utc)\n[now.isoformat(), now.isoformat()]",
    "import datetime\n[str(datetime.date.today())] * 2",
    "import time\nfirst = time.monotonic()\n[first - time.monotonic()] * 2",
    "import time\nfirst = time.perf_counter()\n[first - time.perf_counter()] * 2",
    "import time\nfirst = time.process_time()\nfor i in range(9999): i\n[first - time.process_time()] * 2",
)
_TOLD = (_INSTANT, "2001-09-09T01:46:40.250000+00:00", "2001-09-09", 0.0, 0.0, 0.0)
_DRAWS = (
    "import os\n[list(os.urandom(3)), list(os.urandom(40)), list(os.urandom(0))]",
    "import random\n[random.random(), random.randint(1, 10**9), random.sample(range(999), 5)]",
    "import random\nsorted(range(20), key=lambda _: random.random())",
    "import random\n[random.Random().random(), random.random()]",
    "import random\nrandom.seed()\nrandom.random()",
)


class World(RecordingHost):
    """A host whose clock stands, and whose random bytes follow from a seed."""

    def __init__(self, seed: bytes = b"one") -> None:
        super().__init__()
        self._stream = ByteStream(seed)
        self.drawn = 0
        self.asked: list[str] = []

    def now(self, asked: str) -> float:
        """Always the same."""
        self.asked.append(asked)
        return _INSTANT

    def random_bytes(self, count: int) -> bytes:
        """The next of the seed."""
        self.drawn += count
        return self._stream.take(count)


class Surroundings:
    """Clock and randomness come from the host, and from nowhere else."""

    @pytest.mark.parametrize(("code", "told"), list(zip(_CLOCKS, _TOLD, strict=True)))
    def test_a_frozen_clock_stands_still(self, code: str, told: object, bench: Bench) -> None:
        _governs(bench, "clock")
        assert _ran(bench, code, World()).outcome.value == [told, told]

    def test_a_clock_that_goes_on_is_the_hosts(self, bench: Bench) -> None:
        _governs(bench, "clock")
        code, host = "import time\n[time.time(), time.time()]", World()
        bench.needs(code)
        assert bench.run(code, host).outcome.value == [_INSTANT, _INSTANT]
        assert host.asked == ["time.time", "time.time"]

    def test_a_sleep_under_a_frozen_clock_is_over_at_once(self, bench: Bench) -> None:
        _governs(bench, "clock")
        code = "import time\ntime.sleep(10**6)\ntime.time()"
        assert _ran(bench, code, World()).outcome.value == _INSTANT

    @pytest.mark.parametrize("code", _DRAWS)
    def test_equal_seeds_give_equal_randomness(self, code: str, bench: Bench) -> None:
        _governs(bench, "random")
        bench.needs(code)
        hosts = World(b"one"), World(b"one"), World(b"two")
        one, again, other = (_ran(bench, code, host) for host in hosts)
        assert one.ended == again.ended == other.ended == ("exited", 0)
        assert one.outcome.value == again.outcome.value
        assert one.outcome.value != other.outcome.value
        assert hosts[0].drawn == hosts[1].drawn > 0


def _governs(bench: Bench, what: Surrounding) -> None:
    if what not in bench.descriptor.governs:
        pytest.skip(f"`{bench.descriptor.name}` does not govern the {what}")


def _ran(bench: Bench, code: str, host: World) -> Ran:
    bench.needs(code)
    return bench.run(code, host, clock="frozen")
