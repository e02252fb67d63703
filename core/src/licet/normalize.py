"""From a request as written to the one canonical spelling that every later stage sees.

Rules this module keeps:

- limits are lowered to what policy allows, and every lowering is recorded with the value asked for;
- the environment comes from policy alone; what a request asked for is recorded, not obeyed;
- paths are canonical; code is text without BOM, with `\\n` as its only line end;
- inputs are copied, so that what was digested and approved is what runs;
- a request that can't be understood raises `InvalidRequest`; one that is understood and refused carries
  violations, so that the refusal is decided, explained and recorded like any other.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from licet import paths, values
from licet.errors import InvalidRequest
from licet.policy import PolicyStack
from licet.policy.patterns import canonical_target
from licet.request import (
    ACTIONS,
    Change,
    ExecutionRequest,
    FieldDigests,
    Intent,
    Limits,
    Mount,
    NormalizedRequest,
    Subject,
    Violation,
)
from licet.tooling import is_usable, tools_of

Digest = Callable[[str, bytes], str]

MOST_SAID = 64 << 10
"""How many characters of metadata and subject a request may bring; they are recorded as they are."""

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_COMMENT_OR_BLANK = re.compile(r"^[ \t\f]*(?:#|$)")
_UTF8 = re.compile(r"utf[-_]?8(?:[-_].*)?", re.ASCII | re.IGNORECASE)


def normalize(
    request: ExecutionRequest,
    stack: PolicyStack,
    *,
    directory: str,
    host_environment: Mapping[str, str],
    digest: Digest,
    is_directory: Callable[[str], bool] = os.path.isdir,
) -> NormalizedRequest:
    """Normalise `request` under `stack`.

    `directory` is the absolute directory, its links resolved, that a missing or relative `workdir` is taken
    from; `digest` makes a keyed digest of a named part; `is_directory` says whether one is there.

    Raises:
        InvalidRequest: something in the request can't be understood; the message names it.
    """
    changes: list[Change] = []
    violations: list[Violation] = []
    workdir = _workdir(request.workdir, directory, is_directory)
    limits = limited(request.limits, stack.limits, changes)
    code = _code(request.code, limits, changes, violations)
    stdin = _stdin(request.stdin, limits, violations)
    environment = _environment(request.env, stack.environment, host_environment, changes)
    _check_form(request)
    inputs = _inputs(request.inputs)
    files = _files(request.files, workdir)
    sent, sent_stdin = _encoded(request.code), _encoded(request.stdin)
    if request.learn:
        violations += forbidden_learning(stack)
    return NormalizedRequest(
        code=code,
        code_bytes=len(sent),
        inputs=values.from_json(inputs) if request.inputs else {},
        stdin=stdin,
        stdin_bytes=len(sent_stdin),
        workdir=workdir,
        asked=request.limits,
        limits=limits,
        environment=environment,
        intents=_with_files(_intents(request.intents, workdir), files),
        tools=tools_of(request.tools),
        subject=request.subject,
        requirements=dict(request.requirements),
        metadata=dict(request.metadata),
        changes=tuple(changes),
        violations=tuple(violations),
        digests=FieldDigests(
            # what was refused for its size is not kept, but can be recognised
            code=digest("code", _bytes(code) if code else sent),
            stdin=digest("stdin", stdin or sent_stdin),
            inputs=digest("inputs", inputs.encode()),
            environment=digest("environment", _pairs(environment)),
            limits=digest("limits", _limits_spelled(limits)),
            workdir=digest("workdir", _bytes(workdir)),
            files=digest("files", _pairs({one.path: one.host for one in files})) if files else None,
        ),
        learn=request.learn,
        files=files,
    )


def lowered(request: NormalizedRequest, allowed: Limits, digest: Digest) -> NormalizedRequest:
    """`request` with its limits lowered to `allowed`, which a rule that applies to it asked for."""
    effective = request.limits.stated()
    changes: list[Change] = []
    for name, bound in allowed.stated().items():
        if name not in effective or effective[name] > bound:
            changes.append(Change(f"limits.{name}", effective.get(name), bound, "a rule allows no more"))
            effective[name] = bound
    if not changes:
        return request
    limits = Limits(**effective)
    return replace(
        request,
        limits=limits,
        changes=(*request.changes, *changes),
        violations=(*request.violations, *oversized(request, limits)),
        digests=replace(request.digests, limits=digest("limits", _limits_spelled(limits))),
    )


def oversized(request: NormalizedRequest, limits: Limits) -> Iterator[Violation]:
    """What is larger than `limits` allow, and is no violation of the request yet."""
    known = {violation.code for violation in request.violations}
    if "code_too_large" not in known and request.code_bytes > (limits.code or 0):
        yield _code_too_large(request.code_bytes, limits)
    if "stdin_too_large" not in known and request.stdin_bytes > (limits.stdin or 0):
        yield _stdin_too_large(request.stdin_bytes, limits)


def forbidden_learning(stack: PolicyStack) -> list[Violation]:
    """Why a run may not learn under `stack`: one violation a document that forbids it."""
    found = []
    if stack.root.learn is not True:
        found.append(f"`{stack.root.file}` does not say `learn: true`")
    found += [f"the bound `{b.file}` says `learn: false`" for b in stack.bounds if b.learn is False]
    advice = "run it without `--learn`, or have the owner of that file allow it"
    return [
        Violation("learning_forbidden", None, f"a run may not learn here: {why}", advice) for why in found
    ]


def limited(asked: Limits, allowed: Limits, changes: list[Change]) -> Limits:
    """The limits in force for a request that states `asked`; what is lowered is added to `changes`."""
    lower = asked.stated()
    if not lower:
        return allowed
    effective = allowed.stated()
    for name, value in lower.items():
        bound = effective.get(name)
        if bound is not None and value > bound:
            changes.append(Change(f"limits.{name}", value, bound, "policy allows no more"))
        else:
            effective[name] = value
    return Limits(**effective)


@lru_cache(maxsize=64)
def _limits_spelled(limits: Limits) -> bytes:
    return _pairs({name: repr(value) for name, value in limits.stated().items()})


def _code(raw: str | bytes, limits: Limits, changes: list[Change], violations: list[Violation]) -> str:
    allowed = limits.code or 0
    size = len(raw) if isinstance(raw, bytes) else len(_bytes(raw))
    if size > allowed:
        violations.append(_code_too_large(size, limits))
        raw = raw[:0]
    text = _decoded(raw)
    if text.startswith("\ufeff"):
        text = text[1:]
        changes.append(Change("code", "byte order mark", "none", "a byte order mark is no part of the code"))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        changes.append(Change("code", "carriage returns", "line feeds", "code has one kind of line end"))
    violations.extend(_form(text))
    return text


def _code_too_large(size: int, limits: Limits) -> Violation:
    message = f"the code has {size} bytes, the limit `code` is {limits.code or 0}"
    return Violation("code_too_large", None, message, "send less code, or ask for a higher limit `code`")


def _decoded(raw: str | bytes) -> str:
    if isinstance(raw, bytes):
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as problem:
            line = raw.count(b"\n", 0, problem.start) + 1
            raise InvalidRequest(
                f"the code is not UTF-8: byte {problem.start} in line {line}",
                advice="save it as UTF-8, without an encoding cookie",
            ) from None
    return raw


def _form(text: str) -> list[Violation]:
    found = []
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        found.append(Violation("nul_byte", line, "the code holds a NUL byte", "take it out"))
    if not text.isascii() and (odd := _SURROGATE.search(text)) is not None:
        line = text.count("\n", 0, odd.start()) + 1
        message = "the code holds half of a surrogate pair, which is no character"
        found.append(Violation("lone_surrogate", line, message, "write it as an escape, such as `\\ud800`"))
    for number, cookie in _cookies(text) if "coding" in text else ():
        if not _UTF8.fullmatch(cookie):
            message = f"the code says that its encoding is `{cookie[:40]}`, but code is UTF-8 here"
            found.append(Violation("encoding_cookie", number, message, "remove the encoding comment"))
    return found


def _cookies(text: str) -> Iterator[tuple[int, str]]:
    """Where Python looks for one: in the first line, and in the second below a comment or nothing."""
    for number, line in enumerate(text.split("\n", 2)[:2], 1):
        if (cookie := _COOKIE.match(line)) is not None:
            yield number, cookie[1]
        if not _COMMENT_OR_BLANK.match(line):
            return


def _stdin(raw: str | bytes, limits: Limits, violations: list[Violation]) -> bytes:
    data = _bytes(raw) if isinstance(raw, str) else raw
    allowed = limits.stdin or 0
    if len(data) > allowed:
        violations.append(_stdin_too_large(len(data), limits))
        return b""
    return data


def _stdin_too_large(size: int, limits: Limits) -> Violation:
    message = f"standard input has {size} bytes, the limit `stdin` is {limits.stdin or 0}"
    return Violation("stdin_too_large", None, message, "send less, or ask for a higher limit")


def _environment(
    asked: Mapping[str, str], granted: Mapping[str, str], host: Mapping[str, str], changes: list[Change]
) -> dict[str, str]:
    effective = {}
    for name, value in granted.items():
        if value != "pass":
            effective[name] = value
        elif name in host:
            effective[name] = host[name]
    for name, value in asked.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise InvalidRequest(f"`{name!r}` is no name of an environment variable, or its value holds NUL")
        if effective.get(name) != value:
            reason = "the environment comes from policy alone"
            offered = "policy's value" if name in effective else "unset"
            changes.append(Change(f"env.{name}", "a value", offered, reason))
    return effective


def _check_form(request: ExecutionRequest) -> None:
    _check_size(request)
    for name in request.inputs:
        if not is_usable(name):
            raise InvalidRequest(f"the input `{name}` has no name that code can use")
    if both := sorted(request.inputs.keys() & request.tools.keys()):
        raise InvalidRequest(
            f"`{both[0]}` is both an input and a tool", advice="give one of them another name"
        )


def _inputs(given: Mapping[str, Any]) -> str:
    """The wire form of all inputs, by name; one spelling, whatever order they came in."""
    if not given:
        return "{}"
    ordered = {name: given[name] for name in sorted(given)}
    try:
        values.check_crossing(ordered)  # all at once, since one budget holds for all of them
    except ValueError as problem:
        raise InvalidRequest(
            f"the inputs can't cross into a sandbox: {problem}",
            advice="pass numbers, texts, bytes, dates, and lists and mappings of them",
        ) from None
    return values.to_json(ordered)


def _intents(declared: tuple[Intent, ...] | None, workdir: str) -> tuple[Intent, ...] | None:
    if declared is None:
        return None
    unique = dict.fromkeys(_intent(intent, workdir) for intent in declared if intent.action != "run")
    return tuple(unique)


def _intent(intent: Intent, workdir: str) -> Intent:
    if intent.action not in ACTIONS:
        raise InvalidRequest(f"`{intent.action}` is no action", advice=f"known are {', '.join(ACTIONS)}")
    try:
        target = canonical_target(intent.action, intent.target or "", base=workdir)
    except ValueError as problem:
        raise InvalidRequest(f"the intent `{intent}` can't be understood: {problem}") from None
    return Intent(intent.action, target, "declared", when="call" if intent.action == "tool" else "start")


def _files(given: Mapping[str, str], workdir: str) -> tuple[Mount, ...]:
    return tuple(_mounted(name, path, workdir) for name, path in sorted(given.items()))


def _mounted(name: str, path: str, workdir: str) -> Mount:
    """A file of the host at the place in the working directory where the code sees it."""
    try:
        if "/" in name or name in (".", "..") or (os.name == "nt" and ("\\" in name or ":" in name)):
            raise ValueError("a name of a file holds no folder")
        return Mount(
            paths.spelled(f"{workdir.rstrip('/')}/{name}" if name else ""),
            paths.canonical(path, base=workdir),
        )
    except ValueError as problem:
        raise InvalidRequest(f"the file `{name}` can't be used: {problem}") from None


def _with_files(intents: tuple[Intent, ...] | None, files: tuple[Mount, ...]) -> tuple[Intent, ...] | None:
    """The intents, and that each file is read; whoever names files lists what is wanted."""
    if not files:
        return intents
    return tuple(dict.fromkeys((*(intents or ()), *(Intent("read", one.host) for one in files))))


def _workdir(asked: str | None, directory: str, is_directory: Callable[[str], bool]) -> str:
    try:
        if asked is None:
            return paths.spelled(directory)
        found = paths.canonical(asked, base=directory)
        if not is_directory(found):
            raise ValueError("there is no such directory, or this user can't see it")
    except ValueError as problem:
        path = directory if asked is None else asked
        raise InvalidRequest(f"`workdir` `{path}` can't be used: {problem}") from None
    return found


def _check_size(request: ExecutionRequest) -> None:
    """What goes into the record as it is has to be short."""
    size = sum(len(key) + len(value) for key, value in request.metadata.items())
    size += _length(request.subject)
    if size > MOST_SAID:
        raise InvalidRequest(
            f"`metadata` and `subject` hold {size} characters, {MOST_SAID} are allowed",
            advice="pass digests or names, and keep the rest where they lead",
        )


def _length(subject: Subject) -> int:
    try:
        return len(subject.model_dump_json())
    except ValueError:  # a lone surrogate, as in an odd user name; records escape it
        return len(repr(subject))


def _encoded(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else _bytes(content)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _pairs(content: Mapping[str, Any]) -> bytes:
    return b"".join(
        b"%d:%b%d:%b" % (len(k), k, len(v), v)
        for k, v in sorted((_bytes(key), _bytes(str(value))) for key, value in content.items())
    )
