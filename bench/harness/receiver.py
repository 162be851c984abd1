"""`python -m harness.receiver CERTIFICATE PORT`: answers every POST over TLS with 200, at the least possible cost."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
import sys
from pathlib import Path
from typing import cast

import trustme
import uvloop

from makeready_local.children import LOOPBACK, Child, free_port

HOST = "receiver.test"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


class Receiver:
    """The receiver's process, with a certificate of its own authority. No side is charged for its CPU."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.authority = folder / "authority.pem"
        self._certificate = folder / "receiver.pem"
        self._log = folder / "receiver.log"
        self._child: Child | None = None
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.authority))
        authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(self._certificate))

    @property
    def environment(self) -> dict[str, str]:
        """The settings that direct deliveries for https://receiver.test to this receiver."""
        return {
            "WEBHOOKS_EGRESS_HOSTS": f"{HOST}={LOOPBACK}:{self.port}",
            "WEBHOOKS_EGRESS_CA_FILE": str(self.authority),
        }

    def start(self) -> None:
        program = [sys.executable, "-P", "-m", "harness.receiver", str(self._certificate), str(self.port)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        self._child = Child("receiver", program, log=self._log, environment=environment)

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()


class _Answering(asyncio.Protocol):
    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (head := self._received.find(b"\r\n\r\n")) > 0:
            length = _LENGTH.search(self._received, 0, head + 2)
            end = head + 4 + (int(length[1]) if length else 0)
            if len(self._received) < end:
                return
            self._received = self._received[end:]
            self._transport.write(ANSWER)


async def serve(certificate: str, port: int) -> None:
    """Serves until cancelled. certificate: a PEM file with the key and the chain."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await asyncio.get_running_loop().create_server(_Answering, LOOPBACK, port, ssl=context, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2])))
