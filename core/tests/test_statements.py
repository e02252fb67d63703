"""Taking lines out of code leaves code, and every other line where it was."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from licet.edits.statements import span_of, without


@pytest.mark.parametrize(
    ("code", "line", "span", "left"),
    [
        ("a = 1\nb = 2\n", 2, (2, 2), "a = 1\npass\n"),
        ("a = 1; b = 2\nc = 3", 1, (1, 1), "pass; pass\nc = 3"),
        ("é = 'ü'; f(é)\n1", 1, (1, 1), "pass; pass\n1"),
        ("f(\n  1,\n  2)\n3", 2, (1, 3), "pass\n\n\n3"),
        ("if a:\n    b()\nelse:\n    c()\n", 2, (2, 2), "if a:\n    pass\nelse:\n    c()\n"),
        ("if a:\n    b()\nelif d:\n    c()\n", 3, (3, 4), "if a:\n    b()\npass\n\n"),
        ("if a: b()\n", 1, (1, 1), "if a: pass\n"),
        ("@d\ndef f():\n    return 1\nf()", 1, (1, 3), "pass\n\n\nf()"),
        ("def f():\n    @d\n    def g(): ...\n    return g", 2, (2, 3), "def f():\n    pass\n\n    return g"),
        ("try:\n    f()\nexcept E:\n    g()\n", 3, (1, 4), "pass\n\n\n\n"),
        ("# only a comment\n1", 1, None, "# only a comment\n1"),
        ("(", 1, None, "("),
        ("a\n\x0cb\n", 2, (2, 2), "a\n\x0cpass\n"),
    ],
)
def test_a_line_takes_its_statement_with_it(
    code: str, line: int, span: tuple[int, int] | None, left: str
) -> None:
    assert span_of(code, line) == span
    assert without(code, [line]) == left


PIECES = st.sampled_from(
    [
        "a = 1\n",
        "b(); c()\n",
        "if x:\n    y()\nelse:\n    z()\n",
        "for i in (\n    1,\n):\n    f(i)\n",
        "@d\nclass A:\n    def m(self):\n        return '''\n'''\n",
        "with a as b, c:\n    x = [\n        1]\n",
        "\n# note\n",
    ]
)


@given(st.lists(PIECES, min_size=1, max_size=5).map("".join), st.sets(st.integers(1, 30), max_size=4))
def test_what_is_left_can_be_parsed_and_no_line_moves(code: str, lines: set[int]) -> None:
    left = without(code, lines)
    ast.parse(left)
    assert left.count("\n") == code.count("\n")
    gone = {n for line in lines if (span := span_of(code, line)) for n in range(span[0], span[1] + 1)}
    rows, before = left.split("\n"), code.split("\n")
    for number, (new, old) in enumerate(zip(rows, before, strict=True), 1):
        if number not in gone:
            assert new == old
