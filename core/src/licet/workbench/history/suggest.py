"""The narrowest lines of a policy that would have let recorded runs through, as a change of its text.

Rules this module keeps:

- a line names what was seen and nothing wider; a directory only in place of several files that were seen in
  it, and never one around anything that is denied, asked about or sealed;
- no line is suggested that lets no run through, and none that another line makes needless;
- what is suggested was tried: the text was read back, says the same but for these lines, and the runs were
  decided again under it;
- nothing is written: whoever asks gets a text and its difference.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from licet import paths
from licet.errors import InvalidPolicy, Position
from licet.policy import Pattern, PolicyStack
from licet.policy.document import PolicyDocument, build
from licet.policy.patterns import parse
from licet.policy.rule import Rule
from licet.policy.yaml import load
from licet.request import Action, Intent
from licet.rules import Rules
from licet.select import Candidate, Offer
from licet.workbench.history.recorded import NotReplayable, RecordedRun
from licet.workbench.history.replay import Replayer, nearest
from licet.workbench.history.tally import Tally
from licet.workbench.history.wants import Forbidden, Want, Wants, wants_of
from licet.workbench.yamltext import NotEditable, with_allowed

MOST_CASES = 10_000
"""How many different runs are tried again under what is suggested."""

DIRECTORY_AFTER = 5
"""From how many files of one directory on the directory is suggested in their place."""

_MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """A run that wanted a line: how that is known, and where in its code, if that is known."""

    log: str
    run_id: str
    how: str
    line: int | None


@dataclass(slots=True)
class Line:
    """One entry for `allow`: how often it was wanted, by which runs, and how many files it stands for."""

    intent: Intent
    entry: str
    count: int = 0
    files: int = 0
    reasons: list[Reason] = field(default_factory=list)

    @property
    def opens(self) -> str:
        """What it opens, in words."""
        target = self.intent.target
        if self.files:
            seen = f", of which {self.files} files were seen"
            return f"{_VERBS[self.intent.action]} `{target}` and everything in it{seen}"
        return f"{_VERBS[self.intent.action]} `{target}`" if target else _VERBS[self.intent.action]


_VERBS: dict[Action, str] = {
    "read": "reading",
    "write": "writing",
    "network": "connections to",
    "shell": "starting any program",
    "tool": "calling, with whatever arguments no rule objects to,",
    "run": "running",
}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Lines that would let runs through, and what stands against the others.

    `text` is the policy with the lines, None where there are none or they could not be put in; `problem` says
    why. `passing` runs would pass with them, `unrunnable` of these no backend here could run. `forbidden` are
    things that no line can allow, with who forbids them, `hidden` intents whose targets no record knows.
    """

    file: str
    lines: tuple[Line, ...]
    before: str
    text: str | None
    problem: str | None
    passing: int
    unrunnable: Tally
    forbidden: Tally
    hidden: Tally
    left_out: Tally

    def diff(self, name: str) -> str:
        """A unified diff of the policy file `name`; empty where there is none."""
        if self.text is None or self.text == self.before:
            return ""
        old, new = (text.splitlines(keepends=True) for text in (self.before, self.text))
        lines = difflib.unified_diff(old, new, name, name)
        return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}\n" for line in lines)


_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(slots=True)
class _Case:
    run: RecordedRun
    found: Wants
    count: int = 1


class Suggester:
    """Gathers what runs wanted under `stack`; `text` is that of its root, `offers` are the backends here."""

    def __init__(
        self,
        stack: PolicyStack,
        offers: Sequence[Offer],
        text: str | None,
        *,
        directory_after: int = DIRECTORY_AFTER,
    ) -> None:
        self._stack = stack
        self._offers = offers
        self._text = text
        self._directory_after = directory_after
        self._replayer = Replayer(stack, offers, learning=False)
        self._cases: dict[object, _Case] = {}
        self._wanted: dict[Intent, Line] = {}
        self._forbidden, self._hidden, self._left_out = Tally(), Tally(), Tally()

    def add(self, run: RecordedRun) -> None:
        """Note what one run wanted and did not get."""
        try:
            found = wants_of(run, self._replayer)
        except NotReplayable as problem:
            self._left_out.add(str(problem))
            return
        for one in found.forbidden:
            self._forbidden.add(_told(one))
        if found.wants or found.hidden:
            self._keep(run, found)

    def _keep(self, run: RecordedRun, found: Wants) -> None:
        key = (self._replayer.shape(run), tuple(run.calls), tuple(run.accesses))
        if (case := self._cases.get(key)) is not None:
            case.count += 1
        elif len(self._cases) < MOST_CASES:
            self._cases[key] = _Case(run, found)
        else:
            self._left_out.add(f"there are more than {MOST_CASES} different runs")
            return
        for want in found.wants:
            self._note(run, want)

    def _note(self, run: RecordedRun, want: Want) -> None:
        intent = _bare(want.intent)
        if (entry := self._entry(intent)) is None:
            self._forbidden.add(f"`{intent}`: no entry can spell it")
            return
        line = self._wanted.setdefault(intent, Line(intent, entry))
        line.count += 1
        reason = Reason(run.log, run.run_id, want.how, want.intent.line)
        if len(line.reasons) < _MOST_REASONS:
            line.reasons.append(reason)

    def _entry(self, intent: Intent) -> str | None:
        return _entry(intent, Path(self._stack.root.file).parent)

    def finish(self) -> Suggestion:
        """Choose the lines, put them into the text, and try them."""
        lines = list(self._chosen())
        trial = self._try(lines)
        for what, count in trial.objections.top():
            self._forbidden.add(what, count)
        while trial.useless:
            lines = [line for line in lines if line.intent not in trial.useless]
            trial = self._try(lines)
        for case in trial.stopped:
            for intent in case.found.hidden:
                self._hidden.add(f"`{intent}`", case.count)
        text, problem = self._text_with(lines)
        return Suggestion(
            file=self._stack.root.file,
            lines=tuple(lines),
            before=self._text or "",
            text=text,
            problem=problem,
            passing=sum(case.count for case in trial.passing),
            unrunnable=trial.unrunnable,
            forbidden=self._forbidden,
            hidden=self._hidden,
            left_out=self._left_out,
        )

    def _chosen(self) -> Iterator[Line]:
        """The lines that no other makes needless, files of one directory together where there are many."""
        lines = [*self._directories(), *self._wanted.values()]
        patterns = {id(line): _pattern(line.intent) for line in lines}
        kept: list[Line] = []
        for line in sorted(lines, key=lambda one: (one.intent.action, len(one.intent.target or ""))):
            covering = (one for one in kept if patterns[id(one)].shadows(patterns[id(line)]))
            if (cover := next(covering, None)) is None:
                kept.append(line)
            elif cover.files == 0:
                cover.count += line.count
        yield from sorted(kept, key=lambda one: (one.intent.action, one.intent.target or ""))

    def _directories(self) -> Iterator[Line]:
        """Directories in which enough files were wanted, each with all that was said for its files."""
        groups: dict[tuple[Action, str], list[Line]] = {}
        for intent, line in self._wanted.items():
            if intent.action in ("read", "write") and intent.target:
                groups.setdefault((intent.action, intent.target.rpartition("/")[0]), []).append(line)
        for (action, directory), lines in groups.items():
            intent = Intent(action, directory)
            if len(lines) < self._directory_after or not directory or not self._may_widen(intent):
                continue
            if (entry := self._entry(intent)) is not None:
                reasons = [reason for line in lines for reason in line.reasons][:_MOST_REASONS]
                yield Line(intent, entry, sum(line.count for line in lines), len(lines), reasons)

    def _may_widen(self, intent: Intent) -> bool:
        """Whether nobody said anything of anything in a directory."""
        target = intent.target or ""
        if any(paths.contains(target, seal) for seal in self._stack.sealed):
            return False
        documents = self._stack.documents
        parts: list[PolicyDocument | Rule] = [*documents, *(rule for d in documents for rule in d.rules)]
        said = (e for part in parts for e in (*part.deny, *part.ask) if e.action == intent.action)
        if any(entry.names_workdir or entry.touches(target) for entry in said):
            return False
        vote = Rules.of(self._stack, target).vote(intent)
        return vote.effect == "deny" and vote.omitted

    def _try(self, lines: Sequence[Line]) -> _Trial:
        trial = _Trial()
        stack = _with(self._stack, [_pattern(line.intent) for line in lines])
        replayer = Replayer(stack, self._offers, learning=False)
        serving: set[Intent] = set()
        for case in self._cases.values():
            left = wants_of(case.run, replayer)
            if left.wants or left.hidden or left.forbidden != case.found.forbidden:
                trial.stopped.append(case)
                for one in set(left.forbidden) - set(case.found.forbidden):
                    trial.objections.add(_told(one), case.count)
                continue
            trial.passing.append(case)
            serving |= {_bare(want.intent) for want in case.found.wants}
            prepared = replayer.request(case.run)
            if prepared.selection.chosen is None:
                trial.unrunnable.add(_lacking(nearest(case.run, prepared.selection)), case.count)
        trial.useless = {line.intent for line in lines if not any(_covers(line, one) for one in serving)}
        return trial

    def _text_with(self, lines: Sequence[Line]) -> tuple[str | None, str | None]:
        """The text of the policy with `lines`, or why there is none."""
        if not lines:
            return None, None
        if self._text is None:
            return (
                None,
                f"`{self._stack.root.file}` is no file of yours: extend it in one, and add the lines there",
            )
        mark = "\ufeff" if self._text.startswith("\ufeff") else ""
        try:
            text = mark + with_allowed(self._text.removeprefix(mark), [line.entry for line in lines])
            _check(self._stack.root.file, self._text, text, [_pattern(line.intent) for line in lines])
        except NotEditable as problem:
            return None, f"the lines can't be put into `{self._stack.root.file}`: {problem}"
        except InvalidPolicy as problem:
            return None, f"`{self._stack.root.file}` can't be read with them: {problem}"
        return text, None


@dataclass(slots=True)
class _Trial:
    """What becomes of the cases under some lines; `objections` are those that only show with the lines."""

    passing: list[_Case] = field(default_factory=list)
    stopped: list[_Case] = field(default_factory=list)
    useless: set[Intent] = field(default_factory=set)
    unrunnable: Tally = field(default_factory=Tally)
    objections: Tally = field(default_factory=Tally)


def _check(file: str, before: str, after: str, added: Sequence[Pattern]) -> None:
    """Read both texts, and compare all that they say.

    Raises:
        InvalidPolicy: the new text is no policy.
        NotEditable: it says something else than the old one with `added`.
    """
    old, new = (_document(file, text) for text in (before, after))
    said = {entry.spelled for entry in old.allow}
    expected = said | {entry.spelled for entry in added}
    same = PolicyStack(new.model_copy(update={"allow": old.allow})).digest == PolicyStack(old).digest
    if not same or {entry.spelled for entry in new.allow} != expected:
        raise NotEditable("read back, it would say something else")


def _document(file: str, text: str) -> PolicyDocument:
    return build(load(text.encode(), file), file=file, base=Path(file).parent)


def _with(stack: PolicyStack, added: Sequence[Pattern]) -> PolicyStack:
    """`stack` with more entries in the `allow` of its root."""
    root = stack.root.model_copy(update={"allow": (*stack.root.allow, *added)})
    return replace(stack, root=root)


def _bare(intent: Intent) -> Intent:
    return Intent(intent.action, intent.target)


def _covers(line: Line, intent: Intent) -> bool:
    return _pattern(line.intent).shadows(_pattern(intent))


def _pattern(intent: Intent) -> Pattern:
    where = Position("suggested")
    return Pattern("allow", intent.action, intent.target, (), str(intent), where)


def _entry(intent: Intent, directory: Path) -> str | None:
    """How a policy in `directory` writes an intent, paths inside of it relative; None if no entry says it."""
    target = intent.target
    base = directory.as_posix()
    if intent.action in ("read", "write") and target is not None and paths.contains(base, target):
        below = target[len(base.rstrip("/")) :].lstrip("/")
        target = f"./{below}" if below else "."
    entry = f"{intent.action} {target}" if target is not None else intent.action
    try:
        said = parse(entry, "allow", base=base, where=Position("suggested"))
    except ValueError:
        return None
    return entry if (said.target, said.excepts) == (intent.target, ()) else None


def _lacking(one: Candidate | None) -> str:
    if one is None:
        return "no backend is installed and enabled"
    return f"`{one.name}` lacks {', '.join(dict.fromkeys(blocker.what for blocker in one.blockers))}"


def _told(one: Forbidden) -> str:
    place = f" (line {one.line})" if one.line else ""
    return f"{one.what}{place}: {one.by}"
