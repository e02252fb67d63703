"""What operations on files take."""

import pytest
from licet.operations import Operation, intents_of


@pytest.mark.parametrize(
    ("operation", "paths", "taken"),
    [
        ("read", ("/a/b",), ["read /a/b"]),
        ("write", ("/a/b",), ["write /a/b"]),
        ("create", ("/a/b",), ["write /a/b"]),
        ("change", ("/a/b",), ["write /a/b"]),
        ("symlink", ("/a/b",), ["write /a/b"]),
        ("remove", ("/a/b",), ["write /a/b", "write /a"]),
        ("rename", ("/a/b", "/c/d"), ["write /a/b", "write /a", "write /c/d", "write /c"]),
        ("rename", ("/a/b", "/a/c"), ["write /a/b", "write /a", "write /a/c"]),
        ("link", ("/a/b", "/c/d"), ["write /a/b", "write /c/d", "write /c"]),
        ("remove", ("/",), ["write /"]),
    ],
)
def test_operations_take_reads_and_writes(
    operation: Operation, paths: tuple[str, ...], taken: list[str]
) -> None:
    assert [str(intent) for intent in intents_of(operation, *paths)] == taken


@pytest.mark.parametrize(("operation", "paths"), [("link", ("/a",)), ("remove", ("/a", "/b"))])
def test_the_number_of_paths_has_to_fit(operation: Operation, paths: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=f"`{operation}` takes (one path|two paths)"):
        intents_of(operation, *paths)
