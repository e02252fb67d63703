"""What is recorded before anything runs: request, decision, evidence, selection, authorization."""

from __future__ import annotations

from typing import Any, Literal

from licet.record_schema.parts import Decided, Hash, Levels, Opened, Part, Verdict


class Subject(Part):
    """For whom a run happens."""

    type: str
    """`user`, `agent` and the like."""
    id: str
    groups: list[str]
    properties: dict[str, str | int | bool]
    """What conditions of a policy may read."""
    tenant: str | None = None
    session: str | None = None
    on_behalf_of: str | None = None
    """The person that an agent or a service acts for."""
    asserted_by: Literal["caller", "os", "token", "mcp"]
    """Who vouches for all of this."""


class Needs(Part):
    """What the code needs of an interpreter, as the screen saw it."""

    syntax: list[str]
    """Features of the language that some interpreters lack."""
    modules: list[str]
    builtins: list[str]
    members: list[str] | None = None
    """What it takes from modules, as dotted names. Absent in records of earlier versions."""
    stdin: bool
    """Whether it reads standard input."""


class Parameter(Part):
    """One parameter of a tool."""

    name: str
    type: str
    required: bool
    role: Literal["plain", "named", "placed", "rest", "extra"]
    """What reaches it: position and name, name alone, position alone; or what `*` and `**` gather."""


class Change(Part):
    """Something that normalisation did to a request."""

    field: str
    requested: Any
    """As it was given."""
    effective: Any
    """As it was decided about."""
    reason: str


class Mount(Part):
    """A file of the host that the code sees at another path."""

    path: str
    """Where the code sees it."""
    host: str


class Request(Part):
    """Who asks for what, and when: with the decision, all that it takes to decide it again."""

    at: str
    """The instant that conditions were judged at."""
    took_ns: dict[str, int] | None = None
    """How long the stages took, by the kind of their record, in nanoseconds."""
    caller_span: str | None = None
    """The span around the run, where there is one."""
    rerun_of: str | None = None
    """The run that this one is to repeat, for `licet audit rerun`."""
    subject: Subject
    digests: dict[str, Hash]
    """HMAC-SHA256 under the host's key of code, standard input, inputs, environment, limits and directory."""
    code_bytes: int
    stdin_bytes: int
    inputs: list[str]
    """The names of the inputs."""
    tools: list[str]
    signatures: dict[str, list[Parameter]] | None = None
    """What Python says that each tool takes."""
    environment: list[str]
    """The names of the variables that the code gets."""
    workdir: str
    """Where relative paths start."""
    limits: dict[str, int | str]
    """In force: bytes, seconds (as text) and counts."""
    asked_limits: dict[str, int | str]
    """Those that the caller asked for."""
    learn: bool
    """Whether the run was to go on where policy says nothing (`--learn`)."""
    intents: list[str] | None
    """What the caller declared; null if nothing was, so that all that policy allows is open."""
    needs: Needs
    imports: list[str]
    """Names that the text of the code imports."""
    numbers: list[str]
    """Properties of the subject whose numbers stand as texts."""
    requirements: Levels
    """What the caller asks of the sandbox beyond policy."""
    changes: list[Change]
    metadata: dict[str, Any]
    """What the caller adds; licet reads nothing from it."""
    files: list[Mount] | None = None
    """Files that the caller gave names in the working directory."""
    not_kept: dict[str, str] | None = None
    """Why parts of a request are not kept whose content the policy keeps."""
    licet: str
    screen: str
    """The versions that decided."""


class Violation(Part):
    """What the screen found."""

    code: str
    """Its name, such as an escape technique that the text shows."""
    line: int | None
    refused: bool
    """Whether it counted."""


class Decision(Decided):
    """What was decided, by which entries of which policy."""

    learn: bool
    """Whether the run may go on where policy says nothing."""
    policy: str
    """Its name, and the beginning of its digest."""
    policy_digest: str
    """SHA-256 over the resolved policy and its bounds."""
    policy_stale: str | None
    """Why newer text of the policy is not in force; null if it is."""
    licet: str
    screen: str
    documents: list[str]
    """Every file that it was made of."""
    verdicts: list[Verdict]
    violations: list[Violation]
    opened: Opened
    """What the sandbox may open, if it goes on."""
    clock: Literal["real", "frozen"] | None = None
    """What the code sees of the time: `frozen` is the instant of the request."""
    random: Literal["real", "seeded"] | None = None
    """Where its random bytes come from: `seeded` follows from the plan."""


class AttacksPlanned(Part):
    """Attacks that are about to be made on a backend."""

    backend: str
    version: str
    contract: str
    attacks: list[str]
    """Their names."""


class Receipt(Part):
    """What came of one attack."""

    attack: str
    outcome: Literal["held", "leaked", "inconclusive"]
    claimed: bool
    """Whether the backend claims to hold it."""
    observed: str
    """What the program did behind the walls."""
    twin: str
    """What the same program did without walls."""
    when: str
    fingerprint: str
    """Of host, interpreter and backend: what the receipt holds for."""
    digest: str
    """SHA-256 of the receipt."""


class AttacksMade(Part):
    """What came of the attacks on a backend."""

    backend: str
    version: str
    held: int
    """Attacks that failed while their twins got through."""
    leaked: int
    """Attacks that got through."""
    inconclusive: int
    """Attacks that show nothing, mostly since the twin failed too."""
    unclaimed: int
    """Attacks on what the backend does not claim."""
    results: list[Receipt]


class Candidate(Part):
    """One backend at selection."""

    name: str
    satisfies: bool
    """Whether it offers all that is required."""
    blockers: list[str]
    """Each control or need that it lacks: what was asked, and offered."""
    refuted: list[str]
    """Claims that an attack got through."""


class Selection(Part):
    """Which backend was chosen, and what every other fell short of."""

    backend: str | None
    """Null if none offers what is required, so that nothing runs."""
    candidates: list[Candidate]
    required: Levels
    """What the sandbox has to hold, by control."""
    evidence: str | None
    """Digest of the receipts relied on."""
    plan_digest: str | None
    """Of all that will run: what an approval is bound to."""


class Authorization(Part):
    """Whether the run may go on."""

    state: Literal["not_needed", "granted", "denied", "pending"]
    """`pending` while somebody is asked: another record says what came of it."""
    reason: str
    approval: str | None = None
    """The id of the approval that somebody was asked for."""
