"""What tests of approvals share: answers as another process gives them, and a trail that has to verify."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from licet import Runtime
from licet.cli.approvals.office import opened


def take(runtime: Runtime, approval: str, person: str = "ann", *, approve: bool = True, **how: Any) -> Any:
    """Answer as another process does."""
    with opened(None, str(runtime.state_path)) as office:
        request = office.store.get(approval).request
        answer = (request.approve if approve else request.deny)(person, **how)
        return office.recorded(request.run_id, lambda clerk, trail: clerk.take(request.id, answer, trail))


def assert_log_verifies(place: Path) -> None:
    """The trail of what a test did there, if it left any, is one that an outsider can check."""
    if not (place / ".licet" / "log").exists():
        return
    command = [sys.executable, "-m", "licet", "audit", "verify", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    bad = [claim for claim in json.loads(done.stdout)["claims"] if claim["ok"] is False]
    assert (bad, done.returncode) == ([], 0)
