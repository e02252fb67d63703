"""The way out of one run: each `connect` of its code becomes a question to its host, and then a connection.

Rules this module keeps:

- the code's own call is never executed, whatever is answered; what it gets is a socket that its host made;
- nothing here waits for a host: other calls and all else of the run go on meanwhile;
- a caller waits until it is answered, also where it said that it would not: what it gets is connected;
- what code can have going at once is bounded, and so is what one name server connection can say;
- a connection that nobody takes any more is closed.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from functools import partial

from licet.supervise.asking import Connect
from licet.supervise.courier import Answer as Told
from licet.supervise.courier import Courier
from licet.supervise.descriptors import Descriptors
from licet.supervise.notify import caller
from licet.supervise.notify.address import Place, place
from licet.supervise.notify.dns import Conversation, NoQuery
from licet.supervise.notify.listener import Listener, Question
from licet.supervise.notify.names import RESOLVER, RESOLVER_PORT, Names
from licet.supervise.wires import Wires, read

Answer = int | OSError
"""A connected descriptor, which belongs to who gets it, or why there is none."""

Ask = Callable[[str, int, Callable[[Answer], None]], None]
"""Asks the host for a connection to a name or address, and a port. The answer comes later, in the same
thread."""

MOST_ASKED = 256
"""How many connections a run can wait for at once."""

MOST_CONVERSATIONS = 64
"""How many connections to the name server a run can have; the oldest one makes room."""

_TOLD = frozenset(
    getattr(errno, name)
    for name in ("ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH")
)


class Gate:
    """Serves the listener `fd` of a run, which belongs to whoever made this, over the run's own wires."""

    def __init__(self, fd: int, wires: Wires, fds: Descriptors, ask: Ask, names: Names) -> None:
        self._fd = fd
        self._listener = Listener(fd)
        self._wires = wires
        self._fds = fds
        self._ask = ask
        self._names = names
        self._asked = 0
        self._conversations: dict[int, Conversation] = {}
        wires.listen(fd, self._on_question)

    def _on_question(self) -> None:
        question = self._listener.next()
        if question is None:
            if self._listener.over:
                self._wires.drop(self._fd)
            return
        try:
            self._take(question)
        except OSError as problem:
            self._listener.refuse(question, problem.errno or errno.EACCES)

    def _take(self, question: Question) -> None:
        """Find out what is asked, and ask for it.

        Raises:
            OSError: it is not given, with the number that the caller is to see.
        """
        first, address, last, *_ = question.arguments
        number, length = _whole(first), _whole(last)
        try:
            data = caller.memory(question.thread, address, length)
            wanted = caller.look(question.thread, number)
        except FileNotFoundError:
            raise OSError(errno.EACCES, "the caller can't be seen from here") from None
        if not self._listener.waits(question):
            return
        to = place(data, wanted.family)
        if wanted.connected:
            raise OSError(errno.EISCONN, "the socket is connected")
        if to == (RESOLVER, RESOLVER_PORT):
            self._converse(question, wanted, number)
            return
        if self._asked >= MOST_ASKED:
            raise OSError(errno.ENOBUFS, "too many connections are asked for at once")
        self._asked += 1
        to = Place(self._names.name(to.host) or to.host, to.port)
        self._ask(to.host, to.port, partial(self._on_answer, question, wanted, number))

    def _on_answer(self, question: Question, wanted: caller.Socket, number: int, answer: Answer) -> None:
        self._asked -= 1
        if isinstance(answer, OSError):
            self._listener.refuse(question, number_of(answer))
            return
        with socket.socket(fileno=answer) as connection:
            try:
                complete(connection)
            except OSError as problem:
                self._listener.refuse(question, number_of(problem))
            else:
                self._give(question, wanted, number, connection)

    def _give(
        self, question: Question, wanted: caller.Socket, number: int, connection: socket.socket
    ) -> None:
        wanted.dress(connection)
        self._listener.give(question, connection.fileno(), number, closes=wanted.closes)

    def _converse(self, question: Question, wanted: caller.Socket, number: int) -> None:
        """Let the caller talk to the name server, which is here."""
        if len(self._conversations) >= MOST_CONVERSATIONS:
            self._end(next(iter(self._conversations)))
        ours, theirs = self._fds.socketpair()
        with socket.socket(fileno=os.dup(theirs)) as connection:
            self._fds.close(theirs)
            self._give(question, wanted, number, connection)
        self._conversations[ours] = Conversation(self._names.address)
        self._wires.listen(ours, lambda: self._on_query(ours))

    def _on_query(self, fd: int) -> None:
        data = read(fd)
        if data is None:
            return
        try:
            told = self._conversations[fd].feed(data)
            if data and os.write(fd, told) == len(told):
                return
        except (NoQuery, OSError):
            pass
        self._end(fd)  # it is over, or is none, or does not listen

    def _end(self, fd: int) -> None:
        del self._conversations[fd]
        self._wires.drop(fd)


def refuse(host: str, port: int, then: Callable[[Answer], None]) -> None:
    """Answer for a host that makes no connections."""
    then(PermissionError(errno.EACCES, "nobody connects"))


def asker(courier: Courier, connect: Connect, broken: Callable[[BaseException], object]) -> Ask:
    """Ask by a courier; `broken` hears of what is no answer."""

    def ask(host: str, port: int, then: Callable[[Answer], None]) -> None:
        def tell(found: Told[int]) -> None:
            if found.value is not None:
                then(found.value)
            elif isinstance(found.problem, OSError):
                then(found.problem)
            elif found.problem is not None:
                broken(found.problem)

        courier.ask(lambda: connect(host, port), tell, os.close)

    return ask


def number_of(problem: OSError) -> int:
    """The error number by which code learns why a connection was not made."""
    if isinstance(problem, PermissionError):
        return errno.EACCES
    if isinstance(problem, TimeoutError):
        return errno.ETIMEDOUT
    return problem.errno if problem.errno is not None and problem.errno in _TOLD else errno.EHOSTUNREACH


def _whole(argument: int) -> int:
    """A number as the kernel reads it from a register that is wider."""
    return (argument & 0x7FFFFFFF) - (argument & 0x80000000)


def complete(connection: socket.socket) -> None:
    """Make sure that a connection is one for good.

    One that was made without waiting is seen as going on until somebody asks; if it broke then, code could
    connect the socket anew, by sending with `MSG_FASTOPEN`, past the call that is asked about.
    """
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        number = connection.connect_ex(connection.getpeername())
        if number not in (0, errno.EISCONN):
            raise OSError(number, os.strerror(number))
