"""Finding plugins by their entry points, and importing only those that are enabled.

Rules this module keeps:

- plugins are listed from package metadata; nothing of a plugin that is not enabled is imported;
- a plugin that fails to import, and a hook that fails, is reported and left out, never fatal; but one that
  the administrator enables may be a decider or a scrubber, so while it can't do all it is for, its vote is
  to deny;
- what a scrubber could not look through is withheld; its failure is told by type alone, since the message
  may hold what it was looking at;
- two backends of one name are both refused, since nobody could say which one a policy meant; so are two
  packs of one name;
- an approval service that settings name has to be there; else nobody is asked, and nothing that asks runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from licet import hookspecs
from licet.approvals.choosing import chosen
from licet.approvals.services import ApprovalService
from licet.backend import Backend
from licet.decide import Ballot, Decision
from licet.errors import AuditUnavailable, InvalidSettings, LicetError
from licet.output import bounded
from licet.record import AnchorFailure, AnchorReceipt, AuditLog, AuditReader, Checkpoint
from licet.request import NormalizedRequest
from licet.scrubbing import Channel, Find, Secret, withheld
from licet.settings import Settings
from licet.state import StateDirectory

if TYPE_CHECKING:
    import click

GROUP = "licet"

_KIND = re.compile(r"[a-z0-9_]{1,60}")

T = TypeVar("T")


class Plugins:
    """The enabled plugins.

    `problems` says in words what was left out, and why; `installed` names all that there are, from metadata
    alone, and `disabled` those of them that are not enabled, and were not imported.
    """

    def __init__(self, settings: Settings, *, found: Sequence[EntryPoint] | None = None) -> None:
        self.problems: list[str] = []
        self._settings = settings
        self._manager = pluggy.PluginManager("licet")
        self._manager.add_hookspecs(hookspecs)
        listed = list(entry_points(group=GROUP)) if found is None else list(found)
        self.installed = frozenset(point.name for point in listed)
        self.disabled = tuple(sorted(self.installed - {*settings.enabled}))
        self._register({name: self._pick(name, listed) for name in settings.enabled})
        self._lacks = self._lacking()
        self._missing = tuple(self._denials())
        self._finders = tuple(map(_finder, self._manager.hook.licet_scrub.get_hookimpls()))

    def _pick(self, name: str, listed: Sequence[EntryPoint]) -> EntryPoint | None:
        matching = {point.value: point for point in listed if point.name == name}
        if len(matching) == 1:
            return next(iter(matching.values()))
        found = f"{len(matching)} plugins of this name are installed" if matching else "it is not installed"
        self.problems.append(f"plugin `{name}` is enabled, but {found}")
        return None

    def _register(self, points: Mapping[str, EntryPoint | None]) -> None:
        for name, point in points.items():
            if point is None:
                continue
            try:
                self._manager.register(point.load(), name=name)
            except (Exception, SystemExit) as problem:  # a stranger's module can fail in any way
                if self._manager.has_plugin(name):  # half registered
                    self._manager.unregister(name=name)
                self.problems.append(f"plugin `{name}` can't be used: {type(problem).__name__}: {problem}")

    def _lacking(self) -> dict[str, str]:
        """What plugins work without, by their names; one that can't say lacks what nobody knows."""
        lacks = {}
        for implementation in self._manager.hook.licet_lacks.get_hookimpls():
            name = str(implementation.plugin_name)
            try:
                said: Any = implementation.function()
                answer = {str(what): str(brings) for what, brings in said.items()}
            except (Exception, SystemExit) as problem:  # a stranger's module can fail in any way
                self.problems.append(f"plugin `{name}` failed: {type(problem).__name__}: {problem}")
                answer = {"known state": ""}
            for what, brings in answer.items():
                advice = f": `{brings}`" if brings else ""
                self.problems.append(f"plugin `{name}` works without its {what}{advice}")
            if answer:
                lacks[name] = ", ".join(f"no {what}" for what in answer)
        return lacks

    def _denials(self) -> Iterator[Ballot]:
        """A vote for each plugin that the administrator enables and that can't do all it is for."""
        for name in dict.fromkeys(self._settings.demanded):
            enabled = f"the administrator enables the plugin `{name}`"
            if not self._manager.has_plugin(name):
                yield Ballot(name, "deny", f"{enabled}, and it can't be used here")
            elif name in self._lacks:
                yield Ballot(name, "deny", f"{enabled}, and it is not whole here: {self._lacks[name]}")

    def backends(self) -> tuple[Backend, ...]:
        """All backends of all plugins, without those whose name is taken twice."""
        found = [backend for result in self._each("licet_backends", tuple) for backend in result]
        named = []
        for backend in found:
            try:
                named.append((backend.describe().name, backend))
            except Exception as problem:
                self.problems.append(f"a backend can't describe itself: {type(problem).__name__}: {problem}")
        return tuple(backend for _, backend in self._unique("backend", named))

    def packs(self) -> dict[str, Path]:
        """All policy packs by name."""
        found = [item for result in self._each("licet_policy_packs", dict) for item in result.items()]
        return dict(self._unique("policy pack", found))

    def commands(self) -> tuple[click.Command, ...]:
        """The commands of all plugins, without those whose name is taken twice."""
        found = [command for result in self._each("licet_commands", tuple) for command in result]
        return tuple(
            command for _, command in self._unique("command", [(str(one.name), one) for one in found])
        )

    def anchor(self, checkpoint: Checkpoint) -> tuple[AnchorReceipt | AnchorFailure, ...]:
        """Have a checkpoint seen by all anchors; a plugin that fails is one failure, and spoils no other."""
        return tuple(
            answer
            for implementation in self._manager.hook.licet_anchor.get_hookimpls()
            for answer in _anchored(implementation, checkpoint, self._settings)
        )

    def approval_services(self, own: Sequence[ApprovalService] = ()) -> tuple[ApprovalService, ...]:
        """Who is asked, in the order of the settings; `own` are those that the program brings by itself.

        Raises:
            InvalidSettings: settings name a service that is not there, is there twice, or can't be used.
        """
        before = len(self.problems)
        results = self._each(
            "licet_approval_service", tuple, let_through=(InvalidSettings,), settings=self._settings
        )
        offered = [service for result in results for service in result]
        return chosen(self._settings, own, offered, problems=self.problems[before:])

    @property
    def has_deciders(self) -> bool:
        """Whether any plugin votes on decisions."""
        return bool(self._missing or self._manager.hook.licet_decide.get_hookimpls())

    def ballots(self, request: NormalizedRequest, decision: Decision) -> tuple[Ballot, ...]:
        """The vote of every decider; one that fails, or answers anything else, votes to deny."""
        votes = [
            ballot
            for implementation in self._manager.hook.licet_decide.get_hookimpls()
            for ballot in _ballots(implementation, request, decision)
        ]
        return (*self._missing, *votes)

    @property
    def scrubbers(self) -> tuple[str, ...]:
        """The names of all plugins that look for secrets, with what each lacks: `secrets (no detector)`."""
        names = (str(one.plugin_name) for one in self._manager.hook.licet_scrub.get_hookimpls())
        return tuple(f"{name} ({self._lacks[name]})" if name in self._lacks else name for name in names)

    @property
    def find(self) -> Find | None:
        """`secrets`, or None where nobody looks for any."""
        return self.secrets if self._finders else None

    def secrets(self, text: str, channel: Channel) -> tuple[Secret, ...]:
        """What any scrubber finds secret in `text`: all of it, if one fails or answers anything else."""
        found: tuple[Secret, ...] = ()
        for finder in self._finders:
            found += finder(text, channel)
        return found

    def audit_log(self, state: StateDirectory) -> AuditLog:
        """The durable log.

        Raises:
            AuditUnavailable: no plugin keeps one, or it can't be opened.
        """
        return self._one("licet_audit_log", settings=self._settings, state=state)  # type: ignore[no-any-return]

    def audit_reader(self, state: StateDirectory) -> AuditReader:
        """A reader of the log.

        Raises:
            AuditUnavailable: no plugin keeps one, or there is none to read.
        """
        return self._one("licet_audit_reader", state=state)  # type: ignore[no-any-return]

    def _one(self, hook: str, **arguments: Any) -> Any:
        try:
            found = getattr(self._manager.hook, hook)(**arguments)
        except LicetError:
            raise
        except Exception as problem:
            raise AuditUnavailable(
                f"the trail can't be opened: {type(problem).__name__}: {problem}",
                advice="see the plugin that keeps it, `licet backends list` names plugins that failed",
            ) from problem
        if found is None:
            raise AuditUnavailable(
                "no plugin keeps a trail", advice="install one: `pip install 'licet[standard]'`"
            )
        return found

    def _unique(self, kind: str, named: Sequence[tuple[str, T]]) -> list[tuple[str, T]]:
        counts = Counter(name for name, _ in named)
        for name in (name for name, count in counts.items() if count > 1):
            self.problems.append(f"{kind} `{name}` is offered {counts[name]} times, so none of them is used")
        return [(name, item) for name, item in named if counts[name] == 1]

    def _each(
        self,
        hook: str,
        kind: Callable[[Any], T],
        *,
        let_through: tuple[type[Exception], ...] = (),
        **given: Any,
    ) -> list[T]:
        """Call each implementation by itself, so that one failure spoils no other's answer."""
        results = []
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            try:
                wanted = {name: given[name] for name in implementation.argnames}
                results.append(kind(implementation.function(**wanted)))
            except let_through:
                raise
            except (Exception, SystemExit) as problem:
                name = implementation.plugin_name
                self.problems.append(f"plugin `{name}` failed: {type(problem).__name__}: {problem}")
        return results


def _ballots(implementation: Any, request: NormalizedRequest, decision: Decision) -> Sequence[Ballot]:
    name = implementation.plugin_name
    try:
        given = {"request": request, "decision": decision}
        answer = implementation.function(**{each: given[each] for each in implementation.argnames})
        ballots = tuple(answer if answer is not None else ())
        for one in ballots:
            if not _is_ballot(one):
                raise TypeError(f"it voted `{bounded(str(one), 200)}`, which is no ballot")
    except (Exception, SystemExit) as problem:  # nobody knows what it would have said
        reason = f"the decider `{name}` failed: {type(problem).__name__}: {bounded(str(problem), 500)}"
        return (Ballot(name, "deny", reason),)
    return tuple(replace(one, decider=name, reason=bounded(one.reason, 500)) for one in ballots)


def _anchored(
    implementation: Any, checkpoint: Checkpoint, settings: Settings
) -> Sequence[AnchorReceipt | AnchorFailure]:
    try:
        given = {"checkpoint": checkpoint, "settings": settings}
        answers = tuple(implementation.function(**{each: given[each] for each in implementation.argnames}))
        for one in answers:
            if not _is_anchors_answer(one):
                raise TypeError(f"it answered `{bounded(str(one), 200)}`, which is no receipt")
    except (Exception, SystemExit) as problem:  # a stranger's module can fail in any way
        reason = f"{type(problem).__name__}: {bounded(str(problem), 500)}"
        return (AnchorFailure("plugin", str(implementation.plugin_name), reason),)
    return answers


def _finder(implementation: Any) -> Callable[[str, Channel], tuple[Secret, ...]]:
    """What asks one scrubber: called for every text of every run, so all that can be is done beforehand."""
    function = implementation.function
    with_text, with_channel = "text" in implementation.argnames, "channel" in implementation.argnames

    def find(text: str, channel: Channel) -> tuple[Secret, ...]:
        given: dict[str, Any] = {"text": text} if with_text else {}
        if with_channel:
            given["channel"] = channel
        try:
            answers = tuple(function(**given))
            if not all(_is_secret_in(text, one) for one in answers):
                raise TypeError("it answered what is no secret in the text")
        except (Exception, SystemExit) as problem:  # nobody knows what it would have found
            why = f"the scrubber `{implementation.plugin_name}` failed: {type(problem).__name__}"
            return (withheld(text, why),)
        return answers

    return find


def _is_secret_in(text: str, one: Any) -> bool:
    return (
        isinstance(one, Secret)
        and isinstance(one.kind, str)
        and _KIND.fullmatch(one.kind) is not None
        and type(one.start) is type(one.end) is int
        and 0 <= one.start <= one.end <= len(text)
        and one.failure is None
    )


def _is_anchors_answer(one: Any) -> bool:
    """Whether it is an answer that can be kept and recorded."""
    if not isinstance(one, (AnchorReceipt, AnchorFailure)):
        return False
    texts: tuple[object, ...] = (one.kind, one.anchor)
    if isinstance(one, AnchorFailure):
        return all(isinstance(text, str) for text in (*texts, one.reason))
    return all(isinstance(text, str) for text in (*texts, one.time or "")) and isinstance(one.data, bytes)


def _is_ballot(one: Any) -> bool:
    """Whether it is a ballot that can be counted and recorded."""
    return (
        isinstance(one, Ballot)
        and one.effect in (None, "ask", "deny")
        and isinstance(one.reason, str)
        and (one.policy_digest is None or isinstance(one.policy_digest, str))
    )
