"""The receivers of the client libraries' examples in their frameworks: each takes a delivery of the service once, and
refuses one that was changed, or sent again later."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from makeready_client import webhooks
from testkit.patience import until
from testkit.processes import free_port
from testkit.typescript import from_npm, node_command

from .receiver import Receiver
from .system import System

SDK = Path(__file__).resolve().parents[2] / "sdk"
PYTHON = SDK / "python" / "examples"
TYPESCRIPT = SDK / "typescript" / "examples"
# What an app of Next.js does around a route: one handler for each verb.
SERVED_BY_NEXT = """
import { createServer } from "node:http";
import { POST } from "./run-next.ts";
createServer(async (incoming, outgoing) => {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const request = new Request("http://localhost" + incoming.url, {
    method: "POST", headers: incoming.headers, body: Buffer.concat(chunks),
  });
  outgoing.writeHead((await POST(request)).status).end();
}).listen(Number(process.argv[2]), "127.0.0.1");
"""


@dataclass(frozen=True)
class Sent:
    """A delivery as the service has sent it, its subscription's secret, and the line that a receiver prints of it."""

    body: bytes
    headers: dict[str, str]
    secret: str
    event_id: str
    printed: str


@pytest.fixture(scope="module")
def sent(system: System, receiver: Receiver) -> Sent:
    company = system.company("Frameworks")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    body = {"destination_url": "https://receiver.test/frameworks", "events": ["ticket.created"]}
    secret = system.post("/webhooks", company.keys["write"], body, "for frameworks").json["secret"]
    (unit,) = company.walk("/units")
    ticket = company.create_ticket(unit["entity_id"], "Wasserhahn \u6f0f\u6c34", "for frameworks too").json
    system.makeready("sweep", "webhooks")
    (delivery,) = receiver.at("/frameworks")
    event = webhooks.verify(delivery.body, delivery.headers, secret)
    printed = f"{ticket['entity_id']} {ticket['title']}"
    return Sent(delivery.body, dict(delivery.headers), secret, event.event_id, printed)


@contextmanager
def running(command: list[str], folder: Path, output: Path, secret: str, port: int) -> Iterator[None]:
    """The receiver; stopped at the end."""
    environment = os.environ | {"WEBHOOK_SECRET": secret, "PYTHONUNBUFFERED": "1"}
    with output.open("w") as lines:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=lines, stderr=subprocess.STDOUT)
    try:
        until(lambda: post(port, b"", {}) is not None or process.poll() is not None)
        assert process.poll() is None, output.read_text()
        yield
    finally:
        process.terminate()
        process.wait(30)


def post(port: int, body: bytes, headers: dict[str, str]) -> int | None:
    """The status; None while nothing listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/webhooks", body, headers)
        return connection.getresponse().status
    except ConnectionError:
        return None
    finally:
        connection.close()


def check(command: list[str], folder: Path, tmp_path: Path, sent: Sent, port: int) -> None:
    headers = {name: value for name, value in sent.headers.items() if name.lower() not in ("host", "content-length")}
    old = {name: value for name, value in headers.items() if "signature" not in name.lower()}
    old |= webhooks.signed(sent.body, sent.secret, sent.event_id, now=1_700_000_000)
    output = tmp_path / "output"
    with running(command, folder, output, sent.secret, port):
        assert post(port, sent.body, headers) == 204
        assert post(port, sent.body + b" ", headers) == 401
        assert post(port, sent.body, old) == 401
        assert post(port, sent.body, headers) == 204
        until(lambda: sent.printed in output.read_text())
    assert output.read_text().count(sent.printed) == 1


def test_fastapi(sent: Sent, tmp_path: Path) -> None:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "receive_with_fastapi:app",
        "--app-dir",
        str(PYTHON),
        "--port",
        str(port),
    ]
    check(command, tmp_path, tmp_path, sent, port)


def test_flask(sent: Sent, tmp_path: Path) -> None:
    port = free_port()
    app = str(PYTHON / "receive_with_flask.py")
    check([sys.executable, "-m", "flask", "--app", app, "run", "--port", str(port)], tmp_path, tmp_path, sent, port)


def test_django(sent: Sent, tmp_path: Path) -> None:
    port = free_port()
    program = str(PYTHON / "receive_with_django.py")
    check([sys.executable, program, "runserver", str(port), "--noreload"], tmp_path, tmp_path, sent, port)


def test_next(sent: Sent, tmp_path: Path) -> None:
    port = free_port()
    node_command(tmp_path, TYPESCRIPT / "next.ts")
    served = tmp_path / "served.ts"
    served.write_text(SERVED_BY_NEXT)
    check([*node_command(tmp_path, served), str(port)], tmp_path, tmp_path, sent, port)


@pytest.mark.parametrize("framework", ["express@5", "fastify@5"])
def test_a_framework_of_npm(sent: Sent, tmp_path: Path, framework: str) -> None:
    from_npm(tmp_path, framework)
    port = free_port()
    program = TYPESCRIPT / f"{framework.partition('@')[0]}.ts"
    check([*node_command(tmp_path, program), str(port)], tmp_path, tmp_path, sent, port)
