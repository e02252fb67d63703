"""A server is asked only under a certificate that is trusted here, and what is no address is told as such."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from licet.web import NoAnswer, Web


class Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url(certificate: Path) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"https://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def web() -> Iterator[Web]:
    one = Web(patience=10.0, most=1024)
    yield one
    one.close()


def test_only_a_trusted_certificate_lets_a_server_be_asked(
    url: str, certificate: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoAnswer, match=r"^its certificate is not trusted here: ") as refused:
        web.post(url, b"hello", {})
    assert refused.value.advice == "name the file that vouches for it in SSL_CERT_FILE"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    again = Web(patience=10.0, most=1024)
    assert (again.post(url, b"hello", {}).status, again.post(url, b"hello", {}).body) == (200, b"hello")
    again.close()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://", "http://127.0.0.1:99999/"])
def test_what_is_no_address_is_told_as_such(url: str, web: Web) -> None:
    with pytest.raises(NoAnswer) as refused:
        web.post(url, b"", {})
    assert (str(refused.value), refused.value.advice) == ("that is no address", "check the address")
