"""A process that brings the index of a log up to date, in many small steps."""

from __future__ import annotations

import sys
from pathlib import Path

from licet.state import read_state
from licet_audit.index import Index, updating

if __name__ == "__main__":
    updating.STEP = 2000
    print("ready", flush=True)
    with Index.open(read_state(Path(sys.argv[1]))):
        print("done", flush=True)
