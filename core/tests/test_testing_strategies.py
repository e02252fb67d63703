"""The strategies of the kit: what they yield is valid, and says what it is said to."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from licet import paths, values
from licet.backend import Descriptor
from licet.contract import Control, Enforcement, Evidence, Level, SandboxEnforcementContract
from licet.hosts import Endpoint, endpoint
from licet.normalize import normalize
from licet.plan import Opened
from licet.policy import PolicyStack
from licet.policy.load import PolicySource, load_stack
from licet.probe.standing import claims as counts
from licet.request import ExecutionRequest, Intent, Limits, Subject
from licet.requirements import openable
from licet.testing import strategies


@given(strategies.paths())
def test_paths_are_canonical(path: str) -> None:
    assert paths.canonical(path, base="/") == path
    assert paths.contains("/no-such-root", path)


@given(strategies.hosts())
def test_hosts_are_targets(host: Endpoint) -> None:
    assert endpoint(str(host)) == host


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(strategies.requests(), strategies.policies())
def test_any_request_normalises_under_any_policy(
    request: ExecutionRequest, policy: strategies.Policy
) -> None:
    normal = normalize(
        request,
        PolicyStack(policy.document, (), ()),
        directory="/w",
        host_environment={},
        digest=lambda name, content: name,
    )
    for name, limit in request.limits.stated().items():
        assert normal.limits.stated()[name] <= limit
    assert normal.intents is None or set(normal.intents) == set(request.intents or ())


@given(strategies.intents())
def test_intents_are_declared_and_spelt_once(intent: Intent) -> None:
    action, _, target = str(intent).partition(" ")
    assert (action, target or None, intent.source) == (intent.action, intent.target, "declared")


@given(strategies.limits())
def test_limits_survive_json(limits: Limits) -> None:
    assert Limits.model_validate_json(limits.model_dump_json()) == limits


@given(strategies.opened())
def test_what_no_backend_opens_is_closed(opened: Opened) -> None:
    assert openable(opened, frozenset()) == Opened(sealed=opened.sealed)
    assert not any(opened.opens("read", path) for path in opened.sealed)


@given(strategies.claims())
def test_a_claim_names_what_holds_it(claim: Enforcement) -> None:
    assert counts(claim) == (claim.boundary != "none") == bool(claim.mechanism)
    assert claim.level is not Level.partial or claim.gaps


@given(strategies.contracts())
def test_contracts_rest_on_declarations(contract: SandboxEnforcementContract) -> None:
    assert {claim.evidence for _, claim in contract.items()} == {Evidence.declared}
    assert json.loads(json.dumps(contract.as_json()))["digest"] == contract.digest


@given(strategies.descriptors())
def test_descriptors_are_of_one_name(descriptor: Descriptor) -> None:
    assert (descriptor.name, descriptor.unavailable) == ("some", None)
    assert len(list(descriptor.sandbox_enforcement_contract.items())) == len(Control)


@given(strategies.data())
def test_data_crosses_as_it_is(value: Any) -> None:
    values.check_crossing(value)
    crossed = values.from_json(values.to_json(value))
    assert crossed == value
    assert not isinstance(value, float) or not math.isnan(value)


@given(strategies.subjects())
def test_subjects_survive_json(subject: Subject) -> None:
    assert Subject.model_validate_json(subject.model_dump_json()) == subject


def test_policies_load_and_say_what_their_text_says(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    source = PolicySource(managed=tmp_path / "none")

    @settings(suppress_health_check=[HealthCheck.too_slow])
    @given(strategies.policies())
    def loads(policy: strategies.Policy) -> None:
        file.write_text(policy.text)
        document = load_stack(file, source).root
        assert [entry.text for entry in document.entries] == [e.text for e in policy.document.entries]
        assert document.limits == policy.document.limits

    loads()
