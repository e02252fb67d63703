"""Hypothesis strategies for what licet reads and passes on; each yields values that licet accepts.

Rules this module keeps:

- what comes out is valid: canonical paths, hosts with ports, policies that load without an error;
- names are few, so that things meet: what one value allows another asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from licet import hosts as _hosts
from licet.backend import Descriptor, Language
from licet.contract import Boundary, Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.errors import Position
from licet.plan import Opened
from licet.policy import PolicyDocument
from licet.policy.document import build, settled
from licet.policy.patterns import Effect, Pattern, parse
from licet.policy.yaml import load
from licet.request import Action, ExecutionRequest, Intent, Limits, Subject

_FOLDERS = ("data", "out", "secrets", "a", "ab")
_LABELS = ("a", "b", "example", "com", "internal")
_WORDS = (_hosts.ANY, _hosts.PRIVATE)
_TOOLS = ("find", "find_order", "refund")
_CODE = ("1", "", "x = 1\nx + 1", "print('hello')", "1 / 0", "import json\njson.dumps({})", "(")
_BOUNDARIES: tuple[Boundary, ...] = ("language", "supervisor", "kernel", "separate_kernel", "remote")


def paths(root: str = "/no-such-root") -> st.SearchStrategy[str]:
    """Canonical absolute paths at or below `root`, which does not exist."""
    return st.lists(st.sampled_from(_FOLDERS), max_size=4).map(lambda names: "/".join((root, *names)))


def hosts() -> st.SearchStrategy[_hosts.Endpoint]:
    """Single hosts with a port, by name or address."""
    addresses = st.sampled_from(["10.0.0.1", "10.1.0.1", "8.8.8.8", "fc00::1"])
    return st.builds(_hosts.Endpoint, st.one_of(_names(), addresses), st.sampled_from([80, 443]))


def host_patterns() -> st.SearchStrategy[_hosts.Endpoint]:
    """What a policy can say of hosts: one, a range, all below a name, a word; with a port or with all."""
    fixed = ["any", "private", "10.0.0.1", "10.0.0.0/8", "10.1.0.0/16", "8.8.0.0/16", "fc00::/8", "::1"]
    wide = st.one_of(_names(), _names().map("*.{}".format), st.sampled_from(fixed))
    ports = st.sampled_from([None, 80, 443])
    return st.builds(lambda host, port: _hosts.Endpoint(host, None if host in _WORDS else port), wide, ports)


def _names() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(_LABELS), min_size=2, max_size=4).map(".".join)


def intents() -> st.SearchStrategy[Intent]:
    """Declared intents in canonical form."""
    files = st.builds(Intent, st.sampled_from(["read", "write"]), paths())
    network = st.builds(Intent, st.just("network"), hosts().map(str))
    tools = st.builds(Intent, st.just("tool"), st.sampled_from(_TOOLS), when=st.just("call"))
    return st.one_of(files, network, tools, st.just(Intent("shell")))


def limits() -> st.SearchStrategy[Limits]:
    """Limits, each stated or not."""
    sizes = {name: st.integers(1, 1 << 40) for name in ("memory", "code", "stdin", "stdout", "stderr")}
    sizes |= {name: st.integers(1, 1 << 40) for name in ("output", "files")}
    counts = {name: st.integers(1, 10_000) for name in ("processes", "recursion", "tool_calls")}
    times = {name: st.floats(0.001, 86_400) for name in ("wall_time", "cpu_time")}
    return st.fixed_dictionaries({}, optional={**sizes, **counts, **times}).map(
        lambda stated: Limits(**stated)
    )


def opened() -> st.SearchStrategy[Opened]:
    """What a decision can open to a sandbox."""
    roots = st.lists(paths(), max_size=2, unique=True).map(tuple)
    reach = st.lists(host_patterns().map(str), max_size=2, unique=True).map(tuple)
    tools = st.lists(st.sampled_from(_TOOLS), max_size=2, unique=True).map(tuple)
    return st.builds(
        Opened,
        read=roots,
        write=roots,
        read_masked=roots,
        write_masked=roots,
        sealed=roots,
        network=reach,
        network_masked=reach,
        network_asked=reach,
        shell=st.booleans(),
        tools=tools,
    )


def claims() -> st.SearchStrategy[Enforcement]:
    """Well-formed claims for one control, as a backend declares them."""
    texts = st.sampled_from(["a filter", "a watchdog"])
    gaps = st.lists(st.sampled_from(["this", "that"]), min_size=1, max_size=2, unique=True).map(tuple)
    whole = st.sampled_from([Level.enforced, Level.not_applicable])
    boundary = st.sampled_from(_BOUNDARIES)
    return st.one_of(
        st.just(Enforcement()),
        st.just(Enforcement(Level.planned)),
        st.builds(Enforcement, whole, boundary, texts, st.one_of(st.just(()), gaps)),
        st.builds(Enforcement, st.just(Level.partial), boundary, texts, gaps),
    )


def contracts(evidence: Evidence | None = Evidence.declared) -> st.SearchStrategy[SandboxEnforcementContract]:
    """Contracts with a few claims; with `evidence` None, resting on whatever there is."""
    chosen = st.sampled_from(Evidence) if evidence is None else st.just(evidence)
    weighed = st.builds(
        lambda claim, rests_on: Enforcement(
            claim.level, claim.boundary, claim.mechanism, claim.gaps, rests_on
        ),
        claims(),
        chosen,
    )
    return st.dictionaries(st.sampled_from(Control), weighed, max_size=4).map(
        lambda stated: SandboxEnforcementContract(
            **{control.value: claim for control, claim in stated.items()}
        )
    )


def descriptors(name: str = "some") -> st.SearchStrategy[Descriptor]:
    """Descriptors of one name, in a language without restrictions."""
    actions: tuple[Action, ...] = ("read", "write", "network", "shell", "tool")
    return st.builds(
        Descriptor,
        name=st.just(name),
        version=st.just("1"),
        sandbox_enforcement_contract=contracts(),
        language=st.just(Language("CPython")),
        opens=st.frozensets(st.sampled_from(actions)),
        cost=st.floats(0, 1000),
    )


def data() -> st.SearchStrategy[Any]:
    """Values that any backend takes as inputs and gives back as they are."""
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    numbers = st.one_of(st.integers(), st.integers(-(10**40), 10**40), st.floats(allow_nan=False))
    keys = st.one_of(text, st.integers(), st.booleans(), st.none())
    leaves = st.one_of(st.none(), st.booleans(), numbers, text, st.binary(max_size=20))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=3),
            st.sets(st.one_of(text, st.integers()), max_size=3),
        ),
        max_leaves=10,
    )


def subjects() -> st.SearchStrategy[Subject]:
    """For whom a run happens."""
    names = st.sampled_from(["ada", "bob"])
    groups = st.lists(st.sampled_from(["finance", "oncall"]), max_size=2, unique=True).map(tuple)
    tenant = st.sampled_from([None, "acme", "globex"])
    return st.builds(
        lambda name, groups, tenant: Subject(id=name, groups=groups, tenant=tenant), names, groups, tenant
    )


def requests() -> st.SearchStrategy[ExecutionRequest]:
    """Whole requests; the code is short, and not always good."""
    wanted = st.one_of(st.none(), st.lists(intents(), max_size=3, unique=True).map(tuple))
    inputs = st.dictionaries(st.sampled_from(["x", "orders"]), data(), max_size=2)
    return st.builds(
        lambda code, stdin, inputs, limits, intents, subject: ExecutionRequest(
            code=code, stdin=stdin, inputs=inputs, limits=limits, intents=intents, subject=subject
        ),
        st.sampled_from(_CODE),
        st.binary(max_size=20),
        inputs,
        limits(),
        wanted,
        subjects(),
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as its owner writes it, and as licet reads it."""

    text: str
    document: PolicyDocument


def document_of(text: str, name: str = "policy.yaml", base: str = "/no-such-root") -> PolicyDocument:
    """Read the text of one policy that extends nothing; relative paths are taken from `base`.

    Raises:
        InvalidPolicy: with the place of the first problem.
    """
    return settled(build(load(text.encode(), name), file=name, base=Path(base)))


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Policies of one document that load: no entry in them is dead."""
    wanted: dict[str, list[str]] = {
        effect: draw(st.lists(_entries(deny=effect == "deny"), max_size=4, unique=True))
        for effect in ("deny", "ask", "allow")
    }
    stated = draw(limits()).stated()
    kept = _without_dead_ones(wanted)
    lines = ["licet: 1", *(f"{effect}: [{', '.join(map(repr, kept[effect]))}]" for effect in kept)]
    lines += (
        [f"limits: {{{', '.join(f'{name}: {value}' for name, value in stated.items())}}}"] if stated else []
    )
    text = "\n".join((*lines, ""))
    return Policy(text, document_of(text))


def _entries(*, deny: bool) -> st.SearchStrategy[str]:
    folders = paths("/no-such-root/p")
    reach = host_patterns().filter(lambda pattern: deny or pattern.host in _WORDS or pattern.port is not None)
    return st.one_of(
        st.builds("{} {}".format, st.sampled_from(["read", "write"]), folders),
        reach.map("network {}".format),
        st.sampled_from(["tool find*", "tool find", "tool refund", "shell"]),
    )


def _without_dead_ones(wanted: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Leave out each entry that another of the same document, with a stronger effect, wholly covers."""
    kept: dict[str, list[str]] = {}
    stronger: list[Pattern] = []
    effects: tuple[Effect, ...] = ("deny", "ask", "allow")
    for effect in effects:
        patterns = [parse(text, effect, base="/", where=Position("policy.yaml")) for text in wanted[effect]]
        alive = [p for p in patterns if not any(s.shadows(p) for s in stronger)]
        kept[effect] = [pattern.text for pattern in alive]
        stronger += alive
    return kept
