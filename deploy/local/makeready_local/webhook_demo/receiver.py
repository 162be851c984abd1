"""The receiver of the demo: verifies signatures as the guide's receiver does, and answers 500 to one event, once."""

import json
import queue
import runpy
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from makeready_local.certificates import Files
from makeready_local.state import JsonObject

HOST = "receiver.test"
GUIDE = Path(__file__).resolve().parents[4] / "docs" / "webhooks" / "receiver.py"


@dataclass(frozen=True)
class Arrival:
    """One request, and the status of its answer."""

    event: JsonObject
    body: bytes
    attempt: int
    is_genuine: bool
    is_new: bool
    answered: int

    @property
    def event_id(self) -> str:
        return str(self.event.get("event_id"))


class Receiver(ThreadingHTTPServer):
    """https://receiver.test on a loopback port; requests wait in `arrivals`. Use it as a context manager."""

    def __init__(self, files: Files, refuse_once: str) -> None:
        """refuse_once: the event type whose first attempt gets a 500."""
        super().__init__(("127.0.0.1", 0), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.secret = ""
        self.arrivals: queue.Queue[Arrival] = queue.Queue()
        self._verify: Callable[[str, str, bytes, float], bool] = runpy.run_path(str(GUIDE))["is_genuine"]
        self._refuse_once: str | None = refuse_once
        self._seen: set[str] = set()
        self._deciding = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def taken(self, signature: str, attempt: str, body: bytes) -> int:
        """Verifies a delivery; returns the status of the answer."""
        genuine = self._verify(self.secret, signature, body, time.time())
        event = json.loads(body) if genuine else {}
        with self._deciding:
            status = 200 if genuine else 401
            if genuine and event["event"] == self._refuse_once:
                self._refuse_once, status = None, 500
            new = event.get("event_id") not in self._seen
            if status == 200:
                self._seen.add(event["event_id"])
        number = int(attempt) if attempt.isascii() and attempt.isdigit() else 0
        self.arrivals.put(Arrival(event, body, number, genuine, new, status))
        return status

    def handle_error(self, *_: object) -> None:
        """Ignores a lost connection."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        signature = self.headers.get("Service-Signature", "")
        status = self.server.taken(signature, self.headers.get("Service-Attempt", ""), body)
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Logs nothing: the demo's screen shows the requests."""
