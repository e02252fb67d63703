"""Attacks on texts: cost that no step counter sees, zones of the host, and what is not known."""

import time
from datetime import UTC, datetime

import pytest
from licet.errors import InvalidPolicy
from licet.policy.cel import CelText, engine
from licet.policy.cel.growth import MOST_NESTED
from licet.policy.engine import TextPlace
from licet.policy.facts import CallFacts, Facts, RequestFacts
from licet.policy.signatures import Parameter, Signature, Type
from licet.policy.truth import Truth
from licet.request import Intent, Limits, Subject

TAKES = Signature(
    (
        Parameter("text", Type("string")),
        Parameter("items", Type("list")),
        Parameter("amount", Type("decimal")),
        Parameter("any", Type("any")),
    )
)


def compiled(text: str) -> CelText:
    found = engine().compile(text, TextPlace("p.yaml", 1, 1), calls=True)
    found.check("t", TAKES)
    return found


def truth(text: str, /, **args: object) -> Truth:
    request = RequestFacts(
        workdir="/w",
        inputs=("a", "b"),
        limits=Limits(memory=1 << 20),
        intents=tuple(Intent("read", f"/d/{number}") for number in range(900)),
    )
    facts = Facts(
        Subject(id="ann"), datetime(2026, 3, 4, tzinfo=UTC), request, call=CallFacts("t", args, TAKES)
    )
    return compiled(text).evaluate(facts)[0]


@pytest.mark.parametrize(
    "text",
    [
        "[args.text]" + ".map(v, v + v)" * 17 + ".exists(v, v == 'y')",
        "['x']" + ".map(v, v + v)" * 22 + ".exists(v, v == 'y')",
        "[args.items]" + ".map(v, v + v)" * 17 + ".exists(v, size(v) == 3)",
        "[1]" + ".map(v, [v, v])" * 20 + " == [1]" + ".map(v, [v, v])" * 20,
        "[[1]]" + ".map(v, {'a': v, 'b': v})" * 18 + " == []",
        "request.inputs.map(i, request.intents.map(j, request.intents.map(k, k.path + j.path + i)))"
        ".size() > 0",
        "[args.text]"
        + "".join(f".exists(v{n}, [v{n} + v{n}]" for n in range(5))
        + ".exists(w, w == 'x')"
        + ")" * 5,
        "[args.items].exists(v, request.intents.all(i, v == v) && request.intents.all(i, v == v) &&"
        " request.intents.all(i, v == v) && request.intents.all(i, v == v) && request.intents.all(i, v == v)"
        " && request.intents.all(i, v == v))",
    ],
)
def test_a_text_that_grows_without_steps_is_refused_at_load_and_at_once(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidPolicy) as problem:
        compiled(text)
    assert time.monotonic() - began < 5
    assert problem.value.message.split("`: ")[-1] in (
        "it may make too large a value",
        "there is too much to compare",
        "it is nested too deep",
    )


def test_macros_are_nested_as_deep_as_anybody_needs() -> None:
    def nested(levels: int) -> str:
        heads = "".join(f"request.inputs.exists(v{n}, " for n in range(levels))
        return heads + "v0 == 'a'" + ")" * levels

    assert truth(nested(MOST_NESTED)) is Truth.true
    with pytest.raises(InvalidPolicy, match="nested deeper than 6 levels"):
        compiled(nested(MOST_NESTED + 1))


@pytest.mark.parametrize(
    "text",
    [
        "request.intents.exists(i, i.path.startsWith(request.workdir + '/x'))",
        "request.inputs.map(i, i + '.csv').exists(i, i in request.tools)",
        "request.intents.filter(i, i.action == 'read').map(i, i.path).exists(p, p == '/d/7')",
        "request.inputs.map(i, request.tools.map(j, i + j)).size() == 2",
        "request.intents.all(i, i.path in ['/d/1', '/d/2', '/d/3'] || i.path.matches('^/d/[0-9]+$'))",
        "'a' + args.text + 'b' + args.text == args.text + args.text + args.text",
        "args.items + args.items + [1] == args.items",
    ],
)
def test_the_twin_what_people_write_passes(text: str) -> None:
    assert truth(text, text="y" * 16_000, items=[1] * 900) in (Truth.true, Truth.false)


@pytest.mark.parametrize("zone", ["localtime", "posixrules", "+25:99", "+15:00", "-99:00", "Local", "02"])
def test_a_zone_that_is_none_or_that_of_the_host_is_refused(zone: str) -> None:
    with pytest.raises(InvalidPolicy, match="unknown time zone"):
        compiled(f"now.getHours('{zone}') > 3")


@pytest.mark.parametrize(("zone", "hour"), [("UTC", 0), ("+02:00", 2), ("-11:30", 12), ("Europe/Berlin", 1)])
def test_the_twin_a_zone_of_everywhere_is_read(zone: str, hour: int) -> None:
    assert truth(f"now.getHours('{zone}') == {hour}") is Truth.true


@pytest.mark.parametrize(
    "text",
    [
        "subject.tenant == 'acme'",
        "subject.tenant != 'acme'",
        "!(subject.tenant == 'acme')",
        "!(!(subject.tenant == 'acme'))",
        "!(subject.tenant == 'acme' || false)",
        "subject.tenant == 'acme' ? false : false",
        "subject.tenant in []",
        "{'a': subject.tenant}.a == 'x'",
        "[subject.tenant] == []",
        "request.inputs.all(i, i == subject.tenant)",
        "request.inputs.exists_one(i, i == subject.tenant)",
        "size(request.inputs.filter(i, i == subject.tenant)) == 0",
        "subject.properties.plan == 'pro'",
        "subject.properties['plan'] != 'pro'",
        "request.metadata.ticket == ''",
        "request.limits.cpu_time > 1",
        "args.text == 'a'",
        "args.text.contains('')",
        "1 / 0 == 1",
        "request.inputs[9] == 'x'",
        "args.any > 1",
    ],
)
@pytest.mark.parametrize("frame", ["{}", "!({})", "({}) || false", "({}) && true", "false || !({})"])
def test_what_is_not_known_is_never_certain(text: str, frame: str) -> None:
    assert truth(frame.format(text)) is Truth.unknown
