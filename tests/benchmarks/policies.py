"""One decision under many rules, against Cedar with the same policy parsed once.

The policy has eight rules that look at what is asked (hosts, paths, size, group, employment) and one rule a
team; the request asks for two hosts and two folders, and both engines have to find the same two rules. It is
asked again and again, as agents do; beside that stands what it costs if each request names paths and hosts
that no earlier one has named, so that nothing is answered from what an earlier one left behind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from licet.applying import applied_to, facts_of
from licet.decide import Decision, decide
from licet.digests import HostDigest
from licet.normalize import normalize
from licet.policy import PolicyStack
from licet.policy.document import build, settled
from licet.policy.facts import Facts
from licet.policy.yaml import load
from licet.request import ExecutionRequest, Intent, NormalizedRequest, ScreenReport, Subject

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
DIGEST = HostDigest()
FOUND = {"new-hosts", "outside-writes"}
HOSTS = ("api.example.com", "artifacts.example.com", "pypi.example.com")

_CORE = """\
licet: 1
allow: [read /work, write /work, network any, 'tool *']
rules:
  - id: new-hosts
    ask: network any
    if: >-
      request.intents.exists(i, i.action == "network" && !(i.host in
      ["api.example.com", "artifacts.example.com", "pypi.example.com"]))
  - id: outside-writes
    ask: write /work
    if: request.intents.exists(i, i.action == "write" && !i.path.startsWith("/work/out"))
  - id: no-shell
    deny: shell
    if: request.intents.exists(i, i.action == "shell")
  - id: large
    deny: run
    if: request.code_bytes > 100000
  - id: metadata-service
    deny: network any
    if: request.intents.exists(i, i.action == "network" && i.host == "169.254.169.254")
  - id: secrets
    deny: read /work/secrets
    if: request.intents.exists(i, i.action == "read" && i.path.startsWith("/work/secrets"))
  - id: interns
    deny: run
    if: {group: interns}
  - id: contractors
    deny: read /work/hr
    if: {property.employment: contractor}
"""

_CEDAR = """\
@id("new-hosts") forbid(principal, action, resource) unless {
  ["api.example.com", "artifacts.example.com", "pypi.example.com"].containsAll(context.hosts) };
@id("outside-writes") forbid(principal, action, resource) when { context.outside };
@id("no-shell") forbid(principal, action, resource) when { context.shell };
@id("large") forbid(principal, action, resource) when { context.code_bytes > 100000 };
@id("metadata-service") forbid(principal, action, resource) when {
  context.hosts.contains("169.254.169.254") };
@id("secrets") forbid(principal, action, resource) when { context.secrets };
@id("interns") forbid(principal, action, resource) when { context.groups.contains("interns") };
@id("contractors") forbid(principal, action, resource) when { context.employment == "contractor" };
@id("all") permit(principal, action, resource);
"""


def stack_of(rules: int) -> PolicyStack:
    """licet's policy with that many rules."""
    teams = "".join(
        f"  - id: team-{n}\n    deny: tool tool_{n}\n    if: {{tenant: team-{n}, group: staff}}\n"
        for n in range(rules - 8)
    )
    return PolicyStack(settled(build(load((_CORE + teams).encode(), "p"), file="p", base=Path("/p"))))


def cedar_of(rules: int) -> str:
    """The same policy for Cedar."""
    return _CEDAR + "".join(
        f'@id("team-{n}") forbid(principal, action, resource) when {{ context.tenant == "team-{n}" && '
        'context.groups.contains("staff") };\n'
        for n in range(rules - 8)
    )


def requests() -> Iterator[ExecutionRequest]:
    """Requests that ask for the same, each in words of its own."""
    subject = Subject(id="ada", tenant="team-x", groups=("staff",), properties={"employment": "employee"})
    for number in count():
        intents = (
            Intent("network", "api.example.com:443"),
            Intent("network", f"new-{number}.example.net:443"),
            Intent("write", f"/work/out/{number}"),
            Intent("write", f"/work/tmp/{number}"),
        )
        yield ExecutionRequest(code=f"{number}", intents=intents, subject=subject)


def normal(request: ExecutionRequest, stack: PolicyStack) -> NormalizedRequest:
    """Normalised, with the digests of the host."""
    return normalize(request, stack, directory="/work", host_environment={}, digest=DIGEST)


def evaluated(facts: Facts, stack: PolicyStack) -> set[str]:
    """The rules that apply."""
    return {hit.rule.id for hit in applied_to(stack, facts).hits}


def decided(request: ExecutionRequest, stack: PolicyStack) -> Decision:
    """The whole decision: normalise, conditions with their trace, match, digest."""
    ready = normal(request, stack)
    report = ScreenReport()
    applied = applied_to(stack, facts_of(ready, report, NOW, stack))
    return decide(ready, stack.applying(applied.rules), report, applied)


def cedar_request(request: ExecutionRequest) -> dict[str, Any]:
    """The request as Cedar reads it."""
    targets = [intent.target or "" for intent in request.intents or () if intent.action == "write"]
    return {
        "principal": f'User::"{request.subject.id}"',
        "action": 'Action::"run"',
        "resource": 'Code::"code"',
        "context": {
            "hosts": [
                (intent.target or "").partition(":")[0]
                for intent in request.intents or ()
                if intent.action == "network"
            ],
            "outside": any(not target.startswith("/work/out") for target in targets),
            "shell": False,
            "secrets": any(target.startswith("/work/secrets") for target in targets),
            "code_bytes": 1,
            "tenant": request.subject.tenant,
            "groups": list(request.subject.groups),
            "employment": request.subject.properties["employment"],
        },
    }


def in_turn(*works: tuple[Callable[[Any], object], Sequence[Any]]) -> list[float]:
    """Median seconds of each work on its inputs, taken in turn so that drift of the machine hits all."""
    times: list[list[float]] = [[] for _ in works]
    for inputs in zip(*(inputs for _, inputs in works), strict=True):
        for (work, _), one, taken in zip(works, inputs, times, strict=True):
            began = time.perf_counter()
            work(one)
            taken.append(time.perf_counter() - began)
    return [sorted(taken)[len(taken) // 2] for taken in times]


def parsed(rules: int) -> Callable[[dict[str, Any]], Any]:
    """What asks Cedar, with its policy of that many rules parsed once."""
    from cedarpy import PolicySet, is_authorized

    policy = PolicySet.from_str(cedar_of(rules))
    return lambda one: is_authorized(one, policy, [])


def compare_policies(show: Callable[..., None], rules: int, decisions: int = 300) -> None:
    """Print our evaluation and our whole decision beside Cedar's."""
    stack, cedar_answer, source = stack_of(rules), parsed(rules), requests()
    same, others = next(source), [next(source) for _ in range(decisions)]
    facts = [facts_of(normal(same, stack), ScreenReport(), NOW, stack) for _ in range(decisions)]
    theirs = cedar_request(same)
    assert set(cedar_answer(theirs).diagnostics.reasons) == {"policy0", "policy1"}
    assert evaluated(facts[0], stack) == FOUND
    assert decided(same, stack).effect == "ask"
    cedar, evaluation, again, anew = in_turn(
        (cedar_answer, [theirs] * decisions),
        (lambda one: evaluated(one, stack), facts),
        (lambda one: decided(one, stack), [same] * decisions),
        (lambda one: decided(one, stack), others),
    )
    show(f"{rules} rules, evaluation", evaluation, "cedarpy, parsed once", cedar, "0.6x")
    show(f"{rules} rules, decision", again, "cedarpy, parsed once", cedar, "1.5x")
    show(f"{rules} rules, decision of a new request", anew, "cedarpy, parsed once", cedar, "none")


def compare_sizes(show: Callable[..., None], many: int, few: int, decisions: int = 300) -> None:
    """Print our whole decision under many rules beside that under few, and beside Cedar's under many."""
    large, small, source = stack_of(many), stack_of(few), requests()
    for stack in (large, small):
        decided(next(source), stack)  # what depends on the policy alone is found out by the first
    larger, smaller = in_turn(
        (lambda one: decided(one, large), [next(source) for _ in range(decisions)]),
        (lambda one: decided(one, small), [next(source) for _ in range(decisions)]),
    )
    # not in turn with ours: it goes through so much memory that it would be timed with what it leaves behind
    (cedar,) = in_turn((parsed(many), [cedar_request(next(source)) for _ in range(decisions // 10)]))
    show(f"{many} rules, decision", larger, f"{few} rules, decision", smaller, "1.5x")
    show(f"{many} rules, decision", larger, "cedarpy, parsed once", cedar, "0.03x")


def load_seconds(rules: int) -> float:
    """Seconds to load a policy of that many rules, of which every tenth has a condition in text."""
    text = "licet: 1\nallow: ['tool *']\nrules:\n" + "".join(
        f"  - id: rule-{n}\n    deny: tool tool_{n}\n    if: "
        + (f"request.code_bytes > {n}" if n % 10 == 0 else f"{{tenant: team-{n}, group: [staff, guests]}}")
        + f"\n    tests: [{{tool: tool_{n}, expect: deny}}]\n"
        for n in range(rules)
    )
    times = []
    for _ in range(5):
        began = time.perf_counter()
        settled(build(load(text.encode(), "p"), file="p", base=Path("/p")))
        times.append(time.perf_counter() - began)
    return min(times)
