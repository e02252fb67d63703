"""Write a Windows library that only forwards: `forward_dll.py PATH EXPORT TARGET` (`library.function`).

Wine before 9 lacks `bcryptprimitives.dll`, from which programs written in Rust take their random numbers;
one forwarder to the old name of the same function makes pydantic and orjson load there. The CI lane needs no
compiler for Windows that way.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

PAGE, BLOCK = 0x1000, 0x200


def exports(library: str, export: str, target: str) -> bytes:
    """An export directory at `PAGE` with one name, whose address is the text that names its target."""
    texts = b"".join(text.encode("ascii") + b"\0" for text in (library, export, target))
    start = PAGE + 40 + 4 + 4 + 2
    name, function = start + len(library) + 1, start + len(library) + len(export) + 2
    directory = struct.pack("<4x4x4x7I", start, 1, 1, 1, PAGE + 40, PAGE + 44, PAGE + 48)
    return directory + struct.pack("<IIH", function, name, 0) + texts


def image(section: bytes) -> bytes:
    """A 64-bit library with one section of data."""
    dos = b"MZ" + bytes(58) + struct.pack("<I", 64)
    coff = struct.pack("<4sHHIIIHH", b"PE", 0x8664, 1, 0, 0, 0, 240, 0x2022)
    optional = struct.pack("<HBBIIIII", 0x20B, 0, 0, 0, BLOCK, 0, 0, PAGE)
    optional += struct.pack(
        "<QII6HIIIIHH", 0x180000000, PAGE, BLOCK, 6, 0, 0, 0, 6, 0, 0, 2 * PAGE, BLOCK, 0, 3, 0x100
    )
    optional += struct.pack("<QQQQII", 1 << 20, PAGE, 1 << 20, PAGE, 0, 16)
    optional += struct.pack("<II", PAGE, len(section)) + bytes(15 * 8)
    header = struct.pack("<8sIIII12xI", b".edata", len(section), PAGE, BLOCK, BLOCK, 0x40000040)
    return (dos + coff + optional + header).ljust(BLOCK, b"\0") + section.ljust(BLOCK, b"\0")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_bytes(image(exports(path.name, *sys.argv[2:])))
