"""Makes the helpers of this folder importable under pytest's importlib mode; and each kind of key."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from made_keys import KEYS


@pytest.fixture(params=KEYS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
