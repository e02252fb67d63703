"""The report in a real browser: nothing runs, nothing is fetched, all can be read on a screen and on paper.

Every check has a twin: a page that does what it must not is found by the same check.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from licet.cli.app import execute
from licet.record import Record
from licet.state import StateDirectory

from .report_logs import HOSTILE, hostile, ordinary

Append = Callable[..., list[Record]]
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"
MEASURE = Path(__file__).with_name("report_measure.js")
FETCHED = re.compile(r"https?://[^\s\"]*example[^\s\"]*")  # what the browser asks its maker is not the page's


@dataclass(frozen=True)
class Seen:
    """What a browser made of a page: its document afterwards, what it complained of, what it asked for."""

    dom: str
    complaints: list[str]
    requests: set[str]

    @property
    def title(self) -> str:
        return unescape(re.findall(r"<title>(.*?)</title>", self.dom, re.DOTALL)[0])


class Browser:
    """Runs Chromium without a window, with a profile of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder

    def look(self, page: Path, *options: str) -> Seen:
        netlog = self._folder / "netlog.json"
        options = (f"--log-net-log={netlog}", "--net-log-capture-mode=Everything", "--dump-dom", *options)
        done = self._run(page, options)
        complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return Seen(done.stdout, complaints, _requests(netlog))

    def picture(self, page: Path, *options: str) -> tuple[int, int, int]:
        """The colour of a page's first point."""
        path = self._folder / "picture.png"
        self._run(page, ("--window-size=900,1200", f"--screenshot={path}", *options))
        return _first_point(path.read_bytes())

    def pages(self, page: Path) -> int:
        """How many sheets of paper a page takes."""
        path = self._folder / "paper.pdf"
        self._run(page, ("--no-pdf-header-footer", f"--print-to-pdf={path}"))
        return len(re.findall(rb"/Type\s*/Page\b(?!s)", path.read_bytes()))

    def _run(self, page: Path, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [self._program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND"]
        command += [f"--user-data-dir={self._folder / 'profile'}", "--enable-logging=stderr"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # its own sandbox does not work as root
        done = subprocess.run(
            [*command, *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
        assert "Page load failed" not in done.stderr
        return done


def _requests(netlog: Path) -> set[str]:
    """Every address of an example that the browser named to its network stack."""
    content = json.loads(netlog.read_text("utf-8"))
    texts = (json.dumps(event.get("params", {})) for event in content["events"])
    return {found for text in texts for found in FETCHED.findall(text)}


def _first_point(png: bytes) -> tuple[int, int, int]:
    data, place = b"", 8
    while place < len(png):
        [size] = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + size]
        place += 12 + size
    line = zlib.decompress(data)  # the first point of the first line is the same under every filter
    return line[1], line[2], line[3]


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("LICET_BROWSER") == "required":
            pytest.fail("there is no Chromium here, and LICET_BROWSER says that there must be one")
        pytest.skip("needs Chromium (`apt-get install chromium`)")
    folder = tmp_path / "browser"
    folder.mkdir()
    return Browser(program, folder)


@pytest.fixture
def report(append: Append, state: StateDirectory, tmp_path: Path) -> Callable[..., Path]:
    def make(runs: list[Any], *options: str) -> Path:
        append(*runs)
        path = tmp_path / "report.html"
        execute(["audit", "report", "--state", str(state.path), "-o", str(path), "--content", *options])
        return path

    return make


def test_a_hostile_log_runs_fetches_and_breaks_nothing(browser: Browser, report: Callable[..., Path]) -> None:
    title = HOSTILE["script"] + HOSTILE["style"]
    page = report(hostile(), "--title", title)
    seen = browser.look(page)
    assert seen.complaints == []
    assert seen.requests == set()
    assert seen.title == title  # a script would have set another one
    assert "<canary-tag" not in seen.dom
    assert seen.dom.count("<article ") == len(HOSTILE)


def test_the_same_checks_find_a_page_that_is_not_careful(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "careless.html"
    page.write_text(
        "<!doctype html><title>quiet</title><canary-tag></canary-tag>"
        "<img src='http://canary.example.net/x.png'><script>document.title='canary-ran'</script>"
        "<script>console.error('complaint')</script>"
    )
    seen = browser.look(page)
    assert any("complaint" in line for line in seen.complaints)
    assert any("canary.example.net" in request for request in seen.requests)
    assert seen.title == "canary-ran"
    assert "<canary-tag" in seen.dom


def test_the_policy_of_the_page_stops_what_would_get_into_it(
    browser: Browser, report: Callable[..., Path], tmp_path: Path
) -> None:
    page = report(ordinary())
    broken = tmp_path / "broken.html"
    planted = "<script>document.title='canary-ran'</script><img src='http://canary.example.net/x.png'>"
    broken.write_text(page.read_text("utf-8").replace("<main>", f"<main>{planted}", 1), "utf-8")
    seen = browser.look(broken)
    assert seen.title == "What ran, and what was denied"
    assert not any("canary" in request for request in seen.requests)
    assert len([line for line in seen.complaints if "Content Security Policy" in line]) == 2


def test_a_style_that_was_changed_is_not_used(
    browser: Browser, report: Callable[..., Path], tmp_path: Path
) -> None:
    page = report(ordinary())
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text("utf-8").replace("--paper: #ffffff", "--paper: #fffffe", 1), "utf-8")
    assert any(
        "style" in line and "Content Security Policy" in line for line in browser.look(broken).complaints
    )


def test_a_page_is_light_or_dark_as_the_reader_prefers(browser: Browser, report: Callable[..., Path]) -> None:
    page = report(ordinary())
    assert browser.picture(page, LIGHT) == (255, 255, 255)
    assert browser.picture(page, DARK) == (20, 23, 27)


@pytest.mark.parametrize("scheme", [LIGHT, DARK])
@pytest.mark.parametrize("make", [ordinary, hostile])
def test_a_page_can_be_read_at_every_width_in_both_schemes(
    make: Callable[[], Any], scheme: str, browser: Browser, report: Callable[..., Path], tmp_path: Path
) -> None:
    found = _measure(browser, report(make()), tmp_path, scheme)
    assert found["overflow"] == {"360": 0, "794": 0, "1280": 0}, found["wide"]
    assert found["faint"] == []
    assert found["texts"] > 100


def test_the_measure_finds_what_is_too_faint_and_too_wide(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<!doctype html><p style='color:#999'>faint</p><p style='width:500px'>wide</p>")
    found = _measure(browser, page, tmp_path, LIGHT)
    assert found["overflow"]["360"] > 0
    assert [one["text"] for one in found["faint"]] == ["faint"]


def test_choices_show_the_cards_that_fit_without_a_script(
    browser: Browser, report: Callable[..., Path], tmp_path: Path
) -> None:
    found = _measure(browser, report(ordinary()), tmp_path, LIGHT)
    assert found["choices"] == {
        "d-any": 7, "d-allow": 4, "d-ask": 1, "d-deny": 1, "d-probe": 1,
        "c-any": 7, "c-exited": 3, "c-timeout": 1, "c-policy-denied": 1, "c-unfinished": 1, "c-other": 1,
        "d-deny & c-exited": 0,
    }  # fmt: skip


def test_paper_has_every_account_unless_the_reader_wants_none(
    browser: Browser, report: Callable[..., Path], tmp_path: Path
) -> None:
    page = report(ordinary())
    without = tmp_path / "without.html"
    text = page.read_text("utf-8")
    without.write_text(
        text.replace('id="a-click" checked', 'id="a-click"').replace('id="a-none"', 'id="a-none" checked'),
        "utf-8",
    )
    assert browser.pages(page) >= browser.pages(without) + 5


def test_a_hostile_log_can_be_printed(browser: Browser, report: Callable[..., Path]) -> None:
    assert browser.pages(report(hostile())) > 2 * len(HOSTILE)


def _measure(browser: Browser, page: Path, folder: Path, scheme: str) -> dict[str, Any]:
    """What a script outside of the page finds in it, in frames of three widths."""
    frames = "".join(
        f'<iframe width="{width}" height="600" src="{page.as_uri()}"></iframe>' for width in (360, 794, 1280)
    )
    outside = folder / "outside.html"
    outside.write_text(
        f"<!doctype html><body>{frames}<pre id=found></pre><script>{MEASURE.read_text()}</script>"
    )
    seen = browser.look(outside, scheme, "--disable-web-security", "--allow-file-access-from-files")
    found: dict[str, Any] = json.loads(
        unescape(re.findall(r"<pre id=\"found\">(.*?)</pre>", seen.dom, re.DOTALL)[0])
    )
    return found
