"""Settings: which plugins are enabled, where state lives, and which host variables may be passed on.

Rules this module keeps:

- a later source wins over an earlier one: defaults, `config.toml` in the state directory, `LICET_*`,
  `Runtime(settings=)`; the administrator's file wins over all of them;
- the settings of a state directory count only if this user's licet made it, and looking makes nothing;
- a relative `home` is made absolute once, here: it starts at the file that states it, elsewhere at the
  current directory;
- a file of settings is a plain file, or a link to one, and small;
- an unknown key is an error that names the file and the known keys;
- `enabled` in the administrator's file is a floor: nobody disables what it lists, and nothing is allowed
  while any of that can't be used (`demanded`);
- `approvals` in the administrator's file replaces that of every other, whole; where it lists services, there
  are no others (`services_fixed`);
- a secret is named by its file, never written here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
)

from licet.errors import InvalidSettings, Position, reason_of
from licet.files import read_plain
from licet.machine import administrators_directory
from licet.output import bounded
from licet.state import trusted
from licet.units import duration

STATE_NAME = ".licet"
"""The name of a state directory that lies beside a policy."""

STANDARD = ("approvals", "audit", "controlled_process", "monty", "policies", "restricted_linux", "secrets")
"""The plugins that are enabled unless settings say otherwise."""

MANAGED_FILE = administrators_directory() / "config.toml"

_MOST_BYTES = 1 << 20
_KEY = re.compile(r"[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*", re.ASCII)
_ISSUER = re.compile(r"[!-~]{1,200}", re.ASCII)
_LOOPBACK = re.compile(r"http://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(/.*)?", re.ASCII)
_URL = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.ASCII)


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _web(url: str) -> str:
    if not _URL.fullmatch(url):
        raise ValueError(f"`{bounded(url, 200)}` is no `http://` or `https://` address")
    return url


def _key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ValueError(f"`{bounded(key, 200)}` is no public key, which reads `NAME+ID+BASE64`")
    return key


def _absolute(path: Path) -> Path:
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError(f"`{bounded(str(path), 200)}` is no absolute path")
    return path


def _guarded(url: str) -> str:
    if not url.startswith("https://") and not _LOOPBACK.fullmatch(url):
        raise ValueError("`http://` is only for this machine itself; to any other it has to be `https://`")
    return url


def _issuer(name: str) -> str:
    if not _ISSUER.fullmatch(name):
        raise ValueError(
            f"`{bounded(name, 200)}` names no issuer: 1 to 200 visible ASCII characters without spaces"
        )
    return name


def _patience(value: object) -> float:
    """A duration, which may be none at all."""
    is_none = not isinstance(value, bool) and isinstance(value, (int, float)) and value == 0
    return 0.0 if is_none or value in ("0", "0s") else duration(value)


_Url = Annotated[str, AfterValidator(_web)]
_Absolute = Annotated[Path, AfterValidator(_absolute)]


class TimestampAuthority(_Strict):
    """A time-stamping authority of RFC 3161; `roots` is a PEM file of the certificates that vouch for it."""

    url: _Url
    roots: _Absolute | None = None


class Witness(_Strict):
    """A witness of C2SP tlog-witness: its submission prefix, and its public key, `NAME+ID+BASE64`."""

    url: _Url
    key: Annotated[str, AfterValidator(_key)]


class Anchors(_Strict):
    """Who sees checkpoints of the log outside this host; nobody unless settings say so.

    `files` lie on other media. `every` is after how many seconds a runtime has a new checkpoint seen by
    itself; None leaves that to `licet audit anchor`.
    """

    files: tuple[_Absolute, ...] = ()
    timestamps: tuple[TimestampAuthority, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    every: Annotated[float | None, BeforeValidator(duration), Field(ge=1)] = None


class Issuer(_Strict):
    """Somebody who signs answers to approvals: the claim `iss` of his tokens, and his public key.

    `key` is the absolute path of a PEM file, or the base64 text inside one. `groups` are those that he may
    say a person is in (None: any); others that he names are not counted. The same issuer may be there
    again with another key.
    """

    issuer: Annotated[str, AfterValidator(_issuer)]
    key: Annotated[str, Field(min_length=1, max_length=4096)]
    groups: tuple[str, ...] | None = None


class Webhook(_Strict):
    """A server that is told of approvals, and says what people answered.

    `secret_file` holds what requests to it are signed with. A run waits `deadline` seconds for answers, and
    not at all for 0; then the approval is left pending. `retries` is how often a delivery is tried again.
    """

    url: Annotated[str, AfterValidator(_web), AfterValidator(_guarded)]
    secret_file: _Absolute
    deadline: Annotated[float, BeforeValidator(_patience)] = 300.0
    retries: Annotated[int, Field(ge=0, le=20, strict=True)] = 5


class Approvals(_Strict):
    """Who is asked, and whose signature under an answer counts.

    `services` are names of services in the order in which they are told of; None leaves it to the program
    that runs, which asks at its terminal if it has one. `issuers` sign what comes by the webhook, and by
    `licet approvals approve --token`.
    """

    services: tuple[str, ...] | None = None
    issuers: tuple[Issuer, ...] = ()
    webhook: Webhook | None = None

    @field_validator("services")
    @classmethod
    def _each_once(cls, services: tuple[str, ...] | None) -> tuple[str, ...] | None:
        twice = [name for name in services or () if (services or ()).count(name) > 1]
        if twice:
            raise ValueError(f"`{bounded(twice[0], 200)}` is there more than once")
        return services


class Settings(BaseModel):
    """What the host decides, as opposed to policy.

    `enabled` are the plugins to import; `home` is the state directory, None for `.licet` beside the policy,
    and absolute once it is here;
    `pass_environment` are the host variables that a policy may hand on, where `*` ends a prefix;
    `anchors` are those who see checkpoints of the log outside this host; `approvals` says who is asked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: tuple[str, ...] = STANDARD
    home: Path | None = None
    pass_environment: tuple[str, ...] = ("LANG", "LC_*", "TZ")
    anchors: Anchors = Anchors()
    approvals: Approvals = Approvals()
    _demanded: tuple[str, ...] = PrivateAttr(default=())
    _services_fixed: bool = PrivateAttr(default=False)

    @field_validator("home")
    @classmethod
    def _absolute(cls, home: Path | None) -> Path | None:
        if home is None:
            return None
        if "\0" in str(home):
            raise ValueError("no path holds a NUL byte")
        try:
            return Path.cwd() / home if not home.is_absolute() else home
        except FileNotFoundError:
            raise ValueError("it is relative, and the current directory is gone") from None

    @property
    def demanded(self) -> tuple[str, ...]:
        """The part of `enabled` that an administrator set; no other file and no variable states it."""
        return self._demanded

    def demanding(self, plugins: Iterable[str]) -> Settings:
        """These settings, where an administrator enables `plugins`."""
        copy = self.model_copy()
        copy._demanded = tuple(plugins)
        return copy

    @property
    def services_fixed(self) -> bool:
        """Whether an administrator lists the approval services; then no others count, whoever brings them."""
        return self._services_fixed

    def fixing_services(self) -> Settings:
        """These settings, where an administrator lists the approval services."""
        copy = self.model_copy()
        copy._services_fixed = True
        return copy

    def state_beside(self, directory: Path) -> Path:
        """Where the state of policies in `directory` is."""
        return self.home or directory / STATE_NAME

    def may_pass(self, name: str) -> bool:
        """Whether a policy may hand on the host's variable `name`."""
        if name.upper().startswith(("LD_", "DYLD_", "PYTHON")):
            return name in self.pass_environment
        return any(
            name == allowed or (allowed.endswith("*") and name.startswith(allowed[:-1]))
            for allowed in self.pass_environment
        )


def directory_of(policy: str) -> Path:
    """The directory that the state of `policy` lies in: that of the file, or the current one for a pack.

    Raises:
        InvalidSettings: it is taken from a current directory that is gone.
    """
    from licet.policy.references import PACK_PREFIX

    try:
        return Path.cwd() if policy.startswith(PACK_PREFIX) else Path(os.path.realpath(policy)).parent
    except FileNotFoundError:
        raise InvalidSettings("the current directory is gone", advice="change into one that exists") from None


def settings_beside(directory: Path, environment: Mapping[str, str]) -> Settings:
    """The settings in force for policies in `directory`; nothing is made.

    Raises:
        InvalidSettings: a file or a variable is wrong.
    """
    known = trusted(Path(environment.get("LICET_HOME") or directory / STATE_NAME))
    return load_settings(known.path if known else None, environment)


def load_settings(
    state: Path | None, environment: Mapping[str, str], *, managed: Path = MANAGED_FILE
) -> Settings:
    """Read the settings for the state directory `state` (None: there is none yet).

    Raises:
        InvalidSettings: a file or a variable is wrong.
    """
    values: dict[str, Any] = {}
    if state is not None:
        values |= _file(state / "config.toml")
    values |= _variables(environment)
    return under_administrator(_validated(values, "LICET_* and config.toml"), managed=managed)


def under_administrator(settings: Settings, *, managed: Path = MANAGED_FILE) -> Settings:
    """`settings` with what the administrator of this machine says of them, which wins.

    Raises:
        InvalidSettings: the administrator's file is wrong.
    """
    administrator = _file(managed)
    floor = administrator.pop("enabled", [])
    settings = _validated({**dict(settings), **administrator}, str(managed))
    missing = tuple(name for name in floor if name not in settings.enabled)
    settings = settings.model_copy(update={"enabled": settings.enabled + missing}).demanding(floor)
    lists_services = "services" in administrator.get("approvals", {})
    return settings.fixing_services() if lists_services else settings


def _file(path: Path) -> dict[str, Any]:
    try:
        data = read_plain(path, _MOST_BYTES + 1, follow=True)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
        content = _toml(data.decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as problem:
        message = f"the settings can't be read: {reason_of(problem)}"
        raise InvalidSettings(message, where=Position(str(path))) from None
    except (ValueError, RecursionError) as problem:  # no UTF-8 and no TOML are ValueErrors
        raise InvalidSettings(f"the settings can't be read: {problem}", where=Position(str(path))) from None
    if isinstance(home := content.get("home"), str):
        content["home"] = str(path.parent / home)
    _validated(content, str(path))
    return content


def _toml(text: str) -> dict[str, Any]:
    import tomllib  # most hosts have no such file

    return tomllib.loads(text)


def _variables(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if environment.get("LICET_HOME"):  # empty means unset, as everywhere in the shell
        values["home"] = environment["LICET_HOME"]
    if "LICET_ENABLED" in environment:
        values["enabled"] = [name.strip() for name in environment["LICET_ENABLED"].split(",") if name.strip()]
    return values


def _validated(content: Mapping[str, Any], source: str) -> Settings:
    try:
        return Settings.model_validate(dict(content))
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        why = first["msg"].removeprefix("Value error, ")
        known = ", ".join(f"`{name}`" for name in Settings.model_fields)
        raise InvalidSettings(
            bounded(f"`{key}`: {why[:1].lower()}{why[1:]}", 500),
            where=Position(source),
            advice=f"known settings are {known}",
        ) from None
