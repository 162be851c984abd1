"""A svc-tickets whose clock is wrong: it refuses every write, serves reads, and goes on when the clock is right."""

from __future__ import annotations

import datetime
import json
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from sqlalchemy import func, select

from chassis.auth.identity import Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.schedule import instants
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from testkit.processes import free_port
from testkit.services import RunningService

from ..companies import fired, import_tickets, new_company, sweep
from ..conftest import Client
from .changing import SENT, change, opened, served
from .commands import opening, run_command
from .test_importing_tickets import row, sent

pytestmark = pytest.mark.usefixtures("places")

# The service itself, with the clock that it takes moved by as many seconds as a file says at that moment.
SHIFTED = """
import datetime, pathlib, runpy, sys
from chassis.schedule import instants
real, file = instants.now, pathlib.Path(sys.argv.pop(1))
instants.now = lambda: real() + datetime.timedelta(seconds=float(file.read_text()))
runpy.run_module("svc_tickets", run_name="__main__", alter_sys=True)
"""


class ShiftedService(RunningService):
    """A second process of the service, on the same database."""

    def __init__(self, service: RunningService, folder: Path) -> None:
        super().__init__(
            "svc-tickets",
            service.keys,
            service.database_url,
            service.nats_url,
            folder / "log",
            addresses=service.addresses,
        )
        self.shift = folder / "shift"
        self.metrics = f"127.0.0.1:{free_port()}"

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-P", "-c", SHIFTED, str(self.shift)]

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"MAKEREADY_METRICS_LISTEN": self.metrics}

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=60) as response:
            lines = response.read().decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))

    def logged(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]


@pytest.fixture
def shifted(service: RunningService, tmp_path: Path) -> Iterator[ShiftedService]:
    shifted = ShiftedService(service, tmp_path)
    shifted.shift.write_text("0")
    yield shifted
    shifted.stop()


@pytest.fixture
async def replica(shifted: ShiftedService) -> AsyncIterator[Client]:
    async with shifted.channel() as channel:
        yield Client(shifted, channel)


async def rows_of(database: Database) -> list[int]:
    tables = (t.ticket, t.ticket_status_change, t.ticket_comment, t.outbox, t.audit, t.idempotency)
    return [await database.value(Statement(select(func.count()).select_from(table))) for table in tables]


async def refused(answer: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await answer
    assert fault.value.code() is grpc.StatusCode.ABORTED  # the gateway's 500 `internal_error`


@pytest.mark.parametrize("by", ["3600", "-3600"])
async def test_a_clock_that_jumps_stores_nothing(
    shifted: ShiftedService, replica: Client, database: Database, operator: Identity, by: str
) -> None:
    shifted.start()
    ticket_id = await opened(replica)
    await change(replica, ticket_id, SENT["In Progress"])
    before, got = await rows_of(database), await served(replica, ticket_id)
    shifted.shift.write_text(by)
    await refused(opened(replica))
    await refused(change(replica, ticket_id, SENT["Completed"]))
    await refused(run_command(replica, "SetTicketStatus", operator, ticket_id=ticket_id, status="On Hold"))
    await refused(run_command(replica, "CommentOnTicket", operator, ticket_id=ticket_id, body="Ordered"))
    await refused(replica("OpenTicket", opening(), operator))
    await refused(replica("ImportTickets", pb.ImportTicketsRequest(rows=sent(row())), operator))
    assert await rows_of(database) == before
    # Reads go on.
    assert await served(replica, ticket_id) == got
    page = (await replica("ListTickets", pb.ListTicketsRequest(limit=200))).page
    assert json.loads(page.data)
    # What fills the search beside the writes is refused too, and tries again.
    assert shifted.metric("makeready_clock_refused_total") >= 6 and len(shifted.logged("clocks_apart")) == 1
    assert abs(shifted.metric("makeready_clock_ahead_seconds") - float(by)) < 60
    assert not shifted.logged("unavailable") and not shifted.logged("fault")
    shifted.shift.write_text("0")
    moved = json.loads((await change(replica, ticket_id, SENT["Completed"])).body)
    assert moved["completed_at"] <= instants.printed(instants.now())
    assert len(shifted.logged("clocks_apart")) == 1


async def test_a_process_that_starts_with_a_wrong_clock_writes_nothing_and_sweeps_nothing(
    shifted: ShiftedService, replica: Client, client: Client, database: Database
) -> None:
    """Ten weeks ahead, its own sweeps would announce every open ticket of a resident."""
    company = await new_company(database)
    await import_tickets(client, company, {"source": "resident_portal"})
    shifted.shift.write_text(str(70 * 86_400))
    before = await rows_of(database)
    shifted.start()
    await refused(opened(replica))
    await refused(sweep(shifted, instants.now() + datetime.timedelta(days=70)))
    assert await rows_of(database) == before and await fired(database, company, "ticket.stale") == []
    assert len(shifted.logged("clocks_apart")) == 1 and not shifted.logged("background_waits")
    shifted.shift.write_text("0")
    assert await opened(replica) > 0
