"""A real forbidden act on this host, through the whole front door, which has to fail.

Rules this module keeps:

- each act is made anew against targets of its own: nothing is taken from a cache;
- its twin, the same program without walls, has to get through, or the act proves nothing;
- an act that reaches a sandbox has failed only at an exact sign of a wall, after an allowed act has worked;
- whether it got through is seen from the host's side, whatever the program or the backend says.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from licet.backend import Termination
from licet.contract import Control
from licet.output import bounded
from licet.probe import bare
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import UNREACHABLE, UNREADABLE
from licet.probe.scene import Scene, Targets
from licet.probe.trial import Trial, got_through
from licet.result import ExecutionResult
from licet.runtime import DEFAULT_POLICY, Runtime

Layer = Literal["policy", "selection", "sandbox"]

_PLAIN = Attack(
    Control.filesystem_read_deny,
    "plain",
    "read a file of this host",
    act="print(open('{SECRET_FILE}').read(), flush=True)",
    held_by=UNREADABLE,
    proofs=(Proof.text,),
)
_HIDDEN = (
    Attack(
        Control.filesystem_read_deny,
        "hidden",
        "list a folder of this host, hidden from the screen",
        act="import os\nprint([os][0].listdir('{OUTSIDE}'), flush=True)",
        held_by=UNREADABLE,
        proofs=(Proof.text,),
        text="{SECRET_NAME}",
    ),
    Attack(
        Control.network_deny,
        "hidden",
        "connect to a port of this host, hidden from the screen",
        act="import importlib\nsocket = [importlib][0].import_module('socket')\n"
        "socket.create_connection(('127.0.0.1', {TCP_PORT}), 2).sendall(b'x')",
        held_by=UNREACHABLE,
        inexpressible=("ModuleNotFoundError: No module named 'importlib'",),
        proofs=(Proof.struck,),
    ),
)

_UNSCREENED = f"""\
licet: 1
name: licet/doctor
extends: {DEFAULT_POLICY}
screen: {{mode: report}}
"""
"""The same policy, whose screen reports and refuses nothing: what is hidden from it reaches the sandbox."""


@dataclass(frozen=True, slots=True)
class Act:
    """One forbidden act: what was `attempted`, which layer stopped it, and the sign that was `observed`.

    `stopped_by` is None if nothing did, or if it failed for a reason that is no wall. `twin` says whether the
    same program got through without walls.
    """

    attempted: str
    got_through: bool
    stopped_by: Layer | None
    observed: str
    twin: bool
    backend: str | None
    run_id: str

    @property
    def failed(self) -> bool:
        """Whether it shows that something holds: it was stopped, and would not have been without walls."""
        return self.twin and self.stopped_by is not None and not self.got_through


@dataclass(frozen=True, slots=True)
class Ordeal:
    """An allowed run, whether its answer was right (`answered`), and the acts: none if it was not."""

    allowed: ExecutionResult
    answered: bool
    acts: tuple[Act, ...] = ()


async def ordeal(runtime: Runtime) -> Ordeal:
    """Run what is allowed under the policy of `runtime`, then try what is forbidden.

    What is to reach a sandbox is run under `licet:compute` with a screen that lets it.

    Raises:
        RuntimeClosed: the runtime was closed.
    """
    one, other = secrets.randbelow(9000) + 1000, secrets.randbelow(9000) + 1000
    allowed = await runtime.run(f"print({one} * {other})")
    if not allowed.success or allowed.stdout.strip() != str(one * other):
        return Ordeal(allowed, answered=False)
    async with Scene() as scene, _unscreened(runtime) as unscreened:
        acts = [await _try(scene, runtime, _PLAIN)]
        acts += [await _try(scene, unscreened, attack) for attack in _HIDDEN]
    return Ordeal(allowed, True, tuple(acts))


@asynccontextmanager
async def _unscreened(runtime: Runtime) -> AsyncIterator[Runtime]:
    """A runtime with the same settings and backends, whose policy differs by its screen alone."""
    with tempfile.TemporaryDirectory(prefix="licet-doctor-") as folder:
        policy = _written(Path(folder, "policy.yaml"))
        settings = runtime.settings.model_copy(update={"home": runtime.state_path})
        async with Runtime(policy, settings=settings, backends=runtime.backends) as unscreened:
            yield unscreened


def _written(path: Path) -> Path:
    path.write_text(_UNSCREENED, "utf-8")
    return path


async def _try(scene: Scene, runtime: Runtime, attack: Attack) -> Act:
    twin = await _twin(scene, attack)
    async with scene.targets() as targets:
        text, program = targets.fill(attack.text), targets.fill(attack.program(frozenset()))
        result = await runtime.run(program)
        trial = _trial(targets, result)
    through = got_through(attack, trial, text, attack.patience)
    layer = None if through else _stopped_by(runtime, attack, trial, result)
    return Act(
        attempted=attack.goal,
        got_through=through,
        stopped_by=layer,
        observed=bounded(trial.observed if layer in (None, "sandbox") else _refusal(result), 300),
        twin=twin,
        backend=result.backend.name if result.backend else None,
        run_id=result.run_id,
    )


async def _twin(scene: Scene, attack: Attack) -> bool:
    try:
        async with scene.targets() as targets:
            text, program = targets.fill(attack.text), targets.fill(bare.text(attack))
            trial = await scene.thread(bare.run, attack, targets, program)
    except OSError:  # the host is short of something, and shows nothing
        return False
    return trial.answered and got_through(attack, trial, text, attack.twin_shows)


def _trial(targets: Targets, result: ExecutionResult) -> Trial:
    """What a run did, heard as the prober hears it."""
    ear = targets.ear()
    ear.write("stdout", result.stdout.encode("utf-8", "replace"))
    return Trial(
        observed=ear.observed(result.summary),
        answered=ear.answered,
        output=ear.output,
        struck=targets.struck(),
    )


def _stopped_by(runtime: Runtime, attack: Attack, trial: Trial, result: ExecutionResult) -> Layer | None:
    if result.termination is Termination.policy_denied and result.backend is None:
        return "policy"
    if result.termination is Termination.no_backend:
        return "selection"
    descriptors = {backend.describe().name: backend.describe() for backend in runtime.backends}
    if result.backend is None or not trial.answered:
        return None
    return "sandbox" if attack.holds(trial.observed, descriptors[result.backend.name]) else None


def _refusal(result: ExecutionResult) -> str:
    """Why nothing ran."""
    if result.termination is not Termination.no_backend or result.decision is None:
        return result.summary
    candidates = result.decision.selection.candidates
    nearest = min(candidates, key=lambda one: len(one.blockers), default=None)
    if nearest is None:
        return result.summary
    first = nearest.blockers[0]
    return f"{nearest.name}: {first.what} `{first.asked}`: {first.offered}"
