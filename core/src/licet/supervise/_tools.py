"""Tools in the guest: functions that ask the host over the private channel, and wait for its reply.

It runs in the guest, sent by the host to code that has tools. Rules this module keeps:

- only the process that was started calls, and no fork of it, which would take the replies of others;
- any thread may call; of those who wait one reads for all, and each gets the reply to its own call;
- arguments leave as text whatever they are: what has no wire form is marked there, and the host refuses it;
- an async tool that is called where an event loop runs gives a coroutine, which leaves the loop free. Who
  reads for it is a thread; where none can be started, the loop waits.
"""

from __future__ import annotations

import _thread
import marshal
import sys

if sys.platform == "win32":
    import nt as posix
else:
    import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import CodeType, FrameType
    from typing import Any

CHUNK = 1 << 16
BAD_DESCRIPTOR = 9
TOO_MUCH = '{"$type":"omitted","reason":"budget","count":null}'
NATIVES: Any = __builtins__  # as they were before the code could replace any


class _Waiter:
    """Who waits for a reply, or for its turn to read."""

    __slots__ = ("gate", "reply", "tell")

    def __init__(self, tell: Callable[[], object] | None = None) -> None:
        self.reply: tuple[Any, ...] | None = None
        self.tell = tell
        self.gate = _thread.allocate_lock()
        self.gate.acquire()

    def wake(self) -> None:
        if self.tell is not None:
            self.tell()
        elif self.gate.locked():
            self.gate.release()


class Line:
    """The guest's end of all calls. `sending` is held by whoever writes to the channel."""

    def __init__(
        self, channel: int, process: int, settings: dict[str, Any], unpack: Any, sending: Any
    ) -> None:
        self._sending = sending
        self._channel = channel
        self._process = process
        self._thread = _thread.get_ident()
        self._settings = settings
        self._names: dict[str, Any] = {}
        self._unpack = unpack
        self._values: dict[str, dict[str, Any]] | None = None
        self._own: set[CodeType] | None = None
        self._guard = _thread.allocate_lock()
        self._waiting: dict[int, _Waiter] = {}  # by the number of the call; 0 is whoever reads for loops
        self._number = 0
        self._awaited: set[int] = set()
        self._led = False
        self._gone = False
        self._buffer = bytearray()

    def tools(self, names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
        """The functions that code calls whose global names are `names`."""
        self._names = names
        return {name: self._tool(name, is_async) for name, is_async in self._settings["tool_names"]}

    def _tool(self, name: str, is_async: bool) -> Callable[..., Any]:

        def tool(*args: Any, **kwargs: Any) -> Any:
            if posix.getpid() != self._process:
                raise RuntimeError(f"{name}() is called by the process that was started, and not by a fork")
            line = self._line(sys._getframe(1))
            if is_async and _loop() is not None:
                return self._later(name, line, args, kwargs)
            try:
                return self._now(name, line, args, kwargs)
            except BaseException as problem:
                raise problem.with_traceback(None)  # noqa: B904 - who reads it looks for lines of the code

        tool.__name__ = tool.__qualname__ = name
        tool.__module__ = "__main__"
        return tool

    # -- calls

    def _now(self, name: str, line: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        text, waiter = self._text(args, kwargs), _Waiter()
        number = self._begin(waiter)
        try:
            self._send(number, name, line, text)
            self._read_until(lambda: waiter.reply is not None, waiter)
        finally:
            self._leave(number)
        return self._value(waiter)

    def _later(
        self, name: str, line: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Coroutine[Any, Any, Any]:
        async def call() -> Any:
            loop: Any = _loop()
            future = loop.create_future()

            def arrived() -> None:
                if not future.done():
                    future.set_result(None)

            def tell() -> None:
                try:  # noqa: SIM105 - contextlib is not there
                    loop.call_soon_threadsafe(arrived)
                except RuntimeError:
                    pass  # the loop is closed, and nobody waits

            waiter = _Waiter(tell)
            text = self._text(args, kwargs)
            number = self._begin(waiter, awaited=True)
            if number == 0:
                return self._now(name, line, args, kwargs)
            self._send(number, name, line, text)
            await future
            return self._value(waiter)

        call.__name__ = call.__qualname__ = name
        return call()

    def _text(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The arguments in wire form."""
        values = self._loaded()
        encode, show = values["encode"], values["show"]["repr_bounded"]
        text: str = encode["write"](encode["encode"]([[*args], kwargs], *self._settings["call_budget"], show))
        return text if len(text) <= self._settings["call_limit"] else TOO_MUCH

    def _value(self, waiter: _Waiter) -> Any:
        if waiter.reply is None:
            raise RuntimeError("the host answers no calls any more")
        _, error, tree = waiter.reply
        if error is not None:
            raise NATIVES[error[0]](error[1])
        return self._loaded()["decode"]["decode"](tree, tuple, tuple)

    def _loaded(self) -> dict[str, dict[str, Any]]:
        if self._values is None:
            self._values = self._unpack(self._settings["crossing"])
        return self._values

    # -- the line of a call

    def _line(self, caller: FrameType) -> int:
        """Where the code itself calls, 0 if it is called from elsewhere."""
        if caller.f_globals is not self._names:
            return 0
        if self._own is None:
            self._own = _codes(self._main())
        return caller.f_lineno or 0 if caller.f_code in self._own else 0

    def _main(self) -> CodeType | None:
        """The code as a whole, if it still runs."""
        frame, found = sys._current_frames().get(self._thread), None
        while frame is not None:
            if frame.f_globals is self._names:
                found = frame.f_code
            frame = frame.f_back
        return found

    # -- the channel

    def _begin(self, waiter: _Waiter, *, awaited: bool = False) -> int:
        """Give a call its number; 0 if it is to be awaited and nobody can read for it."""
        with self._guard:
            if awaited and 0 not in self._waiting:
                reader = _Waiter()
                try:
                    _thread.start_new_thread(self._read_for_loops, (reader,))
                except RuntimeError:
                    return 0
                self._waiting[0] = reader
            self._number += 1
            self._waiting[self._number] = waiter
            if awaited:
                self._awaited.add(self._number)
            return self._number

    def _leave(self, number: int) -> None:
        """Wait no more, perhaps for no reply; who was to read instead may be this one."""
        with self._guard:
            self._waiting.pop(number, None)
            if not self._led:
                self._let_another_read()

    def _send(self, number: int, name: str, line: int, text: str) -> None:
        called = name.encode()
        head = b"C" + number.to_bytes(4, "big") + line.to_bytes(4, "big") + len(called).to_bytes(2, "big")
        body = head + called + text.encode("ascii")
        data = len(body).to_bytes(4, "big") + body
        try:
            with self._sending:
                while data:
                    data = data[posix.write(self._channel, data) :]
        except OSError as problem:
            if not _is_loss(problem):
                raise
            with self._guard:
                self._lose()

    def _read_for_loops(self, reader: _Waiter) -> None:
        """Read as long as a call is awaited."""
        self._read_until(lambda: not self._awaited, reader)

    def _read_until(self, enough: Callable[[], bool], waiter: _Waiter) -> None:
        """Wait until it is enough, and read whenever nobody else does."""
        while True:
            with self._guard:
                if self._gone or enough():
                    if self._waiting.get(0) is waiter:
                        del self._waiting[0]
                    return
                leads = not self._led
                self._led = True
            if not leads:
                waiter.gate.acquire()
                continue
            reply = None
            try:
                reply = self._read()
            finally:
                with self._guard:
                    self._led = False
                    self._hand_out(reply)
                    if reply is None or enough():
                        self._let_another_read(but=waiter)

    def _read(self) -> tuple[Any, ...] | None:
        """The next reply; None once the host has closed the channel."""
        held = self._buffer
        while len(held) < 4 or len(held) < 4 + int.from_bytes(held[:4], "big"):
            try:
                piece = posix.read(self._channel, CHUNK)
            except OSError as problem:
                if not _is_loss(problem):
                    raise
                piece = b""
            if not piece:
                self._gone = True
                return None
            held += piece
        size = 4 + int.from_bytes(held[:4], "big")
        reply: tuple[Any, ...] = marshal.loads(held[4:size])
        del held[:size]
        return reply

    def _hand_out(self, reply: tuple[Any, ...] | None) -> None:
        """Wake whom a reply is for."""
        if self._gone:
            self._lose()
        if reply is None:
            return
        waiter = self._waiting.pop(reply[0], None)
        self._awaited.discard(reply[0])
        if waiter is not None:
            waiter.reply = reply
            waiter.wake()
        if not self._awaited and 0 in self._waiting:
            self._waiting[0].wake()

    def _let_another_read(self, but: _Waiter | None = None) -> None:
        for other in self._waiting.values():
            if other is not but and other.tell is None:
                other.wake()
                return

    def _lose(self) -> None:
        """Nobody answers any more: let all go on who wait."""
        self._gone = True
        for waiter in self._waiting.values():
            waiter.wake()


def _is_loss(problem: OSError) -> bool:
    """Whether the channel is gone; handlers of signals raise errors of the system, too."""
    return isinstance(problem, ConnectionError) or problem.errno == BAD_DESCRIPTOR


def _loop() -> Any:
    """The event loop that runs in this thread, if one does."""
    asyncio = sys.modules.get("asyncio")
    try:
        return None if asyncio is None else asyncio.get_running_loop()
    except RuntimeError:
        return None


def _codes(code: CodeType | None) -> set[CodeType]:
    """A piece of code and all that it defines; two of one text are one and the same here."""
    found = [] if code is None else [code]
    for each in found:
        found += [part for part in each.co_consts if type(part) is type(each)]
    return set(found)
