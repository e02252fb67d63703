"""Settings: which plugins are enabled, where state lives, and which host variables may be passed on.

Rules this module keeps:

- a later source wins over an earlier one: defaults, `config.toml` in the state directory, `LICET_*`,
  `Runtime(settings=)`; the administrator's file wins over all of them;
- an unknown key is an error that names the file and the known keys;
- `enabled` in the administrator's file is a floor: nobody disables what it lists.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from licet.errors import InvalidSettings, Position

STANDARD = ("audit", "controlled_process", "monty", "policies")
"""The plugins that are enabled unless settings say otherwise."""

MANAGED_FILE = (
    Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "licet" / "config.toml"
    if sys.platform == "win32"
    else Path("/etc/licet/config.toml")
)


class Settings(BaseModel):
    """What the host decides, as opposed to policy.

    `enabled` are the plugins to import; `home` is the state directory, None for `.licet` beside the policy;
    `pass_environment` are the host variables that a policy may hand on, where `*` ends a prefix.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: tuple[str, ...] = STANDARD
    home: Path | None = None
    pass_environment: tuple[str, ...] = ("LANG", "LC_*", "TZ")

    def may_pass(self, name: str) -> bool:
        """Whether a policy may hand on the host's variable `name`."""
        if name.upper().startswith(("LD_", "DYLD_", "PYTHON")):
            return name in self.pass_environment
        return any(
            name == allowed or (allowed.endswith("*") and name.startswith(allowed[:-1]))
            for allowed in self.pass_environment
        )


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
    administrator = _file(managed)
    floor = administrator.pop("enabled", [])
    values |= administrator
    settings = _validated(values, "LICET_* and config.toml")
    missing = tuple(name for name in floor if name not in settings.enabled)
    return settings.model_copy(update={"enabled": settings.enabled + missing})


def _file(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as problem:
        raise InvalidSettings(f"the settings can't be read: {problem}", where=Position(str(path))) from None
    _validated(content, str(path))
    return content


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
        known = ", ".join(f"`{name}`" for name in Settings.model_fields)
        raise InvalidSettings(
            f"`{key}`: {first['msg'].lower()}", where=Position(source), advice=f"known settings are {known}"
        ) from None
