"""Small wheels, made by hand, and an installer that finds them and nothing else."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest


def wheel(folder: Path, name: str, version: str = "1.0", *, needs: str = "", **files: str) -> str:
    """Make a wheel in `folder` and return its line of a list; `files` are modules by name."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    required = f"Requires-Dist: {needs}\n" if needs else ""
    texts = {
        **{f"{module}.py": text for module, text in (files or {name: f"version = {version!r}\n"}).items()},
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as made:
        for inside, text in {**texts, f"{about}/RECORD": _record(texts, about)}.items():
            made.writestr(zipfile.ZipInfo(inside), text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def _record(texts: Mapping[str, str], about: str) -> str:
    lines = []
    for inside, text in texts.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{inside},sha256={digest},{len(text.encode())}\n")
    return "".join([*lines, f"{about}/RECORD,,\n"])


def use_only(folder: Path, home: Path, patch: pytest.MonkeyPatch) -> None:
    """Have installers look into `folder` alone, and environments lie below `home`."""
    folder.mkdir(exist_ok=True)
    settings = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_NO_CONFIG": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(folder),
        "XDG_CACHE_HOME": str(home),
        "HOME": str(home),
        "PIP_NO_CACHE_DIR": "1",
    }
    for name, value in settings.items():
        patch.setenv(name, value)
