"""The target of an effect, read from the arguments of a call.

Rules this module keeps:

- a target is given as the code writes it; making it canonical is the work of normalisation;
- None means that the text doesn't show the target, never that there is none;
- an effect that turns out to touch nothing (a buffer in memory, the standard streams) yields no intent.
"""

from __future__ import annotations

import ast
from urllib.parse import urlsplit

from licet.request import Action
from licet.screen.modules import IN_MEMORY
from licet.screen.resolve import Resolver
from licet.screen.rules import Effect

Wish = tuple[Action, str | None]
"""An action and its target."""

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_PORT_BY_CLASS = {
    "HTTPConnection": 80,
    "HTTPSConnection": 443,
    "FTP": 21,
    "FTP_TLS": 21,
    "SMTP": 25,
    "SMTP_SSL": 465,
}
_STANDARD_STREAMS = (0, 1, 2)


def wishes(effect: Effect, call: ast.Call | None, known: Resolver) -> list[Wish]:
    """Return what a use of a name wants: one call, or the bare name if `call` is None."""
    if call is None or effect.reader == "none":
        return [(effect.action, None)]
    if effect.reader == "self":
        return [(effect.action, _own_path(call, known))]
    argument = _argument(call, effect.position, effect.keyword)
    if effect.reader in ("mode", "self_mode"):
        return _opened(effect, call, known)
    if effect.reader == "url":
        return _url(argument, known)
    if effect.reader == "address":
        return [("network", _address(known.value(argument) if argument is not None else None, known))]
    if effect.reader == "host":
        return [("network", _host(argument, call, effect.position, known))]
    if argument is None:
        return _unstated(effect, call)
    if _no_file(argument, known):
        return []
    if effect.reader == "pattern":
        return [(effect.action, _pattern_root(known.text(argument)))]
    return [(effect.action, known.text(argument))]


def _unstated(effect: Effect, call: ast.Call) -> list[Wish]:
    """What a call wants that passes no such argument in a way that its text shows."""
    spread = any(isinstance(value, ast.Starred) for value in call.args)
    named = any(item.arg is None or not effect.keyword for item in call.keywords)
    if spread or named:
        return [(effect.action, None)]
    return [(effect.action, ".")] if effect.reader == "directory" else []


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    if position < len(call.args):
        before = call.args[: position + 1]
        return None if any(isinstance(value, ast.Starred) for value in before) else call.args[position]
    return next((item.value for item in call.keywords if item.arg == keyword), None)


def _own_path(call: ast.Call, known: Resolver) -> str | None:
    return known.text(call.func.value) if isinstance(call.func, ast.Attribute) else None


def _no_file(argument: ast.expr, known: Resolver) -> bool:
    """Whether what is opened is a buffer in memory or one of the standard streams."""
    value = known.constant(argument)
    return IN_MEMORY in known.paths(argument) or (type(value) is int and value in _STANDARD_STREAMS)


def _opened(effect: Effect, call: ast.Call, known: Resolver) -> list[Wish]:
    """What opening a file wants; a mode that can't be read wants both."""
    by_self = effect.reader == "self_mode"
    file = None if by_self else _argument(call, effect.position, effect.keyword)
    if not by_self:
        in_memory = any(item.arg == "fileobj" for item in call.keywords)
        if (file is None and in_memory) or (file is not None and _no_file(file, known)):
            return []
    target = _own_path(call, known) if by_self else known.text(file)
    mode = _argument(call, 0 if by_self else 1, "mode")
    written = known.text(mode) if mode is not None else ("" if not _hides_mode(call) else None)
    if written is None:
        return [("read", target), ("write", target)]
    written = written.partition(":")[0].partition("|")[0]  # what follows names a compression
    wanted: list[Wish] = []
    if not set(written) & set("wax") or "+" in written:
        wanted.append(("read", target))
    if set(written) & set("wax+"):
        wanted.append(("write", target))
    return wanted


def _hides_mode(call: ast.Call) -> bool:
    return any(item.arg is None for item in call.keywords) or any(
        isinstance(value, ast.Starred) for value in call.args
    )


def _pattern_root(pattern: str | None) -> str | None:
    """The directory above the first wildcard of a glob pattern."""
    if pattern is None:
        return None
    fixed = pattern
    for sign in "*?[":
        fixed = fixed.partition(sign)[0]
    if fixed == pattern:
        return pattern
    root = fixed.rpartition("/")
    return root[0] or root[1] or "."


def _url(argument: ast.expr | None, known: Resolver) -> list[Wish]:
    text, complete = known.beginning(argument)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return [("network", None)]
    if parts.scheme == "file":
        return [("read", parts.path if complete else None)]
    shown = complete or bool(parts.path)  # the host is known once something follows it
    return [("network", _join(host, port) if shown else None)]


def _address(argument: ast.expr | None, known: Resolver) -> str | None:
    if not isinstance(argument, ast.Tuple) or len(argument.elts) < 2:
        return None
    port = known.constant(argument.elts[1])
    return _join(known.text(argument.elts[0]), port if type(port) is int else None)


def _host(argument: ast.expr | None, call: ast.Call, position: int, known: Resolver) -> str | None:
    text = known.text(argument)
    stated = _argument(call, position + 1, "port")
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    port = known.constant(stated) if stated is not None else _PORT_BY_CLASS.get(name)
    if text is not None and stated is None and text.rpartition(":")[2].isdecimal() and text.count(":") == 1:
        return text.lower()
    return _join(text, port if type(port) is int else None)


def _join(host: str | None, port: int | None) -> str | None:
    if not host or port is None or not 0 < port < 65536 or any(sign.isspace() for sign in host):
        return None
    return f"[{host}]:{port}" if ":" in host else f"{host.lower()}:{port}"
