"""A bundle proves itself with a script and Python alone, and shows whatever was changed in it."""

import ast
import errno
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import example, given, settings
from hypothesis import strategies as st
from licet.errors import AuditUnavailable, UsageError
from licet.record import AnchorReceipt, Entry, Kept, Record
from licet.state import StateDirectory
from licet_audit import bundle, contents
from licet_audit.anchors import receipts
from licet_audit.bundle.writing import write
from licet_audit.checkpointer import Notary
from licet_audit.exports import Export
from licet_audit.keys import signer
from licet_audit.notes import COSIGNATURE, Head, Note, Signature, Signer
from licet_audit.prover import Prover
from licet_audit.reader import LogReader
from licet_audit.selection import Selection

SCRIPT = Path(str(bundle.__file__)).parent / "verify.py"
Ran = SimpleNamespace


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bundle_verify", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script: Any = _script()


@pytest.fixture
def log(
    state: StateDirectory, append: Callable[..., list[Record]], entry: Callable[..., Entry]
) -> StateDirectory:
    """Thirty runs of four records each, interwoven; the code of run 3 is kept."""
    kept = Kept("code", b"print(1)")
    contents.store(state, [kept])
    batches = [
        [
            Entry(
                "request",
                f"RUN{run:02d}",
                {"n": n},
                f"2026-11-{1 + run % 28:02d}T0{n}:00:00.000000000Z",
                1,
                kept=(kept,) if (run, n) == (3, 0) else (),
            )
            for run in range(30)
        ]
        for n in range(4)
    ]
    append(*batches)
    Notary(state).checkpoint()
    return state


@pytest.fixture
def export(log: StateDirectory, tmp_path: Path) -> Callable[..., Path]:
    """Write a bundle and return its place."""

    def to(name: str = "bundle", *, content: bool = False, **selected: Any) -> Path:
        options = {"output": str(tmp_path / name), "content": content}
        assert write(Export(LogReader(log), Selection(**selected), options)) == 0
        return tmp_path / name

    return to


def run(place: Path, *arguments: str) -> Ran:
    """Run the script that is in a bundle, as an auditor does: apart from licet and all it needs."""
    command = [sys.executable, "-I", "-S", str(place / "verify.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=place)
    claims = {line[8:19].strip(): (line[:8].strip(), line[19:]) for line in done.stdout.splitlines() if line}
    return Ran(code=done.returncode, claims=claims, out=done.stdout, err=done.stderr)


def check(place: Path, *arguments: str) -> Ran:
    """Run the script in this process, which is quicker."""
    return script.main([*arguments, str(place)])  # type: ignore[no-any-return]


def key_of(state: StateDirectory) -> str:
    return str(signer(state).key)


def test_the_script_is_short_for_old_pythons_and_needs_nothing() -> None:
    text = SCRIPT.read_text("utf-8")
    assert text.count("\n") < 250
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in ([one.name for one in node.names] if isinstance(node, ast.Import) else [])
        + ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
    }
    assert imported <= sys.stdlib_module_names


def test_a_whole_log_proves_itself(log: StateDirectory, export: Callable[..., Path]) -> None:
    ran = run(export(), "--key", key_of(log))
    assert (ran.code, ran.err) == (0, "")
    size = Prover(log).head.size
    assert ran.claims["records"] == ("ok", f"{size} records of {size}, each byte as it was signed")
    assert ran.claims["gaps"][0] == "ok"
    assert ran.claims["signature"][0] == "ok"
    assert ran.claims["anchor"][0] == "unknown"
    assert "proven; not proven: " in ran.out


def test_a_selection_proves_itself_and_says_that_it_is_one(
    log: StateDirectory, export: Callable[..., Path]
) -> None:
    place = export(runs=("RUN03", "RUN17"))
    ran = run(place, "--key", key_of(log))
    assert ran.code == 0
    assert ran.claims["gaps"] == (
        "unknown",
        "they are a selection, of which some may be left out; what came later can't be told",
    )
    manifest = json.loads((place / "manifest.json").read_text())
    assert (manifest["records"], manifest["content"], manifest["commitments"]) == (8, [], 1)
    lines = (place / "records.jsonl").read_bytes().splitlines()
    assert {json.loads(line)["run_id"] for line in lines} == {"RUN03", "RUN17"}


def test_a_period_holds_the_runs_that_began_in_it_whole(
    log: StateDirectory, export: Callable[..., Path]
) -> None:
    place = export(since="2026-11-05T00:00:00.000000000Z", until="2026-11-06T00:00:00.000000000Z")
    lines = (place / "records.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["run_id"] for line in lines] == ["RUN04"] * 4


def test_without_a_key_nothing_is_trusted(log: StateDirectory, export: Callable[..., Path]) -> None:
    ran = run(export())
    assert ran.code == 4
    fingerprint = signer(log).key.fingerprint
    assert ran.claims["signature"] == (
        "unknown",
        f"whose is the key {fingerprint}? compare it with its owner, then give --key",
    )


def test_another_key_is_not_taken_for_the_logs(log: StateDirectory, export: Callable[..., Path]) -> None:
    place = export()
    name = signer(log).key.name
    assert check(place, "--key", str(Signer(name, b"x" * 32).key)) == 1
    assert check(place, "--key", str(Signer("another", b"x" * 32).key)) == 1
    assert run(place, "--key", "rubbish+00000000+AAAA").code == 2
    assert run(place, "--key", "gone").code == 2


def test_kept_content_comes_only_when_asked_for_and_checks(
    log: StateDirectory, export: Callable[..., Path]
) -> None:
    place = export(content=True)
    (piece,) = (place / "content").iterdir()
    assert piece.read_bytes()[32:] == b"print(1)"
    assert run(place, "--key", key_of(log)).claims["content"] == (
        "ok",
        "1 of 1 pieces are here, as they were committed to",
    )
    piece.write_bytes(piece.read_bytes()[:-1] + b"2")
    assert check(place, "--key", key_of(log)) == 1
    piece.unlink()
    assert check(place, "--key", key_of(log)) == 3
    (place / "content" / ("0" * 64)).write_bytes(b"smuggled")
    assert check(place, "--key", key_of(log)) == 1


def test_altered_content_does_not_come_along(log: StateDirectory, export: Callable[..., Path]) -> None:
    (path,) = (log.path / "content").glob("*/*")
    path.write_bytes(b"s" * 32 + b"print(2)")
    assert not (export(content=True) / "content").exists()


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a byte": lambda data: data.replace(b'"n":1', b'"n":2', 1),
    "a line less": lambda data: b"".join(data.splitlines(keepends=True)[1:]),
    "the last line less": lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
    "two lines exchanged": lambda data: b"".join(
        [data.splitlines(keepends=True)[one] for one in (1, 0, *range(2, 8))]
    ),
    "a line twice": lambda data: data + data.splitlines(keepends=True)[-1],
    "a line more": lambda data: data + b'{"kept":{},"seq":9999}\n',
    "no record": lambda data: b"[]\n" + data,
    "no JSON": lambda data: b"\xff\n" + data,
    "nothing": lambda data: b"",
}


@pytest.mark.parametrize("change", CHANGES)
def test_records_that_were_changed_are_found(
    change: str, log: StateDirectory, export: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = export(runs=("RUN03", "RUN17"))
    records = place / "records.jsonl"
    records.write_bytes(CHANGES[change](records.read_bytes()))
    assert check(place, "--key", key_of(log)) == 1
    assert "FAILED  records    " in capsys.readouterr().out


@pytest.mark.parametrize("name", ["records.jsonl", "records.proof", "manifest.json"])
def test_what_is_missing_makes_it_incomplete(
    name: str, log: StateDirectory, export: Callable[..., Path]
) -> None:
    place = export()
    (place / name).unlink()
    ran = run(place, "--key", key_of(log))
    assert (ran.code, ran.err) == (3, "")


def test_a_forger_with_a_key_of_his_own_is_found(log: StateDirectory, export: Callable[..., Path]) -> None:
    place = export()
    forger = Signer(signer(log).key.name, b"f" * 32)
    proof = (place / "records.proof").read_bytes()
    above, _, below = proof.partition(b"\n\n")
    forged = forger.sign(Head.parse(Note.parse(below).text), 1_800_000_000)
    (place / "records.proof").write_bytes(above + b"\n\n" + forged.data)
    (place / "log.vkey").write_text(f"{forger.key}\n")
    assert run(place).code == 4
    assert check(place, "--key", key_of(log)) == 1


def test_anchors_come_with_the_proof_that_the_checkpoint_continues_them(
    log: StateDirectory, export: Callable[..., Path]
) -> None:
    prover = Prover(log)
    witness = Ed25519PrivateKey.from_private_bytes(b"w" * 32)
    seen = Signer("w.example/1", b"w" * 32).key.of_kind(COSIGNATURE)
    text = prover.head_at(40).text
    message = b"cosignature/v1\ntime 1800000000\n" + text
    line = _signature(seen.name, seen.key_id, (1_800_000_000).to_bytes(8, "big") + witness.sign(message))
    receipts.store(log, 40, AnchorReceipt("witness", seen.name, text + b"\n" + line))
    receipts.store(log, 50, AnchorReceipt("timestamp", "http://t/", b"opaque"))
    receipts.store(log, 60, AnchorReceipt("file", "/mnt/worm", b"note"))
    receipts.store(log, 70, AnchorReceipt("witness", "broken", b"rubbish"))
    place = export(runs=("RUN03",))
    trusted = ("--key", key_of(log), "--witness", str(seen))
    ran = run(place, *trusted)
    assert ran.code == 0
    assert "40 records: cosigned at 2027-01-15T08:00:00+00:00 by w.example/1\n" in ran.out
    stamp = hashlib.sha256(prover.head_at(50).text).hexdigest()
    assert f"50 records: openssl ts -verify -CAfile ROOTS -digest {stamp} -in " in ran.out
    assert f"root {prover.head_at(60).root.hex()} at file-%2Fmnt%2Fworm\n" in ran.out
    assert "40 records: no --witness that you gave has cosigned" in run(place, "--key", key_of(log)).out
    other = Signer("w.example/1", b"x" * 32).key.of_kind(COSIGNATURE)
    assert "no --witness that" in run(place, *trusted[:2], "--witness", str(other)).out
    cosigned = place / "anchors" / f"{40:020d}" / "witness-w.example%2F1"
    message = b"cosignature/v1\ntime 1800000000\n" + prover.head_at(41).text
    line = _signature(seen.name, seen.key_id, (1_800_000_000).to_bytes(8, "big") + witness.sign(message))
    honest = cosigned.read_bytes()
    cosigned.write_bytes(prover.head_at(41).text + b"\n" + line)
    assert check(place, *trusted) == 1
    cosigned.write_bytes(honest)
    assert check(place, *trusted) == 0
    proof = place / "anchors" / f"{40:020d}" / "consistency"
    shutil.copyfile(place / "anchors" / f"{50:020d}" / "consistency", proof)
    assert check(place, *trusted) == 1


def _signature(name: str, key_id: bytes, data: bytes) -> bytes:
    return Signature(name, key_id, data).line.encode()


def test_the_same_records_make_the_same_bytes(export: Callable[..., Path]) -> None:
    first, second = export("a"), export("b")
    names = sorted(path.relative_to(first) for path in first.rglob("*"))
    assert names == sorted(path.relative_to(second) for path in second.rglob("*"))
    for name in names:
        assert (first / name).is_dir() or (first / name).read_bytes() == (second / name).read_bytes()
    assert export("a.zip").read_bytes() == export("b.zip").read_bytes()


def test_a_zip_file_holds_the_same_files(
    log: StateDirectory, export: Callable[..., Path], tmp_path: Path
) -> None:
    folder, packed = export("a", content=True), export("b.zip", content=True)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path / "unpacked")
    for path in folder.rglob("*"):
        other = tmp_path / "unpacked" / path.relative_to(folder)
        assert path.is_dir() or path.read_bytes() == other.read_bytes()
    assert check(tmp_path / "unpacked", "--key", key_of(log)) == 0


def test_nothing_is_overwritten_and_nothing_half_is_left(
    log: StateDirectory, export: Callable[..., Path], tmp_path: Path
) -> None:
    for name in ("bundle", "bundle.zip"):
        export(name)
        with pytest.raises(UsageError, match=rf"^`.*/{name}` exists already$"):
            export(name)
    for name in ("none", "none.zip"):
        with pytest.raises(UsageError, match=r"^no signed record is selected$"):
            export(name, runs=("RUN99",))
    path = next((log.path / "log").iterdir())
    path.write_bytes(path.read_bytes().replace(b'"n":1', b'"n":2', 1))
    for name in ("bad", "bad.zip"):
        with pytest.raises(AuditUnavailable, match=r"^the records are not those that were signed$"):
            export(name)
    assert sorted(one.name for one in tmp_path.iterdir()) == [".licet", "bundle", "bundle.zip", "home"]


def test_a_medium_without_links_takes_a_bundle_too(
    export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    expected = export("a.zip").read_bytes()
    monkeypatch.setattr(os, "link", link)
    assert export("b.zip").read_bytes() == expected
    with pytest.raises(UsageError, match=r"^`.*/b.zip` exists already$"):
        export("b.zip")


# RFC 8032, 7.1, tests 1, 2, 3 and SHA(abc): public key, message, signature.
RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").hexdigest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
]


@pytest.mark.parametrize(("public", "message", "signature"), RFC_8032)
def test_signatures_of_the_rfc_verify(public: str, message: str, signature: str) -> None:
    parts = [bytes.fromhex(one) for one in (public, message, signature)]
    assert script.verifies(*parts)
    assert not script.verifies(parts[0], parts[1] + b"x", parts[2])


def _openssl_verifies(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@settings(deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.data())
def test_any_signature_is_judged_as_openssl_does(seed: bytes, message: bytes, data: st.DataObject) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public, signature = private.public_key().public_bytes_raw(), bytearray(private.sign(message))
    assert script.verifies(public, message, bytes(signature))
    if data.draw(st.booleans()):  # the same number in another spelling
        s = int.from_bytes(signature[32:], "little") + script.L
        signature[32:] = s.to_bytes(32, "little")
    else:
        signature[data.draw(st.integers(0, 63))] ^= data.draw(st.integers(1, 255))
    assert script.verifies(public, message, bytes(signature)) == _openssl_verifies(
        public, message, bytes(signature)
    )


@settings(deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
@example(b"\1" + bytes(31), b"\1" + bytes(63))  # a point of small order signs everything
@example(bytes(32), bytes(64))
def test_any_key_is_judged_as_openssl_does(public: bytes, signature: bytes) -> None:
    assert script.verifies(public, b"m", signature) == _openssl_verifies(public, b"m", signature)


@pytest.mark.parametrize(
    "public", [b"\xee" + b"\xff" * 30 + b"\x7f", b"\1" + bytes(30) + b"\x80"], ids=["y is p + 1", "x is -0"]
)
def test_a_key_in_another_spelling_is_none_as_the_rfc_has_it(public: bytes) -> None:
    assert _openssl_verifies(public, b"m", b"\1" + bytes(63))  # which is more lenient
    assert not script.verifies(public, b"m", b"\1" + bytes(63))
