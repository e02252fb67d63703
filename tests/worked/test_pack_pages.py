"""The pages of the packs tell what the files say, and what keeps them from running here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from licet.policy import PolicyDocument, PolicySource, load_stack
from licet_policies.plugin import licet_policy_packs

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "packs"
PACKS = licet_policy_packs()


def document(pack: str) -> PolicyDocument:
    return load_stack(f"licet:{pack}", PolicySource(PACKS, Path("/no-such-directory/policy.d"))).root


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text("utf-8")


def test_every_pack_has_a_page_and_a_line_in_the_table() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md")) == ["README", *sorted(PACKS)]
    assert [pack for pack in PACKS if f"| [`{pack}`]({pack}.md) |" not in page("README")] == []


@pytest.mark.parametrize("pack", PACKS)
def test_a_page_names_every_entry_and_says_what_is_permitted_and_demanded(pack: str) -> None:
    text = page(pack)
    entries = [entry.text for entry in document(pack).entries]
    assert [entry for entry in entries if not re.search(rf"`[^`]*{re.escape(entry)}", text)] == []
    assert "**What it permits.**" in text
    assert "**What it demands of a sandbox.**" in text


@pytest.mark.parametrize("pack", ["compute", "data", "agent"])
def test_a_page_names_the_limits_that_select_a_backend(pack: str) -> None:
    written = PACKS[pack].read_text("utf-8")
    for name in ("wall_time", "memory", "processes", "files"):
        if found := re.search(rf"^  {name}: (\S+)", written, re.MULTILINE):
            assert f"`{name}: {found[1]}`" in page(pack), name


def test_the_regulated_page_has_a_row_for_every_setting() -> None:
    found = document("regulated")
    keys = [f"sandbox.{name}" for name in found.sandbox.model_fields_set]
    keys += [f"audit.{name}" for name in found.audit.model_fields_set]
    keys += [f"screen.{name}" for name in found.screen.model_fields_set]
    keys += [
        "learn",
        "limits",
        "approval.count",
        "approval.reviewer",
        "approval.expires",
        "approval.unattended",
    ]
    keys += [f"{entry.effect}: [{entry.text}]" for entry in found.entries]
    keys += [rule.id for rule in found.rules]
    rows = [line.split("|") for line in page("regulated").splitlines() if line.startswith("| ")]
    first = "\n".join(cells[1] for cells in rows)
    assert [key for key in keys if key not in first] == []
    for cells in rows[2:]:  # below the head, every row serves a clause that is named
        assert re.search(r"\b(A[CU]|SC|SI|CA|CM)-\d", cells[3]), cells[1]


def test_the_regulated_page_claims_no_compliance() -> None:
    text = page("regulated")
    assert "no file makes an organisation compliant" in text
    assert re.search(r"(?i)\b(fulfils|satisfies|ensures compliance|certif|complies)", text) is None
    for requirement in ("filesystem_read_deny", "handle_isolation", "process_isolation", "orphan_cleanup"):
        assert f"`{requirement}`" in text
