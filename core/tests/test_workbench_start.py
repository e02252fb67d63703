"""What a new policy says is what was wished for, however it is spelled."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from licet.policy.yaml import load
from licet.testing import strategies
from licet.testing.strategies import document_of
from licet.workbench import start
from licet.workbench.schema import EDITOR_LINE
from licet.workbench.start import Wishes, text
from licet.workbench.yamltext import scalar

PRINTABLE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


def test_a_policy_without_wishes_shows_how_to_write_them() -> None:
    assert text(Wishes("mine", "licet:compute")) == (
        f"{EDITOR_LINE}\n"
        "licet: 1\n"
        "name: mine\n"
        "extends: licet:compute  # what it starts from; `licet policy show licet:compute` tells it\n"
        "# allow: [read ./data, write ./out, network api.example.com:443]\n"
        "# ask: [write ./out/final]  # needs an approval; beats `allow`\n"
        "# deny: [read ./data/secrets]  # beats both\n"
        "# limits: {wall_time: 10s, memory: 128MiB}\n"
    )


def test_wishes_become_entries_limits_and_bounds() -> None:
    wishes = Wishes(
        "true",
        "licet:compute",
        ("read ./my data", "read ./a: b #c", "network api.example.com:443", "tool find_*"),
        (("wall_time", "20s"), ("memory", "1.5GiB")),
        ("./org.yaml",),
        editor=False,
    )
    document = document_of(text(wishes), base="/p")
    assert document.name == "true"
    assert [entry.text for entry in document.allow] == list(wishes.allow)
    assert document.limits.stated() == {"wall_time": 20.0, "memory": 3 << 29}
    assert [one.path for one in document.within] == ["/p/org.yaml"]


@settings(deadline=None)
@given(PRINTABLE)
def test_every_text_comes_back_from_its_line(content: str) -> None:
    assert load(f"key: {scalar(content)}\n".encode(), "f") == {"key": content}


@settings(deadline=None)
@given(PRINTABLE, st.lists(strategies.intents().map(str), max_size=4, unique=True))
def test_whatever_is_wished_for_loads(name: str, allow: list[str]) -> None:
    document = document_of(text(Wishes(name, "licet:compute", allow)))
    assert (document.name, [entry.text for entry in document.allow]) == (name, allow)


@pytest.mark.parametrize(
    ("read", "answer", "message"),
    [
        (lambda a: start.entry("network", a, "/p"), "x.com", "`x.com` names no port; write `x.com:443`"),
        (lambda a: start.entry("tool", a, "/p"), "1st", "`1st` is no name of a tool, or pattern with `*`"),
        (start.duration, "soon", "expected a duration such as `500ms`, `60s` or `2m`, found `soon`"),
        (start.size, "10", None),
    ],
)
def test_an_answer_is_read_before_it_is_taken(read: object, answer: str, message: str | None) -> None:
    assert callable(read)
    if message is None:
        assert read(answer) == answer
    else:
        with pytest.raises(ValueError) as problem:
            read(answer)
        assert str(problem.value) == message
