"""Which program downloads and installs: pip of the interpreter, or uv where that has none.

Rules this module keeps:

- resolving, downloading and checking hashes is theirs; where packages come from is said by the configuration
  that the user has for them (`pip.conf`, `PIP_*`, `uv.toml`, `UV_*`);
- hashes are demanded and wheels alone are taken, on the command line, which no configuration outweighs;
- they run supervised, so that nothing of them outlives this process.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from licet.errors import BuildFailed
from licet.output import bounded
from licet.supervise import Program, Reason, Spec, run_blocking

Heard = Callable[[str], None]

_TAIL = 12  # lines of an installer that an error repeats
_LINE = 400  # characters of each
_PIP = (
    *("--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar", "off"),
    *("--no-warn-conflicts", "--root-user-action", "ignore"),
)
_VERSION = re.compile(r"(pip|uv) (\d[0-9A-Za-z.]*)")


def installer(interpreter: str, draft: Path) -> tuple[str, tuple[str, ...]]:
    """The name and version of the program that installs for `interpreter`, and how its command begins.

    Raises:
        BuildFailed: there is neither pip nor uv.
    """
    pip = (interpreter, "-I", "-m", "pip")
    uv = shutil.which("uv")
    for command in (pip, *(((os.path.realpath(uv),),) if uv else ())):
        heard: list[str] = []
        if call((*command, "--version"), draft, heard.append) == 0 and heard:
            found = _VERSION.match(heard[0])
            if found is not None:
                return f"{found[1]} {found[2]}", command
    raise BuildFailed(
        f"`{interpreter}` has no pip, and there is no `uv` either",
        advice=f"install uv, or pip for this interpreter (`{interpreter} -m ensurepip`)",
    )


def install_command(
    tool: str, begins: tuple[str, ...], interpreter: str, listed: Path, target: Path
) -> tuple[str, ...]:
    """The command that installs what is `listed` into the directory `target`."""
    demands = ("--require-hashes", "--only-binary", ":all:", "--target", str(target), "-r", str(listed))
    if tool.startswith("pip"):
        return (*begins, "install", *_PIP, "--no-compile", "--no-user", *demands)
    # links into its cache would share files with others
    return (*begins, "pip", "install", "--python", interpreter, "--link-mode", "copy", *demands)


def call(command: tuple[str, ...], draft: Path, heard: Heard) -> int:
    """Run a program in the folder `draft`, which also has its temporary files; return its exit code.

    `heard` gets each line that it says. Cancelled, it leaves nothing running.

    Raises:
        BuildFailed: it could not be started.
    """
    lines = _Lines(heard)
    (draft / "tmp").mkdir(exist_ok=True)
    spec = Spec(Program(command), workdir=str(draft), environment=_environment(draft / "tmp"))
    outcome = run_blocking(spec, lines.take)
    lines.end()
    if outcome.reason is Reason.launch_failed:
        raise BuildFailed(f"`{command[0]}` can't be started: {outcome.detail}")
    return 128 + outcome.signal if outcome.signal is not None else (outcome.exit_code or 0)


def insist(command: tuple[str, ...], draft: Path, heard: Heard, what: str) -> None:
    """`call`, and take nothing but success.

    Raises:
        BuildFailed: it failed; with the last lines that it said.
    """
    said: list[str] = []

    def keep(line: str) -> None:
        said.append(bounded(line, _LINE))
        del said[:-_TAIL]
        heard(line)

    code = call(command, draft, keep)
    if code:
        told = "; ".join(line.strip() for line in said if line.strip()) or "it said nothing"
        raise BuildFailed(
            f"{what} failed with exit code {code}: {told}",
            advice="look at what the installer says; it reads the pip or uv configuration of this user",
        )


def _environment(folder: Path) -> Mapping[str, str]:
    """That of the user, without what would redirect a Python; temporary files go with the draft."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {
        "TMPDIR": str(folder),
        "TEMP": str(folder),
        "TMP": str(folder),
        "PIP_REQUIRE_VIRTUALENV": "0",
    }


class _Lines:
    """Cuts what a program writes into lines; its two streams apart."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._open: dict[str, bytes] = {}

    def take(self, stream: str, data: bytes) -> bool:
        """Take a piece of a stream; never stops the program."""
        *whole, rest = (self._open.get(stream, b"") + data).split(b"\n")
        self._open[stream] = rest[-_LINE * 8 :]
        for line in whole:
            self._heard(line.decode("utf-8", "replace").rstrip("\r"))
        return True

    def end(self) -> None:
        """Hand on what ended without a line end."""
        for rest in self._open.values():
            if rest:
                self._heard(rest.decode("utf-8", "replace"))
