"""The report: what its page says of a log, and that nothing of a log can become part of the page itself."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from licet.cli.app import execute
from licet.record import Record
from licet.state import StateDirectory

from .report_logs import HOSTILE, decision, entries, hostile, ordinary, request, result

Append = Callable[..., list[Record]]
Report = Callable[..., "Page"]
_NAMES_A_RECORD_DECIDES = re.compile(r"[0-9]+")


class Page(HTMLParser):
    """What a browser would make of a page, as far as tests ask: elements, attributes, texts, cards."""

    def __init__(self, html: str, exit_code: int) -> None:
        super().__init__()
        self.html, self.exit_code = html, exit_code
        self.tags: Counter[str] = Counter()
        self.attributes: set[tuple[str, str]] = set()
        self.values: set[tuple[str, str, str]] = set()
        self.cards: list[str] = []
        self._card: list[str] = []
        self.chunks: list[str] = []
        self.comments = 0
        self._where = ""
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return _read(self.chunks)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            self.attributes.add((tag, name))
            self.values.add((tag, name, _NAMES_A_RECORD_DECIDES.sub("0", value or "")))
        if tag in ("article", "style"):
            self._where, self._card = tag, []

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self.cards.append(_read(self._card))
        if tag == self._where:
            self._where = ""

    def handle_data(self, data: str) -> None:
        if self._where != "style":
            self.chunks.append(data)
            self._card.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments += 1


def _read(chunks: list[str]) -> str:
    """Texts as somebody reads them out: one blank between words, none before a mark."""
    return re.sub(r" (?=[,.;:])", "", " ".join(" ".join(chunks).split()))


@pytest.fixture
def report(state: StateDirectory, tmp_path: Path) -> Report:
    """Write a report of the log, and read the page."""

    def make(*options: str) -> Page:
        path = tmp_path / f"report-{len(list(tmp_path.glob('*.html')))}.html"
        code = execute(["audit", "report", "--state", str(state.path), "-o", str(path), *options])
        assert path.stat().st_mode & 0o777 == 0o600
        return Page(path.read_text("utf-8"), code)

    return make


def test_a_page_says_first_what_is_proved_then_which_runs_there_are(append: Append, report: Report) -> None:
    records = append(*ordinary())
    page = report("--title", "Third quarter", "--for", "Acme's auditors")
    assert page.exit_code == 0
    said = page.text
    order = ["Third quarter", "for Acme's auditors", "The log is proven", "What this does not prove"]
    order += [
        "Key and checkpoint",
        "Tree size",
        "Population",
        "Figures",
        "Runs",
        "Words",
        "Check it yourself",
    ]
    places = [said.index(part) for part in order]
    assert places == sorted(places)
    assert "This report shows 7 of 7 selected runs, out of 7 in the log." in said
    assert f"Tree size {records[-1].seq + 1} records" in said
    assert "2026-11-01 00:00:00 UTC to 2026-11-01 06:00:00 UTC" in said


def test_denials_and_uncertain_ends_come_first(append: Append, report: Report) -> None:
    append(*ordinary())
    page = report()
    assert [card.split(" 2026")[0] for card in page.cards] == [
        "attacks for evidence 1 refuted ?",
        "allowed unfinished ada for eve",
        "allowed exited 2 denied while it ran ada for eve",
        "denied policy denied bob for eve",
        "allowed timeout ada for eve",
        "asks exited ada for eve",
        "allowed exited ada for eve",
    ]
    assert "Denials and uncertain ends: 4 of 4" in page.text
    assert "All other runs: 3 of 3" in page.text


def test_a_limit_leaves_out_what_needs_no_look_first_and_says_so(append: Append, report: Report) -> None:
    append(*ordinary())
    page = report("--limit", "5")
    assert len(page.cards) == 5
    assert "This report shows 5 of 7 selected runs, out of 7 in the log." in page.text
    assert "2 selected runs have no card here; every figure counts them." in page.text
    assert "Denials and uncertain ends: 4 of 4" in page.text
    assert "All other runs: 1 of 3" in page.text


def test_a_selection_is_told_in_words(append: Append, report: Report) -> None:
    append(*ordinary())
    page = report("--decision", "deny", "--subject", "bob", "--since", "2026-11-01")
    assert len(page.cards) == 1
    assert "Selection decision deny, and subject bob, and since 2026-11-01 00:00:00 UTC" in page.text
    assert "This report shows 1 of 1 selected runs, out of 7 in the log." in page.text


def test_a_card_tells_the_whole_account(append: Append, report: Report) -> None:
    records = append(*ordinary())
    cards = report().cards
    [called] = [card for card in cards if "denied while it ran" in card]
    for told in (
        "on behalf of eve", "tenant acme", "asserted by caller",
        "12 bytes hmac-sha256:00ff", "wall time 2 s", "memory 128 MiB",
        "Policy acme.yaml@12ab sha256:12ab", "acme.yaml:7 keep-out", "the rule `keep-out` makes it allow",
        "keep-out at acme.yaml:7:3, truth true", "unless group: staff is false: in no group",
        "Contract sha256:c0ffee", "Opened: read /data, tool refund",
        "memory limit enforced enforced 128 MiB rlimit read back",
        "network deny enforced enforced – unknown",
        "Offered besides, and not asked for: not enforced: separate kernel",
        "Evidence relied upon sha256:beef",
        "other was not chosen: timeout: asked enforced, offered planned", "Refuted here: timeout",
        "refund hmac-sha256:22 denied refunds are deny refused 1.0 s",
        "no record of its end", "read /etc/passwd denied", "read /data/a allowed",
        "peak memory 1 MiB", "5 bytes",
    ):  # fmt: skip
        assert told in called, told
    mine = [record for record in records if record.entry.run_id == f"01RUN{3:021d}"]
    assert re.findall(r"\b[0-9a-f]{64}\b", called) == [record.leaf for record in mine]
    assert f"licet audit prove {mine[0].seq}," in called


def test_what_was_not_observed_is_unknown_also_where_there_is_no_result(
    append: Append, report: Report
) -> None:
    append(*ordinary())
    [open_run] = [card for card in report().cards if "unfinished" in card]
    assert "it began, and no record says how it ended" in open_run
    assert open_run.count("enforced enforced – unknown") == 4


def test_evidence_names_attacks_their_twins_and_receipts(append: Append, report: Report) -> None:
    append(*ordinary())
    probe = report().cards[0]
    assert "timeout/spin held killed ran sha256:01" in probe
    assert "memory_limit/grow leaked grew grew sha256:02" in probe


def test_kept_content_is_shown_only_when_asked_for_and_told_when_erased(
    append: Append, report: Report, state: StateDirectory
) -> None:
    [first, *_] = append(*ordinary())
    hidden = report()
    assert "kept & shown" not in hidden.html
    assert "kept, not shown in this report" in hidden.text
    shown = report("--content")
    assert "<canary-tag>kept & shown</canary-tag> line two" in shown.text
    assert "canary-tag" not in shown.tags
    committed = first.kept["stdout"]
    (state.path / "content" / committed[:2] / committed).unlink()
    assert "erased, or not what was committed to" in report("--content").text


def test_figures_are_tables_of_numbers(append: Append, report: Report) -> None:
    append(*ordinary())
    said = report().text
    for told in (
        "allowed 4 asks 1 denied 1",
        "exited 3 runs 3 42.9 %", "policy denied 1 runs 1 14.3 %", "timeout 1 runs 1", "unfinished 1 runs 1",
        "read /data 1 runs 1", "read /etc/passwd 1 runs 1", "tool refund 1 runs 1",
        "up to a minute 1 runs 1",
    ):  # fmt: skip
        assert told in said, told


def test_where_nobody_was_asked_the_page_says_none_recorded(append: Append, report: Report) -> None:
    append(ordinary()[0])
    said = report().text
    assert "How long approvals took None recorded." in said
    assert "What was denied most None recorded." in said


def test_an_empty_selection_draws_nothing_and_says_so(append: Append, report: Report) -> None:
    append(*ordinary())
    page = report("--subject", "nobody")
    assert page.cards == []
    assert "This report shows 0 of 0 selected runs, out of 7 in the log." in page.text
    assert "No run was selected, so there is nothing to draw." in page.text
    assert "First and last – to –" in page.text


def test_what_the_log_says_of_itself_is_told_losses_first(append: Append, report: Report) -> None:
    from licet_audit.chain import log_entry

    append(ordinary()[0], [log_entry("gap", missing=3)])
    said = report().text
    assert said.index("gap 3 records could not be written") < said.index("opened log")


def test_a_tampered_log_is_red_at_the_top_and_still_reported(
    append: Append, report: Report, state: StateDirectory
) -> None:
    append(*ordinary())
    [segment] = (state.path / "log").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"id":"bob"', b'"id":"eve"'))
    page = report()
    assert page.exit_code == 1
    assert page.text.index("The log was tampered with. Do not rely on what follows.") < page.text.index(
        "Population"
    )
    assert ("div", "class", "verdict bad") in page.values
    assert "✗ FAILED" in page.text
    assert len(page.cards) == 7


def test_a_line_that_is_no_record_leaves_the_claims_and_says_why_there_are_no_runs(
    append: Append, report: Report, state: StateDirectory
) -> None:
    append(*ordinary())
    [segment] = (state.path / "log").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"id":"bob"', b'"id": bob'))
    page = report()
    assert page.exit_code == 1
    assert page.cards == []
    assert "The runs of this log can't be read, so none is shown:" in page.text
    assert "This report shows" not in page.text and "None among" not in page.text


def test_a_run_that_began_after_the_check_is_counted_apart() -> None:
    from licet_audit.index import RunRow
    from licet_audit.report.population import gather

    def row(number: int, seq: int) -> RunRow:
        rest = dict.fromkeys(
            ("subject", "subject_type", "tenant", "on_behalf_of", "backend", "isolation", "policy")
        )
        return RunRow(
            f"r{number}", seq, seq, f"2026-11-0{number}T00:00:00Z", effect="allow", termination="exited",
            executed=True, duration=None, rules=(), hosts=(), tools=(), denied=(), approvals=(),
            approvers=(), approval_state=None, place=seq, **rest,
        )  # fmt: skip

    counted = gather([row(3, 20), row(2, 10), row(1, 9)], total=3, limit=5, end=10, heard=lambda: None)
    assert (counted.total, counted.selected, counted.later, counted.shown) == (3, 1, 2, 1)
    assert counted.first == counted.last == "2026-11-01T00:00:00Z"


def test_no_field_of_a_record_becomes_markup(append: Append, report: Report, state: StateDirectory) -> None:
    append(*ordinary())
    tame = report("--content")
    append(*hostile())
    page = report("--content", "--title", HOSTILE["style"], "--for", HOSTILE["attribute"])
    known = tame.attributes | {("span", "class")}
    assert page.tags.keys() <= tame.tags.keys() | {"strong", "em"}
    assert page.attributes <= known
    assert {(tag, name) for tag, name in page.attributes if name.startswith("on") or name == "style"} == set()
    links = {value for tag, name, value in page.values if name in ("href", "src")}
    assert links == {"#population", "#figures", "#runs", "#words", "#check"}
    odd = {value for value in page.values - tame.values if "canary" in str(value) or "evil" in str(value)}
    assert odd == set()
    assert page.comments == 0
    for text in ("<canary-tag", "<script", "<img", "<base"):
        assert text not in page.html


@pytest.mark.parametrize("name", HOSTILE)
def test_every_hostile_text_is_shown_harmlessly_in_the_card_of_its_run(
    name: str, append: Append, report: Report
) -> None:
    append(hostile()[list(HOSTILE).index(name)])
    page = report("--content")
    [card] = page.cards
    assert (
        re.search(
            "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", page.html
        )
        is None
    )
    start = re.split(r"[\x00-\x1f\u2028-\u202e\u0300-\u036f]", " ".join(HOSTILE[name].split())[:40])[0]
    assert start.strip() in card
    assert max(map(len, page.chunks)) < 64 * 1024 + 1000


def test_long_texts_are_cut_and_what_is_left_out_is_counted(append: Append, report: Report) -> None:
    append(hostile()[list(HOSTILE).index("long")])
    page = report()
    assert "… 98000 more characters" in page.text
    assert len(page.html) < 400_000


def test_a_name_that_may_pass_for_another_comes_with_its_code_points(append: Append, report: Report) -> None:
    story = [decision("allow"), result("exited")]
    append(entries(1, [request("аdmin"), *story]), entries(2, [request("Zoë Müller"), *story]))
    admin = next(card for card in report().cards if "аdmin" in card)
    assert "U+0430 cyrillic small letter a" in admin
    assert not any("U+" in card for card in report().cards if "Zoë" in card)


def test_the_policy_of_the_page_lets_in_its_own_style_and_nothing_else(
    append: Append, report: Report
) -> None:
    append(*ordinary())
    page = report()
    [sheet] = re.findall(r"<style>(.*?)</style>", page.html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.html)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert {"script", "link", "img", "iframe", "object", "embed"}.isdisjoint(page.tags)
    assert "url(" not in sheet and "@import" not in sheet


def test_every_class_that_a_page_filters_by_has_its_rule() -> None:
    from licet_audit.report import document, words

    labels = [*words.EFFECTS.values(), *words.ENDS.values(), words.effect("?"), words.end("?")]
    for label in labels:
        kind, key = label.style.split("-", 1)
        picker = f".runs:has(#{'d' if kind == 'e' else 'c'}-{key}:checked) .run:not(.{label.style})"
        assert picker in document.style(), picker


def test_a_report_never_replaces_a_file_nor_lies_in_the_log(
    append: Append, state: StateDirectory, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    append(*ordinary())
    there = tmp_path / "there.html"
    there.write_text("mine")
    for path in (there, tmp_path, state.path / "log" / "report.html"):
        assert execute(["audit", "report", "--state", str(state.path), "-o", str(path)]) == 2
    assert there.read_text() == "mine"
    assert "lies in the log's own directory" in capfd.readouterr().err
    assert (
        execute(["audit", "report", "--state", str(state.path), "-o", str(tmp_path / "no" / "r.html")]) == 8
    )
    assert list(tmp_path.glob(".*.html*")) == []


def test_json_says_what_was_written(
    append: Append, state: StateDirectory, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    records = append(*ordinary())
    path = tmp_path / "r.html"
    assert (
        execute(["audit", "report", "--state", str(state.path), "-o", str(path), "--limit", "2", "--json"])
        == 0
    )
    assert json.loads(capfd.readouterr().out) == {
        "path": str(path), "status": "proven", "records": records[-1].seq + 1,
        "runs": 7, "selected": 7, "shown": 2, "unread": None,
    }  # fmt: skip
