"""Which Monty this is: its version, and the interpreter binary that belongs to it.

Rules this module keeps:

- the binary is the file that the installed distribution lists as its own; `MONTY_BIN` and `PATH`, which
  whoever starts the host may set, choose nothing;
- nothing of Monty is imported, so that describing the backend stays cheap;
- which binary it is, is said by what is in it: another one at the same place is another one.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from licet_monty.digests import sha256

CLIENT = "pydantic-monty"
RUNTIME = "pydantic-monty-runtime"
TESTED = "1.4.0"


def version() -> str:
    """Return the installed version, or `not installed`."""
    try:
        return metadata.version(CLIENT)
    except metadata.PackageNotFoundError:
        return "not installed"


def locate() -> Path | None:
    """Return the path of the interpreter binary, None if no distribution brings one."""
    try:
        files = metadata.distribution(RUNTIME).files or ()
    except metadata.PackageNotFoundError:
        return None
    found = (file for file in files if file.name in ("monty", "monty.exe"))
    return next((Path(str(file.locate())).resolve() for file in found), None)


def why_unavailable(binary: Path | None) -> str | None:
    """Return the reason why Monty can't run here, or None if it can."""
    installed = version()
    if installed != TESTED:
        return f"expected {CLIENT} {TESTED}, found {installed}"
    if binary is None:
        return f"the distribution `{RUNTIME}` brings no `monty` binary"
    if not binary.is_file():
        return f"the binary `{binary}` does not exist"
    return None


def digest(binary: Path | None) -> str | None:
    """Return the SHA-256 of the binary; None if there is none to be read."""
    try:
        return None if binary is None else sha256(binary)
    except OSError:
        return None


def state(binary: Path | None) -> str:
    """Return which file the binary is, and what is in it; empty if there is none."""
    if binary is None:
        return ""
    found = digest(binary)
    return f"{binary} unreadable" if found is None else f"{binary} sha256:{found}"
