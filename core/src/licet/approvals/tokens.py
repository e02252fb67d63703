"""Signed answers: who answered, to what, and how far it reaches, as an issuer vouches for it.

A token is a JWT (RFC 7519), signed by an issuer that settings name. Its claims are `iss`, `sub` (the person),
`aud` (`licet`), `jti`, `iat`, `exp`, `approval` (the id), `shown` (the digest of the document), `answer`
(`approve` or `deny`), and where they are stated `groups`, `tenant`, `reviewer` (`human` or `auto`), `scope`,
`vary`, `uses`, `expires`, `reason` and `nbf`.

Rules this module keeps:

- nothing in a token counts before its signature; what it says before that only chooses among keys that
  settings name, and nothing is fetched;
- the key decides the algorithm; a header that says more than `alg`, `typ` and `kid` is refused;
- a token has one spelling: other base64 for the same bytes, or a claim that is there twice, is refused;
- it answers one approval by one document, and is good until `exp` by whichever clock says more time has
  passed;
- a name holds nothing that can't be seen, so that nobody passes for somebody else;
- a group that its issuer may not speak of is left out, and a person is `human` only if the token says so.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from licet.approvals.clocks import Moment
from licet.approvals.forms import Answer, ApprovalRequest, Person, Reviewer, Scope
from licet.approvals.keys import Key, key_of
from licet.errors import AnswerRefused
from licet.output import bounded, escape
from licet.settings import Issuer, Settings
from licet.units import show_moment

AUDIENCE = "licet"
MOST_BYTES = 16 << 10
MOST_REASON = 500  # characters that are kept

_SKEW_S = 60.0
_PART = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_HEADERS = frozenset({"alg", "typ", "kid"})
_INSTALL = "install what tokens need: `pip install 'licet[webhook]'`"


def _readable(name: str) -> str:
    if escape(name, newlines=False) != name or name.strip() != name:
        raise ValueError("it holds characters that can't be seen")
    return name


_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_readable)]
_Instant: TypeAlias = Annotated[float, Field(ge=0, lt=2**53)]


class _Claims(BaseModel):
    """What a token has to say, and may; other claims are an issuer's own."""

    model_config = ConfigDict(frozen=True, strict=True)

    iss: str
    sub: _Name
    aud: str | list[str]
    jti: _Name
    iat: _Instant
    exp: _Instant
    nbf: _Instant = 0.0
    approval: str
    shown: str
    answer: Literal["approve", "deny"]
    groups: Annotated[list[_Name], Field(max_length=100)] = []
    tenant: _Name | None = None
    reviewer: Reviewer = "auto"
    scope: Scope = "once"
    vary: Annotated[list[_Name], Field(max_length=100)] = []
    uses: Annotated[int, Field(ge=1, lt=2**53)] | None = None
    expires: Annotated[float, Field(gt=0, lt=2**53)] | None = None
    reason: str = ""


def answer_of(
    token: str, request: ApprovalRequest, settings: Settings, now: Moment, *, service: str = "token"
) -> Answer:
    """The answer that a token gives to a request; `service` is who brought it.

    Raises:
        AnswerRefused: it does not count, and why: size, form, issuer, signature, a claim, or time.
        InvalidSettings: the key of its issuer can't be used.
    """
    token = token.strip()
    if len(token) > MOST_BYTES:
        _refuse(f"it has {len(token)} bytes, at most {MOST_BYTES} are read")
    header, payload = _unverified(token)
    issuer = _signer(token, header, payload, settings.approvals.issuers)
    claims = _claims(payload)
    _to_this(claims, request)
    _timely(claims, request, now)
    groups = tuple(name for name in claims.groups if issuer.groups is None or name in issuer.groups)
    return Answer(
        person=Person(claims.sub, groups, claims.tenant, claims.reviewer, "token"),
        approve=claims.answer == "approve",
        shown=claims.shown,
        service=service,
        scope=claims.scope,
        vary=tuple(claims.vary),
        uses=claims.uses,
        expires=claims.expires,
        reason=bounded(claims.reason, MOST_REASON),
        token=f"{claims.iss} {claims.jti}",  # an issuer has no spaces
    )


def _refuse(why: str, advice: str = "ask for a token that was signed for this approval") -> NoReturn:
    raise AnswerRefused(f"the token does not count: {why}", advice=advice)


def _shown(text: object) -> str:
    return bounded(escape(str(text), newlines=False), 100)


def _unverified(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims, which nobody vouches for yet."""
    parts = token.split(".")
    if len(parts) != 3 or not all(map(_PART.fullmatch, parts)):
        _refuse("it is no signed JWT of three parts")
    data = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts if len(part) % 4 != 1]
    if [base64.urlsafe_b64encode(one).rstrip(b"=").decode() for one in data] != parts:
        _refuse("it is not spelled as it was signed")
    header, payload = _mapping(data[0], "its header"), _mapping(data[1], "what it claims")
    if more := sorted(header.keys() - _HEADERS):
        _refuse(f"its header has `{_shown(more[0])}`, and only `alg`, `typ` and `kid` are known")
    return header, payload


def _mapping(data: bytes, what: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key is there twice")
        return found

    def no_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no number")

    try:
        found = json.loads(data, object_pairs_hook=once, parse_constant=no_number)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else _refuse(f"{what} can't be read as JSON")


def _signer(
    token: str, header: dict[str, Any], payload: dict[str, Any], issuers: tuple[Issuer, ...]
) -> Issuer:
    """The issuer, with the one of his keys that the signature is of."""
    name, algorithm = payload.get("iss"), header.get("alg")
    his = [one for one in issuers if one.issuer == name]
    if not his:
        known = ", ".join(f"`{one}`" for one in sorted({one.issuer for one in issuers})) or "none"
        _refuse(
            f"its issuer is `{_shown(name)}`, and settings know {known}",
            "name who may sign in `approvals.issuers` of the settings",
        )
    keys = [(one, key_of(one)) for one in his]
    for one, key in keys:
        if key.algorithm == algorithm and _is_signed(token, key):
            return one
    if all(key.algorithm != algorithm for _, key in keys):
        theirs = ", ".join(sorted({key.algorithm for _, key in keys}))
        _refuse(f"it is signed by `{_shown(algorithm)}`, and the key of `{name}` is for {theirs}")
    advice = "check that settings have the key that it is signed with"
    _refuse(f"its signature is not of the key of `{name}`", advice)


def _is_signed(token: str, key: Key) -> bool:
    try:
        import jwt
    except ImportError:
        _refuse("`pyjwt` is not installed, so no signature can be checked", _INSTALL)
    try:
        jwt.PyJWS(algorithms=[key.algorithm]).decode(token, key.public, algorithms=[key.algorithm])
    except jwt.InvalidTokenError:
        return False
    return True


def _claims(payload: dict[str, Any]) -> _Claims:
    try:
        claims = _Claims.model_validate(payload)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        name, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        _refuse(f"its claim `{_shown(name)}`: {message[:1].lower()}{message[1:]}")
    audience = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if AUDIENCE not in audience:
        _refuse(f"it is for `{_shown(', '.join(audience))}`, not for `{AUDIENCE}`")
    return claims


def _to_this(claims: _Claims, request: ApprovalRequest) -> None:
    if claims.approval != request.id:
        _refuse(f"it answers the approval `{_shown(claims.approval)}`, this is `{request.id}`")
    if claims.shown != request.shown:
        _refuse(f"it answers another document: it says `{_shown(claims.shown)}`, asked was `{request.shown}`")


def _timely(claims: _Claims, request: ApprovalRequest, now: Moment) -> None:
    """Refuse what is over, or not yet; a clock that was set back makes nothing last longer."""
    passed = now.passed_since(request.asked)
    at = max(now.wall, request.asked.wall + passed)
    if passed >= request.expires:
        _refuse("the approval has expired", "run the code again, which asks anew")
    if at >= claims.exp:
        _refuse(f"it expired at {_instant(claims.exp)}")
    if (begins := max(claims.iat, claims.nbf)) > at + _SKEW_S:
        _refuse(f"it is good only from {_instant(begins)} on", "check the clocks of both machines")


def _instant(seconds: float) -> str:
    try:
        return show_moment(seconds)
    except (ValueError, OverflowError, OSError):  # beyond what a calendar has
        return f"{seconds:.0f}"
