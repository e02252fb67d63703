"""Conditions as texts in CEL, the Common Expression Language, by the library `cel-expr-python`.

Rules this module keeps:

- a text is read and type-checked when the policy is loaded, against the fields of the request and, in a rule
  about tools, against every tool it matches; it is evaluated in another form (see `tree`), in which what is
  missing is an error and not an empty text or a zero;
- only a boolean is an answer; an error of any kind is unknown, with the reason;
- the cost is bounded: the length of a text and of a pattern, what is bound (see `values`), what a text
  makes of that (see `growth`), and the 10,000 steps of the library;
- the library is imported when a policy has a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from licet.errors import InvalidPolicy
from licet.policy.cel import messages, tree
from licet.policy.cel.bindings import Bound, bind
from licet.policy.cel.growth import refuse_growth
from licet.policy.cel.schema import environment
from licet.policy.cel.values import decimal_class, order
from licet.policy.during import OF_THE_HOST, zone_advice
from licet.policy.engine import TextPlace
from licet.policy.facts import Facts
from licet.policy.signatures import Signature
from licet.policy.truth import Truth, certain

MAX_LENGTH = 4_096
MAX_PATTERN = 200

_OFFSET = re.compile(r"[+-]?(?:0[0-9]|1[0-4]):[0-5][0-9]", re.ASCII)
_ZONED = (
    "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours",
    "getMinutes", "getSeconds", "getMilliseconds",
)  # fmt: skip


@lru_cache(maxsize=1)
def engine() -> CelEngine:
    """The engine of this process.

    Raises:
        InvalidPolicy: the library is not installed.
    """
    try:
        return CelEngine(import_module("cel_expr_python.cel"))
    except ImportError:
        raise InvalidPolicy(
            "conditions in texts need a library that is not installed",
            advice="pip install 'licet[conditions]', or write the condition as a mapping",
        ) from None


class CelEngine:
    """Compiles texts, and keeps what all of them share."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._reads: frozenset[str] = frozenset()
        number = library.Type("licet.Decimal")
        plain = [library.Type.INT, library.Type.UINT, library.Type.DOUBLE]
        pairs = [(a, b) for a in (number, *plain) for b in (number, *plain)]
        overloads = [
            library.Overload(f"order_{index}", library.Type.INT, list(pair), impl=order)
            for index, pair in enumerate(pairs)
        ]
        self._evaluation = library.NewEnv(
            decimal_class().DESCRIPTOR.file.pool,
            variables={},
            functions=[library.FunctionDecl(tree.ORDER, overloads)],
        )
        self._literals = _Literals(library)

    def compile(self, text: str, place: TextPlace, *, calls: bool) -> CelText:
        """Read and type-check a text; with `calls`, it may read the call of a tool beside the request.

        Raises:
            InvalidPolicy: it is no condition; with the place inside the text.
        """
        if len(text) > MAX_LENGTH:
            raise InvalidPolicy(
                f"the condition has {len(text)} characters, and at most {MAX_LENGTH} are read",
                where=place.start,
                advice="split it into a list of shorter texts",
            )
        parsed, reads = self._check(text, place, calls, None, "")
        reads_args = _reads_args(reads)
        form = tree.write(parsed)
        compiled = CelText(self, text, place, reads_args or "tool" in reads, reads_args, form)
        if not reads_args:
            compiled.programs[None] = self._program(form, reads)
        return compiled

    def program(self, text: str, place: TextPlace, signature: Signature, tool: str) -> Any:
        """What evaluates a text that reads the arguments of a tool.

        Raises:
            InvalidPolicy: the text does not fit; with the place inside it.
        """
        parsed, reads = self._check(text, place, True, signature, tool)
        return self._program(tree.write(parsed), reads)

    def _program(self, form: bytes, reads: set[str]) -> Any:
        self._reads = self._reads | reads  # a new value, since another thread may be reading the old one
        return self._evaluation.deserialize(form)

    def together(self, texts: Sequence[CelText]) -> Callable[[Facts], None]:
        """What asks several texts that read no call in one step, and keeps the answers with the facts.

        Where one of them has no answer, none is kept: each is then asked alone, and says why.
        """
        program = self._evaluation.deserialize(tree.joined([text.form for text in texts]))

        def ask(facts: Facts) -> None:
            activation, _ = self.activation(facts, None)
            try:
                answers = [one.value() for one in program.eval(activation).value()]
            except Exception:  # an error is a value here, which is no list
                return
            if all(answer is True or answer is False for answer in answers):
                found = zip(texts, answers, strict=True)
                facts.derived.update((text, (certain(answer), "")) for text, answer in found)

        return ask

    def _check(
        self, text: str, place: TextPlace, calls: bool, signature: Signature | None, tool: str
    ) -> tuple[Any, set[str]]:
        """The tree of a text in its form for evaluation, and the variables it reads."""
        checker = environment(calls, signature)
        try:
            checked = checker.compile(text)
        except (RuntimeError, TypeError) as problem:
            line, column, message, advice = messages.compile_error(str(problem), signature, calls)
            raise InvalidPolicy(_of(tool) + message, where=place.at(line, column), advice=advice) from None
        offsets: Mapping[int, int] = {}
        try:
            whole = tree.read(checked.serialize())
            offsets = tree.places(whole)
            tree.constants(whole, self._literals.checks)
            kinds = tree.kinds(whole)
            refuse_growth(whole, kinds)
            flattening = tree.Flattening(signature, kinds)
            flattening.run(whole)
        except tree.Refused as problem:
            where = place.at(*_line_column(text, offsets.get(problem.node, 0)))
            raise InvalidPolicy(_of(tool) + problem.message, where=where, advice=problem.advice) from None
        kind = checked.return_type().name()
        later = signature is None and _reads_args(flattening.reads)  # then `args` has no type yet
        if kind != "BOOL" and not (kind == "DYN" and later):
            raise InvalidPolicy(
                f"{_of(tool)}a condition is true or false, found the type {messages.type_name(kind)}",
                where=place.start,
                advice="compare it with something",
            )
        return whole, flattening.reads

    def activation(self, facts: Facts, signature: Signature | None) -> tuple[Any, Bound]:
        """The variables of these facts, made once for all texts."""
        wanted = self._reads
        key = ("cel", signature, len(wanted))
        found: tuple[Any, Bound] | None = facts.derived.get(key)
        if found is None:
            bound = bind(facts, signature, wanted)
            found = facts.derived[key] = (self._evaluation.Activation(dict(bound.variables)), bound)
        return found


def _reads_args(reads: set[str]) -> bool:
    return any(name.removeprefix("has ").startswith("args.") for name in reads)


@dataclass(frozen=True, slots=True, eq=False)
class CelText:
    """A compiled text, with a program for each signature that it was checked against."""

    engine: CelEngine
    text: str
    place: TextPlace
    reads_call: bool
    reads_args: bool
    form: bytes
    programs: dict[Signature | None, Any] = field(default_factory=dict, compare=False, repr=False)

    def check(self, tool: str, signature: Signature) -> None:
        """Check it against the signature of a tool.

        Raises:
            InvalidPolicy: it does not fit; with the place inside the text.
        """
        if self.reads_args and signature not in self.programs:
            self.programs[signature] = self.engine.program(self.text, self.place, signature, tool)

    def evaluate(self, facts: Facts) -> tuple[Truth, str]:
        """Its truth, and for what is unknown, why; worked out once for the same facts."""
        found: tuple[Truth, str] | None = facts.derived.get(self)
        if found is None:
            found = facts.derived[self] = self._evaluated(facts)
        return found

    def _evaluated(self, facts: Facts) -> tuple[Truth, str]:
        signature: Signature | None = None
        if self.reads_call and facts.call is None:
            return Truth.unknown, "it is not known before a tool is called"
        if self.reads_args and facts.call is not None:
            signature = facts.call.signature
            if signature is None:
                return Truth.unknown, f"nobody declared what the tool `{facts.call.tool}` takes"
            try:
                self.check(facts.call.tool, signature)
            except InvalidPolicy as problem:
                return Truth.unknown, problem.message
        activation, bound = self.engine.activation(facts, signature)
        try:
            answer = self.programs[signature].eval(activation).value()
        except Exception as problem:  # the library raises several kinds, and none may pass for an answer
            return Truth.unknown, messages.unknown(str(problem), bound.unreadable, self.text)
        if answer is True or answer is False:
            return certain(answer), ""
        return Truth.unknown, messages.unknown(str(answer), bound.unreadable, self.text)


class _Literals:
    """What is wrong with a literal that is given to a function, asked of the library itself."""

    def __init__(self, library: Any) -> None:
        texts = library.NewEnv(variables={"text": library.Type.STRING, "now": library.Type.TIMESTAMP})
        self._programs = {
            name: texts.compile(written)
            for name, written in {
                "matches": "''.matches(text)",
                "timestamp": "timestamp(text) == timestamp(text)",
                "duration": "duration(text) == duration(text)",
                "zone": "timestamp('2026-01-01T00:00:00Z').getHours(text) >= 0",
            }.items()
        }
        self.checks: Mapping[str, Callable[[str], str | None]] = {
            "matches": self._pattern,
            "timestamp": lambda text: self._plain("timestamp", text, "such as `2026-03-01T00:00:00Z`"),
            "duration": lambda text: self._plain("duration", text, "such as `90m` or `36h`"),
            **dict.fromkeys(_ZONED, self._zone),
        }

    def _holds(self, name: str, text: str) -> bool:
        if "\0" in text:
            return False
        try:
            return isinstance(self._programs[name].eval(data={"text": text}).value(), bool)
        except Exception:  # an error of the library is the answer no
            return False

    def _pattern(self, text: str) -> str | None:
        if len(text) > MAX_PATTERN:
            return f"a pattern has at most {MAX_PATTERN} characters"
        return None if self._holds("matches", text) else f"`{text}` is no regular expression (RE2)"

    def _plain(self, name: str, text: str, example: str) -> str | None:
        return None if self._holds(name, text) else f"`{text}` is no {name} {example}"

    def _zone(self, text: str) -> str | None:
        may_be_one = _OFFSET.fullmatch(text) if ":" in text else text not in OF_THE_HOST
        if may_be_one and self._holds("zone", text):
            return None
        return f"unknown time zone `{text}`; {zone_advice(text)}"


def _of(tool: str) -> str:
    return f"for the tool `{tool}`: " if tool else ""


def _line_column(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
