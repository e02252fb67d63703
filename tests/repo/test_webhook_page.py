"""The page on the webhook names the settings, services and claims that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from licet.approvals import tokens
from licet.approvals.choosing import BROUGHT, SHIPPED
from licet.approvals.webhook import receiver
from licet.settings import Issuer, Settings, Webhook

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "approve-by-webhook.md").read_text("utf-8")


def rows(heading: str) -> list[str]:
    """The first column of the table below a heading."""
    table = TEXT.split(heading, 1)[1].split("|---|", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)


def test_the_settings_are_settings_and_all_of_them() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    said = tomllib.loads(block)
    approvals = Settings.model_validate(said).approvals
    assert approvals.webhook is not None
    assert set(said["approvals"]["webhook"]) == set(Webhook.model_fields)
    assert set(said["approvals"]["issuers"][0]) == set(Issuer.model_fields)
    defaults = Webhook(url=approvals.webhook.url, secret_file=approvals.webhook.secret_file)
    assert approvals.webhook == defaults


def test_the_services_are_listed() -> None:
    assert {name.strip("`") for name in rows("| `services` |")} == {*SHIPPED, *BROUGHT, "another name"}


def test_the_claims_are_listed() -> None:
    listed = re.findall(r"`(\w+)`", " ".join(rows("| claim |")))
    assert set(listed) == tokens._Claims.model_fields.keys() - {"nbf"}
    assert f"`{tokens.AUDIENCE}`" in TEXT
    assert f"{tokens.MOST_REASON} characters" in TEXT


def test_the_request_is_of_the_type_that_is_sent() -> None:
    assert f'{{"type":"{receiver.TYPE}","timestamp":' in TEXT
