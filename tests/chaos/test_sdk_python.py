"""Creates by the Python client while the gateway is killed: each call is one ticket."""

from __future__ import annotations

import asyncio
import itertools
import os
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from makeready_client import Makeready, errors, models

from .harness import Harness
from .kill_matrix import SUMMARY
from .processes import until

pytestmark = pytest.mark.chaos

# `make soak-sdk` makes 500 with 20 kills.
CREATES = int(os.environ.get("MAKEREADY_SDK_CREATES", "60"))
KILLS = int(os.environ.get("MAKEREADY_SDK_KILLS", "3"))
CREATES_A_KEY = 100
FAULTS_MAX = 20


async def test_each_create_is_one_ticket_while_the_gateway_is_killed(harness: Harness) -> None:
    company = await harness.company("Client")
    await asyncio.to_thread(
        company.import_rows, "properties", [{"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"}]
    )
    await asyncio.to_thread(company.import_rows, "units", [{"external_id": "U1", "property": "P1", "name": "Unit 1"}])
    keys = [await harness.key(company) for _ in range(-(-CREATES // CREATES_A_KEY) + 1)]
    clients = [Makeready(key, base_url=harness.system.base_url, retries=50) for key in keys]
    reader = clients.pop()
    (unit,) = await asyncio.to_thread(list, reader.units.list())
    replayed, faults = Counter[bool](), Counter[str]()
    done = itertools.count(1)
    acknowledged: list[int] = []
    latest = 0

    def create(number: int) -> None:
        nonlocal latest
        client, key = clients[number % len(clients)], str(uuid.uuid4())
        ticket: models.Ticket | None = None
        for _ in range(FAULTS_MAX):
            try:
                ticket = client.tickets.create(
                    unit_id=unit.entity_id, title=f"Tap {number}", category="Leak", idempotency_key=key
                )
                break
            except errors.ApiError as fault:  # never a lost connection: the library repeats those by itself
                # It repeats a 500 once, as the contract says. A gateway may need longer to start on a busy machine.
                assert fault.status == 500, fault
                faults[fault.code] += 1
        assert ticket is not None, faults
        acknowledged.append(ticket.entity_id)
        replayed[ticket.replayed] += 1
        latest = next(done)

    with ThreadPoolExecutor(4) as pool:
        creates = [pool.submit(create, number) for number in range(CREATES)]
        for kill in range(1, KILLS + 1):
            await until(lambda kill=kill: latest >= kill * CREATES // (KILLS + 1), "the creates do not go on")  # type: ignore[misc]
            await harness.kill("gateway")
            await harness.start("gateway")
        for task in creates:
            await asyncio.wrap_future(task)
    served = await asyncio.to_thread(list, reader.tickets.list())
    assert Counter(ticket.title for ticket in served) == Counter(f"Tap {number}" for number in range(CREATES))
    assert sorted(acknowledged) == [ticket.entity_id for ticket in served]
    for client in (*clients, reader):
        client.close()
    await harness.all_events_arrived()
    await asyncio.to_thread(harness.system.makeready, "wait")  # later tests count rows, also those of replicas
    SUMMARY["client"] = [f"client: {CREATES} creates, {KILLS} kills, {replayed[True]} replays, {faults.total()} faults"]
