"""The part of the JSON Schema that is about test cases, in rules and in files of tests.

Rules this module keeps: those of the package, whose definitions it uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from licet.policy.cases import ASKS, CIRCUMSTANCES
from licet.policy.expectations import EFFECTS, OF_THE_WHOLE, STATES
from licet.policy.expectations import KEYS as EXPECT_KEYS
from licet.request import Subject
from licet.workbench.schema.parts import TEXT, Schema, closed, either, listed, ref

_ACTIONS = r"^\s*((read|write|network) .*\S|shell)\s*$"


def case(*, in_rule: bool) -> Schema:
    """One case; inside a rule it is about that rule and does not name it."""
    properties: Schema = {"name": {"type": "string", "description": "What to call it."}}
    if not in_rule:
        properties["rule"] = TEXT | {"description": "The rule it is about; without, the whole policy."}
    properties |= _asked() | circumstances() | {"expect": _expect(in_rule=in_rule)}
    asks = [{"required": [key]} for key in ASKS if key != "args"]
    return closed(properties, ["expect"], anyOf=asks)


def circumstances() -> Schema:
    """What holds while a case is asked, by key."""
    texts = {"type": "object", "additionalProperties": TEXT}
    subject: Schema = {name: {} for name in Subject.model_fields} | {
        "groups": listed(TEXT),
        "properties": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    }
    told: Schema = {
        "subject": closed(subject),
        "at": {"type": "string", "description": "An instant with its offset: `2026-03-07T12:00:00+01:00`."},
        "workdir": TEXT,
        "inputs": {"type": "object", "additionalProperties": True},
        "tools": either(listed(TEXT), {"type": "object", "additionalProperties": ref("signature")}),
        "metadata": texts,
        "limits": ref("limits"),
    }
    return {key: told[key] for key in CIRCUMSTANCES}


def _asked() -> Schema:
    targets = either(TEXT, listed(TEXT))
    told: Schema = {
        "tool": {"type": "string", "description": "A call of this tool, with `args`."},
        "args": {"type": "object", "additionalProperties": True},
        "run": {"const": True, "description": "A run that lists no intents."},
        "read": targets,
        "write": targets,
        "network": targets,
        "shell": {"const": True},
        "intents": _intents("Intents that the run lists."),
        "code": {"type": "string", "description": "Python, which goes through the screen."},
    }
    return {key: told[key] for key in ASKS}


def _expect(*, in_rule: bool) -> Schema:
    told: Schema = {
        "effect": {"enum": list(EFFECTS)},
        "rule": {"enum": list(STATES)},
        "by": {"type": "string", "description": "A rule that is among those that decide."},
        "limits": ref("limits"),
        "demands": listed(ref("approval")),
        "opened": _intents("What a sandbox may open."),
        "closed": _intents("What a sandbox may not open."),
    }
    keys: Iterable[str] = (key for key in EXPECT_KEYS if not (in_rule and key in OF_THE_WHOLE))
    word = {"enum": [*EFFECTS, *STATES]}
    return either(word, closed({key: told[key] for key in keys}, minProperties=1))


def _intents(description: str) -> Schema:
    return listed({"type": "string", "pattern": _ACTIONS}, description)
