"""Requests as files: what they may say, where their paths start, and how they are refused."""

from pathlib import Path

import pytest
from licet.cli.requests import is_request, read_request
from licet.contract import Control, Level
from licet.errors import InvalidRequest, UsageError
from licet.request import Intent


def written(folder: Path, text: str, name: str = "r.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("r.json", True),
        ("a/r.YAML", True),
        ("r.yml", True),
        ("r.py", False),
        ("r.json.py", False),
        ("json", False),
        ("-", False),
        (None, False),
    ],
)
def test_a_name_tells_a_request_from_code(name: str | None, answer: bool) -> None:
    assert is_request(name) is answer


def test_all_that_a_file_can_say(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("print(n)")
    (tmp_path / "work").mkdir()
    text = """
code_file: main.py
inputs: {n: 1, word: héé}
stdin: hello
workdir: work
limits: {wall_time: 5s, memory: 64MiB}
intents: [read ./data, network Example.COM:443, shell]
metadata: {ticket: T-1}
requirements: {memory_limit: enforced}
"""
    request = read_request(written(tmp_path, text))
    assert request.code == b"print(n)"
    assert (request.inputs, request.stdin) == ({"n": 1, "word": "héé"}, "hello")
    assert request.workdir == str(tmp_path / "work")
    assert request.limits.stated() == {"wall_time": 5.0, "memory": 64 << 20}
    assert request.intents == (
        Intent("read", str(tmp_path / "work" / "data")),
        Intent("network", "example.com:443"),
        Intent("shell"),
    )
    assert request.metadata == {"ticket": "T-1"}
    assert request.requirements == {Control.memory_limit: Level.enforced}
    assert request.subject.asserted_by == "os"


def test_json_says_the_same(tmp_path: Path) -> None:
    file = written(tmp_path, '{"code": "1", "intents": [], "inputs": {"face": "\\ud83d\\ude00"}}', "r.json")
    request = read_request(file)
    assert (request.code, request.intents, request.inputs) == ("1", (), {"face": "😀"})
    assert read_request(written(tmp_path, '{"code": "1"}', "r.json")).intents is None


@pytest.mark.parametrize(
    ("text", "where", "message", "advice"),
    [
        ("code: '1'\nsubject: {id: root}\n", ":2:1", "can't say for whom it is", "take `subject` out"),
        ("code: '1'\ntools: {}\n", ":2:1", "tools are functions", "take `tools` out"),
        ("code: '1'\nenv: {A: b}\n", ":2:1", "comes from its policy", "take `env` out"),
        ("code: '1'\nlimit: {}\n", ":2:1", "unknown key `limit`", "did you mean `limits`?"),
        ("inputs: {}\n", "", "has no code", "`code_file`"),
        ("code: 1\n", ":1:1", "`code` needs a text, found `1`", None),
        ("code: '1'\ncode_file: a.py\n", ":2:1", "both `code` and `code_file`", "give one"),
        ("code: '1'\nworkdir: 3\n", ":2:1", "`workdir` needs a path", None),
        ("code: '1'\nintents: read x\n", ":2:1", "needs a list", None),
        ("code: '1'\nintents: [read x, reed y]\n", ":2:19", "found `reed y`", "begin it with one of run"),
        ("code: '1'\nintents: [network a]\n", ":2:11", "can't be understood", None),
        ("code: '1'\nlimits: {memory: lots}\n", ":2:1", "`limits.memory`", None),
        ("code: '1'\nrequirements: {walls: enforced}\n", ":2:1", "`requirements.walls", None),
        ("code: '1'\ncode: '2'\n", ":2:1", "stands in line 1 already", None),
        ("- code\n", "", "a request is a mapping", "licet run -"),
        ("code: &a x\n", ":1:7", "anchors", None),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, text: str, where: str, message: str, advice: str | None
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InvalidRequest) as caught:
        read_request(file)
    assert message in caught.value.message
    assert str(caught.value.where) == file + where
    assert advice is None or (caught.value.advice is not None and advice in caught.value.advice)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"code": }', "not valid JSON: expecting value"),
        ('{"code": "1", "code": "2"}', "a key stands in it twice"),
        ('{"code": NaN}', "`NaN` is no JSON number"),
        ("[" * 100_000, "not valid JSON"),
        ('"1"', "a request is a mapping"),
        ('{"code": "1", "subject": {"id": "root"}}', "can't say for whom it is"),
    ],
)
def test_bad_json(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_request(written(tmp_path, text, "r.json"))
    assert message in caught.value.message


def test_a_file_that_is_named_and_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        read_request(written(tmp_path, "code_file: none.py"))
