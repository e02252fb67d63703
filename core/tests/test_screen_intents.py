"""Inferred intents: actions, targets, lines and excerpts."""

from __future__ import annotations

import pytest
from licet.request import Intent
from licet.screen import screen

HEAD = "import os, shutil, glob, gzip, tarfile, zipfile, io, logging\nfrom pathlib import Path\n"

CASES: list[tuple[str, list[str]]] = [
    ('open("a")', ["read a"]),
    ('open("a", "rb")', ["read a"]),
    ('open("a", mode="w")', ["write a"]),
    ('open("a", "r+")', ["read a", "write a"]),
    ('open("a", "x")', ["write a"]),
    ('open("a", m)', ["read a", "write a"]),
    ('open("a", **k)', ["read a", "write a"]),
    ("open(*a)", ["read (unknown)", "write (unknown)"]),
    ('open(file="a")', ["read a"]),
    ("open(p)", ["read (unknown)"]),
    ("open(0)", []),
    ("open(5)", ["read (unknown)"]),
    ('P = "a"\nopen(P)', ["read a"]),
    ('P = "a"\nP = "b"\nopen(P)', ["read (unknown)"]),
    ('D = "d"\nopen(f"{D}/x" + ".csv")', ["read d/x.csv"]),
    ('open(os.path.join("d", "x"))', ["read d/x"]),
    ('open(Path("d") / "x")', ["read d/x"]),
    ('open(Path("d") / "/x")', ["read /x"]),
    ("open(io.BytesIO())", []),
    ('Path("a").read_text()', ["read a"]),
    ('p = Path("d")\n(p / "a").write_text("")', ["write d/a"]),
    ('Path("a").open("w")', ["write a"]),
    ('Path("a").parent.exists()', ["read (unknown)"]),
    ('Path("a").rename("b")', ["write a", "write b"]),
    ("q.write_bytes(b'')", ["write (unknown)"]),
    ("Path.read_text", ["read (unknown)"]),
    ("Path.exists(p)", ["read (unknown)"]),
    ('Path.open(p, "w")', ["read (unknown)", "write (unknown)"]),
    ("PurePath('a').parent", []),
    ('os.path.exists("a")', ["read a"]),
    ("os.listdir()", ["read ."]),
    ('os.listdir("d")', ["read d"]),
    ("list(map(os.remove, names))", ["write (unknown)"]),
    ('shutil.copy("a", "b")', ["read a", "write b"]),
    ('shutil.rmtree(path="d")', ["write d"]),
    ('glob.glob("d/*.csv")', ["read d"]),
    ('glob.glob("*.csv")', ["read ."]),
    ('glob.glob("/*")', ["read /"]),
    ('gzip.open("a.gz", "wt")', ["write a.gz"]),
    ('tarfile.open("a.tar", "r:xz")', ["read a.tar"]),
    ('tarfile.open(fileobj=b, mode="w")', []),
    ('t.extractall("d")', ["write d"]),
    ("zipfile.ZipFile(io.BytesIO())", []),
    ('logging.FileHandler("a.log")', ["write a.log"]),
    ("subprocess.PIPE", ["shell"]),
    ('subprocess.run(["id"])', ["shell"]),
    ("os.fork()", ["shell"]),
]


@pytest.mark.parametrize(("code", "intents"), CASES, ids=[code for code, _ in CASES])
def test_files_and_programs(code: str, intents: list[str]) -> None:
    program = "import subprocess\n" if "subprocess" in code else ""
    report = screen(HEAD + program + code)
    assert [str(intent) for intent in report.intents] == intents
    assert report.violations == ()


NETWORK: list[tuple[str, list[str]]] = [
    ("import socket", ["network (unknown)"]),
    ('import socket\nsocket.create_connection(("Example.com", 80))', ["network example.com:80"]),
    ('A = ("::1", 80)\nimport socket\nsocket.create_connection(A)', ["network [::1]:80"]),
    ("import socket\nsocket.create_connection((h, 80))", ["network (unknown)"]),
    ('import requests\nrequests.get("https://example.com/a?b")', ["network example.com:443"]),
    ('import requests\nrequests.get("http://u:p@example.com:8080/")', ["network example.com:8080"]),
    ('import requests\nrequests.get(f"https://example.com/{x}")', ["network example.com:443"]),
    ('import requests\nrequests.get(f"https://example.com{x}")', ["network (unknown)"]),
    ('import requests\nrequests.get(f"https://{x}/a")', ["network (unknown)"]),
    ('import requests\nrequests.get("https://[bad")', ["network (unknown)"]),
    ('import requests\nrequests.get("https://example.com:99999/")', ["network (unknown)"]),
    ('from urllib.request import urlopen\nurlopen("file:///etc/passwd")', ["read /etc/passwd"]),
    ('from urllib.request import urlopen as u\nu("https://example.com")', ["network example.com:443"]),
    ("import urllib.parse", []),
    ('from http.client import HTTPConnection\nHTTPConnection("example.com")', ["network example.com:80"]),
    ('import http.client\nhttp.client.HTTPSConnection("example.com", 8443)', ["network example.com:8443"]),
    ('import asyncio\nasyncio.open_connection("example.com", 25)', ["network example.com:25"]),
    ('import asyncio\nasyncio.create_subprocess_exec("id")', ["shell"]),
    ("import sqlite3\nsqlite3.connect('x')", ["read (unknown)", "write (unknown)"]),
    ('import pandas as pd\npd.read_csv("a.csv")', ["read a.csv"]),
]


@pytest.mark.parametrize(("code", "intents"), NETWORK, ids=[code for code, _ in NETWORK])
def test_network(code: str, intents: list[str]) -> None:
    report = screen(code)
    assert [str(intent) for intent in report.intents] == intents
    assert report.violations == ()


def test_an_intent_has_its_first_line_and_the_code_that_showed_it() -> None:
    code = 'x = 1\nüber = open("ä.txt")\nopen("ä.txt")\n'
    (intent,) = screen(code).intents
    assert intent == Intent("read", "ä.txt", "inferred", 2, excerpt='open("ä.txt")')


def test_an_excerpt_is_short_and_stays_on_its_line() -> None:
    (intent,) = screen('open(\n  "a"\n)').intents
    assert (intent.line, intent.excerpt) == (1, "open(")
    (intent,) = screen(f'open("{"a" * 200}")').intents
    assert intent.excerpt == 'open("' + "a" * 74


def test_a_use_says_more_than_the_import() -> None:
    (intent,) = screen("import subprocess\n\nsubprocess.run(x)").intents
    assert (str(intent), intent.line) == ("shell", 3)
    (intent,) = screen("import subprocess").intents
    assert (str(intent), intent.line, intent.excerpt) == ("shell", 1, "import subprocess")


def test_too_many_intents_are_refused_and_not_cut_short() -> None:
    report = screen("\n".join(f'open("f{number}")' for number in range(201)))
    assert [item.code for item in report.violations] == ["too_complex"]
    assert len(report.intents) == 200


def test_violations_say_what_where_and_what_to_do() -> None:
    report = screen('x = 1\neval("2")\n')
    (found,) = report.violations
    assert (found.code, found.line) == ("dynamic_code", 2)
    assert found.message == "`eval`: text or an object is turned into code at run time"
    assert found.advice == "write the code itself; `ast.literal_eval` or `json.loads` read data"


def test_denied_modules_are_refused_with_what_is_below_them() -> None:
    denied = frozenset({"math", "xml.etree", "collections.abc"})

    def lines(code: str) -> list[tuple[str, int | None]]:
        return [(item.code, item.line) for item in screen(code, denied_modules=denied).violations]

    assert lines("import json\nimport math") == [("module_denied", 2)]
    assert lines("from math import pi") == [("module_denied", 1)]
    assert lines("import xml.etree.ElementTree as ET") == [("module_denied", 1)]
    assert lines("from collections import abc") == [("module_denied", 1)]
    assert lines("import mathematics, xml.dom, collections") == []
