"""The JSON Schema of the policy language, for editors.

Rules this module keeps:

- whatever licet loads is valid under it, but for a null where a key could be left out: an editor never marks
  what is right;
- a key of the language that has no schema here is an error when the schema is made: none is forgotten;
- enumerations and words come from the code that reads policies; what a schema can't say (that an entry is
  dead, that a path climbs out) is left to `licet policy check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from licet.contract import Control, Evidence, Level
from licet.controls import MEANINGS
from licet.policy.document import PolicyDocument
from licet.policy.during import DAYS
from licet.policy.during import KEYS as DURING_KEYS
from licet.policy.leaves import KEYS as CONDITION_KEYS
from licet.policy.leaves import PROPERTY
from licet.policy.parts import Approval, AuditPolicy, SandboxPolicy, ScreenModules, ScreenPolicy
from licet.policy.problems import HIDDEN
from licet.policy.rule_reader import KEYS as RULE_KEYS
from licet.policy.signatures import KINDS
from licet.request import DEFAULT_LIMITS, Limits
from licet.requirements import LIMIT_CONTROLS
from licet.surroundings import Clock, Randomness
from licet.units import show_limit
from licet.workbench import words as in_words
from licet.workbench.schema.cases import case, circumstances
from licet.workbench.schema.parts import TEXT, Schema, closed, either, listed, one_or_more, ref, words

FILE_NAME = "licet.schema.json"
"""What the schema is called where it lies beside a policy."""

EDITOR_LINE = f"# yaml-language-server: $schema=./{FILE_NAME}"
"""The first line of a policy, by which editors find the schema beside it."""

_REST = r"(\s+except\s+\S[\s\S]*)?\s*$"
_PORT = r":[0-9]{1,5}"
_HOST = r"(\[[0-9A-Fa-f:.]+(/[0-9]{1,3})?\]|[^\s:\[\]]+)"
_TYPE = "|".join(KINDS)
_DURATION = r"^\s*[0-9]{1,20}(\.[0-9]{1,20})?\s*(ms|s|m|min|h|d)?\s*$"
_SIZE = r"^\s*[0-9]{1,20}(\.[0-9]{1,20})?\s*(B|[kKMGT]B|[KMGT]iB)?\s*$"
_IN_SECONDS = frozenset({"wall_time", "cpu_time"})
_COUNTS = frozenset({"processes", "recursion", "tool_calls"})


def schema() -> Schema:
    """The whole of it, draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "licet policy",
        "description": "Decides whether code that nobody reviewed may run; see `licet policy check`.",
        **closed(_properties(PolicyDocument, _DOCUMENT), required=["licet"]),
        "$defs": _definitions(),
    }


def schema_of_tests() -> Schema:
    """That of files of tests, `*.test.yaml`."""
    cases = listed(case(in_rule=False), minItems=1)
    given = closed(circumstances(), description="Circumstances of every case that does not state its own.")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tests of a licet policy",
        **closed({"policy": _FILE, "given": given, "tests": cases}, required=["policy", "tests"]),
        "$defs": _definitions(),
    }


def _definitions() -> Schema:
    return {
        "permission": _entry("allow", port=True),
        "denial": _entry("deny", port=False),
        "duration": either(
            {"type": "string", "pattern": _DURATION}, {"type": "number", "exclusiveMinimum": 0},
            "Seconds, or a number with ms, s, m, h or d: `500ms`, `60s`, `2m`.",
        ),
        "size": either(
            {"type": "string", "pattern": _SIZE}, {"type": "number", "exclusiveMinimum": 0},
            "Bytes, or a number with kB, MB, GB, KiB, MiB or GiB: `64KiB`, `2GiB`.",
        ),
        "count": {"type": "integer", "minimum": 1},
        "limits": _limits(),
        "sandbox": _sandbox(),
        "audit": _audit(),
        "approval": _approval(),
        "condition": _condition(),
        "mapping": _mapping(),
        "window": _window(),
        "rule": _rule(),
        "signature": _signature(),
    }  # fmt: skip


def _properties(model: type[BaseModel], told: Mapping[str, Any]) -> Schema:
    """The keys of a model, each with what is told of it; raises `KeyError` for one of which nothing is."""
    keys = [field.alias or name for name, field in model.model_fields.items() if name not in HIDDEN]
    return {key: told[key] for key in keys}


def _entry(effect: str, *, port: bool) -> Schema:
    target = rf"(any|private|{_HOST}{_PORT if port else f'({_PORT})?'})"
    shapes = (
        r"^\s*(run|shell)\s*$",
        r"^\s*(read|write) \s*\S[\s\S]*$",
        rf"^\s*network \s*{target}{_REST}",
        rf"^\s*tool \s*[A-Za-z_*][A-Za-z0-9_*]*{_REST}",
    )
    told = "a port is mandatory" if port else "without a port it means every port"
    return {
        "type": "string",
        "pattern": "|".join(shapes),
        "description": "`run`, `read PATH`, `write PATH`, `network HOST:PORT`, `shell` or `tool NAME`; "
        f"`except TARGET` takes something out. Of a host {told}.",
        "examples": list(_EXAMPLES[effect]),
    }


_EXAMPLES = {
    "allow": ("read ./data", "write ./out", "network api.example.com:443", "tool find_order", "shell"),
    "deny": ("read ./data/secrets", "network example.com", "run"),
}


def _limits() -> Schema:
    defaults = DEFAULT_LIMITS.stated()
    found = {}
    for name in Limits.model_fields:
        kind = "duration" if name in _IN_SECONDS else "count" if name in _COUNTS else "size"
        by = LIMIT_CONTROLS.get(name)
        held = f"held by the sandbox ({in_words.listed(by)})" if by else "kept by licet or the language"
        default = show_limit(name, defaults[name]) if name in defaults else "none"
        found[name] = ref(kind, f"Default {default}; {held}. The lowest of all documents counts.")
    return closed(found)


def _sandbox() -> Schema:
    levels = [Level.partial.value, Level.enforced.value]
    controls = {
        control.value: {"enum": levels, "description": f"Where this is enforced, {MEANINGS[control].means}."}
        for control in Control
    }
    told = {
        "require": closed(controls, description="Controls that must hold beyond what the decision demands."),
        "evidence": words(Evidence, "What a claim has to rest on. The strongest of all documents counts."),
        "only": listed(TEXT, "The backends that may be used. What all documents admit counts."),
        "prefer": listed(TEXT, "Which backend to take first among those that qualify."),
        "warm": {
            "type": "boolean",
            "description": "Whether workers that were started before may be used. One `false` counts.",
        },
    }
    return closed(_properties(SandboxPolicy, told), description="What is asked of a sandbox.")


def _audit() -> Schema:
    told = {
        "mode": words(("required", "best_effort"), "`required`: no trail, no run."),
        "content": words(
            ("digest", "kept"), "`digest`: of content only digests stay. `kept`: it stays, too."
        ),
    }
    return closed(_properties(AuditPolicy, told), description="How the trail is kept.")


def _approval() -> Schema:
    told = {
        "count": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "description": "How many different persons.",
        },
        "from": listed(TEXT, "The groups they come from; empty: anybody."),
        "reviewer": words(("any", "human"), "`human`: no program can approve."),
        "expires": ref("duration", "How long an approval may take and wait until it is used."),
        "unattended": words(("deny", "queue"), "What happens where nobody can be asked."),
    }
    return closed(_properties(Approval, told), description="Who has to approve what asks.")


def _condition() -> Schema:
    text = {"type": "string", "minLength": 1, "description": "CEL, type-checked when the policy is loaded."}
    one = either(text, ref("mapping"))
    return one_or_more(one, "A text (CEL), a mapping, or a list: all of it.")


def _mapping() -> Schema:
    texts = one_or_more(TEXT, "A text, or a list of which any may match.")
    moments = {"type": "string", "description": "A day, or a time with its offset: `2026-03-01T12:00:00Z`."}
    found: Schema = {key: texts for key in CONDITION_KEYS if not key.startswith(PROPERTY)}
    found |= {"before": moments, "after": moments}
    value = {"type": ["string", "number", "boolean"]}
    properties = one_or_more(value, "A property of the subject.")
    pattern = {f"^{PROPERTY.replace('.', '[.]')}.+$": properties}
    return closed(found, patternProperties=pattern, minProperties=1)


def _window() -> Schema:
    day = {
        "type": "string",
        "pattern": rf"^\s*({_any_case(DAYS)})\s*(-\s*({_any_case(DAYS)})\s*)?$",
        "examples": ["sat", "mon-fri"],
    }
    hours = {"type": "string", "pattern": r"^\s*[0-9]{2}:[0-9]{2}\s*-\s*[0-9]{2}:[0-9]{2}\s*$"}
    told = {
        "days": one_or_more(day, "Days of the week, or spans of them."),
        "hours": one_or_more(hours, "`09:00-17:30`; an end before the start lies on the next day."),
        "from": {"type": "string", "description": "A date or a time at which it begins."},
        "until": {"type": "string", "description": "A date or a time at which it is over."},
        "zone": {"type": "string", "description": "The clock it is read on: `Europe/Berlin`, `UTC`."},
    }
    return closed({key: told[key] for key in DURING_KEYS}, minProperties=1)


def _any_case(words: tuple[str, ...]) -> str:
    return "|".join("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in words)


def _rule() -> Schema:
    denial, permission = ref("denial"), ref("permission")
    told = {
        "id": {
            "type": "string",
            "pattern": r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$",
            "description": "Its name in records and tests; name it after its reason.",
        },
        "deny": either(listed(denial), denial, "What it denies while it applies."),
        "ask": either(listed(permission), permission, "What it asks about while it applies."),
        "if": ref("condition", "It applies only if this holds, or is not known."),
        "unless": ref("condition", "It does not apply if this certainly holds."),
        "during": one_or_more(ref("window"), "When it applies: all of one window; of a list, any."),
        "limits": ref("limits"),
        "sandbox": ref("sandbox"),
        "approval": ref("approval"),
        "audit": ref("audit"),
        "tests": listed(case(in_rule=True), "Cases that `licet policy test` tries."),
    }
    properties = {key: told[key] for key in RULE_KEYS}
    return closed(properties, ["id"], description="Tightens while it applies; it never allows.")


def _signature() -> Schema:
    return {
        "type": "object",
        "additionalProperties": {"type": "string", "pattern": rf"^\s*(list of )*\s*({_TYPE})\s*\??\s*$"},
        "description": f"Parameters with types: {', '.join(KINDS)}; `list of TYPE`; `TYPE?` may be left out.",
    }


def _screen() -> Schema:
    modules = closed(_properties(ScreenModules, {"deny": listed(TEXT, "Seen by the static screen alone.")}))
    told = {
        "mode": words(("refuse", "report"), "What happens to what the static screen finds."),
        "modules": modules,
    }
    return closed(_properties(ScreenPolicy, told), description="The static screen, before anything runs.")


_FILE = {"type": "string", "minLength": 1}
_PINNED = closed({"file": _FILE, "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}, ["file"])
_BOUND = either(_FILE, _PINNED)
_PYTHON = either(
    closed({"packages": _FILE}, ["packages"]),
    closed({"prefix": _FILE}, ["prefix"]),
    "What code is given: `packages`, a pinned and hashed list that `licet env build` builds; or `prefix`, a "
    "virtual environment or an installation that is there. The root's counts.",
)
_DOCUMENT: Mapping[str, Schema] = {
    "licet": {"const": 1, "description": "The version of the language."},
    "name": {"type": "string", "description": "How cards and records call it."},
    "extends": {
        **_FILE,
        "description": "The text it starts from: a file, or a pack such as `licet:compute`.",
    },
    "within": either(
        _BOUND,
        listed(_BOUND, examples=[["./org.yaml"]]),
        "Bounds: files or packs that must permit too.",
    ),
    "allow": listed(ref("permission"), "What code may do. What nothing allows is denied."),
    "ask": listed(ref("permission"), "What needs an approval. It beats `allow`."),
    "deny": listed(ref("denial"), "What is never done. It beats `ask` and `allow`."),
    "limits": ref("limits"),
    "env": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "propertyNames": {"pattern": "^[^=]+$"},
        "description": "The whole environment: values, or `pass` for the host's.",
    },
    "screen": _screen(),
    "sandbox": ref("sandbox"),
    "approval": ref("approval"),
    "audit": ref("audit"),
    "tools": {
        "type": "object",
        "additionalProperties": ref("signature"),
        "description": "Host functions that code may call; in a bound, the only ones.",
    },
    "python": _PYTHON,
    "rules": listed(ref("rule"), "What is tightened for some, at some time, or in some calls."),
    "clock": words(
        get_args(Clock),
        "What code sees of the time; `frozen`: the instant of the request. The root's counts.",
    ),
    "random": words(
        get_args(Randomness), "`seeded`: equal plans get equal random bytes on this host. The root's counts."
    ),
    "learn": {"type": "boolean", "description": "Whether `licet run --learn` may collect what a run needs."},
    "mode": words(("enforce", "dry_run"), "`dry_run`: evaluated and recorded, decides nothing; in bounds."),
}
