"""A suspended run goes on as what it was, or not at all."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.errors import SuspensionVoid
from licet.suspension import MOST_BYTES, Binding, Suspended, bound, seal, unseal

KEY = bytes(range(32))
BINDING = Binding(
    run_id="01JD7K",
    sequence=3,
    tool="refund",
    call_digest="hmac-sha256:c",
    plan_digest="sha256:p",
    policy_digest="sha256:y",
    code_digest="hmac-sha256:s",
    backend="monty",
    version="pydantic-monty 1.4.0",
    configuration="sha256:b",
    contract="sha256:t",
)
RUN = Suspended({"tool_calls": 2, "stdout": "so far"}, b"MONTY\0" + bytes(1000) + b"password")


@given(
    state=st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.none())),
    snapshot=st.binary(max_size=500),
    key=st.binary(min_size=32, max_size=32),
)
def test_what_was_sealed_is_what_is_opened(state: dict[str, object], snapshot: bytes, key: bytes) -> None:
    run = Suspended(state, snapshot)
    assert unseal(seal(run, BINDING, key), BINDING, key) == run


def test_nothing_of_the_run_can_be_read_without_the_key() -> None:
    sealed = seal(RUN, BINDING, KEY)
    assert b"password" not in sealed
    assert b"so far" not in sealed
    assert bound(sealed) == BINDING  # what it is bound to can


def test_equal_runs_are_sealed_differently() -> None:
    assert seal(RUN, BINDING, KEY) != seal(RUN, BINDING, KEY)


def test_one_changed_bit_anywhere_makes_it_worthless() -> None:
    sealed = seal(RUN, BINDING, KEY)
    for place in range(len(sealed)):
        for bit in (1, 0x80):
            forged = bytearray(sealed)
            forged[place] ^= bit
            with pytest.raises(SuspensionVoid):
                unseal(bytes(forged), BINDING, KEY)


def test_every_shortened_or_lengthened_copy_is_worthless() -> None:
    sealed = seal(Suspended({}, b"x"), BINDING, KEY)
    for end in range(len(sealed)):
        with pytest.raises(SuspensionVoid):
            unseal(sealed[:end], BINDING, KEY)
    with pytest.raises(SuspensionVoid):
        unseal(sealed + b"x", BINDING, KEY)


@pytest.mark.parametrize("name", [part.name for part in fields(Binding)])
def test_what_it_is_bound_to_is_named_if_it_changed(name: str) -> None:
    sealed = seal(RUN, BINDING, KEY)
    now = replace(BINDING, **{name: 4 if name == "sequence" else "another"})
    with pytest.raises(
        SuspensionVoid, match=r"changed while the run waited: it was `.+`, and is `(another|4)`"
    ):
        unseal(sealed, now, KEY)


@pytest.mark.parametrize("name", [part.name for part in fields(Binding)])
def test_who_edits_the_header_to_fit_gains_nothing(name: str) -> None:
    now = replace(BINDING, **{name: 4 if name == "sequence" else "another"})
    theirs, mine = seal(RUN, BINDING, KEY), seal(RUN, now, KEY)
    header, old = mine.split(b"\n")[1], theirs.split(b"\n")[1]
    with pytest.raises(SuspensionVoid, match="damaged, forged, or sealed on another host"):
        unseal(theirs.replace(old, header, 1), now, KEY)


def test_another_hosts_key_opens_nothing() -> None:
    with pytest.raises(SuspensionVoid, match="sealed on another host"):
        unseal(seal(RUN, BINDING, KEY), BINDING, bytes(32))


def test_two_seals_cant_be_mixed() -> None:
    one, other = seal(RUN, BINDING, KEY), seal(Suspended({}, b""), BINDING, KEY)
    cut = one.index(b"\n", 20) + 1 + 32
    with pytest.raises(SuspensionVoid):
        unseal(one[:cut] + other[cut:], BINDING, KEY)


@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        b"licet suspension 1\n",
        b"licet suspension 1\n" + b"[" * 60000 + b"\n" + bytes(64),
        b"licet suspension 1\n[]\n" + bytes(64),
        b"licet suspension 1\n{}\n" + bytes(64),
        b'licet suspension 1\n"\xff"\n' + bytes(64),
        b"x" * 200_000,
    ],
)
def test_what_is_no_suspended_run_is_told_so(hostile: bytes) -> None:
    with pytest.raises(SuspensionVoid, match="these bytes are no suspended run"):
        bound(hostile)


def test_what_is_too_large_is_not_sealed() -> None:
    with pytest.raises(ValueError, match="may have 134217728 bytes"):
        seal(Suspended({}, bytes(MOST_BYTES + 1)), BINDING, KEY)
