"""Streams of random bytes, clocks, and readings on their way into the trail."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.digests import HostDigest
from licet.surroundings import ByteStream, Read, Readings, RunSurroundings

KEY = bytes(range(32))


def test_the_stream_is_the_one_that_is_documented() -> None:
    blocks = [hashlib.shake_256(KEY + number.to_bytes(8, "big")).digest(1088) for number in range(3)]
    assert ByteStream(KEY).take(3000) == b"".join(blocks)[:3000]


@given(st.lists(st.integers(0, 2500), max_size=12))
def test_bytes_are_the_same_however_they_are_asked_for(counts: list[int]) -> None:
    stream = ByteStream(KEY)
    parts = [stream.take(count) for count in counts]
    assert [len(part) for part in parts] == counts
    assert b"".join(parts) == ByteStream(KEY).take(sum(counts))


@given(st.integers(0, 5000), st.integers(0, 3000))
def test_a_stream_goes_on_where_another_one_stood(taken: int, more: int) -> None:
    assert ByteStream(KEY, taken).take(more) == ByteStream(KEY).take(taken + more)[taken:]


def test_threads_share_a_stream_without_sharing_a_byte() -> None:
    stream, found = ByteStream(KEY), []
    threads = [
        threading.Thread(target=lambda: found.extend(stream.take(8) for _ in range(500))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = ByteStream(KEY).take(16_000)
    assert sorted(found) == sorted(whole[place : place + 8] for place in range(0, 16_000, 8))


def test_a_frozen_clock_stands_and_another_is_never_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {RunSurroundings(KEY, 5.5).now("a") for _ in range(3)} == {5.5}
    real = RunSurroundings(KEY)
    before = real.now("a")
    monkeypatch.setattr(time, "time", lambda: 0.0)  # somebody sets the clock of the machine
    assert real.now("a") >= before > 1.7e9
    elsewhere = RunSurroundings(KEY, reached=before, taken=7)  # on a machine whose clock is behind
    assert elsewhere.now("a") >= before
    assert elsewhere.random_bytes(5) == ByteStream(KEY).take(12)[7:]


def test_readings_are_handed_out_once_in_order_and_no_more_than_are_kept() -> None:
    readings = Readings(4)
    for asked, value in (("a", 1.0), ("a", 2.0), ("b", 3.0)):
        readings.note(asked, value, stands=False)
    assert readings.drain() == [Read("a", (1.0, 2.0)), Read("b", (3.0,))]
    assert readings.drain() == []
    for value in (4.0, 5.0, 6.0):
        readings.note("a", value, stands=False)
    assert readings.drain() == [Read("a", (4.0,))]
    assert (readings.total, readings.unrecorded) == (6, 2)


def test_readings_go_on_where_others_stood() -> None:
    first = Readings(3)
    for value in (1.0, 7.0, 2.0, 3.0):
        first.note("a", value, stands=False)
    assert first.state() == {"total": 4, "unrecorded": 1, "latest": 7.0, "left": 0}
    second = Readings(3, first.state())
    second.note("b", 8.0, stands=False)
    assert (second.drain(), second.total, second.unrecorded, second.latest) == ([], 5, 2, 8.0)


def test_readings_of_a_clock_that_stands_are_only_counted() -> None:
    readings = Readings(1)
    for _ in range(5):
        readings.note("a", 1.0, stands=True)
    assert (readings.drain(), readings.total, readings.unrecorded) == ([], 5, 0)


def test_keys_of_streams_differ_by_kind_run_and_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    for host in ("a", "b"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / host))
        digest = HostDigest()
        keys += [digest.of_random(kind, of) for kind in ("real", "seeded") for of in ("1", "2")]
        assert digest.of_random("real", "1") == keys[-4]
    assert len(set(keys)) == 8
    assert all(len(key) == 32 for key in keys)
