"""The receivers of the demo company's webhooks: one server on loopback, which answers for three hosts.

svc-webhooks dials it for these hosts as WEBHOOKS_EGRESS_HOSTS says, and checks its certificate as any other. The hosts
are of a reserved range: without the runner nothing is sent to them.
"""

import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from makeready_local import certificates
from makeready_local.children import LOOPBACK
from makeready_local.state import State

WORKING = "receiver.demo.example"
DOWN = "hooks.leasing.example"
REPORTS = "reports.demo.example"
HOSTS = (WORKING, DOWN, REPORTS)
_VALID_DAYS = 365
_TEMPORARY = b'{"error": "db_unavailable", "message": "too many clients already"}\n'


class Receivers(ThreadingHTTPServer):
    """Answers 200 for every host but DOWN, which answers 503."""

    daemon_threads = True
    # With the usual five the kernel drops connections of a sweep, and each is tried again a second later.
    request_queue_size = 128

    def __init__(self, state: State) -> None:
        """Makes a certificate and its authority in STATE_DIR; the authority's key is stored nowhere."""
        super().__init__((LOOPBACK, 0), _Handler)
        folder = state.folder / "receivers"
        folder.mkdir(mode=0o700, exist_ok=True)
        files = certificates.made(folder, *HOSTS, days=_VALID_DAYS)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._authority = files.authority

    def start(self) -> None:
        """Answers from now on, in a separate thread."""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def added_to(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of svc-webhooks with these hosts and their authority in addition to those that it names."""
        added = dict(environment)
        hosts = [f"{host}={LOOPBACK}:{self.server_address[1]}" for host in HOSTS]
        added["WEBHOOKS_EGRESS_HOSTS"] = ",".join([*filter(None, [environment.get("WEBHOOKS_EGRESS_HOSTS")]), *hosts])
        if others := environment.get("WEBHOOKS_EGRESS_CA_FILE"):
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=others)
                with open(others, "rb") as file:  # noqa: PTH123
                    content = file.read()
            except OSError:  # svc-webhooks says what is wrong with it
                return added
            both = self._authority.with_name("authorities.pem")
            both.write_bytes(self._authority.read_bytes() + b"\n" + content)
            added["WEBHOOKS_EGRESS_CA_FILE"] = str(both)
        else:
            added["WEBHOOKS_EGRESS_CA_FILE"] = str(self._authority)
        return added

    def handle_error(self, *_: object) -> None:
        """Ignores a lost connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        is_down = self.headers.get("Host", "").partition(":")[0] == DOWN
        body = _TEMPORARY if is_down else b'{"received": true}\n'
        self.send_response(503 if is_down else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing: the deliveries are on record."""
