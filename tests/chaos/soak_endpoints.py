"""The endpoints of a soak, from outside their process: ports, certificate authority, requests that arrived."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trustme

from testkit.processes import Process, accepts_connections, free_port

from .soak_listener import FLUSH_SECONDS, Arrival

LISTENER = Path(__file__).with_name("soak_listener.py")
HOST, CLOSED_HOST, RENAMED_HOST = "receiver.test", "closed.test", "renamed.test"


@dataclass
class Endpoints:
    """A running process with all endpoints."""

    port: int
    authority_file: Path
    hosts: str
    """WEBHOOKS_EGRESS_HOSTS of all three names."""
    _log: Path
    _secrets: Path

    def tell_secrets(self, secrets: dict[str, str]) -> None:
        """Passes on signing secrets, by path. Call it before anything is sent there."""
        secrets_by_path = json.loads(self._secrets.read_text()) if self._secrets.exists() else {}
        new_file = self._secrets.with_suffix(".new")
        new_file.write_text(json.dumps(secrets_by_path | secrets))
        new_file.rename(self._secrets)

    def arrivals(self) -> Iterator[Arrival]:
        """In order of arrival."""
        time.sleep(2 * FLUSH_SECONDS)
        decode = msgspec.json.Decoder(Arrival).decode
        with self._log.open("rb") as stream:
            for line in stream:
                yield decode(line)


@contextmanager
def listening(folder: Path) -> Iterator[Endpoints]:
    """Runs the process until the context ends."""
    folder.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    ports = [free_port() for _ in range(3)]
    listens = []
    for port, name in zip(ports, (HOST, "somebody-else.test"), strict=False):
        file = folder / f"{name}.pem"
        authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(file))
        listens.append((port, str(file)))
    hosts = ",".join(
        f"{host}=127.0.0.1:{port}" for host, port in zip((HOST, RENAMED_HOST, CLOSED_HOST), ports, strict=True)
    )
    log, secrets = folder / "arrivals", folder / "secrets.json"
    log.touch()
    settings = {"log": str(log), "secrets": str(secrets), "listens": listens}
    (folder / "settings.json").write_text(json.dumps(settings))
    process = Process([sys.executable, str(LISTENER), str(folder / "settings.json")], folder / "listener.log")
    process.launch()
    try:
        process.wait_until(lambda: accepts_connections(f"127.0.0.1:{ports[1]}"), 30)
        yield Endpoints(ports[0], folder / "authority.pem", hosts, log, secrets)
    finally:
        process.end(seconds=20)
