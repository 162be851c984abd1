"""The causes of a soak's events: imported files, and requests repeated until a 2xx answers them."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from ..e2e.system import Company
from .harness import Harness
from .soak_plan import CHAINS, CHANGED, CREATED, MOVED, Plan, Subscription

ROWS_A_FILE = 2000
CLIENTS = 6
KEYS_A_COMPANY = 5  # each may send 120 requests a minute
PROPERTY = {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}
MOVE_IN = {
    "move_in_date": "2026-04-15",
    "lease_start_date": "2026-04-15",
    "provider": "entrata",
    "parties": [{"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}],
}
NOTICE = {"move_out_date": "2981-05-31", "provider": "entrata"}
# Of so many writes, one is followed by another operation with its key.
KEYS_TRIED_AGAIN = 3
UNWANTED_TICKET = {"unit_id": 1, "title": "Never", "category": "Plumbing"}
UNWANTED_SUBSCRIPTION = {"destination_url": "https://receiver.test/never", "events": ["pm.stale"]}
CLOSING = {"status": "Completed", "note": "All of it was mended today."}


class Cause(NamedTuple):
    """A change that fires exactly one event. to: the new status of a status change, else empty."""

    company: int
    event: str
    entity_id: int
    to: str


class Causes:
    """Carries out the plan despite the kills. Call `found`, then `run`, then `truth`."""

    def __init__(self, harness: Harness, plan: Plan, chance: random.Random, session: aiohttp.ClientSession) -> None:
        self.harness = harness
        self.plan = plan
        self.companies: list[Company] = []
        self.answers: Counter[str] = Counter()
        """How often requests and imports ended with each result."""
        self.done = 0
        """Events whose causes are known to have happened."""
        self._chance = chance
        self._session = session
        self._keys: list[Iterator[str]] = []
        self._units: list[list[int]] = []
        self._numbers = itertools.count(1)

    # Before

    async def found(self) -> dict[Subscription, tuple[int, str]]:
        """Creates companies, keys, a property with units, subscriptions; returns each subscription's (id, secret)."""
        for number, share in enumerate(self.plan.shares):
            company = await self.harness.company(f"Company {number}")
            self.companies.append(company)
            self._keys.append(itertools.cycle([await self.harness.key(company) for _ in range(KEYS_A_COMPANY)]))
            units = [{"external_id": f"U{n}", "property": "P1", "name": f"Unit {n}"} for n in range(share.moved + 1)]
            await self._import(number, "properties", [PROPERTY])
            await self._import(number, "units", units)
            self._units.append([unit["entity_id"] async for unit in self._walk(number, "/units")])
        created = {}
        for subscription in self.plan.subscriptions:
            body = {"destination_url": subscription.destination_url, "events": list(subscription.heard)}
            record = await self._insist(subscription.company, "POST", "/webhooks", body)
            created[subscription] = record["entity_id"], record["secret"]
        return created

    # Meanwhile

    async def run(self) -> None:
        """Returns when all causes have happened."""
        stories = [
            story
            for company, share in enumerate(self.plan.shares)
            for story in (
                *(partial(self._ticket, company, number % 2 == 1) for number in range(share.opened)),
                *(partial(self._residency, company, unit_id) for unit_id in self._units[company][1:]),
            )
        ]
        self._chance.shuffle(stories)
        waiting = iter(stories)

        async def client() -> None:
            for story in waiting:
                await story()

        async with asyncio.TaskGroup() as together:
            together.create_task(self._files())
            for _ in range(CLIENTS):
                together.create_task(client())

    async def _files(self) -> None:
        for company, share in enumerate(self.plan.shares):
            for first in range(0, share.imported, ROWS_A_FILE):
                last = min(first + ROWS_A_FILE, share.imported)
                await self._import(company, "tickets", [_row(n) for n in range(first, last)], "--events")
                self.done += last - first
            changed = [{**_row(n), "status": "On Hold"} for n in range(share.changed)]
            await self._import(company, "tickets", changed, "--events")
            self.done += share.changed

    async def _ticket(self, company: int, completed: bool) -> None:
        opened = {"unit_id": self._units[company][0], "title": f"Tap {next(self._numbers)}", "category": "Plumbing"}
        ticket = await self._insist(company, "POST", "/tickets", opened)
        self.done += 1
        for change in ({"status": "In Progress"}, CLOSING)[: 1 + completed]:
            await self._insist(company, "PATCH", f"/tickets/{ticket['entity_id']}", change)
            self.done += 1

    async def _residency(self, company: int, unit_id: int) -> None:
        for path, body in (("move-in", MOVE_IN), ("notice", NOTICE)):
            await self._insist(company, "POST", f"/units/{unit_id}/{path}", body)
            self.done += 1

    async def _import(self, company: int, kind: str, rows: list[dict[str, Any]], *options: str) -> None:
        """Repeats the import until it succeeds: rows that are already stored stay unchanged."""
        file = self.harness.folder / f"rows-{next(self._numbers)}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        program = Path(sys.executable).with_name("makeready")
        words = ["--json", "import", str(self.companies[company].company_id), kind, str(file), *options]
        while True:
            process = await asyncio.create_subprocess_exec(
                program,
                *words,
                env=self.harness.system.environment,
                cwd=self.harness.folder,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                _, complaint = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
            self.answers[f"import: exit {process.returncode}"] += 1
            if process.returncode == 0:
                break
            if process.returncode != 1 or b"Traceback" in complaint:
                raise AssertionError(f"import of {kind}: {process.returncode}: {complaint.decode()[-2000:]}")
        file.unlink()

    async def _insist(self, company: int, method: str, path: str, body: dict[str, Any]) -> Any:
        """Repeats the request with one Idempotency-Key until a 2xx answers it; returns that answer."""
        number = next(self._numbers)
        headers = {"Authorization": f"Bearer {next(self._keys[company])}", "Idempotency-Key": f"soak {number}"}
        wait_seconds = 0.05
        while True:
            status, code, answered = await self._send(method, path, headers, body)
            self.answers[f"{method}: {status} {code}".strip()] += 1
            if status in (200, 201):
                if number % KEYS_TRIED_AGAIN == 0:
                    await self._try_again(path, headers)
                return answered
            if status not in (0, 429, 500) and code != "idempotency_in_progress":
                raise AssertionError(f"{method} {path}: {status} {answered}")
            await asyncio.sleep(wait_seconds)
            wait_seconds = min(1.0, 1.5 * wait_seconds)

    async def _try_again(self, path: str, headers: dict[str, str]) -> None:
        """Sends an operation of another service with the key of a write that was done. It must have no effect."""
        is_webhook = path == "/webhooks"
        other, body = ("/tickets", UNWANTED_TICKET) if is_webhook else ("/webhooks", UNWANTED_SUBSCRIPTION)
        status, code, answered = await self._send("POST", other, headers, body)
        self.answers[f"key of another write: {status} {code}".strip()] += 1
        if status not in (0, 429, 500) and code not in ("idempotency_mismatch", "idempotency_in_progress"):
            raise AssertionError(f"POST {other} with the key of {path}: {status} {answered}")

    async def _send(
        self, method: str, path: str, headers: dict[str, str], body: dict[str, Any] | None = None
    ) -> tuple[int, str, Any]:
        """Status (0: no answer), the error's code, and the record or the error."""
        url = self.harness.system.base_url + path
        try:
            async with self._session.request(method, url, json=body, headers=headers) as response:
                answered = json.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return 0, type(error).__name__, None
        return response.status, "" if response.status < 400 else answered["error"]["code"], answered

    # Afterwards

    async def truth(self, *, whole: bool) -> set[Cause]:
        """The causes that happened, derived from the served records. whole: fails unless they are all those planned."""
        causes: set[Cause] = set()
        for number, share in enumerate(self.plan.shares):
            tickets = [ticket async for ticket in self._walk(number, "/tickets")]
            turns = [turn async for turn in self._walk(number, "/turns")]
            if whole and (len(tickets), len(turns)) != (share.imported + share.opened, share.moved):
                raise AssertionError(f"company {number} has {len(tickets)} tickets and {len(turns)} turns for {share}")
            of_company = {
                *(Cause(number, CREATED, ticket["entity_id"], "") for ticket in tickets),
                *(
                    Cause(number, CHANGED, ticket["entity_id"], to)
                    for ticket in tickets
                    for to in CHAINS[ticket["status"]]
                ),
                *(Cause(number, MOVED, turn["entity_id"], "Occupied") for turn in turns),
                *(Cause(number, MOVED, turn["entity_id"], "Notice") for turn in turns if turn["move_out_date"]),
            }
            if whole and len(of_company) != share.events:
                raise AssertionError(f"company {number} has causes of {len(of_company)} events for {share}")
            causes |= of_company
        return causes

    async def _walk(self, company: int, path: str) -> AsyncIterator[dict[str, Any]]:
        """Every record of a list."""
        more = ""
        while True:
            headers = {"Authorization": f"Bearer {next(self._keys[company])}"}
            status, code, page = await self._send("GET", f"{path}?limit=200{more}", headers)
            if status in (0, 429, 500):
                await asyncio.sleep(0.2)
                continue
            if status != 200:
                raise AssertionError(f"GET {path}: {status} {code}")
            for record in page["data"]:
                yield record
            if page["next_cursor"] is None:
                return
            more = f"&cursor={page['next_cursor']}"


def _row(number: int) -> dict[str, Any]:
    return {"external_id": f"T{number}", "property": "P1", "title": f"Drip {number}", "category": "Leak"}
