"""A write through each context makes a hint that names the record; one that is refused or rolled back makes none."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
from nats.aio.msg import Msg

from .harness import Harness
from .processes import PATIENCE_SECONDS
from .writes import KINDS, Caller, Records


class Heard:
    """The hints about one company, each as (service, kind, id)."""

    def __init__(self, company_id: int) -> None:
        self._company_id = company_id
        self.hints: list[tuple[str, str, int]] = []

    async def hear(self, message: Msg) -> None:
        word, service, company_id, kind, entity_id = message.subject.split(".")
        assert (word, message.data, message.headers) == ("hints", b"", None)
        if int(company_id) == self._company_id:
            self.hints.append((service, kind, int(entity_id)))

    async def until(self, *expected: tuple[str, str, int]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not set(expected) <= set(self.hints):
            assert time.monotonic() < deadline, (expected, self.hints)
            await asyncio.sleep(0.02)


@asynccontextmanager
async def listening(harness: Harness, company_id: int) -> AsyncIterator[Heard]:
    heard = Heard(company_id)
    client = await nats.connect(harness.nats.url)
    await client.subscribe("hints.>", cb=heard.hear)
    await client.flush()
    yield heard
    await client.close()


async def command(harness: Harness, *words: str, status: int = 0) -> Any:
    return await asyncio.to_thread(lambda: harness.system.makeready(*words, status=status))


async def test_a_write_through_each_context_makes_a_hint(harness: Harness, caller: Caller, records: Records) -> None:
    company = caller.company
    async with listening(harness, company.company_id) as heard:
        replies = {}
        for name, kind in KINDS.items():
            reply = await caller.send(kind.make(records), caller.api_key(), f"hint {name}")
            assert reply.status in (200, 201), reply
            replies[name] = reply.json
        ticket, changed = (replies[name]["entity_id"] for name in ("create ticket", "change ticket"))
        notice, move_in = (replies[name]["entity_id"] for name in ("notice", "move-in"))
        await heard.until(
            ("svc-tickets", "ticket", ticket),
            ("svc-tickets", "ticket", changed),
            ("svc-occupancy", "turn", notice),
            ("svc-occupancy", "turn", move_in),
            ("svc-webhooks", "webhook_subscription", replies["create webhook"]["entity_id"]),
        )
        # The same write again is a replay, which changes nothing.
        heard.hints.clear()
        again = KINDS["create webhook"].make(records)
        api_key = caller.api_key()
        first = await caller.send(again, api_key, "hint twice")
        assert (await caller.send(again, api_key, "hint twice")).replayed
        await asyncio.to_thread(company.import_rows, "properties", [{"external_id": "H1", "name": "H", "address": "1"}])
        ((house,),) = await harness.query(
            "svc-catalog", "SELECT id FROM property WHERE company_id = $1 AND external_id = 'H1'", company.company_id
        )
        last = await caller.send(KINDS["create webhook"].make(records), api_key, "hint after it")
        hints = [
            ("svc-webhooks", "webhook_subscription", subscription.json["entity_id"]) for subscription in (first, last)
        ]
        await heard.until(*hints, ("svc-catalog", "property", house))
        assert [hint for hint in heard.hints if hint[:2] == hints[0][:2]] == hints
        await command(harness, "company", "update", str(company.company_id), "--timezone", "Europe/Oslo")
        await heard.until(("gateway", "company", company.company_id))
    await command(harness, "wait")  # later tests count rows, also those of replicas


async def marked(harness: Harness, caller: Caller, records: Records, heard: Heard, name: str) -> int:
    """Opens a ticket and imports a unit; returns the ticket's id when both hints have come.

    A service's hints arrive in the order of its commits, so all that it made before has been heard then. What follows
    from a write in other tables and services makes hints of other kinds, at any time.
    """
    opened = await caller.insist(KINDS["create ticket"].make(records), caller.api_key(), f"mark {name}")
    ticket_id: int = opened.json["entity_id"]
    rows = [{"external_id": name, "property": "P1", "name": name}]
    await asyncio.to_thread(caller.company.import_rows, "units", rows)
    sql = "SELECT id FROM unit WHERE company_id = $1 AND external_id = $2"
    ((unit_id,),) = await harness.query("svc-catalog", sql, caller.company.company_id, name)
    await heard.until(("svc-tickets", "ticket", ticket_id), ("svc-catalog", "unit", unit_id))
    return ticket_id


async def test_a_write_that_is_refused_or_rolled_back_makes_no_hint(
    harness: Harness, caller: Caller, records: Records
) -> None:
    async with listening(harness, caller.company.company_id) as heard:
        await marked(harness, caller, records, heard, "before")
        heard.hints.clear()
        ticket = records.ticket()
        refused = KINDS["change ticket"].make(records)
        path = f"/tickets/{ticket}"
        for body in ({"status": "Cancelled"}, {"status": "Nowhere"}):
            write = type(refused)(refused.kind, "PATCH", path, body)
            assert (await caller.send(write, caller.api_key(), f"refused {body['status']}")).status == 422
        rows = [{"external_id": "never", "name": "Never", "address": "1 Elm St"}]
        await asyncio.to_thread(caller.company.import_rows, "properties", rows, "--dry-run")
        # The write is decided, and dies before its commit.
        harness.arm("svc-tickets", "write-decided")
        dying = type(refused)(refused.kind, "PATCH", path, {"status": "In Progress"})
        assert (await caller.send(dying, caller.api_key(), "dies")).status == 500
        await harness.killed_at_point("svc-tickets")
        await harness.mend("svc-tickets")
        last = await marked(harness, caller, records, heard, "after")
        assert [hint[2] for hint in heard.hints if hint[:2] == ("svc-tickets", "ticket")] == [last]
        assert not [
            hint
            for hint in heard.hints
            if hint[1] == "property" or (hint[1].startswith("ticket") and hint[2] == ticket)
        ]
    await command(harness, "wait")
