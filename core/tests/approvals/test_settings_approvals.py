"""Settings of approvals: who is asked, whose signature counts, and that the administrator decides alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from licet.errors import InvalidSettings
from licet.settings import Approvals, Settings, load_settings, under_administrator

WHOLE = """
[approvals]
services = ["queue", "webhook"]

[approvals.webhook]
url = "https://desk.example/approvals"
secret_file = "/etc/licet/webhook.secret"
deadline = "2m"
retries = 1

[[approvals.issuers]]
issuer = "desk"
key = "/etc/licet/desk.pem"
groups = ["finance"]
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def managed(tmp_path: Path) -> Path:
    return tmp_path / "managed.toml"


def load(state: Path, managed: Path, text: str) -> Settings:
    (state / "config.toml").write_text(text)
    return load_settings(state, {}, managed=managed)


def test_all_of_it_is_read(state: Path, managed: Path) -> None:
    found = load(state, managed, WHOLE).approvals
    assert found.services == ("queue", "webhook")
    assert found.webhook is not None
    assert (found.webhook.url, found.webhook.secret_file) == (
        "https://desk.example/approvals",
        Path("/etc/licet/webhook.secret"),
    )
    assert (found.webhook.deadline, found.webhook.retries) == (120.0, 1)
    (issuer,) = found.issuers
    assert (issuer.issuer, issuer.key, issuer.groups) == ("desk", "/etc/licet/desk.pem", ("finance",))


def test_nothing_said_leaves_it_to_the_program(state: Path, managed: Path) -> None:
    assert load_settings(state, {}, managed=managed).approvals == Approvals()
    assert Approvals().services is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("approvals = 3", "`approvals`: input should be a valid dictionary or instance of Approvals"),
        ("[approvals]\nservice = []", "`approvals.service`: extra inputs are not permitted"),
        (
            '[approvals]\nservices = ["queue", "queue"]',
            "`approvals.services`: `queue` is there more than once",
        ),
        ('[approvals]\nservices = "queue"', "`approvals.services`: input should be a valid tuple"),
        ('[approvals.webhook]\nurl = "https://a/"', "`approvals.webhook.secret_file`: field required"),
        ('[approvals.webhook]\nsecret = "whsec_x"', "`approvals.webhook.url`: field required"),
        (
            '[[approvals.issuers]]\nissuer = "a b"\nkey = "x"',
            "`approvals.issuers.0.issuer`: `a b` names no issuer",
        ),
        ('[[approvals.issuers]]\nissuer = "a"', "`approvals.issuers.0.key`: field required"),
    ],
)
def test_what_is_wrong_is_named(state: Path, managed: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidSettings) as problem:
        load(state, managed, text)
    assert str(problem.value).startswith(f"{state / 'config.toml'}: {message}")


HOOK = {"secret_file": "/s"}


@pytest.mark.parametrize(
    ("webhook", "message"),
    [
        ({"url": "http://desk.example/"}, "`http://` is only for this machine itself"),
        ({"url": "http://127.0.0.1.desk.example/"}, "`http://` is only for this machine itself"),
        ({"url": "http://localhost.example/"}, "`http://` is only for this machine itself"),
        ({"url": "http://10.0.0.1/"}, "`http://` is only for this machine itself"),
        ({"url": "https://user:pass@desk.example/"}, "is no `http://` or `https://` address"),
        ({"url": "https://desk.example/?a=b"}, "is no `http://` or `https://` address"),
        ({"url": "ftp://desk.example/"}, "is no `http://` or `https://` address"),
        ({"url": "https://a/", "secret_file": "s"}, "`s` is no absolute path"),
        ({"url": "https://a/", "deadline": -1}, "bounds nothing"),
        ({"url": "https://a/", "deadline": "1 year"}, "has the unknown unit `year`"),
        ({"url": "https://a/", "deadline": False}, "expected a duration"),
        ({"url": "https://a/", "retries": -1}, "input should be greater than or equal to 0"),
        ({"url": "https://a/", "retries": True}, "input should be a valid integer"),
    ],
)
def test_a_webhook_that_can_not_be_trusted_is_refused(webhook: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="(?i)" + message.replace("(", r"\(")):
        Settings.model_validate({"approvals": {"webhook": HOOK | webhook}})


@pytest.mark.parametrize(
    "url", ["https://desk.example/a", "http://127.0.0.1:8917/a", "http://localhost/", "http://[::1]:80/"]
)
def test_a_webhook_here_or_over_tls_is_fine(url: str) -> None:
    for deadline, seconds in ((0, 0.0), ("0s", 0.0), ("5m", 300.0), (1.5, 1.5)):
        found = Settings.model_validate({"approvals": {"webhook": HOOK | {"url": url, "deadline": deadline}}})
        assert found.approvals.webhook is not None
        assert (found.approvals.webhook.url, found.approvals.webhook.deadline) == (url, seconds)


def test_the_administrators_approvals_are_the_only_ones(state: Path, managed: Path) -> None:
    assert not load(state, managed, WHOLE).services_fixed
    managed.write_text('[approvals]\nservices = ["queue"]')
    found = load(state, managed, WHOLE)
    assert found.approvals == Approvals(services=("queue",))  # neither the webhook nor its issuers
    assert found.services_fixed
    of_program = Settings.model_validate({"approvals": {"services": ["webhook"]}})
    found = under_administrator(of_program, managed=managed)
    assert (found.approvals, found.services_fixed) == (Approvals(services=("queue",)), True)


def test_an_administrator_who_lists_no_services_says_whose_signature_counts(
    state: Path, managed: Path
) -> None:
    managed.write_text('[[approvals.issuers]]\nissuer = "corp"\nkey = "/k"')
    found = load(state, managed, WHOLE)
    assert (found.approvals.services, found.approvals.webhook, found.services_fixed) == (None, None, False)
    assert [one.issuer for one in found.approvals.issuers] == ["corp"]


def test_an_administrator_may_have_nobody_asked(state: Path, managed: Path) -> None:
    managed.write_text("[approvals]\nservices = []")
    found = load(state, managed, WHOLE)
    assert (found.approvals.services, found.services_fixed) == ((), True)


def test_settings_copied_keep_who_decided(state: Path, managed: Path) -> None:
    managed.write_text('enabled = ["approvals"]\n[approvals]\nservices = []')
    found = load(state, managed, "").model_copy(update={"pass_environment": ()})
    assert (found.services_fixed, found.demanded) == (True, ("approvals",))
