"""Servers on this host that tests talk to, and a signed log."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from licet.record import Entry, Record
from licet.state import StateDirectory
from licet_audit.anchors.anchoring import SignedHead
from licet_audit.checkpointer import Notary

sys.path.insert(0, str(Path(__file__).parent))  # for `servers`, under pytest's importlib mode

from servers import Authority, Grow, Reply, Serve, Server, Witness


@pytest.fixture
def grow(
    state: StateDirectory,
    append: Callable[..., list[Record]],
    entry: Callable[..., Entry],
) -> Grow:
    """Bring the log to so many records, and sign them."""
    sizes = [0]

    def to(size: int) -> SignedHead:
        missing = size - sizes[0] - (not sizes[0])  # the first record says that the log begins
        append([entry(n=n) for n in range(missing)])
        sizes[0] = size
        return SignedHead(state, Notary(state).checkpoint())

    return to


@pytest.fixture
def serve() -> Iterator[Serve]:
    running: list[ThreadingHTTPServer] = []

    def start(reply: Callable[[str, bytes], Reply]) -> Server:
        server = Server(reply)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.asked.append(body)
                status, kind, answer = server.reply(self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody waits any more
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                return

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.daemon_threads = True
        server.url = f"http://127.0.0.1:{http.server_port}"
        threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        running.append(http)
        return server

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture(scope="session")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Authority]:
    """One to trust, and one that nobody does."""
    made = [Authority(tmp_path_factory.mktemp(name)) for name in ("trusted", "unknown")]
    for one in made:
        one.make()
    return made
