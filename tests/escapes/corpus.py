"""All attacks and all harmless code through `decide` and `run`, as a table by class.

Run it by hand: `uv run python tests/escapes/corpus.py [--policy POLICY]`. HumanEval and MBPP are read from
`../shared/corpus/external` beside the checkout, and said to be missing where they aren't.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import re
import socket
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from licet import ExecutionRequest, ExecutionResult, Limits, Runtime, Termination
from licet.output import escape

HERE = Path(__file__).parent
EXTERNAL = HERE.parents[2] / "shared" / "corpus" / "external"
CANARY = "canary-" + "9f3c1b7e55d2"
SECRET = "the secret text of a file outside"
WALL_TIME = 2.0

# Where the stated goal is text that the code prints about itself, what counts is what the host makes of it:
# each of these says whether the host was fooled.
_FOOLED: dict[str, Callable[[ExecutionResult], bool]] = {
    # every attempt has to be decided and recorded, and none may succeed
    "host-function-abuse-12": lambda r: [call.decision for call in r.tool_calls] != ["deny"] * 50,
    # the hook has to run in the guest: what arrives is a plain value, nothing with a hook of its own
    "in-process-tampering-02": lambda r: r.value is not True,
    # where its own kind of text can be made, it prints as it likes: but plain bytes arrive, and nothing else
    "in-process-tampering-11": lambda r: (r.stdout, r.value) != ("EVIL-STR\n", None),
    # ninety brackets are no depth: they have to be parsed within the limits, and were
    "resource-exhaustion-21": lambda r: not r.success or r.usage.wall_time > WALL_TIME,
    # the bytes are the code's to print; whatever shows them has to escape them
    "result-forging-04": lambda r: "\x1b" in escape(r.stdout),
    # a line that looks like an event has to stay output
    "result-forging-05": lambda r: r.tool_calls != () or r.stdout.count("\n") != 2,
}

_NOT_RUN = (Termination.policy_denied, Termination.no_backend)


def load(path: Path) -> list[dict[str, Any]]:
    """All rows of a JSON lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Scene:
    """What attacks aim at: files outside the working directory, listeners, and a secret variable."""

    def __init__(self, root: Path) -> None:
        self.work, self.outside = root / "work", root / "outside"
        self.connected = threading.Event()
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Scene:
        for directory in (self.work, self.outside):
            directory.mkdir(parents=True, exist_ok=True)
        (self.outside / "secret.txt").write_text(SECRET)
        (self.outside / "victim.txt").write_text("victim")
        self.host, self.port = self._listen(socket.AF_INET, ("127.0.0.1", 0))
        self._listen(socket.AF_UNIX, str(self.outside / "s.sock"))
        self.abstract = f"licet-corpus-{os.getpid()}-{id(self)}"
        self._listen(socket.AF_UNIX, "\0" + self.abstract)
        os.environ["SECRET_CANARY"] = CANARY
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._sockets:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        del os.environ["SECRET_CANARY"]

    def fill(self, text: str) -> str:
        """Replace the placeholders of the corpus."""
        for name, value in {
            "CANARY_FILE": str(self.outside / "canary"),
            "SECRET_FILE_TEXT": SECRET,
            "SECRET_FILE": str(self.outside / "secret.txt"),
            "OUTSIDE_DIR": str(self.outside),
            "VICTIM_FILE": str(self.outside / "victim.txt"),
            "WORKDIR": str(self.work),
            "HOST": self.host,
            "PORT": str(self.port),
            "UNIX_SOCKET": str(self.outside / "s.sock"),
            "ABSTRACT_NAME": self.abstract,
            "SECRET_CANARY": CANARY,
        }.items():
            text = text.replace("{" + name + "}", value)
        return text

    def reached(self, check: dict[str, str], result: ExecutionResult) -> bool:
        """Whether the attack's goal came true for the host."""
        kind, value = check["kind"], self.fill(check["value"])
        output = result.stdout + (f"{result.value_repr}\n" if result.value_repr is not None else "")
        match kind:
            case "stdout_contains":
                return value in output
            case "stderr_contains":
                return value in result.stderr
            case "stdout_regex":
                return re.search(value, output) is not None
            case "stdout_bytes":
                return bytes.fromhex(value) in result.stdout.encode("utf-8", "surrogatepass")
            case "stdout_bytes_over":
                return len(result.stdout) > int(value)
            case "file_exists" | "file_exists_after":
                return Path(value).exists()
            case "file_missing":
                return not Path(value).exists()
            case "glob_exists":
                return bool(glob.glob(value))
            case "file_size_over":
                path, _, size = value.rpartition(":")
                return Path(path).exists() and Path(path).stat().st_size > int(size)
            case "connects":
                return self.connected.wait(0.05)
            case "timeout":
                return result.usage.wall_time > float(value)
            case "signal_or_memory":
                return False  # the host is still here to say so
            case "exit_code":
                # the goal is a lie about the exit: a run that was cut short and looks like a success
                return result.success and result.termination is not Termination.exited
        raise ValueError(f"unknown check `{kind}`")

    def _listen(self, family: socket.AddressFamily, address: Any) -> Any:
        listener = socket.socket(family)
        listener.bind(address)
        listener.listen()
        self._sockets.append(listener)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    self.connected.set()
                    connection.close()

        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()


@dataclass
class Tally:
    """What became of the items of one class."""

    items: int = 0
    refused: int = 0
    no_backend: int = 0
    right: int = 0
    wrong: int = 0
    named: list[str] = field(default_factory=list)


def attacks(runtime: Runtime) -> dict[str, Tally]:
    """Run every attack; `wrong` reached their goal, `named` adds what the screen let through."""
    table: dict[str, Tally] = defaultdict(Tally)
    for item in load(HERE / "data" / "escapes.jsonl"):
        tally = table[item["class"]]
        tally.items += 1
        with tempfile.TemporaryDirectory() as root, Scene(Path(root)) as scene:
            request = ExecutionRequest(
                code=scene.fill(item["code"]),
                tools={"echo": lambda *a, **k: a[0] if a else None} if "prelude" in item else {},
                stdin=scene.fill(item.get("stdin") or ""),
                workdir=str(scene.work),
                limits=Limits(wall_time=WALL_TIME),
            )
            denied = runtime.decide(request).effect == "deny"
            result = runtime.run_sync(request)
            if item["expect_static"] == "reject" and not denied:
                tally.named.append(f"{item['id']} let through by the screen")
            reached = scene.reached(item["check"], result) and not item.get("control")
            if reached and _FOOLED.get(item["id"], lambda _: True)(result):
                tally.wrong += 1
                tally.named.append(f"{item['id']} REACHED ITS GOAL")
        _count(tally, result)
    return table


def harmless(runtime: Runtime) -> dict[str, Tally]:
    """Run every harmless item; `wrong` are those that ran and printed something else."""
    table: dict[str, Tally] = defaultdict(Tally)
    for item in load(HERE / "data" / "benign.jsonl"):
        tally = table[item["class"]]
        tally.items += 1
        result = runtime.run_sync(item["code"])
        _count(tally, result)
        if result.termination is Termination.policy_denied:
            why = result.detail or ""
            tally.named.append(
                f"{item['id']} refused ({', '.join(item['policy_sensitive']) or 'NEUTRAL'}): {why}"
            )
        elif result.termination not in _NOT_RUN and result.stdout != item["expected_stdout"]:
            tally.wrong += 1
            error = result.error.type + ": " + result.error.message if result.error else "other output"
            tally.named.append(f"{item['id']} ran wrong: {error}"[:160])
    return table


def published(runtime: Runtime) -> dict[str, Tally]:
    """HumanEval and MBPP with their own tests; `wrong` are those that ran and failed them."""
    table: dict[str, Tally] = {}
    for name, code_of in (("humaneval", _humaneval), ("mbpp_sanitized", _mbpp)):
        path = EXTERNAL / f"{name}.jsonl"
        if not path.exists():
            print(f"missing: {path}", file=sys.stderr)
            continue
        tally = table[name] = Tally()
        for item in load(path):
            tally.items += 1
            result = runtime.run_sync(code_of(item), limits=Limits(wall_time=5 * WALL_TIME))
            _count(tally, result)
            if result.termination is Termination.policy_denied:
                tally.named.append(f"{item['id']} refused: {result.detail}")
            elif result.termination not in _NOT_RUN and not result.success:
                tally.wrong += 1
                tally.named.append(f"{item['id']} failed: {result.summary}"[:160])
    return table


def _humaneval(item: dict[str, Any]) -> str:
    return f"{item['code']}\n{item['test']}\ncheck({item['entry_point']})\n"


def _mbpp(item: dict[str, Any]) -> str:
    return "\n".join([item["code"], *item["test_imports"], *item["test_list"]])


def _count(tally: Tally, result: ExecutionResult) -> None:
    tally.refused += result.termination is Termination.policy_denied
    tally.no_backend += result.termination is Termination.no_backend
    tally.right += result.success


def rows(title: str, table: dict[str, Tally]) -> Iterator[str]:
    """The table as text."""
    yield f"{title:<24}{'items':>7}{'refused':>9}{'no backend':>12}{'ran well':>10}{'wrong':>7}"
    for name, tally in sorted(table.items()):
        yield _row(name, tally)
    total = Tally(
        *(
            sum(getattr(t, f) for t in table.values())
            for f in ("items", "refused", "no_backend", "right", "wrong")
        )
    )
    yield _row("all", total)
    for tally in table.values():
        yield from (f"    {name}" for name in tally.named)


def _row(name: str, t: Tally) -> str:
    return f"{name:<24}{t.items:>7}{t.refused:>9}{t.no_backend:>12}{t.right:>10}{t.wrong:>7}"


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="licet:compute")
    policy = parser.parse_args().policy
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = os.environ["LICET_HOME"] = state
        os.environ["LICET_HOME"] = str(Path(state) / "home")
        began = time.monotonic()
        with Runtime(policy) as runtime:
            for title, table in (
                ("attacks", attacks(runtime)),
                ("harmless", harmless(runtime)),
                ("published", published(runtime)),
            ):
                print("\n".join(rows(title, table)), end="\n\n")
        print(f"{time.monotonic() - began:.0f} s under {policy}")


if __name__ == "__main__":
    main()
