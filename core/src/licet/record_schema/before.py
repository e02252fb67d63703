"""What is recorded before anything runs: request, decision, evidence, selection, authorization."""

from __future__ import annotations

from typing import Any, Literal

from licet.record_schema.parts import Decided, Hash, Levels, Opened, Part, Verdict


class Subject(Part):
    """For whom a run happens."""

    type: str
    id: str
    groups: list[str]
    properties: dict[str, str | int | bool]
    tenant: str | None = None
    session: str | None = None
    on_behalf_of: str | None = None
    """The person that an agent or a service acts for."""
    asserted_by: Literal["caller", "os", "token", "mcp"]
    """Who vouches for all of this."""


class Needs(Part):
    """What the code needs of an interpreter, as the screen saw it."""

    syntax: list[str]
    modules: list[str]
    builtins: list[str]
    stdin: bool


class Change(Part):
    """Something that normalisation did to a request."""

    field: str
    requested: Any
    effective: Any
    reason: str


class Request(Part):
    """Who asks for what, and when: with the decision, all that it takes to decide it again."""

    at: str
    """The instant that conditions were judged at."""
    took_ns: dict[str, int] | None = None
    """How long the stages took, by the kind of their record, in nanoseconds."""
    caller_span: str | None = None
    """The span around the run, where there is one."""
    subject: Subject
    digests: dict[str, Hash]
    """HMAC-SHA256 under the host's key of code, standard input, inputs, environment, limits and directory."""
    code_bytes: int
    stdin_bytes: int
    inputs: list[str]
    """The names of the inputs."""
    tools: list[str]
    environment: list[str]
    """The names of the variables that the code gets."""
    workdir: str
    limits: dict[str, int | str]
    """In force: bytes, seconds (as text) and counts."""
    asked_limits: dict[str, int | str]
    learn: bool
    intents: list[str] | None
    """What the caller declared; null if nothing was, so that all that policy allows is open."""
    needs: Needs
    imports: list[str]
    numbers: list[str]
    """Properties of the subject whose numbers stand as texts."""
    requirements: Levels
    """What the caller asks of the sandbox beyond policy."""
    changes: list[Change]
    metadata: dict[str, Any]
    """What the caller adds; licet reads nothing from it."""
    not_kept: dict[str, str] | None = None
    """Why parts of a request are not kept whose content the policy keeps."""
    licet: str
    screen: str
    """The versions that decided."""


class Violation(Part):
    """What the screen found."""

    code: str
    line: int | None
    refused: bool
    """Whether it counted."""


class Decision(Decided):
    """What was decided, by which entries of which policy."""

    learn: bool
    policy: str
    policy_digest: str
    """SHA-256 over the resolved policy and its bounds."""
    policy_stale: str | None
    """Why newer text of the policy is not in force; null if it is."""
    licet: str
    screen: str
    documents: list[str]
    verdicts: list[Verdict]
    violations: list[Violation]
    opened: Opened


class AttacksPlanned(Part):
    """Attacks that are about to be made on a backend."""

    backend: str
    version: str
    contract: str
    attacks: list[str]


class Receipt(Part):
    """What came of one attack."""

    attack: str
    outcome: Literal["held", "leaked", "inconclusive"]
    claimed: bool
    observed: str
    twin: str
    """What the same program did without walls."""
    when: str
    fingerprint: str
    """Of host, interpreter and backend: what the receipt holds for."""
    digest: str


class AttacksMade(Part):
    """What came of the attacks on a backend."""

    backend: str
    version: str
    held: int
    leaked: int
    inconclusive: int
    unclaimed: int
    results: list[Receipt]


class Candidate(Part):
    """One backend at selection."""

    name: str
    satisfies: bool
    blockers: list[str]
    """Each control or need that it lacks: what was asked, and offered."""
    refuted: list[str]
    """Claims that an attack got through."""


class Selection(Part):
    """Which backend was chosen, and what every other fell short of."""

    backend: str | None
    candidates: list[Candidate]
    required: Levels
    evidence: str | None
    """Digest of the receipts relied on."""
    plan_digest: str | None
    """Of all that will run: what an approval is bound to."""


class Authorization(Part):
    """Whether the run may go on."""

    state: str
    reason: str
