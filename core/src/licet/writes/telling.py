"""What a run changed, as its record and its result tell it: paths, sizes and digests.

Rules this module keeps: content is hashed where it is staged, so that it can be told before it is written.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterable
from functools import cache

from licet.writes.staged import Artifact, Change, Content, Edit

_UNKNOWN = "application/octet-stream"


def changes_of(edits: Iterable[Edit]) -> tuple[Change, ...]:
    """Each change, by path."""
    found = []
    for edit in edits:
        if (change := edit.change) is not None:
            content = edit.content
            found.append(Change(edit.path, change, _artifact(edit.path, content) if content else None))
    return tuple(found)


def _artifact(path: str, content: Content) -> Artifact:
    digest = hashlib.sha256()
    for piece in content.chunks():
        digest.update(piece)
    return Artifact(path, content.size, digest.hexdigest(), _known_types().guess_type(path)[0] or _UNKNOWN)


@cache
def _known_types() -> mimetypes.MimeTypes:
    return mimetypes.MimeTypes()  # those of Python alone, so that every host guesses the same
