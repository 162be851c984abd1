"""A real TLS receiver on loopback. It stores every request, and tests set its answers."""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import trustme


@dataclass
class Delivery:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: bytes
    arrived_at: float

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document

    def is_signed_with(self, secret: str) -> bool:
        """Verifies the signature as documented: HMAC-SHA256 over the timestamp, a dot and the raw body."""
        parts = dict(part.split("=", 1) for part in self.headers["service-signature"].split(","))
        digest = hmac.new(secret.encode(), parts["t"].encode() + b"." + self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(digest, parts["v1"]) and abs(self.arrived_at - int(parts["t"])) <= 300


class _Server(ThreadingHTTPServer):
    """Accepts many connections: each subscription may open sixteen at once, and no handshake may delay another."""

    daemon_threads = True
    request_queue_size = 1024


class Receiver:
    """https://receiver.test, any path. `answers` maps a path to the statuses of its next responses (200 after them),
    `bodies` to a response body."""

    def __init__(self, folder: Path) -> None:
        authority = self._authority = trustme.CA()
        self.authority_file = folder / "authority.pem"
        authority.cert_pem.write_to_path(str(self.authority_file))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("receiver.test").configure_cert(context)
        self.deliveries: list[Delivery] = []
        self.answers: dict[str, list[int]] = {}
        self.answering = threading.Lock()
        self.bodies: dict[str, bytes] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.deliveries.append(Delivery(self.path, headers, body, time.time()))
                waiting = outer.answers.get(self.path, [])
                with outer.answering:  # each request has a thread
                    status = waiting.pop(0) if waiting else 200
                self.send_response(status)
                response_body = outer.bodies.get(self.path, b"")
                self.send_header("Content-Length", str(len(response_body)))
                self.end_headers()
                self.wfile.write(response_body)

            def log_message(self, *_words: object) -> None:
                """Logs nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def certificate(self, host: str) -> tuple[Path, Path]:
        """Issues a certificate for another host; returns the files of its chain and of its key."""
        issued = self._authority.issue_cert(host)
        files = self.authority_file.with_name(f"{host}.pem"), self.authority_file.with_name(f"{host}.key")
        for index, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(str(files[0]), append=index > 0)
        issued.private_key_pem.write_to_path(str(files[1]))
        return files

    def at(self, path: str) -> list[Delivery]:
        return [delivery for delivery in self.deliveries if delivery.path == path]
