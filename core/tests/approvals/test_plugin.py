"""Approval services come by a hook: those that settings name, all of them, and nobody else's."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

import pytest
from issuing import SECRET, Signer
from licet.approvals import Answer, ApprovalRequest
from licet.approvals.choosing import chosen
from licet.approvals.services import ApprovalService
from licet.errors import InvalidSettings
from licet.plugins import GROUP, Plugins
from licet.settings import Settings

OWN = EntryPoint("approvals", "licet.approvals.plugin", GROUP)
STRANGER = """
from licet.hookspecs import hookimpl
class Pager:
    name, attended, waits = {name!r}, True, False
    async def ask(self, request):
        yield
    async def collect(self, request):
        return ()
    async def close(self): ...
@hookimpl
def licet_approval_service(settings):
    return [Pager()]
"""

FAILING = """
from licet.hookspecs import hookimpl
@hookimpl
def licet_approval_service(settings):
    {body}
"""


class Service:
    """A service that a program brings by itself."""

    attended, waits = True, False

    def __init__(self, name: str) -> None:
        self.name = name

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        return
        yield

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        return ()

    async def close(self) -> None:
        pass


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plugins]:
    """Plugins under settings of approvals: licet's own, and each text as a stranger's module."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(approvals: dict[str, Any], **texts: str) -> Plugins:
        found = [OWN]
        for name, text in texts.items():
            module = f"licet_test_approvals_{name}"
            monkeypatch.delitem(sys.modules, module, raising=False)
            (tmp_path / f"{module}.py").write_text(text)
            found.append(EntryPoint(name, module, GROUP))
        settings = {"enabled": [one.name for one in found], "approvals": approvals}
        return Plugins(Settings.model_validate(settings), found=found)

    return make


def fixed(approvals: dict[str, Any]) -> Settings:
    return Settings.model_validate({"approvals": approvals}).fixing_services()


def names(services: tuple[ApprovalService, ...]) -> list[str]:
    return [one.name for one in services]


def webhook(tmp_path: Path) -> dict[str, Any]:
    secret = tmp_path / "webhook.secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    hook = {"url": "http://127.0.0.1:1/", "secret_file": str(secret)}
    return {"services": ["webhook"], "webhook": hook, "issuers": [Signer().settings()]}


def test_the_own_plugin_is_installed_and_enabled() -> None:
    assert OWN in entry_points(group=GROUP)
    assert "approvals" in Settings().enabled


def test_nothing_named_is_nobody(plugins: Callable[..., Plugins]) -> None:
    for approvals in ({}, {"services": []}):
        made = plugins(approvals, pager=STRANGER.format(name="pager"))
        assert (made.approval_services(), made.problems) == ((), [])


def test_the_queue_is_named(plugins: Callable[..., Plugins]) -> None:
    pytest.importorskip("licet.approvals.queue")
    (one,) = plugins({"services": ["queue"]}).approval_services()
    assert (one.name, one.attended, one.waits) == ("queue", False, True)


def test_the_webhook_is_named(plugins: Callable[..., Plugins], tmp_path: Path) -> None:
    (one,) = plugins(webhook(tmp_path)).approval_services()
    assert (one.name, one.attended, one.waits) == ("webhook", True, True)


def test_what_is_not_named_is_not_imported(
    plugins: Callable[..., Plugins], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "licet.approvals.webhook.service", None)
    monkeypatch.setitem(sys.modules, "licet.approvals.queue", None)
    assert plugins({"services": ["terminal"]}).approval_services() == ()


@pytest.mark.parametrize("missing", ["jwt", "urllib3"])
def test_a_webhook_without_its_libraries_is_told(
    plugins: Callable[..., Plugins],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for name in ("licet.web", "licet.approvals.webhook.receiver", "licet.approvals.webhook.service"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(InvalidSettings) as problem:
        plugins(webhook(tmp_path)).approval_services()
    assert problem.value.message == f"the webhook needs `{missing}`, which is not installed"
    assert problem.value.advice == "install what it needs: `pip install 'licet[webhook]'`"


def test_wrong_settings_of_the_webhook_are_told_at_once(
    plugins: Callable[..., Plugins], tmp_path: Path
) -> None:
    approvals = webhook(tmp_path)
    Path(approvals["webhook"]["secret_file"]).chmod(0o644)
    with pytest.raises(InvalidSettings, match="others can read or change the key"):
        plugins(approvals).approval_services()


def test_a_strangers_service_comes_by_the_same_road(plugins: Callable[..., Plugins], tmp_path: Path) -> None:
    approvals = webhook(tmp_path) | {"services": ["pager", "webhook"]}
    made = plugins(approvals, pager=STRANGER.format(name="pager"), other=STRANGER.format(name="other"))
    assert names(made.approval_services()) == ["pager", "webhook"]


def test_an_unknown_service_names_the_known_ones(plugins: Callable[..., Plugins]) -> None:
    with pytest.raises(InvalidSettings) as problem:
        plugins({"services": ["pagr"]}, pager=STRANGER.format(name="pager")).approval_services()
    assert problem.value.message == "the approval service `pagr` is not known"
    assert problem.value.advice == (
        "known ones are `callback`, `pager`, `queue`, `terminal`, `webhook`; another needs its plugin, "
        "installed and in `enabled`"
    )


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise RuntimeError('no line')", "plugin `pager` failed: RuntimeError: no line"),
        ("raise SystemExit('bye')", "plugin `pager` failed: SystemExit: bye"),
        ("return 3", "plugin `pager` failed: TypeError: 'int' object is not iterable"),
    ],
)
def test_a_plugin_that_fails_is_a_problem_and_asks_nobody(
    plugins: Callable[..., Plugins], tmp_path: Path, body: str, why: str
) -> None:
    text = FAILING.format(body=body)
    made = plugins({"services": ["pager"]}, pager=text)
    with pytest.raises(InvalidSettings) as problem:
        made.approval_services()
    assert problem.value.message == f"the approval service `pager` can't be used: {why}"
    assert made.problems == [why]
    made = plugins(webhook(tmp_path), pager=text)  # the twin: nobody named it
    assert (names(made.approval_services()), made.problems) == (["webhook"], [why])


def test_what_is_no_service_is_refused(plugins: Callable[..., Plugins]) -> None:
    text = FAILING.format(body="return ['approve']")
    with pytest.raises(InvalidSettings, match="a plugin offers a `str`, which is no approval service"):
        plugins({"services": ["pager"]}, pager=text).approval_services()


def test_two_services_of_one_name_are_neither(plugins: Callable[..., Plugins]) -> None:
    twice = {name: STRANGER.format(name="pager") for name in ("one", "two")}
    with pytest.raises(InvalidSettings, match="the approval service `pager` is offered 2 times"):
        plugins({"services": ["pager"]}, **twice).approval_services()


def test_what_a_program_brings_is_asked_too() -> None:
    terminal, callback = Service("terminal"), Service("callback")
    own = cast("list[ApprovalService]", [terminal, callback])
    pager = Service("pager")
    for services, asked in (
        (None, ["terminal", "callback"]),
        (["pager"], ["pager", "terminal", "callback"]),
        (["callback", "pager"], ["callback", "pager", "terminal"]),
    ):
        settings = Settings.model_validate({"approvals": {"services": services}})
        assert names(chosen(settings, own, [pager])) == asked


def test_where_an_administrator_lists_them_there_are_no_others() -> None:
    own = cast("list[ApprovalService]", [Service("terminal"), Service("callback")])
    pager = Service("pager")
    for services, asked in (
        ([], []),
        (["pager"], ["pager"]),
        (["terminal", "pager"], ["terminal", "pager"]),
        (["callback"], ["callback"]),
    ):
        assert names(chosen(fixed({"services": services}), own, [pager])) == asked
    assert names(chosen(fixed({"services": ["terminal", "callback"]}), [], [])) == []
    with pytest.raises(InvalidSettings, match="`ghost` is not known"):
        chosen(fixed({"services": ["ghost"]}), own, [pager])
