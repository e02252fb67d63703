"""The pages of the packs tell what the files say, and the examples of the language page can be loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from licet.policy import PolicyDocument, PolicySource, load_stack
from licet.policy.problems import HIDDEN
from licet_policies.plugin import licet_policy_packs

LANGUAGE = Path(__file__).parents[2] / "docs" / "reference" / "policy.md"
PAGES = LANGUAGE.parent / "packs"
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


def blocks(text: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)


def test_the_policy_on_the_language_page_loads(tmp_path: Path) -> None:
    whole, *_ = blocks(LANGUAGE.read_text("utf-8"))
    (tmp_path / "org.yaml").write_text("licet: 1\n")
    (tmp_path / "agents.yaml").write_text(whole)
    source = PolicySource(PACKS, Path("/no-such-directory/policy.d"))
    stack = load_stack(tmp_path / "agents.yaml", source)
    assert stack.warnings == ()
    assert [rule.id for rule in stack.root.rules] == ["big-refund", "weekend", "free-plan"]
    assert set(PolicyDocument.model_fields) - HIDDEN - {"mode"} <= {
        "licet",
        *re.findall(r"^([a-z]+):", whole, re.MULTILINE),
    }, "a key of the language that the page does not show"


def test_the_rule_and_the_window_on_the_language_page_load(tmp_path: Path) -> None:
    rule, window = (
        block for block in blocks(LANGUAGE.read_text("utf-8")) if block.startswith(("rules:", "during:"))
    )
    file = tmp_path / "agents.yaml"
    file.write_text(f"licet: 1\n{rule}  - id: at-night\n    deny: run\n    {window}")
    source = PolicySource(PACKS, Path("/no-such-directory/policy.d"))
    assert [rule.id for rule in load_stack(file, source).root.rules] == ["publish-from-main", "at-night"]
