"""The way into the command line, and out of it.

Rules this module keeps:

- nothing heavy is imported before the guard of `main`, so that an interrupt at any moment ends in one line;
- SIGINT, SIGTERM and SIGHUP cancel: exit code 130, and what had begun is recorded first;
- who reads the output, or stops reading it, changes no exit code.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit with the code that the documentation states."""
    try:
        from licet.cli import signals, streams

        signals.interrupt_on_all()
        streams.prepare()

        from licet.cli import app

        code = app.execute(sys.argv[1:] if arguments is None else arguments)
        signals.ignore_all()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("✗ cancelled\n")
        code = 130
    sys.exit(code)
