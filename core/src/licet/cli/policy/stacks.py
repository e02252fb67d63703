"""The stack that a command line names, and what a plain run under it would come to."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licet.policy import PolicyStack
    from licet.prepare import Prepared
    from licet.runtime import Runtime


def stack_of(name: str) -> PolicyStack:
    """Load the policy `name` as a run would: with its packs, settings and managed bounds.

    Raises:
        InvalidPolicy: it, or one of its bounds, is missing or wrong.
    """
    from licet.runtime import Runtime

    return Runtime.from_policy(name).stack


def plain_run(runtime: Runtime) -> Prepared:
    """What code that needs nothing would come to, with all that is allowed; decides, and runs nothing."""
    from licet import paths
    from licet.digests import no_digest
    from licet.prepare import prepare
    from licet.request import ExecutionRequest

    return prepare(
        ExecutionRequest(code="1"),
        runtime.stack,
        runtime.offers(),
        at=datetime.now(UTC),
        directory=paths.current_directory(),
        host_environment=os.environ,
        digest=no_digest,
    )
