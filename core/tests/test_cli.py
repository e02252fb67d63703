"""The parts of the command line that need no process of their own."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet import units
from licet.cli import inputs
from licet.errors import UsageError


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("wall_time", 540.0, "9 min"),
        ("wall_time", 30.0, "30 s"),
        ("wall_time", 90.0, "90 s"),
        ("wall_time", 0.25, "0.25 s"),
        ("cpu_time", 7200.0, "2 h"),
        ("memory", 256 << 20, "256 MiB"),
        ("stdout", 1000, "1000 B"),
        ("processes", 1, "1"),
        ("tool_calls", 1000, "1000"),
    ],
)
def test_a_limit_is_shown_with_its_unit(name: str, value: float, shown: str) -> None:
    assert units.show_limit(name, value) == shown


@given(st.floats(0.001, 2**50), st.integers(1, 2**53 - 1))
def test_what_is_shown_could_stand_in_a_policy(seconds: float, size: int) -> None:
    assert units.size(units.show_limit("memory", size)) == size
    whole = float(round(seconds))
    if whole:
        assert units.duration(units.show_limit("wall_time", whole)) == whole


def test_what_is_too_large_is_refused_and_never_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_READ", 1 << 20)
    file = tmp_path / "code.py"
    file.write_bytes(b"#" * (1 << 20))
    assert inputs.read_code(str(file), None) == b"#" * (1 << 20)
    file.write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(UsageError, match=r"code.py` is larger than 1 MiB"):
        inputs.read_code(str(file), None)
