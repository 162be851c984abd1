"""The guide's receivers: against the published vectors, and running, with real deliveries."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import runpy
import selectors
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testkit.patience import PATIENCE_SECONDS
from testkit.requirements import lacks
from testkit.typescript import wheels_node

from .receiver import Receiver
from .system import Company, System

SHOWN = Path(__file__).resolve().parents[2] / "docs" / "webhooks"
VECTORS: list[dict[str, Any]] = json.loads((SHOWN / "vectors.json").read_text())["vectors"]
RIGHT = {vector["name"]: vector["accept"] for vector in VECTORS}
LANGUAGES = ("python", "typescript", "shell")
SHELLS = [
    shell for shell in (["dash"], ["bash", "--posix"], ["busybox", "sh"], ["ksh"], ["zsh"]) if shutil.which(shell[0])
]

JUDGING = """
import { readFileSync } from "node:fs";
const { isGenuine } = await import(process.argv[2]);
const { vectors } = JSON.parse(readFileSync(process.argv[1], "utf8"));
const judged = vectors.map((v) => [v.name, isGenuine(v.secret, v.header, Buffer.from(v.body), v.received_at)]);
console.log(JSON.stringify(Object.fromEntries(judged)));
"""


@pytest.fixture(scope="session")
def node() -> str:
    return wheels_node()


def openssl_or_skip() -> None:
    if not shutil.which("openssl"):
        lacks("openssl", "there is no such command here")


# Against the vectors


def test_the_receiver_in_python_judges_every_vector_right() -> None:
    is_genuine = runpy.run_path(str(SHOWN / "receiver.py"))["is_genuine"]
    assert {
        vector["name"]: is_genuine(vector["secret"], vector["header"], vector["body"].encode(), vector["received_at"])
        for vector in VECTORS
    } == RIGHT


def test_the_receiver_in_typescript_judges_every_vector_right(node: str) -> None:
    command = [node, "--input-type=module", "-e", JUDGING, str(SHOWN / "vectors.json"), str(SHOWN / "receiver.ts")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert json.loads(done.stdout) == RIGHT


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: str(words[0]))
def test_the_receiver_in_shell_judges_every_vector_right(shell: list[str]) -> None:
    openssl_or_skip()
    judged = {}
    for vector in VECTORS:
        done = subprocess.run(
            [*shell, str(SHOWN / "receiver.sh"), "verify", vector["header"], str(vector["received_at"])],
            input=vector["body"].encode(),
            env=os.environ | {"WEBHOOK_SECRET": vector["secret"]},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode in (0, 1) and not done.stderr, (vector["name"], done)
        judged[vector["name"]] = done.returncode == 0
    assert judged == RIGHT


@pytest.mark.parametrize("failing", ["dgst", "rand"])
def test_the_receiver_in_shell_refuses_everything_where_openssl_fails(tmp_path: Path, failing: str) -> None:
    openssl_or_skip()
    program = tmp_path / "openssl"
    program.write_text(f'#!/bin/sh\n[ "$1" = {failing} ] && exit 1\nexec {shutil.which("openssl")} "$@"\n')
    program.chmod(0o755)
    genuine = VECTORS[0]
    for header in (genuine["header"], f"t={genuine['timestamp']},v1={'0' * 64}"):
        done = subprocess.run(
            [str(SHOWN / "receiver.sh"), "verify", header, str(genuine["received_at"])],
            input=genuine["body"].encode(),
            env=os.environ | {"WEBHOOK_SECRET": genuine["secret"], "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1


# Running


@dataclass
class Running:
    """A running receiver with its own subscription. `signed` signs a body as the service does."""

    language: str
    host: str
    port: int
    secret: str
    sub_id: int
    inbox: Path
    output: Path
    trusting: ssl.SSLContext

    def post(
        self, body: bytes, header: str, *, method: str = "POST", headers: dict[str, str] | None = None
    ) -> int | None:
        """The response's status; None if the connection was closed instead."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.sock = self.trusting.wrap_socket(plain, server_hostname=self.host)
        try:
            with suppress(ConnectionError, ssl.SSLError):  # it may answer before it has read everything
                connection.request(method, "/", body, {"Service-Signature": header, **(headers or {})})
            return connection.getresponse().status
        except (ConnectionError, http.client.RemoteDisconnected, ssl.SSLError):
            return None
        finally:
            connection.close()

    def signed(self, body: bytes, at: float | None = None, secret: str | None = None) -> str:
        timestamp = str(int(time.time() if at is None else at))
        digest = hmac.new((secret or self.secret).encode(), timestamp.encode() + b"." + body, hashlib.sha256)
        return f"t={timestamp},v1={digest.hexdigest()}"

    def kept(self) -> dict[str, bytes]:
        return {file.stem: file.read_bytes() for file in self.inbox.glob("*.json")}


class Shell:
    """Terminates TLS and starts the handler for each connection, as socat or inetd do."""

    def __init__(self, port: int, certificate: tuple[Path, Path], secret: str, command: list[str]) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*certificate)
        self._listener = socket.create_server(("127.0.0.1", port))
        self._command = command
        self._environment = os.environ | {"WEBHOOK_SECRET": secret}
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.settimeout(60)
            with subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as handler:
                answer = self._answer(encrypted, handler)
                encrypted.settimeout(60)
                encrypted.sendall(answer)
                encrypted.unwrap()

    @staticmethod
    def _answer(encrypted: ssl.SSLSocket, handler: subprocess.Popen[bytes]) -> bytes:
        """Returns the handler's whole output. In one thread, as two threads on one TLS connection break it."""
        assert handler.stdin and handler.stdout
        answer = b""
        encrypted.setblocking(False)
        with selectors.DefaultSelector() as ready:
            ready.register(handler.stdout, selectors.EVENT_READ)
            ready.register(encrypted, selectors.EVENT_READ)
            while handler.stdout in (keys := [key.fileobj for key, _ in ready.select(60)]) or encrypted in keys:
                if handler.stdout in keys:
                    piece = os.read(handler.stdout.fileno(), 65536)
                    answer += piece
                    if not piece:
                        break
                if encrypted in keys:
                    try:
                        while chunk := encrypted.recv(65536):
                            handler.stdin.write(chunk)
                            handler.stdin.flush()
                    except ssl.SSLWantReadError:
                        continue
                    except OSError:
                        pass  # the handler has stopped reading
                    ready.unregister(encrypted)
                    with suppress(OSError):
                        handler.stdin.close()
        return answer

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture(scope="module")
def company(system: System) -> Company:
    company = system.company("Receivers of the Guide")
    company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
    company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    return company


@pytest.fixture(scope="module", params=LANGUAGES)
def running(
    request: pytest.FixtureRequest,
    system: System,
    company: Company,
    receiver: Receiver,
    published_receivers: dict[str, int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    language: str = request.param
    if language == "shell":
        openssl_or_skip()
        program = [str(SHOWN / "receiver.sh")]
    elif language == "python":
        program = [sys.executable, "-I", str(SHOWN / "receiver.py")]
    else:
        program = [request.getfixturevalue("node"), str(SHOWN / "receiver.ts")]
    host = f"{language}.test-receivers.example"
    port = published_receivers[host]
    certificate = receiver.certificate(host)
    folder = tmp_path_factory.mktemp(language)
    inbox, output = folder / "inbox", folder / "output"
    inbox.mkdir()
    body = {"destination_url": f"https://{host}/hooks", "events": ["ticket.created", "ticket.status_changed"]}
    created = system.post("/webhooks", company.keys["webhook_only"], body, f"receiver {language}").json
    trusting = ssl.create_default_context(cafile=receiver.authority_file)
    started = Running(language, host, port, created["secret"], created["entity_id"], inbox, output, trusting)
    stop: Callable[[], None]
    if language == "shell":
        stop = Shell(port, certificate, started.secret, [*program, str(inbox)]).stop
    else:
        with output.open("w") as written:
            process = subprocess.Popen(
                [*program, str(port), str(inbox), *map(str, certificate)],
                env=os.environ | {"WEBHOOK_SECRET": started.secret},
                stdout=written,
                stderr=subprocess.STDOUT,
            )

        def stop() -> None:
            process.terminate()
            process.wait(60)

    try:
        wait_for(lambda: started.post(b"", "") == 401)
        yield started
    finally:
        stop()
        system.call("DELETE", f"/webhooks/{started.sub_id}", company.keys["webhook_only"])


def wait_for(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with suppress(OSError):
            if condition():
                return
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def test_a_running_receiver_accepts_what_is_delivered_and_keeps_its_bytes(
    running: Running, system: System, company: Company
) -> None:
    (unit,) = company.walk("/units")
    opened = company.create_ticket(unit["entity_id"], 'Wasserhahn 漏水 "2" \\ 🚿', f"opened {running.language}").json
    path = f"/tickets/{opened['entity_id']}"
    headers = {"Idempotency-Key": f"moved {running.language}"}
    assert system.call("PATCH", path, company.keys["write"], {"status": "On Hold"}, headers).status == 200
    system.makeready("sweep", "webhooks")
    deliveries = system.makeready("webhooks", "deliveries", str(running.sub_id))["deliveries"]
    mine = [delivery for delivery in deliveries if delivery["attempts"]]
    assert len(mine) == 2, deliveries
    assert [delivery["attempts"][0]["status"] for delivery in mine] == [200, 200]
    kept = running.kept()
    assert set(kept) == {delivery["event_id"] for delivery in mine}
    latest = system.get(path, company.keys["read"]).body
    assert any(latest in body for body in kept.values())
    if running.language != "shell":
        wait_for(lambda: all(event_id in running.output.read_text() for event_id in kept))


def test_a_running_receiver_keeps_an_event_once_and_accepts_it_again(running: Running) -> None:
    body = b'{"schema_version":1,"event_id":"0198-again","event":"pm.stale","data":{}}'
    before = running.kept()
    assert [running.post(body, running.signed(body)) for _ in range(3)] == [200, 200, 200]
    assert running.kept() == before | {"0198-again": body}
    if running.language != "shell":
        wait_for(lambda: "0198-again" in running.output.read_text())
        assert running.output.read_text().count("0198-again") == 1


def test_a_running_receiver_keeps_every_one_of_many_at_once(running: Running) -> None:
    before = set(running.kept())
    bodies = [
        b'{"schema_version":1,"event_id":"0198-many-%d","event":"pm.stale","data":{}}' % (n % 6) for n in range(12)
    ]
    answers: list[int | None] = []
    threads = [
        threading.Thread(target=lambda body=body: answers.append(running.post(body, running.signed(body))))
        for body in bodies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 12
    assert set(running.kept()) - before == {f"0198-many-{n}" for n in range(6)}


def test_a_running_receiver_refuses_what_is_not_genuine_and_keeps_nothing_of_it(running: Running) -> None:
    before = running.kept()
    body = b'{"schema_version":1,"event_id":"0198-forged","event":"pm.stale","data":{}}'
    now = time.time()
    for header in (
        running.signed(body, secret="whsec_another"),
        running.signed(body, now - 310),
        running.signed(body, now + 3600),  # no closer to the 300 s: those before it take a while
        running.signed(body + b"\n"),
        "t=,v1=",
        "garbage",
        "v1=" * 300,
        "t=," + running.signed(body),
        "",
    ):
        assert running.post(body, header) == 401, header
    outside = b'{"schema_version":1,"event_id":"../0198-outside","event":"pm.stale","data":{}}'
    assert running.post(outside, running.signed(outside)) in (500, None)
    assert running.kept() == before
    assert not list(running.inbox.parent.rglob("*outside*"))
    assert {file.suffix for file in running.inbox.iterdir()} <= {".json"}


def test_a_running_receiver_refuses_what_is_too_large_or_no_post(running: Running) -> None:
    large = b"x" * (1024 * 1024 + 1)
    assert running.post(large, running.signed(large)) in (413, None)
    assert running.post(b"", "", method="GET") in (405, 501)
    assert running.post(b"", "") == 401  # it is still running
