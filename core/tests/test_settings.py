"""Settings: which source wins, and which variables of the host may be passed on."""

import json
from pathlib import Path

import pytest
from licet.errors import InvalidSettings
from licet.settings import STANDARD, Settings, load_settings

CORPUS = Path(__file__).parent / "data/paths_hosts.jsonl"
ENV_ROWS = [
    row for line in CORPUS.read_text().splitlines() if (row := json.loads(line))["class"] == "env-name"
]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def managed(tmp_path: Path) -> Path:
    return tmp_path / "managed.toml"


def test_nothing_said_is_the_standard_set(state: Path, managed: Path) -> None:
    assert load_settings(None, {}, managed=managed) == load_settings(state, {}, managed=managed) == Settings()
    assert Settings().enabled == STANDARD == ("audit", "controlled_process", "monty", "policies")


def test_a_later_source_wins(state: Path, managed: Path, tmp_path: Path) -> None:
    (state / "config.toml").write_text('enabled = ["file"]\nhome = "/file"\npass_environment = ["A"]')
    assert load_settings(state, {}, managed=managed) == Settings(
        enabled=("file",), home=Path("/file"), pass_environment=("A",)
    )
    variables = {"LICET_ENABLED": " audit, mine ,", "LICET_HOME": "/variable"}
    found = load_settings(state, variables, managed=managed)
    assert (found.enabled, found.home, found.pass_environment) == (
        ("audit", "mine"),
        Path("/variable"),
        ("A",),
    )
    managed.write_text('home = "/managed"\npass_environment = []')
    found = load_settings(state, variables, managed=managed)
    assert (found.enabled, found.home, found.pass_environment) == (("audit", "mine"), Path("/managed"), ())


def test_enabled_of_the_administrator_is_a_floor(state: Path, managed: Path) -> None:
    managed.write_text('enabled = ["guard", "mine"]')
    assert load_settings(state, {"LICET_ENABLED": "mine"}, managed=managed).enabled == ("mine", "guard")
    assert load_settings(state, {"LICET_ENABLED": ""}, managed=managed).enabled == ("guard", "mine")
    assert load_settings(state, {}, managed=managed).enabled == (*STANDARD, "guard", "mine")


def test_an_empty_home_means_none(state: Path, managed: Path) -> None:
    assert load_settings(state, {"LICET_HOME": ""}, managed=managed).home is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("enable = []", "`enable`: extra inputs are not permitted"),
        ('enabled = "monty"', "`enabled`: input should be a valid tuple"),
        ("enabled = [1]", "`enabled.0`: input should be a valid string"),
        ("pass_environment = {}", "`pass_environment`: input should be a valid tuple"),
        ("home = 3", "`home`: input is not a valid path"),
        ("a = ", "the settings can't be read: Invalid value (at end of document)"),
        ("a = " + "[" * 5000, "the settings can't be read: "),
    ],
)
@pytest.mark.parametrize("which", ["state", "managed"])
def test_wrong_settings_name_the_file(
    state: Path, managed: Path, which: str, text: str, message: str
) -> None:
    file = state / "config.toml" if which == "state" else managed
    file.write_text(text)
    with pytest.raises(InvalidSettings) as problem:
        load_settings(state, {}, managed=managed)
    assert str(problem.value).startswith(f"{file}: {message}")


def test_wrong_settings_name_the_known_ones(state: Path, managed: Path) -> None:
    managed.write_text("enable = []")
    with pytest.raises(InvalidSettings) as problem:
        load_settings(state, {}, managed=managed)
    assert problem.value.advice == "known settings are `enabled`, `home`, `pass_environment`"


@pytest.mark.parametrize("content", [b"\xff", b"a = '\xc3'"])
def test_settings_that_are_no_utf8_are_refused(state: Path, managed: Path, content: bytes) -> None:
    managed.write_bytes(content)
    with pytest.raises(InvalidSettings, match="the settings can't be read: 'utf-8' codec can't decode"):
        load_settings(state, {}, managed=managed)


def test_settings_that_cannot_be_read_are_refused(state: Path, managed: Path) -> None:
    managed.mkdir()
    with pytest.raises(InvalidSettings, match=r"the settings can't be read: .*Is a directory"):
        load_settings(state, {}, managed=managed)


@pytest.mark.parametrize("row", [r for r in ENV_ROWS if r["answer"] == []], ids=lambda row: row["id"])
def test_env_rows_of_the_corpus(row: dict[str, list[str]]) -> None:
    settings = Settings(pass_environment=tuple(row["allow"]))
    assert [name for name in row["names"] if settings.may_pass(name)] == row["answer"], row["why"]


@pytest.mark.parametrize(
    ("allowed", "name", "passes"),
    [
        (("LANG", "LC_*", "TZ"), "LANG", True),
        (("LANG", "LC_*", "TZ"), "LC_ALL", True),
        (("LANG", "LC_*", "TZ"), "LANGUAGE", False),
        (("LANG", "LC_*", "TZ"), "lang", False),
        (("LANG", "LC_*", "TZ"), "SECRET", False),
        (("*",), "SECRET", True),
        (("*",), "LD_PRELOAD", False),
        (("*",), "PYTHONPATH", False),
        (("*",), "DYLD_INSERT_LIBRARIES", False),
        (("P*",), "PYTHONSTARTUP", False),
        (("PYTHONPATH",), "PYTHONPATH", True),  # by its whole name, an administrator may
        ((), "LANG", False),
    ],
)
def test_which_variables_may_be_passed_on(allowed: tuple[str, ...], name: str, passes: bool) -> None:
    assert Settings(pass_environment=allowed).may_pass(name) == passes
