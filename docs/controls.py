"""Writes `docs/reference/controls.md` from the code: `uv run python docs/controls.py`.

`page()` is its text; a test compares it with the page in the repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from licet.backend import Termination
from licet.contract import Control, Enforcement, Evidence, Level
from licet.controls import MEANINGS
from licet.plan import Opened
from licet.probe.attack import Attack
from licet.probe.attacks import ATTACKS
from licet.probe.conditions import Condition
from licet.probe.standing import claims
from licet.request import Limits
from licet.requirements import demand
from licet.supervise.cgroups import Groups, Place, Resource
from licet.supervise.jail import Ground
from licet.supervise.walls import Wall, Walls
from licet_controlled_process.claims import claimed
from licet_monty.claims import contract
from licet_restricted_linux import claims as restricted

MONTY = contract(None, Walls(frozenset(Wall)))
RESTRICTED = restricted.contract(
    Ground(users=True, landlock=7, filters=True),
    Groups({resource: Place(2, "") for resource in Resource}),
)

PAGE = Path(__file__).parent / "reference" / "controls.md"

_INTRODUCTION = """\
# Controls

<!-- Generated from the code by `uv run python docs/controls.py`; edit that, or what it reads. -->

One field a control on a backend's `sandbox_enforcement_contract`. Each has a **level** (`not_enforced` <
`planned` < `partial` < `enforced`, or `not_applicable`: the language can't express the act), a **boundary**
(`language`, `supervisor`, `kernel`, `separate_kernel`, `remote`), a **mechanism**, **gaps**, and
**evidence** (`declared` < `read_back` < `probed`). What a contract leaves out is not enforced. Isolation is
derived: the weakest boundary that holds files and network.

`licet backends show NAME` prints a contract as it stands on your host, `licet doctor` who holds what there.
"""

_DEMAND = """\
## What a decision demands

Derived for each candidate from what *it* would open:

| if | then |
|---|---|
| no `network` is opened | `network_deny`, `unix_socket_deny` |
| some hosts are opened, and not `any` and `private` | `network_filter`, `unix_socket_deny` |
| not every `read` (`write`) is opened | `filesystem_read_deny` (`filesystem_write_deny`) |
| `shell` is not opened | `shell_execution` |
| a limit is stated | the control of that limit, see [policy files](policy.md#limits) |
| always | `environment_allowlist`, `fresh_state`, `cancellation` |
| `sandbox.require`, or a request's `requirements` | what they name, by maximum |

All are demanded as `enforced`. Where a policy opens everything (`read /`, `write /`, `network any`,
`shell`), `timeout`, `cancellation`, `process_tree_cleanup`, `environment_allowlist` and `fresh_state` are
demanded as `partial` ([ADR 2](../adr/0002-whole-file-system.md)).
"""

_PROOF = """\
## How a claim is proved

By attack, on your own host. An attack is a small program that tries the act. It was **held** only if the
program saw one of the exact signs of a wall below, if an allowed act before it worked, if no target on the
host shows a blow, and if its twin, the same program without walls, got through. A goal that was reached
refutes the claim; everything else is inconclusive, and proves nothing.

The *quick* attacks are the evidence that selection asks for; `licet backends verify` runs all. One marked
*beyond `partial`* may get through where only `partial` is claimed. A sign marked \\* counts only in a
language that lists all of its modules, and can't express the act.

Nothing but your own host is attacked. Where it has no address beside its loopback, no attack can tell a
network that leads out from none at all: what walls off the loopback alone passes there.

The claims of the backends are those on Linux 6.12 or later, for an ordinary user. Where
`controlled_process` runs as root, or where its kernel can't confine signals, some are weaker, and marked.
Where the kernel lacks a wall, `monty` claims what its language holds alone, and says so. `restricted_linux`
claims less where it can have no control groups, no Landlock or no filter of system calls.

A claim with the boundary `kernel` of a backend whose language is the first wall is attacked twice: in the
language, and behind it, by plain Python within the same walls, as if the interpreter had been broken. Both
have to hold.
"""

_CONDITIONS = {
    Condition.root: "as root",
    Condition.folders: "with a home or another folder to write to",
    Condition.address: "with an address beside the loopback",
    Condition.ipv6: "with IPv6",
    Condition.io_uring: "where io_uring is open",
    Condition.user_namespaces: "where user namespaces can be made",
    Condition.keyring: "with a kernel keyring",
    Condition.tracing: "where processes may be traced",
    Condition.multipath: "with multipath TCP",
    Condition.vsock: "with sockets to a hypervisor",
    Condition.administrator: "as an administrator of the system",
}


def page() -> str:
    """The whole page."""
    return "\n".join((_INTRODUCTION, *_overview(), "", _DEMAND, _PROOF, *map(_section, Control)))


def _overview() -> Iterator[str]:
    yield "| control | what it means |"
    yield "|---|---|"
    yield from (f"| [`{control}`](#{control}) | {MEANINGS[control].means} |" for control in Control)


def _section(control: Control) -> str:
    return "\n".join(_lines(control))


def _lines(control: Control) -> Iterator[str]:
    meaning = MEANINGS[control]
    yield f"## `{control}`\n"
    yield f"Where it is enforced, {meaning.means}. It does not cover:\n"
    yield from (f"- {left}" for left in meaning.leaves)
    yield f"\nWhy a run demands it: {'; '.join(_demanded(control))}.\n"
    yield "| attack | tries to | | a wall shows as |"
    yield "|---|---|---|---|"
    yield from (_attack(attack) for attack in ATTACKS if attack.control is control)
    yield ""
    yield from _claims("monty", MONTY[control])
    yield from _claims("restricted_linux", RESTRICTED[control])
    yield from _claims("controlled_process", claimed(True, ())[control], _weaker(control))
    yield ""


# -- what demands it


def _demanded(control: Control) -> tuple[str, ...]:
    """Why a run could demand it, in the words of its requirement."""
    openings = (
        Opened(),
        Opened(read=("/",), write=("/",), network=("any",), shell=True),
        Opened(network=("example.com:443",)),
    )
    unlimited = Limits()
    cases = [(unlimited, opened) for opened in openings]
    cases += [(Limits.model_validate({name: 1}), openings[0]) for name in Limits.model_fields]
    reasons = (demand((), Evidence.declared, limits, opened).get(control) for limits, opened in cases)
    found = tuple(dict.fromkeys(asked.because for asked in reasons if asked is not None))
    return found or ("only by `sandbox.require` or a request's `requirements`",)


# -- what proves it


def _attack(attack: Attack) -> str:
    marks = ["quick"] if attack.quick else []
    marks += ["beyond `partial`"] if attack.partial_may_leak else []
    marks += [words for condition, words in _CONDITIONS.items() if condition in attack.needs]
    signs = [*map(_sign, attack.held_by), *(f"`{sign}` \\*" for sign in attack.inexpressible)]
    return f"| {attack.variant} | {attack.goal} | {', '.join(marks)} | {', '.join(signs)} |"


def _sign(sign: str) -> str:
    if sign == "done":
        return "coming to its end without the goal"
    if sign == "host killed":
        return "the host's death, and nothing left alive"
    return f"ending as `{sign}`" if sign in {ending.value for ending in Termination} else f"`{sign}`"


# -- who claims it


def _claims(name: str, claim: Enforcement, weaker: str = "") -> Iterator[str]:
    if claims(claim):
        yield f"- `{name}` claims `{claim.level}` ({claim.boundary}): {claim.mechanism}{weaker}"
    else:
        yield f"- `{name}` claims `{claim.level}`"
    yield from (f"  - gap: {gap}" for gap in claim.gaps)


def _weaker(control: Control) -> str:
    """Where the controlled process claims less."""
    best = claimed(True, ())[control].level
    worse = (("as root", claimed(True, ("",))), ("without Landlock scopes", claimed(False, ("",))))
    found = [where for where, contract in worse if contract[control].level.rank < best.rank]
    return f"; `{Level.partial}` {' and '.join(found)}" if found else ""


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
