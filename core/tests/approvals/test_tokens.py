"""Signed answers: what counts, and that nothing else does."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, SECP384R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as ec_key
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from issuing import Signer, asked, later, part
from licet.approvals import Answer, ApprovalRequest, Person
from licet.approvals.clocks import Moment
from licet.approvals.tokens import MOST_BYTES, answer_of
from licet.errors import AnswerRefused, InvalidSettings
from licet.settings import Settings

REQUEST = asked()
DESK = Signer()
KNOWN = Settings.model_validate({"approvals": {"issuers": [DESK.settings()]}})
KEY_PAIRS = {
    "EdDSA": Signer(),
    "ES256": Signer(private=ec_key(SECP256R1()), algorithm="ES256"),
    "RS256": Signer(private=rsa_key(65537, 2048), algorithm="RS256"),
}


def knowing(*issuers: dict[str, Any]) -> Settings:
    return Settings.model_validate({"approvals": {"issuers": issuers}})


def refused(
    token: str, settings: Settings = KNOWN, request: ApprovalRequest = REQUEST, now: Moment | None = None
) -> str:
    with pytest.raises(AnswerRefused) as problem:
        answer_of(token, request, settings, now or later(request, 60))
    assert problem.value.advice
    return problem.value.message.removeprefix("the token does not count: ")


def test_a_token_is_an_answer() -> None:
    whole = {
        "reviewer": "human",
        "tenant": "acme",
        "scope": "shape",
        "vary": ["amount"],
        "uses": 3,
        "expires": 900,
        "reason": "as agreed",
        "jti": "j1",
    }
    found = answer_of(DESK.sign(REQUEST, **whole) + "\n", REQUEST, KNOWN, later(REQUEST, 60), service="hook")
    assert found == Answer(
        person=Person("ann", ("finance",), "acme", "human", "token"),
        approve=True,
        shown=REQUEST.shown,
        service="hook",
        scope="shape",
        vary=("amount",),
        uses=3,
        expires=900.0,
        reason="as agreed",
        token="desk j1",
    )


def test_a_name_may_be_of_any_script() -> None:
    token = DESK.sign(REQUEST, sub="Zoë Ångström", groups=["財務"])
    found = answer_of(token, REQUEST, KNOWN, later(REQUEST, 60)).person
    assert (found.id, found.groups) == ("Zoë Ångström", ("財務",))


def test_what_a_token_leaves_out_is_the_least() -> None:
    token = DESK.sign(REQUEST, answer="deny", groups=None, jti="j2", aud=["other", "licet"])
    found = answer_of(token, REQUEST, KNOWN, later(REQUEST, 60))
    person = Person("ann", (), None, "auto", "token")
    assert found == Answer(person, False, REQUEST.shown, "token", token="desk j2")


@pytest.mark.parametrize("algorithm", KEY_PAIRS)
def test_each_kind_of_key_signs_in_its_own_way_alone(algorithm: str, tmp_path: Path) -> None:
    signer = KEY_PAIRS[algorithm]
    for key in (signer.key, signer.pem(tmp_path)):
        known = knowing({"issuer": "desk", "key": key})
        assert answer_of(signer.sign(REQUEST), REQUEST, known, later(REQUEST, 1)).approve
    others = {name: one for name, one in KEY_PAIRS.items() if name != algorithm}
    for name, other in others.items():
        message = f"it is signed by `{name}`, and the key of `desk` is for {algorithm}"
        assert refused(other.sign(REQUEST), knowing(signer.settings())) == message


def test_a_public_key_is_no_shared_secret() -> None:
    """Who knows the public key could sign with it, if the token chose the algorithm."""
    public = KEY_PAIRS["RS256"].private.public_key()
    for secret in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    ):
        signed = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(DESK.claims(REQUEST))}"
        token = f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256))}"
        message = "it is signed by `HS256`, and the key of `desk` is for RS256"
        assert refused(token, knowing(KEY_PAIRS["RS256"].settings())) == message


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, ["EdDSA"], 1])
def test_no_signature_is_none(algorithm: object) -> None:
    signature = DESK.sign(REQUEST).rpartition(".")[2]
    token = f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part(DESK.claims(REQUEST))}.{signature}"
    assert refused(token).startswith("it is signed by `")
    assert refused(token.rpartition(".")[0] + ".") == "it is no signed JWT of three parts"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jku", "http://127.0.0.1:1/keys"),
        ("x5u", "http://127.0.0.1:1/keys"),
        ("jwk", {"kty": "OKP"}),
        ("x5c", ["MII"]),
        ("crit", ["b64"]),
        ("b64", False),
        ("zip", "DEF"),
    ],
)
def test_a_token_brings_no_key_and_no_rules_of_its_own(name: str, value: object) -> None:
    message = f"its header has `{name}`, and only `alg`, `typ` and `kid` are known"
    signed = f"{part({'alg': 'EdDSA', name: value})}.{part(DESK.claims(REQUEST))}"
    assert refused(f"{signed}.{part(DESK.private.sign(signed.encode()))}") == message
    signed = f"{part({'alg': 'EdDSA', 'kid': '../../etc/passwd'})}.{part(DESK.claims(REQUEST))}"  # the twin
    twin = f"{signed}.{part(DESK.private.sign(signed.encode()))}"
    assert answer_of(twin, REQUEST, KNOWN, later(REQUEST, 1)).approve


def test_another_key_and_another_issuer_are_named() -> None:
    stranger = Signer()
    assert refused(stranger.sign(REQUEST)) == "its signature is not of the key of `desk`"
    assert refused(DESK.sign(REQUEST, iss="mallory\x1b[2J")) == (
        "its issuer is `mallory\\x1b[2J`, and settings know `desk`"
    )
    assert refused(DESK.sign(REQUEST), Settings()) == "its issuer is `desk`, and settings know none"
    assert refused(DESK.sign(REQUEST, iss=None)) == "its issuer is `None`, and settings know `desk`"


def test_an_issuer_may_have_two_keys_while_one_takes_over() -> None:
    old, new = Signer(), KEY_PAIRS["ES256"]
    both = knowing(old.settings(groups=["ops"]), new.settings())
    groups = [
        answer_of(one.sign(REQUEST), REQUEST, both, later(REQUEST, 1)).person.groups for one in (old, new)
    ]
    assert groups == [(), ("finance",)]


def test_an_issuer_speaks_only_of_his_groups() -> None:
    token = DESK.sign(REQUEST, groups=["finance", "admins", "ops"])
    for allowed, counted in [
        (["ops", "finance"], ("finance", "ops")),
        ([], ()),
        (None, ("finance", "admins", "ops")),
    ]:
        known = knowing(DESK.settings(groups=allowed))
        assert answer_of(token, REQUEST, known, later(REQUEST, 1)).person.groups == counted


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"aud": "other"}, "it is for `other`, not for `licet`"),
        ({"aud": None}, "its claim `aud`: field required"),
        ({"aud": ["LICET"]}, "it is for `LICET`, not for `licet`"),
        ({"approval": "01OTHER"}, "it answers the approval `01OTHER`, this is `01JD7MAPPROVAL`"),
        ({"approval": None}, "its claim `approval`: field required"),
        (
            {"shown": "sha256:0"},
            f"it answers another document: it says `sha256:0`, asked was `{REQUEST.shown}`",
        ),
        ({"shown": None}, "its claim `shown`: field required"),
        ({"sub": None}, "its claim `sub`: field required"),
        ({"sub": ""}, "its claim `sub`: string should have at least 1 character"),
        ({"sub": "ann\u202e"}, "its claim `sub`: it holds characters that can't be seen"),
        ({"sub": "ann\u200b"}, "its claim `sub`: it holds characters that can't be seen"),
        ({"sub": "ann "}, "its claim `sub`: it holds characters that can't be seen"),
        ({"sub": "\ud800"}, "its claim `sub`: "),
        ({"groups": ["fin\x1bance"]}, "its claim `groups.0`: it holds characters that can't be seen"),
        ({"sub": 7}, "its claim `sub`: input should be a valid string"),
        ({"jti": None}, "its claim `jti`: field required"),
        ({"iat": None}, "its claim `iat`: field required"),
        ({"exp": None}, "its claim `exp`: field required"),
        ({"exp": True}, "its claim `exp`: input should be a valid number"),
        ({"exp": "never"}, "its claim `exp`: input should be a valid number"),
        ({"exp": 10**400}, "its claim `exp`: "),
        ({"answer": "APPROVE"}, "its claim `answer`: input should be 'approve' or 'deny'"),
        ({"answer": True}, "its claim `answer`: input should be 'approve' or 'deny'"),
        ({"answer": None}, "its claim `answer`: field required"),
        ({"reviewer": "Human"}, "its claim `reviewer`: input should be 'human' or 'auto'"),
        ({"groups": "finance"}, "its claim `groups`: input should be a valid list"),
        ({"groups": ["g"] * 101}, "its claim `groups`: list should have at most 100 items"),
        ({"scope": "forever"}, "its claim `scope`: input should be 'once', 'session' or 'shape'"),
        ({"uses": 0}, "its claim `uses`: input should be greater than or equal to 1"),
        ({"uses": True}, "its claim `uses`: input should be a valid integer"),
        ({"expires": -1}, "its claim `expires`: input should be greater than 0"),
    ],
)
def test_each_claim_that_is_wrong_is_named(claims: dict[str, Any], message: str) -> None:
    assert refused(sign_raw(DESK.claims(REQUEST, **claims))).startswith(message)


def sign_raw(claims: object) -> str:
    """A token of claims that a library might not sign."""
    signed = f"{part({'alg': 'EdDSA', 'typ': 'JWT'})}.{part(claims)}"
    return f"{signed}.{part(DESK.private.sign(signed.encode()))}"


@pytest.mark.parametrize(
    "claims",
    [
        b'{"iss": "desk", "iss": "desk"}',
        b'{"exp": NaN}',
        b"[]",
        b'"desk"',
        b"{",
        b"\xff",
        b"[" * 5000,
        b'{"a":' * 1500,
    ],
)
def test_claims_that_are_no_mapping_are_refused(claims: bytes) -> None:
    assert refused(sign_raw(claims)) == "what it claims can't be read as JSON"


def test_a_token_is_bounded() -> None:
    assert refused("a" * (MOST_BYTES + 1)) == f"it has {MOST_BYTES + 1} bytes, at most {MOST_BYTES} are read"
    long = DESK.sign(REQUEST, reason="x" * 10_000)
    found = answer_of(long, REQUEST, KNOWN, later(REQUEST, 1))
    assert (len(found.reason), found.reason[-1]) == (500, "…")


@pytest.mark.parametrize("text", ["", " ", "a.b", "a.b.c.d", "a..c", "é.b.c", "a b.c.d", "=.=.=", "a.b.c\0"])
def test_what_is_no_token_is_refused(text: str) -> None:
    assert refused(text) in ("it is no signed JWT of three parts", "it is not spelled as it was signed")


def test_time_is_over_by_whichever_clock_says_so() -> None:
    token = DESK.sign(REQUEST)  # good for ten minutes
    assert answer_of(token, REQUEST, KNOWN, later(REQUEST, 599)).approve
    ended = "it expired at "
    assert refused(token, now=later(REQUEST, 601)).startswith(ended)
    assert refused(token, now=later(REQUEST, 601, by_wall=5)).startswith(ended)  # the wall clock was set back
    assert refused(token, now=later(REQUEST, 5, by_wall=601)).startswith(ended)  # or on
    long = DESK.sign(REQUEST, exp=2**52)
    assert answer_of(long, REQUEST, KNOWN, later(REQUEST, 3599)).approve
    for now in (
        later(REQUEST, 3600),
        later(REQUEST, 3600, by_wall=5),
        Moment(REQUEST.asked.wall - 5, 0.0, "other"),
    ):
        assert refused(long, now=now) == "the approval has expired"


@pytest.mark.parametrize("claim", ["iat", "nbf"])
def test_a_token_of_the_future_waits_for_it(claim: str) -> None:
    start = REQUEST.asked.wall
    assert answer_of(DESK.sign(REQUEST, **{claim: start + 59}), REQUEST, KNOWN, later(REQUEST, 0)).approve
    token = DESK.sign(REQUEST, **{claim: start + 62})
    assert refused(token, now=later(REQUEST, 0)).startswith("it is good only from ")
    assert answer_of(token, REQUEST, KNOWN, later(REQUEST, 3)).approve


def test_yesterdays_token_answers_yesterdays_approval() -> None:
    yesterday = asked("01YESTERDAY")
    token = DESK.sign(yesterday)
    assert answer_of(token, yesterday, KNOWN, later(yesterday, 1)).approve
    assert refused(token) == "it answers the approval `01YESTERDAY`, this is `01JD7MAPPROVAL`"


SIGNED = {name: signer.sign(REQUEST).encode() for name, signer in KEY_PAIRS.items()}


@pytest.mark.parametrize("algorithm", KEY_PAIRS)
@given(data=st.data())
def test_a_token_with_any_byte_changed_is_refused(algorithm: str, data: st.DataObject) -> None:
    signer, token = KEY_PAIRS[algorithm], SIGNED[algorithm]
    place = data.draw(st.integers(0, len(token) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda one: one != token[place]))
    changed = token[:place] + bytes([byte]) + token[place + 1 :]
    known = knowing(signer.settings())
    refused(changed.decode("latin-1"), known)
    assert answer_of(token.decode(), REQUEST, known, later(REQUEST, 1)).approve  # the twin


@given(st.text() | st.lists(st.sampled_from([part({"alg": "EdDSA"}), part({}), "", "a", "."])).map(".".join))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    refused(text)


KEY_KINDS: dict[str, Any] = {
    "P-384": ec_key(SECP384R1()),
    "Ed448": Ed448PrivateKey.generate(),
    "RSA 1024": rsa_key(65537, 1024),
}


@pytest.mark.parametrize("kind", KEY_KINDS)
def test_a_key_of_another_kind_is_none(kind: str) -> None:
    with pytest.raises(
        InvalidSettings, match="the key of the issuer `desk` is of a kind that is not used here"
    ):
        answer_of(
            DESK.sign(REQUEST),
            REQUEST,
            knowing(Signer(private=KEY_KINDS[kind]).settings()),
            later(REQUEST, 1),
        )


@pytest.mark.parametrize("key", ["x", "MAAA", "-----BEGIN PUBLIC KEY-----", "MCowBQYDK2VwAyEA"])
def test_what_is_no_key_is_told(key: str) -> None:
    with pytest.raises(InvalidSettings, match=r"^the key of the issuer `desk` is no public key$"):
        answer_of(DESK.sign(REQUEST), REQUEST, knowing({"issuer": "desk", "key": key}), later(REQUEST, 1))


def test_a_key_that_others_can_change_is_none(tmp_path: Path) -> None:
    path = Path(DESK.pem(tmp_path))
    known = knowing({"issuer": "desk", "key": str(path)})
    path.chmod(0o666)
    with pytest.raises(InvalidSettings, match="others can change the key: its mode is 0666") as problem:
        answer_of(DESK.sign(REQUEST), REQUEST, known, later(REQUEST, 1))
    assert problem.value.advice == f"`chmod 0644 {path}`"
    path.chmod(0o644)
    assert answer_of(DESK.sign(REQUEST), REQUEST, known, later(REQUEST, 1)).approve
    path.unlink()
    with pytest.raises(InvalidSettings, match="the key can't be read: no such file or directory"):
        answer_of(DESK.sign(REQUEST), REQUEST, known, later(REQUEST, 1))


def test_a_private_key_is_no_public_one(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import NoEncryption, PrivateFormat

    path = tmp_path / "private.pem"
    path.write_bytes(DESK.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(InvalidSettings, match="is no public key"):
        answer_of(
            DESK.sign(REQUEST), REQUEST, knowing({"issuer": "desk", "key": str(path)}), later(REQUEST, 1)
        )


def test_without_the_library_no_token_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    token = DESK.sign(REQUEST)
    monkeypatch.setitem(__import__("sys").modules, "jwt", None)
    with pytest.raises(AnswerRefused, match="`pyjwt` is not installed") as problem:
        answer_of(token, REQUEST, KNOWN, later(REQUEST, 1))
    assert problem.value.advice == "install what tokens need: `pip install 'licet[webhook]'`"
    assert jwt  # the twin: with it, the same token counts
    monkeypatch.undo()
    assert answer_of(token, REQUEST, KNOWN, later(REQUEST, 1)).approve
