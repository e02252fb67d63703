"""The stack that a command line names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licet.policy import PolicyStack


def stack_of(name: str) -> PolicyStack:
    """Load the policy `name` as a run would: with its packs, settings and managed bounds.

    Raises:
        InvalidPolicy: it, or one of its bounds, is missing or wrong.
    """
    from licet.runtime import Runtime

    return Runtime.from_policy(os.fspath(name)).stack
