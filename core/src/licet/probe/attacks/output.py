"""Output without end: the host has to stay within its limits, and within its own memory."""

from __future__ import annotations

from licet.contract import Control
from licet.probe.attack import Attack, Proof

_LIMITS = {"output": 1 << 20, "stdout": 1 << 16, "stderr": 1 << 16}


def _flood(
    control: Control,
    stream: str,
    variant: str,
    goal: str,
    mebibytes: int,
    *,
    quick: bool = False,
    alone: bool = False,
) -> Attack:
    end = "''" if variant == "one_line" else r"'\n'"
    act = (
        f"import sys\ntext = 'x' * 65535\nfor _ in range({mebibytes * 16}):\n"
        f"    print(text, end={end}, file=sys.{stream})"
    )
    return Attack(
        control,
        variant,
        goal,
        act=act,
        held_by=("output_limit",),
        proofs=(Proof.flooded,),
        limits=_LIMITS,
        quick=quick,
        alone=alone,
    )


def _floods(control: Control, stream: str) -> tuple[Attack, ...]:
    return (
        _flood(
            control, stream, "flood", f"write 16 MiB to {stream} where 1 MiB is permitted", 16, quick=True
        ),
        _flood(control, stream, "one_line", f"write 16 MiB to {stream} without a line break", 16),
        _flood(
            control,
            stream,
            "flood_200mb",
            f"write 200 MB to {stream}, and have the host keep them",
            191,
            alone=True,
        ),
    )


ATTACKS = (*_floods(Control.stdout_limit, "stdout"), *_floods(Control.stderr_limit, "stderr"))
