"""The five kinds of write of these tests, each with its own records, and a client that retries correctly."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPMessage
from typing import Any, NamedTuple

import aiohttp

from ..e2e.system import Company
from .harness import Harness
from .processes import PATIENCE_SECONDS

INSERTS = ("write-before-statement", "write-after-commit")
CHANGES_TOGETHER = ("write-before-statement", "write-decided", "write-after-commit")
DECIDES = ("write-before-statement", "write-locked", "write-decided", "write-before-commit", "write-after-commit")

_names = itertools.count(1)


@dataclass(frozen=True)
class Write:
    """One write request."""

    kind: str
    method: str
    path: str
    body: dict[str, Any]


class Records:
    """A company's records, handed out one by one so that no two writes share one."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.unit_id = 0
        """The unit for new tickets, which do not change it."""
        self._tickets: Iterator[int] = iter(())
        self._vacant: Iterator[int] = iter(())
        self._occupied: Iterator[int] = iter(())

    def make(self, tickets: int, vacant: int, occupied: int) -> None:
        company = self.company
        company.import_rows("properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}])
        units = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in range(vacant + occupied + 1)]
        company.import_rows("units", units)
        rows = [{"external_id": f"T{n}", "property": "P1", "title": "Drip", "category": "Leak"} for n in range(tickets)]
        company.import_rows("tickets", rows)
        turns = [{"external_id": f"R{n}", "unit": f"U{n}", "move_in_date": "2024-04-01"} for n in range(occupied)]
        company.import_rows("turns", turns)
        ids = [unit["entity_id"] for unit in company.walk("/units")]
        self.unit_id = ids.pop()
        self._occupied, self._vacant = iter(ids[:occupied]), iter(ids[occupied:])
        self._tickets = iter([ticket["entity_id"] for ticket in company.walk("/tickets")])
        company.system.makeready("wait")  # tests count rows, also those of replicas

    def ticket(self) -> int:
        return next(self._tickets)

    def vacant_unit(self) -> int:
        return next(self._vacant)

    def occupied_unit(self) -> int:
        return next(self._occupied)


def create_ticket(records: Records) -> Write:
    body = {"unit_id": records.unit_id, "title": f"Tap {next(_names)}", "category": "Plumbing"}
    return Write("create ticket", "POST", "/tickets", body)


def change_ticket(records: Records) -> Write:
    return Write("change ticket", "PATCH", f"/tickets/{records.ticket()}", {"status": "In Progress"})


def notice(unit_id: int, move_out_date: str = "2981-05-31") -> Write:
    body = {"move_out_date": move_out_date, "provider": "entrata", "notes": "By letter"}
    return Write("notice", "POST", f"/units/{unit_id}/notice", body)


def move_in(unit_id: int, **more: Any) -> Write:
    people = [
        {"first_name": "Luis", "role": "guarantor"},
        {"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder", "email": "ana@example.com"},
    ]
    lease = {"move_in_date": "2026-04-15", "lease_start_date": "2026-04-15", "provider": "entrata"}
    return Write("move-in", "POST", f"/units/{unit_id}/move-in", {**lease, "parties": people, **more})


def create_webhook(_records: Records) -> Write:
    body = {"destination_url": f"https://receiver.test/{next(_names)}", "events": ["vendor.hold"]}
    return Write("create webhook", "POST", "/webhooks", body)


class Kind(NamedTuple):
    """A kind of write: its service, the failpoints on its way, and a function that makes one on unused records."""

    service: str
    points: tuple[str, ...]
    event: str
    """Its public event; empty where it fires none."""
    hears: str
    """A consumer of its event; empty where it fires none."""
    make: Callable[[Records], Write]


KINDS = {
    "create ticket": Kind("svc-tickets", INSERTS, "ticket.created", "svc-webhooks", create_ticket),
    "change ticket": Kind("svc-tickets", CHANGES_TOGETHER, "ticket.status_changed", "svc-webhooks", change_ticket),
    "notice": Kind(
        "svc-occupancy", DECIDES, "turn.status_changed", "svc-catalog", lambda records: notice(records.occupied_unit())
    ),
    "move-in": Kind(
        "svc-occupancy", DECIDES, "turn.status_changed", "svc-catalog", lambda records: move_in(records.vacant_unit())
    ),
    "create webhook": Kind("svc-webhooks", INSERTS, "", "", create_webhook),
}


class Reply(NamedTuple):
    """An answer; status 0 where none arrived, with the name of the exception as body."""

    status: int
    replayed: bool
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code, or empty."""
        return str(self.json["error"]["code"]) if self.status >= 400 else ""

    @property
    def is_final(self) -> bool:
        """Whether a client stops retrying: spec 7 says which answers it may retry with the same key."""
        return self.status not in (0, 429, 500) and self.code != "idempotency_in_progress"


class Caller:
    """HTTP client of one company. Checks every answer against the published contract."""

    def __init__(self, harness: Harness, company: Company, session: aiohttp.ClientSession) -> None:
        self.harness = harness
        self.company = company
        self._session = session
        self._keys: Iterator[str] = iter(())

    async def mint(self, keys: int) -> None:
        """Mints keys to spread the writes over: each key may send 120 requests a minute."""
        self._keys = itertools.cycle([await self.harness.key(self.company) for _ in range(keys)])

    def api_key(self) -> str:
        return next(self._keys)

    async def send(self, write: Write, api_key: str, key: str) -> Reply:
        """One attempt."""
        headers = {"Authorization": f"Bearer {api_key}", "Idempotency-Key": key}
        system = self.harness.system
        try:
            async with self._session.request(
                write.method, system.base_url + write.path, json=write.body, headers=headers
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Reply(0, False, type(error).__name__.encode())
        received = HTTPMessage()
        for name, value in response.headers.items():
            received[name] = value
        assert system.contract is not None
        system.contract.check(write.method, write.path, response.status, received, body)
        return Reply(response.status, "X-Idempotent-Replay" in response.headers, body)

    async def insist(self, write: Write, api_key: str, key: str, attempts: list[Reply] | None = None) -> Reply:
        """Retries with the same key until the final answer. attempts: collects every answer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        wait_seconds = 0.05
        while True:
            reply = await self.send(write, api_key, key)
            if attempts is not None:
                attempts.append(reply)
            if reply.is_final:
                return reply
            assert time.monotonic() < deadline, (write, reply)
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(1.0, 1.5 * wait_seconds)


def connections() -> aiohttp.ClientSession:
    """A session without a connection limit. An attempt may take 30 s, the longest that the gateway takes."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=30))
