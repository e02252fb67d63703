"""What a runtime makes of a backend that says that a run waits, where no call of it does."""

from __future__ import annotations

from pathlib import Path

import puppet
import pytest
from licet.backend import Host, Outcome, Termination
from licet.errors import SuspensionVoid
from licet.plan import ExecutionPlan
from puppet import Puppet, Puppetry


class Waiting(Puppet):
    """A puppet whose run waits, or that can't go on with one."""

    async def run(self, plan: ExecutionPlan, host: Host) -> Outcome:
        if not plan.code.startswith("1"):
            raise SuspensionVoid("it is another run", advice="run the code again")
        host.write("stdout", b"so far")
        return Outcome(Termination.approval_pending, suspension=b"all of it and a password")


@pytest.fixture
def puppets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Puppetry:
    monkeypatch.setattr(puppet, "Puppet", Waiting)
    return Puppetry(tmp_path, monkeypatch)


def test_a_run_that_waits_is_no_success_and_nothing_of_its_dump_is_recorded(puppets: Puppetry) -> None:
    result = puppets.run_under("p.yaml", "")
    assert (result.termination, result.success, result.stdout) == (
        Termination.backend_error,
        False,
        "so far",
    )
    assert result.detail == "`puppet` says that the run waits, and no call of it does"
    assert "password" not in str([record.entry for record in puppets.log.records()])
    assert "password" not in repr(result)
    end = [r.entry.body for r in puppets.log.records() if r.entry.kind == "result"]
    assert [body["termination"] for body in end] == ["backend_error"]


def test_a_run_that_cannot_go_on_was_not_launched(puppets: Puppetry) -> None:
    result = puppets.run_under("p.yaml", "", code="2")
    assert (result.termination, result.detail) == (Termination.launch_failed, "it is another run")
