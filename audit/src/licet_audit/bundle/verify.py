#!/usr/bin/env python3
"""Check a bundle of audit records with this file and Python 3.8 or newer, and nothing else.

BUNDLE is the directory of the bundle (unpack a ZIP file); without it, the one that this file is in.
KEY is a public key, `NAME+ID+BASE64`, or a file that holds one. Get keys, and this file, from somebody you
trust and not from the bundle: whoever made the bundle could have put others there.

Each line of output is one claim. Exit code: 0 proven, 1 tampered, 2 usage, 3 incomplete (a part of the
bundle is missing), 4 unverifiable (the checkpoint is signed by a key that you did not give).

Formats: c2sp.org/signed-note, /tlog-checkpoint, /tlog-cosignature; the Merkle tree of RFC 6962; Ed25519 of
RFC 8032; `records.proof` holds the roots of the largest parts of the tree without any of these records.
"""

import argparse
import base64
import hmac
import json
import re
from bisect import bisect_left
from datetime import datetime, timezone
from hashlib import sha256, sha512
from pathlib import Path

NOTE, COSIGNATURE = 1, 4  # signatures over a text; over a text and a time
WORDS = {1: "tampered", 3: "incomplete", 4: "unverifiable", 0: "proven"}  # the worst first
OUTSIDE = "that the records were true when they were written, that nobody else had the log's private key"

# Ed25519: a point (X, Y, Z, T) stands for x = X/Z, y = Y/Z, with T = XY/Z.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(one, two):
    a, b = (one[1] - one[0]) * (two[1] - two[0]), (one[1] + one[0]) * (two[1] + two[0])
    c, d = 2 * D * one[3] * two[3], 2 * one[2] * two[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number, point):
    total = (0, 1, 1, 0)
    while number:
        total = add(total, point) if number & 1 else total
        point, number = add(point, point), number >> 1
    return total


def point_of(data):
    """The point that 32 bytes stand for; None if they stand for none."""
    sign, y = data[31] >> 7, int.from_bytes(data, "little") & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return (x, y, 1, x * y % P)


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def verifies(public, message, signature):
    point, s = point_of(public), int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or point is None or s >= L:
        return False
    h = int.from_bytes(sha512(signature[:32] + public + message).digest(), "little") % L
    x, y, z, _ = add(times(s, BASE), times(h, (P - point[0], point[1], 1, P - point[3])))
    x, y = x * pow(z, P - 2, P) % P, y * pow(z, P - 2, P) % P
    return (y | (x & 1) << 255).to_bytes(32, "little") == signature[:32]


class Key:
    """A public key and what it signs, read from its text or from a file."""

    def __init__(self, given):
        text = Path(given).read_text("ascii") if Path(given).is_file() else given
        self.name, key_id, material = text.strip().split("+", 2)
        self.kind, self.public = unbase64(material)[0], unbase64(material)[1:]
        if len(self.public) != 32 or self.id(self.kind).hex() != key_id:
            raise ValueError("the parts of that key don't fit together")

    def id(self, kind):
        return sha256(b"%s\n%c%s" % (self.name.encode(), kind, self.public)).digest()[:4]

    def signed(self, kind, text, signatures):
        """When this key signed `text` (True for a signature without a time); None if it did not."""
        for name, data in signatures:
            if (name, data[:4]) == (self.name, self.id(kind)):
                seconds = int.from_bytes(data[4:12], "big")
                if kind == NOTE and verifies(self.public, text, data[4:]):
                    return True
                timed = b"cosignature/v1\ntime %d\n%s" % (seconds, text)
                if kind == COSIGNATURE and verifies(self.public, timed, data[12:]):
                    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
        return None


def unbase64(text):
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError("base64 in another spelling than its own")
    return data


def split(data, first=""):
    """The hashes above an empty line; of the checkpoint below: text, signatures, and what it says."""
    above, _, note = data.partition(b"\n\n") if first else (b"", b"", data)
    text, _, below = note.partition(b"\n\n")
    found = [re.fullmatch("\u2014 (\\S+) (\\S+)", line) for line in below.decode().split("\n")[:-1]]
    name, *lines = above.decode("ascii").split("\n")
    if name != first or not below.endswith(b"\n") or not all(found):
        raise ValueError(f"there should be `{first}` and a signed checkpoint")
    origin, size, root = text.decode().split("\n")[:3]
    hashes = [unbase64(line.split(" ")[-1]) for line in lines]
    signatures = [(one[1], unbase64(one[2])) for one in found]
    return hashes, text + b"\n", signatures, (origin, int(size), unbase64(root))


def node(left, right):
    return sha256(b"\x01" + left + right).digest()


def middle(start, end):
    """Where RFC 6962 divides a part of the tree."""
    return start + (1 << (end - start - 1).bit_length() - 1)


def root_of(leaves, size, hashes):
    """The root over `size` leaves, some known by their places; `hashes` are those of the rest."""
    places, rest = sorted(leaves), iter(hashes)

    def part(start, end):
        first = bisect_left(places, start)
        if first == len(places) or places[first] >= end:
            return next(rest, b"")
        if end - start == 1:
            return leaves[start]
        return node(part(start, middle(start, end)), part(middle(start, end), end))

    root = part(0, size)
    return root if next(rest, None) is None else None


def continues(old_size, old_root, size, root, hashes):
    """Whether the tree of `size` leaves begins with that of `old_size`: the consistency proof of RFC 6962."""

    def part(start, end, whole):  # the root of this part in the old tree, and in the new one
        if end == old_size:
            return (old_root,) * 2 if whole else (hashes.pop(0),) * 2
        if old_size <= middle(start, end):
            old, new = part(start, middle(start, end), whole)
            return old, node(new, hashes.pop(0))
        old, new = part(middle(start, end), end, False)
        return node(hashes[0], old), node(hashes.pop(0), new)

    return 0 < old_size <= size and part(0, size, True) == (old_root, root) and not hashes


def check_records(bundle, key, found):
    """Every line is in the tree of the checkpoint, which the key has signed."""
    proof = split((bundle / "records.proof").read_bytes(), "licet/tlog-records@v1")
    hashes, text, signatures, (origin, size, root) = proof
    if key is None:
        own = sha256(Key((bundle / "log.vkey").read_text("ascii")).public).hexdigest()
        yield 4, "signature", f"whose is the key {own}? compare it with its owner, then give --key"
    elif key.name != origin or not key.signed(NOTE, text, signatures):
        yield 1, "signature", f"the checkpoint of {origin} is not signed by the key {key.name}"
    else:
        time = key.signed(COSIGNATURE, text, signatures)
        yield 0, "signature", f"{origin} signed for {size} records, at {time} by its own clock"
    leaves, before = {}, -1
    with (bundle / "records.jsonl").open("rb") as file:
        for line in file:
            record = json.loads(line)
            if not before < record["seq"] < size:
                raise ValueError(f"after record {before} of {size} comes {record['seq']}")
            before = record["seq"]
            leaves[before] = sha256(b"\x00" + line.rstrip(b"\n")).digest()
            found["kept"].update(record.get("kept", {}).values())
    if root_of(leaves, size, hashes) != root:
        raise ValueError("a line is not as it was signed, is missing, or was added")
    yield 0, "records", f"{len(leaves)} records of {size}, each byte as it was signed"
    found["head"], whole = (origin, size, root), len(leaves) == size
    what = f"none up to record {before}" if whole else "they are a selection, of which some may be left out"
    yield (0 if whole else None), "gaps", f"{what}; what came later can't be told"


def check_anchors(bundle, witnesses, found):
    """What was seen outside the host is what the checkpoint continues."""
    receipts = sorted(bundle.glob("anchors/*/*-*"))
    for receipt in receipts:
        proof, size = (receipt.parent / "consistency").read_bytes(), int(receipt.parent.name)
        (root, *hashes), _, _, head = split(proof, "licet/tlog-consistency@v1")
        if head != found["head"] or not continues(size, root, *head[1:], hashes):
            raise ValueError(f"the checkpoint does not continue that of {size} records, which was anchored")
        text = f"{head[0]}\n{size}\n{base64.b64encode(root).decode()}\n".encode()
        seen, how = [], f"look for size {size} and root {root.hex()} at {receipt.name}"
        if receipt.name.startswith("witness-"):
            _, noted, signatures, _ = split(receipt.read_bytes())
            times = {one.name: one.signed(COSIGNATURE, noted, signatures) for one in witnesses}
            seen = [f"cosigned at {at} by {name}" for name, at in times.items() if at]
            if seen and noted != text:
                raise ValueError(f"other records were {seen[0]}")
            how = ", ".join(seen) or f"no --witness that you gave has cosigned {receipt.name}"
        elif receipt.name.startswith("timestamp-"):
            how = f"openssl ts -verify -CAfile ROOTS -digest {sha256(text).hexdigest()} -in {receipt}"
        yield (0 if seen else None), "anchor", f"{size} records: {how}"
    if not receipts:
        yield None, "anchor", "nobody outside the host has seen this log, as far as the bundle shows"


def check_content(bundle, _, found):
    """Content is what the records committed to."""
    held = {path.name for path in bundle.glob("content/*")}
    for one in sorted(held):
        data = (bundle / "content" / one).read_bytes()
        if one not in found["kept"] or hmac.new(data[:32], data[32:], "sha256").hexdigest() != one:
            raise ValueError(f"content {one} is not what a record committed to")
    if set(json.loads((bundle / "manifest.json").read_bytes())["content"]) - held:
        yield 3, "content", "some of what the manifest lists is missing"
    yield 0, "content", f"{len(held)} of {len(found['kept'])} pieces are here, as they were committed to"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--key", type=Key, help="the log's public key")
    parser.add_argument("--witness", metavar="KEY", type=Key, action="append", default=[], help="a witness's")
    parser.add_argument("bundle", metavar="BUNDLE", type=Path, nargs="?", default=Path(__file__).parent)
    given, codes, found = parser.parse_args(arguments), {0}, {"kept": set(), "head": None}
    for step, keys in ((check_records, given.key), (check_anchors, given.witness), (check_content, None)):
        try:
            for code, claim, detail in step(given.bundle, keys, found):
                codes.add(code)
                mark = {0: "ok", None: "unknown", 4: "unknown"}.get(code, "FAILED")
                print(f"{mark:8}{claim:11}{ascii(detail)[1:-1]}")
        except Exception as problem:  # whatever is in a bundle, it ends in a claim
            codes.add(3 if isinstance(problem, OSError) else 1)
            print(f"FAILED  {step.__name__[6:]:11}{type(problem).__name__}: {ascii(str(problem))[1:-1]}")
            break
    code = next(one for one in WORDS if one in codes)
    print(f"\n{WORDS[code]}; not proven: {OUTSIDE}")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
