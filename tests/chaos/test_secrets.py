"""Signing secrets and the vault's keys appear only where they must, and in no other output of the processes."""

import asyncio
import base64
import contextlib
import os
import urllib.request
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from makeready.webhooks.v1 import webhooks_pb2

from ..e2e.receiver import Receiver
from .harness import Harness
from .processes import PATIENCE_SECONDS, RING, SERVICES
from .writes import Caller, Records, create_ticket

pytestmark = pytest.mark.chaos

PREFIX_CHARACTERS = 12  # of a secret; lists show this prefix
NEW_KEY, LOST_KEY = os.urandom(32), os.urandom(32)
NEW = "new:" + base64.b64encode(NEW_KEY).decode()
LOST = "lost:" + base64.b64encode(LOST_KEY).decode()
KEYS = [base64.b64decode(RING.partition(":")[2]), NEW_KEY, LOST_KEY]


class Watch:
    """Collects the secrets that must not leak, and all output in which they could appear."""

    def __init__(self, harness: Harness, company_id: int, api_key: str) -> None:
        self.harness = harness
        self.company_id = company_id
        self.api_key = api_key
        self.secrets: list[str] = []
        self.said: list[bytes] = []

    def needles(self) -> Iterator[bytes]:
        """Secrets and keys raw, in hexadecimal (as PostgreSQL prints bytes) and in base64."""
        hidden = [secret[PREFIX_CHARACTERS:].encode() for secret in self.secrets]
        for hidden_text in (*hidden, *KEYS):
            yield from (hidden_text, hidden_text.hex().encode(), base64.b64encode(hidden_text).rstrip(b"="))

    def found_in(self, text: bytes) -> list[bytes]:
        return [needle for needle in self.needles() if needle in text]

    async def http(self, method: str, path: str, body: object = None, key: str = "") -> Any:
        """Returns the answer's JSON. Adds the answer to `said`, except the one that contains a new secret."""
        sent = {"Idempotency-Key": key} if key else {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:  # the gateway may not have reconnected yet to a restarted service
                answer = await asyncio.to_thread(self.harness.system.call, method, path, self.api_key, body, sent)
                if answer.status != 500:
                    break
                await asyncio.sleep(0.2)
        document: Any = answer.json if answer.body else {}
        if answer.status == 201 and "secret" in document:
            self.secrets.append(document["secret"])
        else:
            self.said.append(answer.body)
        return document

    async def makeready(self, *words: str) -> None:
        """Runs the command line; any exit status is accepted."""
        done = await asyncio.to_thread(self.harness.system.run, *words)
        assert "Traceback" not in done.stderr
        self.said.append((done.stdout + done.stderr).encode())

    async def ring(self, *keys: str, warm: bool = True) -> None:
        """Restarts svc-webhooks with this key ring and debug logging. warm: forked from a parent, whose command line
        /proc shows; else started as in production."""
        self.harness.services["svc-webhooks"].warm = warm
        await self.harness.stop("svc-webhooks")
        more = self.harness._more["svc-webhooks"] | {"WEBHOOKS_VAULT_KEYS": ",".join(keys)}
        service = self.harness.services["svc-webhooks"]
        await asyncio.to_thread(lambda: service.start(**more, MAKEREADY_LOG_LEVEL="debug"))

    async def sweep(self) -> None:
        await self.makeready("sweep", "webhooks")
        for name in SERVICES:
            address = self.harness._more[name]["MAKEREADY_METRICS_LISTEN"]
            answer = await asyncio.to_thread(urllib.request.urlopen, f"http://{address}/metrics", timeout=60)
            self.said.append(answer.read())

    def arguments(self) -> bytes:
        """The command line of the service that has the keys, which every user of the machine can read."""
        return Path(f"/proc/{self.harness.pid('svc-webhooks')}/cmdline").read_bytes()

    def files(self) -> Iterator[Path]:
        """Logs, NATS's store, and PostgreSQL's files including its write-ahead log."""
        for folder, _, names in os.walk(self.harness.folder):  # it goes on where a folder has vanished meanwhile
            for path in (Path(folder) / name for name in names):
                if path.is_file() and not path.is_symlink() and self.harness.folder / "keys" not in path.parents:
                    yield path

    async def tables(self, name: str) -> dict[str, str]:
        """Every table of a service's database, as text."""
        connection = await asyncpg.connect(self.harness.services[name].database_url)
        try:
            tables = await connection.fetch(
                "SELECT oid::regclass::text AS name FROM pg_class WHERE relkind IN ('r', 'p', 'm')"
                " AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
            )
            return {
                table["name"]: await connection.fetchval(f"SELECT string_agg(x::text, ' ') FROM {table['name']} x")
                or ""
                for table in tables
            }
        finally:
            await connection.close()


@pytest.fixture
async def watch(harness: Harness, caller: Caller) -> AsyncIterator[Watch]:
    watching = Watch(harness, caller.company.company_id, caller.api_key())
    yield watching
    # Encrypt everything under the key of all other tests again.
    await watching.ring(RING, NEW)
    await asyncio.to_thread(harness.system.makeready, "vault", "reseal")
    await harness.stop("svc-webhooks")
    await harness.start("svc-webhooks")
    await watching.http("GET", "/webhooks")  # until the gateway has reconnected
    await watching.sweep()


async def test_nothing_that_is_left_holds_a_secret_or_a_key(
    harness: Harness, caller: Caller, records: Records, receiver: Receiver, watch: Watch
) -> None:
    ids = []
    for number in range(2):
        body = {"destination_url": f"https://receiver.test/secrets/{number}", "events": ["ticket.created"]}
        for _ in range(2):  # created, then replayed
            subscription = await watch.http("POST", "/webhooks", body, key=f"secrets {number}")
        assert "secret" not in subscription
        ids.append(subscription["entity_id"])
    assert len(watch.secrets) == 2
    await watch.ring(NEW, RING, warm=False)
    watch.said.append(watch.arguments())
    await watch.makeready("vault", "reseal")
    assert watch.said[-1].endswith(b"encrypted anew under key new. No other key is needed.\n")
    rotated = await harness.operator(
        "svc-webhooks",
        webhooks_pb2.RotateSecretRequest(sub_id=ids[1], idempotency_key="rotate"),
    )
    watch.secrets.append(rotated.secret)
    watch.said.append(rotated.subscription.json)

    # Delivered; failed; not attempted, without the right key or without any.
    receiver.answers["/secrets/1"] = [500]
    for ring in ((NEW, RING), (LOST,), ()):
        await watch.ring(*ring)
        assert (await caller.send(create_ticket(records), caller.api_key(), str(uuid.uuid4()))).status == 201
        await watch.sweep()
        body = {"destination_url": "https://receiver.test/", "events": ["ticket.created"]}
        if ring == (LOST,):
            await watch.makeready("vault", "reseal")
            assert b"0 secrets encrypted anew" in watch.said[-1] and b"needed besides: new." in watch.said[-1]
        if not ring:
            refused = await watch.http("POST", "/webhooks", body, key="no vault")
            assert refused["error"]["code"] == "vault_unavailable"
    assert receiver.at("/secrets/0")[0].is_signed_with(watch.secrets[0])
    assert receiver.at("/secrets/1")[0].is_signed_with(watch.secrets[2])
    await watch.makeready("webhooks", "list", str(watch.company_id))
    for sub_id in ids:
        await watch.makeready("--json", "webhooks", "deliveries", str(sub_id))
    assert b'"error": "vault"' in b"".join(watch.said)
    await watch.http("GET", "/webhooks?limit=200")

    for output in watch.said:
        assert watch.found_in(output) == [], output[:2000]
    tables: dict[str, str] = {}
    for name in SERVICES:
        tables |= {f"{name}: {table}": text for table, text in (await watch.tables(name)).items()}
    assert [name for name, text in tables.items() if watch.found_in(text.encode())] == []
    # The search covered them: the visible prefix of a secret is found.
    prefix = watch.secrets[0][:PREFIX_CHARACTERS]
    assert prefix in tables["svc-webhooks: subscription"] and any(prefix.encode() in output for output in watch.said)
    looked_at = set()
    for path in watch.files():
        with contextlib.suppress(FileNotFoundError):  # PostgreSQL creates and deletes files meanwhile
            assert watch.found_in(path.read_bytes()) == [], path
            looked_at.add(path.name)
    assert {f"{name}.log" for name in SERVICES} <= looked_at

    for sub_id in ids:
        await watch.http("DELETE", f"/webhooks/{sub_id}")
