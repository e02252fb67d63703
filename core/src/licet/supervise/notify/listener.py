"""Questions of the kernel about system calls that wait, and the answers to them.

Rules this module keeps:

- a call that was asked about is answered with an error or with success, and never let go on: the kernel would
  read its arguments again, after they were judged;
- whoever asked may be gone at any moment; that is no error;
- nothing here waits: a question that was taken back meanwhile is none.
"""

from __future__ import annotations

import errno
import fcntl
import select
import struct
from dataclasses import dataclass

# each of these numbers says how long its words are; a kernel with longer ones has other numbers
_RECEIVE, _ANSWER, _IS_VALID, _GIVE = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_QUESTION = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")
_GIFT = struct.Struct("=QIIII")
_AT_NUMBER = 1
_CLOSED_ON_EXECUTION = 0o2000000


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits: its number among the questions, the thread that made it, and what it was given.

    `thread` is 0 where the thread can't be seen from here.
    """

    number: int
    thread: int
    arguments: tuple[int, ...]


class Listener:
    """The descriptor over which a filter asks; it belongs to whoever made this. `over` if nobody can ask."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self.over = False

    def next(self) -> Question | None:
        """The next question; None if there is none now."""
        events = sum(found for _, found in self._poll.poll(0))
        if not events & select.POLLIN:
            self.over = bool(events)
            return None
        space = bytearray(_QUESTION.size)
        try:
            fcntl.ioctl(self._fd, _RECEIVE, space)
        except OSError:
            return None  # who asked is dead, or was interrupted
        number, thread, _, _, _, _, *arguments = _QUESTION.unpack(space)
        return Question(number, thread, tuple(arguments))

    def waits(self, question: Question) -> bool:
        """Whether it is still that call of that thread which waits."""
        try:
            fcntl.ioctl(self._fd, _IS_VALID, struct.pack("=Q", question.number))
        except OSError:
            return False
        return True

    def refuse(self, question: Question, number: int) -> None:
        """Let the call fail with an error number."""
        self._reply(question, number)

    def give(self, question: Question, fd: int, place: int, *, closes: bool) -> None:
        """Put what `fd` is in the `place` of a descriptor of the caller, and let the call succeed.

        `closes` says that a program which the caller executes is not to have it.
        """
        flags = _CLOSED_ON_EXECUTION if closes else 0
        try:
            fcntl.ioctl(self._fd, _GIVE, _GIFT.pack(question.number, _AT_NUMBER, fd, place, flags))
        except OSError as problem:
            self._reply(question, problem.errno or errno.EACCES)
        else:
            self._reply(question, 0)

    def _reply(self, question: Question, number: int) -> None:
        try:  # noqa: SIM105 - said once for each call, and cheaper so
            fcntl.ioctl(self._fd, _ANSWER, _REPLY.pack(question.number, 0, -number, 0))
        except OSError:
            pass  # who asked is gone
