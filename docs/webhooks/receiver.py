"""A receiver of webhook deliveries; Python's standard library is all it needs.

    WEBHOOK_SECRET=whsec_… python3 receiver.py PORT INBOX [CERTIFICATE KEY]

A delivery that is verified becomes the file INBOX/EVENT_ID.json, and then is answered; one that comes again finds its
file there. Without CERTIFICATE (PEM) something before this must end TLS: it listens on loopback then.
"""

import contextlib
import hashlib
import hmac
import json
import os
import re
import ssl
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOLERANCE_SECONDS = 300
BODY_BYTES_MAX = 1024 * 1024


def is_genuine(secret: str, header: str, body: bytes, now: float) -> bool:
    """Whether `header`, the value of Service-Signature, was made of `body`, the raw bytes, with `secret`, just now."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    digests = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]):
        return False
    if abs(now - int(times[0])) > TOLERANCE_SECONDS:
        return False
    signed = times[0].encode() + b"." + body
    right = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    return any(hmac.compare_digest(right, digest.encode()) for digest in digests)


def keep(inbox: Path, event_id: str, body: bytes) -> bool:
    """Puts the event on disk, whole or not at all; False where it is there already."""
    if not re.fullmatch("[0-9A-Za-z-]{1,64}", event_id):  # it becomes the name of a file
        raise ValueError("event_id")
    with tempfile.NamedTemporaryFile(dir=inbox) as part:
        part.write(body)
        part.flush()
        os.fsync(part.fileno())
        try:
            os.link(part.name, inbox / f"{event_id}.json")
        except FileExistsError:
            return False
    folder = os.open(inbox, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name too
    finally:
        os.close(folder)
    return True


class Receiver(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, port: int, inbox: Path, secret: str, certificate: ssl.SSLContext | None = None) -> None:
        self.inbox, self.secret = inbox, secret
        super().__init__(("", port) if certificate else ("127.0.0.1", port), Delivery)
        if certificate:  # the handshake is left to the request's own thread: a slow client does not delay the others
            self.socket = certificate.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle(self, event: dict[str, object]) -> None:
        """Your work goes here, or into a program of its own that goes through the inbox."""
        print(event["event_id"], event["event"], flush=True)

    def handle_error(self, *_: object) -> None:
        print(f"not answered: {sys.exc_info()[1]}", file=sys.stderr)


class Delivery(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"  # connections are used again
    timeout = 10

    def do_POST(self) -> None:
        self.close_connection = True  # unless the body is read to its end
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length):
            return self.answer(411)
        if int(length) > BODY_BYTES_MAX:
            return self.answer(413)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return self.answer(400)
        self.close_connection = False
        header = ",".join(self.headers.get_all("Service-Signature", []))
        if not is_genuine(self.server.secret, header, body, time.time()):
            return self.answer(401)
        event = json.loads(body)  # only now
        try:
            new = keep(self.server.inbox, event["event_id"], body)
        except OSError as error:
            print(f"not kept: {error}", file=sys.stderr)
            return self.answer(500)  # it comes again
        self.answer(200)  # the sender waits no longer than 10 s: answer first, work later
        if new:
            threading.Thread(target=self.server.handle, args=(event,)).start()
        return None

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def log_request(self, *_: object) -> None:
        """Not a line a request."""


if __name__ == "__main__":
    _, port, inbox, *certificate = sys.argv
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
    with contextlib.suppress(KeyboardInterrupt):
        Receiver(int(port), Path(inbox), os.environ["WEBHOOK_SECRET"], context).serve_forever()
