"""Host names and addresses in one canonical spelling.

Rules this module keeps:

- a host is a lower-case ASCII name without trailing dot, or an IP address in its one canonical form;
  every other spelling of an address (short, octal, decimal, hexadecimal, with a trailing dot, an IPv4 address
  inside IPv6, with a zone) is refused, never guessed at: `deny` must not depend on how it is written;
- a name beyond ASCII is taken in its `xn--` form, where IDNA 2003, IDNA 2008 and UTS 46 agree on that: a
  letter that one of them maps to anything but its lower case is refused, and with it all that they fold into
  a digit, a dot or a letter of ASCII;
- names that lead inside by their definition are known here: `localhost`, `.local`, `.internal`, and names
  without a dot, which every network reads in its own way.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from functools import lru_cache
from unicodedata import ucd_3_2_0

from licet.hosts.addresses import wrapped

_NAME_MAX = 253
_WORDS = frozenset({"any", "private"})

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_ASCII_PART = re.compile(r"[a-z0-9_-]*", re.ASCII)
_WORD_SIGNS = frozenset({"Ll", "Lo", "Lm", "Mn", "Mc", "Nd"})
_DROPPED = re.compile("[\u1100-\u11ff\u17b4\u17b5\u180b-\u180f]")
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.ASCII)
_INSIDE = (".localhost", ".localdomain", ".local", ".internal", ".home.arpa")


@lru_cache(maxsize=16384)
def canonical_host(text: str) -> str:
    """Return the one spelling of a host name or address.

    Raises:
        ValueError: the text is no host, or a host in a spelling that programs read differently.
    """
    if ":" in text:
        return _ipv6(text)
    name = text.lower().removesuffix(".")
    if not text.isascii():
        if any(sign.lower().isascii() and not sign.isascii() for sign in text):  # the sign for kelvin
            raise _disputed(text)
        name = _to_ascii(unicodedata.normalize("NFC", name), text)
    labels = name.split(".")
    if not name or len(name) > _NAME_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"`{text}` is no host name")
    if name in _WORDS:
        raise ValueError(f"`{text}` is no host name; the word for many hosts reads `{name}`, without a port")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise ValueError(f"`{text}` is no address of four plain decimal numbers") from None
    return name


def is_address(host: str) -> bool:
    """Whether a canonical host is an IP address."""
    return ":" in host or host.rpartition(".")[2].isdecimal()


def leads_inside(name: str) -> bool:
    """Whether a canonical name leads into some private network, whatever a resolver says."""
    return "." not in name or name.endswith(_INSIDE) or name == "home.arpa"


def _ipv6(text: str) -> str:
    if "%" in text:
        raise ValueError(f"`{text}` names a zone, which means something else on every machine")
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        raise ValueError(f"`{text}` is no IPv6 address") from None
    if (inner := wrapped(address)) is not None:
        raise ValueError(f"`{text}` is an IPv4 address in disguise; write `{inner}`")
    return str(address)


def _to_ascii(lowered: str, text: str) -> str:
    return ".".join(
        label if label.isascii() else _label_to_ascii(label, text) for label in lowered.split(".")
    )


def _label_to_ascii(label: str, text: str) -> str:
    """The `xn--` form of one lower-case label, where nobody would map it to anything else."""
    plain = "".join(sign for sign in label if sign.isascii())
    if not _ASCII_PART.fullmatch(plain) or label.startswith(("xn--", "-")) or label.endswith("-"):
        raise ValueError(f"`{text}` is no host name")
    from encodings import idna  # brings tables that few runs need

    try:
        same = idna.nameprep(label) == label == unicodedata.normalize("NFKC", label.casefold())
        if same and all(sign.isascii() or _is_undisputed(sign) for sign in label):
            return idna.ToASCII(label).decode("ascii")
    except UnicodeError:
        pass
    raise _disputed(text)


def _disputed(text: str) -> ValueError:
    return ValueError(f"`{text}` holds letters that programs read differently; write its `xn--` form")


def _is_undisputed(sign: str) -> bool:
    """Whether every standard takes a letter, mark or digit as it is: none that Unicode added after IDNA 2003,
    and no filler or conjoining part of a syllable.
    """
    return ucd_3_2_0.category(sign) in _WORD_SIGNS and not _DROPPED.fullmatch(sign)
