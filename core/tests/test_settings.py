"""Settings: which source wins, and which variables of the host may be passed on."""

import json
import os
import sys
from pathlib import Path

import pytest
from licet.errors import InvalidSettings
from licet.settings import STANDARD, Anchors, Settings, directory_of, load_settings, settings_beside
from licet.state import open_state

CORPUS = Path(__file__).parent / "data/paths_hosts.jsonl"
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files of all kinds")
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
    assert Settings().enabled == STANDARD
    assert STANDARD == (
        "approvals",
        "audit",
        "controlled_process",
        "monty",
        "policies",
        "restricted_linux",
        "secrets",
    )


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
        ('home = "a\\u0000b"', "`home`: no path holds a NUL byte"),
        ("#" * (1 << 20) + "#", "the settings can't be read: it is larger than 1 MiB"),
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
    assert (
        problem.value.advice
        == "known settings are `enabled`, `home`, `pass_environment`, `anchors`, `approvals`"
    )


@pytest.mark.parametrize("content", [b"\xff", b"a = '\xc3'"])
def test_settings_that_are_no_utf8_are_refused(state: Path, managed: Path, content: bytes) -> None:
    managed.write_bytes(content)
    with pytest.raises(InvalidSettings, match="the settings can't be read: 'utf-8' codec can't decode"):
        load_settings(state, {}, managed=managed)


def test_settings_that_cannot_be_read_are_refused(state: Path, managed: Path) -> None:
    managed.mkdir()
    with pytest.raises(InvalidSettings, match=r"the settings can't be read: is a directory"):
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


def test_a_relative_home_starts_at_the_file_that_states_it(state: Path, managed: Path) -> None:
    (state / "config.toml").write_text('home = "../log"')
    assert load_settings(state, {}, managed=managed).home == state / "../log"
    managed.write_text('home = "log"')
    assert load_settings(state, {}, managed=managed).home == managed.parent / "log"


def test_a_relative_home_is_made_absolute_once(
    state: Path, managed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = load_settings(state, {"LICET_HOME": "log"}, managed=managed)
    given = Settings(home=Path("log"))
    monkeypatch.chdir(state)
    assert found.home == given.home == tmp_path / "log"


@posix_only
def test_a_relative_home_needs_a_current_directory(
    state: Path, managed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InvalidSettings, match="`home`: it is relative, and the current directory is gone"):
        load_settings(state, {"LICET_HOME": "log"}, managed=managed)
    with pytest.raises(InvalidSettings, match="the current directory is gone"):
        directory_of("licet:compute")
    with pytest.raises(InvalidSettings, match="the current directory is gone"):
        directory_of("licet.yaml")


@posix_only
@pytest.mark.parametrize("which", ["state", "managed"])
def test_settings_that_are_no_plain_file_are_refused_at_once(state: Path, managed: Path, which: str) -> None:
    file = state / "config.toml" if which == "state" else managed
    os.mkfifo(file)
    with pytest.raises(InvalidSettings, match="the settings can't be read: not a plain file"):
        load_settings(state, {}, managed=managed)


@posix_only
def test_settings_may_be_a_link_to_a_plain_file(state: Path, managed: Path, tmp_path: Path) -> None:
    (tmp_path / "shared.toml").write_text('enabled = ["mine"]')
    managed.symlink_to("shared.toml")
    assert "mine" in load_settings(state, {}, managed=managed).enabled


def test_settings_beside_a_policy_count_only_if_licet_made_their_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    mine, shipped = tmp_path / "mine", tmp_path / "shipped"
    (shipped / ".licet").mkdir(parents=True)
    for directory in (open_state(mine / ".licet").path, shipped / ".licet"):
        (directory / "config.toml").write_text('home = "../log"\n')
    assert settings_beside(mine, {}).state_beside(mine) == mine / ".licet/../log"
    assert settings_beside(shipped, {}).state_beside(shipped) == shipped / ".licet"
    assert settings_beside(shipped, {"LICET_HOME": str(mine / ".licet")}).home == mine / ".licet"
    assert not (mine / "log").exists()


def test_a_policy_keeps_its_state_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = Path.cwd()
    assert directory_of("licet:compute") == here
    assert directory_of("licet.yaml") == here
    assert directory_of("sub/licet.yaml") == here / "sub"


def test_anchors_are_nobody_unless_settings_name_them(state: Path, managed: Path) -> None:
    assert load_settings(state, {}, managed=managed).anchors == Anchors()
    (state / "config.toml").write_text(
        """
        [anchors]
        files = ["/mnt/worm"]
        every = "90m"
        [[anchors.timestamps]]
        url = "https://t.example/tsr"
        [[anchors.witnesses]]
        url = "http://w.example:8080/a"
        key = "w.example/1+ee65f6ee+BN6Mv/hY2kWSGtOisL3gg+Yoz+7/qnu/si5bXvZhes3M"
        """
    )
    found = load_settings(state, {}, managed=managed).anchors
    assert (found.files, found.every) == ((Path("/mnt/worm"),), 5400.0)
    assert (found.timestamps[0].url, found.timestamps[0].roots) == ("https://t.example/tsr", None)
    assert found.witnesses[0].url == "http://w.example:8080/a"
    managed.write_text('anchors = {files = ["/mnt/administrators"]}')
    assert load_settings(state, {}, managed=managed).anchors == Anchors(files=(Path("/mnt/administrators"),))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('files = ["worm"]', "`anchors.files.0`: `worm` is no absolute path"),
        (
            'every = "0s"',
            "`anchors.every`: `0s` bounds nothing: a limit is a number above zero and below 2**53",
        ),
        ('every = "1ms"', "`anchors.every`: input should be greater than or equal to 1"),
        ("witness = []", "`anchors.witness`: extra inputs are not permitted"),
        (
            'timestamps = [{url = "ftp://t"}]',
            "`anchors.timestamps.0.url`: `ftp://t` is no `http://` or `https://` address",
        ),
        (
            'timestamps = [{url = "http://u:p@t/"}]',
            "`anchors.timestamps.0.url`: `http://u:p@t/` is no `http://` or",
        ),
        (
            'witnesses = [{url = "http://w", key = "K"}]',
            "`anchors.witnesses.0.key`: `K` is no public key, which reads",
        ),
    ],
)
def test_anchors_that_can_not_be_are_told(state: Path, managed: Path, text: str, why: str) -> None:
    managed.write_text(f"[anchors]\n{text}\n")
    with pytest.raises(InvalidSettings) as problem:
        load_settings(state, {}, managed=managed)
    assert str(problem.value).startswith(f"{managed}: {why}")
