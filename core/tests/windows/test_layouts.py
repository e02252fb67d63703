"""The layouts of the Windows API, asserted wherever these tests run."""

from __future__ import annotations

import sys
from ctypes import Structure, sizeof

import pytest
from licet.supervise.windows import layouts, winapi

pytestmark = pytest.mark.skipif(sys.maxsize < 2**32, reason="needs a 64-bit Python")


@pytest.mark.parametrize(
    ("structure", "size"),
    [
        (layouts.SECURITY_ATTRIBUTES, 24),
        (layouts.OVERLAPPED, 32),
        (layouts.STARTUPINFOW, 104),
        (layouts.STARTUPINFOEXW, 112),
        (layouts.PROCESS_INFORMATION, 24),
        (layouts.JOBOBJECT_BASIC_LIMIT_INFORMATION, 64),
        (layouts.IO_COUNTERS, 48),
        (layouts.JOBOBJECT_EXTENDED_LIMIT_INFORMATION, 144),
        (layouts.JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, 48),
        (layouts.JOBOBJECT_ASSOCIATE_COMPLETION_PORT, 16),
    ],
)
def test_structures_have_the_sizes_of_the_headers(structure: type[Structure], size: int) -> None:
    assert sizeof(structure) == size


@pytest.mark.parametrize(
    ("seconds", "counted"),
    [(None, 0xFFFFFFFF), (0.0, 0), (-1.0, 0), (0.0001, 1), (1.5, 1500), (1e9, 0xFFFFFFFE)],
)
def test_a_wait_is_never_shorter_than_asked(seconds: float | None, counted: int) -> None:
    assert winapi.milliseconds(seconds) == counted


@pytest.mark.parametrize(
    ("structure", "field", "offset"),
    [
        (layouts.OVERLAPPED, "hEvent", 24),
        (layouts.STARTUPINFOW, "dwFlags", 60),
        (layouts.STARTUPINFOW, "hStdInput", 80),
        (layouts.STARTUPINFOEXW, "lpAttributeList", 104),
        (layouts.JOBOBJECT_BASIC_LIMIT_INFORMATION, "LimitFlags", 16),
        (layouts.JOBOBJECT_EXTENDED_LIMIT_INFORMATION, "JobMemoryLimit", 120),
        (layouts.JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, "ActiveProcesses", 40),
    ],
)
def test_fields_lie_where_the_headers_put_them(structure: type[Structure], field: str, offset: int) -> None:
    assert getattr(structure, field).offset == offset
