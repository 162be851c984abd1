"""A service that hangs in the middle of a write: PostgreSQL's timeout ends its transaction and frees its locks."""

import asyncio
import time

import pytest

from .effects import Effect, counted, since
from .harness import Harness
from .processes import PATIENCE_SECONDS
from .writes import KINDS, Caller, Records

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize("name", ["notice", "move-in"])
async def test_a_service_that_hangs_in_a_write_lets_go_of_its_row_and_the_retry_does_the_write(
    harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect], name: str
) -> None:
    kind = KINDS[name]
    write, api_key, key = kind.make(records), caller.api_key(), f"frozen {name}"
    before = await counted(harness, kind.service)
    harness.arm(kind.service, "write-before-commit", "hold")
    first = asyncio.create_task(caller.send(write, api_key, key))
    try:
        await harness.held(kind.service)
        deadline = time.monotonic() + PATIENCE_SECONDS
        held = "SELECT count(*) AS held FROM pg_locks JOIN pg_database d ON d.oid = database WHERE d.datname ="
        held += " current_database() AND locktype = 'advisory'"
        while (await harness.query(kind.service, held))[0]["held"]:
            assert time.monotonic() < deadline, "the claim is held for ever"
            await asyncio.sleep(0.1)
    finally:
        await harness.mend()
    # The gateway gives the process up and sends the write again. That answers the request if it comes in time, and may
    # do the write even if it comes too late for that.
    done = (await first).status in (200, 201)
    reply = await caller.insist(write, api_key, key)
    assert reply.status in (200, 201) and (reply.replayed or not done), reply
    assert since(before, await counted(harness, kind.service)) == alone[name]
