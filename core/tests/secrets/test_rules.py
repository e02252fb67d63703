"""The rules of the detector: the quick look hides nothing from any of them, and what they find goes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from licet.scrubbing import plain, scrub
from licet.secrets import detector, shapes
from licet.secrets.plugin import licet_scrub
from samples import in_python, samples

TEXTS = 4  # for each rule

_EDGES = "drawn text rarely leaves the edges of words that its pattern asks for"
SILENT = {
    "betterleaks.aiven-auth-token": _EDGES,
    "betterleaks.azure-ad-client-secret": "its partners ask for edges of words",
    "betterleaks.azure-storage-account-key": "its partner asks for edges of words",
    "betterleaks.cloudinary-api-secret": _EDGES,
    "betterleaks.curl-auth-header": "a filter by entropy takes short keys for none",
    "betterleaks.influxdb-api-token": _EDGES,
    "veles.secrets/cloudflareapitoken": _EDGES,
}
"""Rules that find nothing in texts made from their patterns, and why; so do those for files of one name."""


def visible() -> list[dict[str, Any]]:
    rules = detector.scanner().rules
    return [rules.detail(one["id"]) for one in rules.metadata() if one["visible"]]


def texts_for(rule: dict[str, Any]) -> Iterator[str]:
    """Texts of the form that a rule looks for, each beside the other parts that the rule asks for."""
    rules = detector.scanner().rules
    others = [rules.detail(one["rule_id"])["pattern"] for one in rule["depends_on_rule"]]
    for lines in zip(*(samples(pattern, TEXTS) for pattern in (rule["pattern"], *others)), strict=True):
        yield "".join(f" {line}\n" for line in lines)


def found_in(text: str) -> dict[str, list[str]]:
    """What the rules themselves find: secrets by rule."""
    findings = [one for one in detector.scanner().scan(text.encode()) if one.secret]
    found: dict[str, list[str]] = {}
    for one in findings:
        if one.visible:
            found.setdefault(one.rule_id, []).append(one.secret)
    return found


def test_the_quick_look_hides_nothing_from_a_rule_and_what_it_finds_goes() -> None:
    """A rule that finds nothing in texts of its form is held to the quick look with all of them."""
    rules = visible()
    assert len(rules) > 400
    hidden: list[tuple[str, str]] = []
    stayed: list[tuple[str, str]] = []
    silent: set[str] = set()
    for rule in rules:
        texts = list(texts_for(rule))
        found = {text: secrets for text in texts if (secrets := found_in(text))}
        if not found:
            silent.add(rule["id"])
        hidden += [(rule["id"], text) for text in (found or texts) if plain(text)]
        for text, secrets in list(found.items())[:1]:
            left = scrub(text, "stdout", licet_scrub).text
            stayed += [(name, text) for name, each in secrets.items() for one in each if one in left]
    assert hidden == []
    assert stayed == []
    assert silent - {one["id"] for one in rules if one["path"]} == {*SILENT}


def test_the_quick_look_hides_nothing_from_a_shape() -> None:
    patterns = [(shape.kind, shape.pattern.pattern) for shape in shapes._SHAPES]
    patterns += [("authorization", "(?i)" + shapes._AUTHORIZATION.pattern)]
    for names in (shapes._PASSWORDS, shapes._NAMES):
        patterns += [
            ("assigned", f'{name}(?:_x)?["\']?( = | := |: )"[a-z]{{4}}[0-9]{{4}}"') for name in names
        ]
    patterns += [("private_key", one.pattern) for one in (shapes._BEGIN, shapes._END)]
    for kind, pattern in patterns:
        for text in (f" {text} " for text in samples(pattern, 40)):
            if kind == "private_key" or [*shapes.secrets(text)]:
                assert not plain(text), (kind, text)
    assert any([*shapes.secrets(samples(pattern, 1)[0])] for kind, pattern in patterns)


PARTS = [
    "betterleaks.aws-access-token",
    "betterleaks.exoscale-api-key",
    "betterleaks.polymarket-api-key",
    "betterleaks.alibaba-sts-access-key-secret",
    "betterleaks.ovh-application-secret",
]


@pytest.mark.parametrize("name", PARTS)
def test_of_a_key_in_two_parts_the_secret_one_goes_too(name: str) -> None:
    """Rules call one part a helper, and report the other alone; that may be the one that is public."""
    rules = detector.scanner().rules
    [text, *_] = texts_for(rules.detail(name))
    helpers = [
        one.secret
        for one in detector.scanner().scan(text.encode())
        if not one.visible and re.search(r"secret|token|pass|key$", one.rule_id)
    ]
    assert helpers
    left = scrub(text, "stdout", licet_scrub).text
    public = [one for one in helpers if one in left]
    assert public == []


def test_the_public_part_stays() -> None:
    rules = detector.scanner().rules
    [text, *_] = texts_for(rules.detail("betterleaks.algolia-api-key"))
    [public] = [one.secret for one in detector.scanner().scan(text.encode()) if not one.visible]
    assert public in scrub(text, "stdout", licet_scrub).text


@pytest.mark.parametrize(
    ("rust", "python"),
    [
        (r"a(?i)b|c", "a(?i:b|c)"),
        (r"(a(?i)b)c\z", r"(a(?i:b))c\Z"),
        (r"[](](?i)[^])]", r"[](](?i:[^])])"),
        (r"x[[:alnum:]]\[", r"x[A-Za-z0-9]\["),
    ],
)
def test_patterns_are_read_as_they_are_meant(rust: str, python: str) -> None:
    assert in_python(rust) == python


def test_samples_match_and_are_the_same_each_time() -> None:
    pattern = r"(?i)\b(k[0-9a-f]{8,}|x(?:\w{3}-){2}\S)(?:\s|$)"
    drawn = samples(pattern, 50)
    assert drawn == samples(pattern, 50)
    assert len({*drawn}) > 40
    assert [text for text in drawn if not re.search(pattern, text)] == []
