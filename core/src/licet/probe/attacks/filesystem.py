"""Reading and writing what was not opened: directly, through links, through `..`, through system grants.

Most targets lie below the folder for temporary files, which many a sandbox replaces by one of its own; so
`elsewhere` attacks aim at the user's home and at other folders that all may write to.
"""

from __future__ import annotations

from functools import partial

from licet.contract import Control
from licet.plan import Opened
from licet.probe.attack import Attack, Proof
from licet.probe.attacks.shared import ON_LINUX, ON_POSIX, UNREADABLE, in_child, in_each, no_os
from licet.probe.conditions import Condition
from licet.request import Action

_WORK = Opened(read=("{WORK}",), write=("{WORK}",))
_READS: dict[Action, str] = {"read": "assert open('{ALLOWED_FILE}').read() == 'allowed'"}
_WRITES: dict[Action, str] = {
    "write": "allowed = open('{WORK}/allowed.out', 'w')\nallowed.write('x')\nallowed.close()"
}
_ELSEWHERE = frozenset({Condition.folders})
_UNWRITABLE = (*UNREADABLE, "OSError EROFS", "OSError EXDEV")


def _show(path: str) -> str:
    return _show_named(f"'{path}'")


def _show_named(name: str) -> str:
    return f"print(open({name}).read(), flush=True)"


_read = partial(
    Attack,
    Control.filesystem_read_deny,
    held_by=UNREADABLE,
    proofs=(Proof.text,),
    allowed=_READS,
    opens=_WORK,
)

READ = (
    _read("file", "read a file outside of what is opened", act=_show("{SECRET_FILE}"), quick=True),
    _read(
        "elsewhere",
        "read a file in the home, or in another folder that all may write to",
        act=in_each("path", "{SECRET_FILES_ELSEWHERE}", _show_named("path")),
        needs=_ELSEWHERE,
        quick=True,
    ),
    _read(
        "system", "read a file of the system", act=_show("{SYSTEM_FILE}"), quick=True, text="{SYSTEM_TEXT}"
    ),
    _read(
        "symlink",
        "follow a link from an opened folder to a file outside",
        act=_show("{SECRET_LINK}"),
        needs=ON_POSIX,
        quick=True,
    ),
    _read(
        "linked_folder",
        "go through a link to a folder outside",
        act=_show("{OUTSIDE_LINK}/secret.txt"),
        needs=ON_POSIX,
    ),
    _read(
        "hard_link",
        "give a file outside a name inside",
        act="import os\nos.link('{SECRET_FILE}', '{WORK}/inside')\n" + _show("{WORK}/inside"),
        held_by=_UNWRITABLE,
        inexpressible=no_os("link"),
        needs=ON_POSIX,
    ),
    _read(
        "system_grant",
        "read what lies beside a folder of the system that is opened",
        act=_show("/usr/../etc/passwd"),
        text="{SYSTEM_TEXT}",
        opens=Opened(read=("{WORK}", "/usr"), write=("{WORK}",)),
        needs=ON_POSIX,
    ),
    _read("dotdot", "leave an opened folder by `..`", act=_show("{SECRET_BY_DOTS}")),
    _read(
        "own_root",
        "read past the root that the process shows",
        act=_show("/proc/self/root{SECRET_FILE}"),
        needs=ON_LINUX,
    ),
    _read(
        "listing",
        "list a folder outside of what is opened",
        act="import os\nprint(os.listdir('{OUTSIDE}'), flush=True)",
        text="{SECRET_NAME}",
    ),
    _read(
        "other_flags",
        "read a file from an interpreter with other flags",
        act=in_child('print(open("{SECRET_FILE}").read(), flush=True)'),
        inexpressible=no_os("posix_spawn"),
        needs=ON_POSIX,
        opens=Opened(read=("{WORK}",), write=("{WORK}",), shell=True),
    ),
)


_write = partial(
    Attack,
    Control.filesystem_write_deny,
    held_by=_UNWRITABLE,
    proofs=(Proof.struck,),
    allowed=_WRITES,
    opens=_WORK,
)


def _into(path: str, mode: str) -> str:
    return _into_named(f"'{path}'", mode)


def _into_named(name: str, mode: str) -> str:
    return f"file = open({name}, '{mode}')\nfile.write('struck')\nfile.close()"


WRITE = (
    _write("create", "make a file outside of what is opened", act=_into("{CANARY_FILE}", "w"), quick=True),
    _write("change", "change a file outside of what is opened", act=_into("{VICTIM_FILE}", "a"), quick=True),
    _write(
        "create_elsewhere",
        "make a file in the home, or in another folder that all may write to",
        act=in_each("path", "{CANARY_FILES_ELSEWHERE}", _into_named("path", "w")),
        needs=_ELSEWHERE,
        quick=True,
    ),
    _write(
        "change_elsewhere",
        "change a file in the home, or in another folder that all may write to",
        act=in_each("path", "{VICTIM_FILES_ELSEWHERE}", _into_named("path", "a")),
        needs=_ELSEWHERE,
        quick=True,
    ),
    _write(
        "symlink",
        "write through a link to a file outside",
        act=_into("{VICTIM_LINK}", "a"),
        needs=ON_POSIX,
        quick=True,
    ),
    _write("dotdot", "leave an opened folder by `..`", act=_into("{VICTIM_BY_DOTS}", "a")),
    _write("delete", "delete a file outside", act="import os\nos.remove('{VICTIM_FILE}')"),
    _write(
        "hard_link",
        "write through a hard link to a file outside",
        act="import os\nos.link('{VICTIM_FILE}', '{WORK}/inside')\n" + _into("{WORK}/inside", "a"),
        inexpressible=no_os("link"),
        needs=ON_POSIX,
    ),
    _write(
        "linked_folder",
        "go through a link to a folder outside",
        act=_into("{VICTIM_IN_LINK}", "a"),
        needs=ON_POSIX,
    ),
    _write(
        "move",
        "move a file from outside to inside",
        act="import os\nos.rename('{VICTIM_FILE}', '{WORK}/moved')",
    ),
    _write(
        "mode",
        "change who may read a file outside",
        act="import os\nchange = os.chmod\nchange('{VICTIM_FILE}', 0o600)",
        inexpressible=no_os("chmod"),
        needs=ON_POSIX,
    ),
    _write(
        "other_flags",
        "write a file from an interpreter with other flags",
        act=in_child('open("{CANARY_FILE}", "w").close()'),
        inexpressible=no_os("posix_spawn"),
        needs=ON_POSIX,
        opens=Opened(read=("{WORK}",), write=("{WORK}",), shell=True),
    ),
)
