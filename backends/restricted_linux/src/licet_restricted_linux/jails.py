"""A plan as a jail: what is opened is shown, what is kept closed inside it is hidden or frozen."""

from __future__ import annotations

from licet import processes, supervise
from licet.hosts import ANY, PRIVATE, read_back
from licet.plan import ExecutionPlan
from licet.supervise.jail import Installation, Jail, Needs, needs, trusted
from licet.writes.layer import Layer
from licet.writes.layer import staged as collected
from licet.writes.staged import Staged

MOST_BYTES = 1 << 40
"""What a run may bring to the host where its limit `files` is nobody's: its storage is smaller anyway."""


def spec(plan: ExecutionPlan) -> supervise.Spec:
    """What `licet.supervise` has to run; every stated limit is in it, or is kept by core."""
    limits = plan.limits
    return supervise.Spec(
        work=supervise.Snippet(
            plan.code, plan.inputs, limits.recursion, processes.tools(plan), packages(plan)
        ),
        workdir=plan.workdir,
        environment=plan.environment,
        stdin=plan.stdin,
        wall_time=limits.wall_time,
        cpu_time=limits.cpu_time,
        memory=limits.memory,
        processes=limits.processes,
        interpreter=of_python(plan).program,
        sharing=f"{plan.tenant}\0{plan.policy_class}",
        jail=jail(plan),
        warm=plan.warm,
    )


def staged(plan: ExecutionPlan, ended: supervise.ProcessOutcome) -> Staged | None:
    """What the run wrote, None if it could write nowhere; its descriptors belong to what is returned."""
    if not ended.written:
        return None
    layers = [
        Layer(place.path, place.descriptor, place.lower, place.bare or place.lower is None)
        for place in ended.written
    ]
    most = plan.limits.files
    return collected(layers, plan.opened, ended.written[0].began, MOST_BYTES if most is None else most)


def jail(plan: ExecutionPlan) -> Jail:
    """What the code has to see."""
    opened = plan.opened
    return Jail(
        needs=of_python(plan),
        workdir=plan.workdir,
        read=opened.read,
        write=opened.write,
        hidden=(*opened.read_masked, *opened.sealed),
        frozen=opened.write_masked,
        files=(*((mount.host, mount.path) for mount in plan.files), *_trusted(plan)),
        storage=plan.limits.files,
        programs=opened.shell,
        network=opened.connects,
        names=_names(plan),
    )


def packages(plan: ExecutionPlan) -> tuple[str, ...]:
    """The directories of packages that the code is given."""
    return plan.python.packages if plan.python is not None else ()


def of_python(plan: ExecutionPlan) -> Needs:
    """What the interpreter is made of that the plan names, packages with it; else this very one."""
    python = plan.python
    if python is None:
        return needs()
    return needs(python.packages, Installation(python.interpreter, python.prefix, python.version))


def _trusted(plan: ExecutionPlan) -> tuple[tuple[str, str], ...]:
    """What code that connects has to see beside its interpreter, where policy shows it nothing there."""
    if not plan.opened.connects:
        return ()
    return tuple((real, path) for real, path in trusted() if not plan.opened.opens("read", path))


def _names(plan: ExecutionPlan) -> tuple[str, ...]:
    """The names of hosts that are opened, or asked about, each by itself."""
    opened = plan.opened
    every = (*opened.network, *opened.network_asked)
    ends = (endpoint.host for endpoint in map(read_back, every) if endpoint.names)
    return tuple(sorted({host for host in ends if "*" not in host and host not in (ANY, PRIVATE)}))
