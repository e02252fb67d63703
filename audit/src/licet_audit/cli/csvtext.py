"""CSV that a spreadsheet opens without doing anything.

Rules this module keeps:

- a cell that would be a formula begins with an apostrophe (OWASP, CSV injection), and every cell is quoted;
- controls, line ends, invisible and bidirectional characters are escapes, as on a terminal;
- lines end with CR LF, as RFC 4180 has them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from licet.output import escape

_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def line(cells: Iterable[object]) -> str:
    """One line with its end; None is an empty cell, the texts of a list are separated by `; `."""
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerow([cell(one) for one in cells])
    return buffer.getvalue()


def cell(value: object) -> str:
    """One cell, harmless."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return cell("; ".join(map(str, value)))
    text = escape(str(value), newlines=False)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
