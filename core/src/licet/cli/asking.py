"""The terminal as an approval service: the document is shown, and whoever sits there answers.

Rules this module keeps:

- it asks only where a person can see and type: stdin and stderr are terminals, in the foreground, and stdin
  is not what the code is made of or reads;
- only what is typed after the question counts; a yes counts only after all of the document was shown;
- it reads what the terminal hands out as lines, while the loop goes on; cancelled, it lets go at once;
- who answers is the user of the operating system.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING

import click

from licet.approvals import counting
from licet.approvals.clocks import now
from licet.approvals.forms import OPEN, Answer, ApprovalRequest, Person, Reviewer, StoredApproval
from licet.cli import approving, inputs
from licet.cli.terminal import colour, say, warn
from licet.errors import AnswerRefused, ApprovalClosed
from licet.output import bounded

if TYPE_CHECKING:
    from licet.approvals.services import ApprovalService
    from licet.settings import Settings

NAME = "terminal"

Lines = asyncio.Queue[str | None]
"""Lines that were typed, and None at their end."""

_MOST = 64 << 10  # bytes of one answer
_REASON = 500  # characters
_TICK_S = 1.0
_HELP = "type y to approve, n to deny (a reason may follow), or d for all details"
_UNREAD = "type d first: a yes needs all of it shown, and the card leaves out {}"


def os_person(reviewer: Reviewer) -> Person:
    """The user of the operating system, as somebody who answers."""
    return Person(inputs.os_user().id, inputs.os_groups(), reviewer=reviewer, asserted_by="os")


def at_terminal() -> bool:
    """Whether a person can see a question here and type an answer."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    if sys.platform == "win32":
        return True
    try:  # a job in the background would be stopped by reading
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


def services(
    settings: Settings, *, stdin_is_taken: bool, before: Callable[[], None]
) -> list[ApprovalService]:
    """Whom a command asks by itself: the terminal, where `settings` name it or leave it open whom to ask.

    `before` is called ahead of each question.
    """
    named = settings.approvals.services
    usable = (named is None or NAME in named) and not stdin_is_taken
    return [TerminalService(before)] if usable else []


def refuse_in_vain(stored: StoredApproval, answer: Answer) -> None:
    """Ask nobody whose answer would not count.

    Raises:
        AnswerRefused: this one would not, and why.
        ApprovalClosed: none would any more.
    """
    if stored.state not in OPEN:
        _, heading = approving.HEADINGS[stored.state]
        raise ApprovalClosed(
            f"the approval `{stored.request.id}` {heading}", advice="run the code again, which asks anew"
        )
    if (objection := counting.objection(stored.request, stored.given, answer, now())) is not None:
        raise AnswerRefused(str(objection), advice=objection.advice)


class TerminalService:
    """Asks whoever sits at the terminal of this process; `before` is called ahead of each question."""

    name = NAME
    waits = False

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self._before = before

    @property
    def attended(self) -> bool:
        """Whether somebody may sit there."""
        return at_terminal()

    async def ask(self, request: ApprovalRequest) -> AsyncIterator[Answer]:
        """Show the document and take an answer; end at the end of input, or where the time is over."""
        self._before()
        paper = approving.paper(request, whole=False)
        click.echo(paper.sheet.text(), nl=False, err=True, color=colour())
        person = os_person("human")
        answer = Answer(person, True, request.shown, NAME)
        objection = counting.objection(request, (), answer, now())
        if objection is not None:
            warn(f"nobody here can approve this: {objection}")
            return
        said = await _Question(request, person, paper.left_out).answer()
        if said is not None:
            yield said

    async def collect(self, request: ApprovalRequest) -> tuple[Answer, ...]:
        """Nothing: nobody answers here but while being asked."""
        return ()

    async def close(self) -> None:
        """Hold nothing."""


class _Question:
    """One question at the terminal, until it is answered."""

    def __init__(self, request: ApprovalRequest, person: Person, left_out: list[str]) -> None:
        self._request = request
        self._person = person
        self._left_out = left_out

    async def answer(self) -> Answer | None:
        """The answer; None where there is none."""
        ticking = asyncio.create_task(self._tick())
        try:
            with _lines() as lines:
                self._prompt(lines)
                async with asyncio.timeout(max(approving.seconds_left(self._request), 0)):
                    while (line := await lines.get()) is not None:
                        if (said := self._understood(line)) is not None:
                            return said
                        self._prompt(lines)
                click.echo(err=True)  # the end of what is typed ends no line
        except TimeoutError:
            warn("the time to answer is over")
        except asyncio.CancelledError:
            click.echo(err=True)  # what comes next begins a line of its own
            raise
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
        return None

    def _understood(self, line: str) -> Answer | None:
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "d" | "details":
                paper = approving.paper(self._request, whole=True, details=True)
                click.echo(paper.sheet.text(), nl=False, err=True, color=colour())
                self._left_out = []
            case "y" | "yes" if self._left_out:
                say(_UNREAD.format(", ".join(self._left_out)))
            case "y" | "yes":
                return self._said(True, reason)
            case "n" | "no":
                return self._said(False, reason)
            case _:
                say(_HELP)
        return None

    def _said(self, approve: bool, reason: str) -> Answer:
        text = bounded(reason.strip(), _REASON)
        return Answer(self._person, approve, self._request.shown, NAME, reason=text)

    def _prompt(self, lines: Lines) -> None:
        """Ask; what was typed before does not answer it."""
        forget_typed()
        while not lines.empty():
            lines.get_nowait()
        click.echo(self._question(), nl=False, err=True, color=colour())

    def _question(self) -> str:
        keys = "n/d" if self._left_out else "y/n/d"
        return f"approve? [{keys}] {approving.left(self._request):>14}: "

    async def _tick(self) -> None:
        """Keep the time in the question right, beside whatever is being typed."""
        while colour() is None and os.environ.get("TERM") != "dumb":
            await asyncio.sleep(_TICK_S)
            click.echo(f"\x1b7\r{self._question()}\x1b8", nl=False, err=True)


@contextlib.contextmanager
def _lines() -> Iterator[Lines]:
    """Lines that are typed from now on, and None at their end."""
    found: Lines = asyncio.Queue()
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        _CONSOLE.give(lambda line: loop.call_soon_threadsafe(found.put_nowait, line))
        try:
            yield found
        finally:
            _CONSOLE.give(None)
        return
    descriptor = sys.stdin.fileno()

    def hear() -> None:
        # a line that was there when the loop looked may have been forgotten since
        if select.select([descriptor], [], [], 0)[0]:
            found.put_nowait(_line(descriptor))

    loop.add_reader(descriptor, hear)
    try:
        yield found
    finally:
        loop.remove_reader(descriptor)


def forget_typed() -> None:
    """Drop what was typed before a question was there to read."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    import termios

    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class _Console:
    """A terminal whose loops can't wait for it: one thread reads on, and drops what nobody asked for."""

    def __init__(self) -> None:
        self._hear: Callable[[str | None], object] | None = None
        self._begun = False

    def give(self, hear: Callable[[str | None], object] | None) -> None:
        """Let `hear` have the lines from now on; None for nobody."""
        self._hear = hear
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._read, name="licet-terminal", daemon=True).start()

    def _read(self) -> None:
        line: str | None = ""
        while line is not None:
            line = _line(0)
            if (hear := self._hear) is not None:
                with contextlib.suppress(RuntimeError):  # its loop is closed
                    hear(line)


_CONSOLE = _Console()


def _line(descriptor: int) -> str | None:
    try:
        data = os.read(descriptor, _MOST)
    except OSError:  # the terminal is gone
        return None
    return data.decode("utf-8", "replace") if data else None
