"""The running services, the calls of one company to them, and the bodies of its requests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc
from sqlalchemy import select

from chassis.auth.identity import INTEGRATION, OPERATOR, STAFF, Identity
from chassis.auth.rpcs import rpc_of
from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.catalog.v1 import places_pb2
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.common.v1.documents_pb2 import ImportOutcome, ImportResult, ImportRow, WriteReply
from makeready.common.v1.sweeps_pb2 import RunScheduledSweepsRequest
from makeready.events.v1.events_pb2 import CompanyReference, Event, References, StaffReference, VendorReference
from makeready.occupancy.v1 import (
    residencies_pb2,
    residency_commands_pb2,
    turn_board_pb2,
    turn_tasks_pb2,
    turn_templates_pb2,
    turns_pb2,
)
from svc_occupancy import tables as t
from svc_occupancy.replicas import consumers
from testkit.outboxes import OutboxRows
from testkit.patience import eventually
from testkit.services import RunningService

company_ids = itertools.count(7_000)

KINDS = {
    "properties": ("ImportProperties", places_pb2.ImportPropertiesRequest),
    "units": ("ImportUnits", places_pb2.ImportUnitsRequest),
    "turns": ("ImportTurns", turns_pb2.ImportTurnsRequest),
    "turn-tasks": ("ImportTurnTasks", turn_tasks_pb2.ImportTurnTasksRequest),
}


ANA = {"first_name": "Ana", "last_name": "Ortiz", "role": "leaseholder"}


def notice(move_out_date: str = "2999-01-31") -> dict[str, Any]:
    """The body of a notice with the required fields."""
    return {"move_out_date": move_out_date, "provider": "feed"}


def move_in() -> dict[str, Any]:
    """The body of a move-in with the required fields."""
    return {"move_in_date": "2026-01-01", "lease_start_date": "2026-01-01", "provider": "feed", "parties": [ANA]}


async def until(read: Callable[[], Awaitable[Any]], expected: Any) -> float:
    """Waits until `found()` returns the expected value; returns the seconds that this took."""
    last = None

    async def is_there() -> bool:
        nonlocal last
        last = await read()
        return bool(last == expected)

    return await eventually(is_there, lambda: last)


_OUTBOX = OutboxRows(t.outbox)


async def published(served: Database, company: Company) -> list[Event]:
    """The company's events in the order of their ids, which is the order of recording to the millisecond."""
    rows = await _OUTBOX.containing(served, Event(company_id=company.id))
    events = [Event.FromString(row["message"]) for row in rows]
    return [event for event in events if event.company_id == company.id]


async def fired(served: Database, company: Company, *but: str) -> list[tuple[str, int, Any, Any]]:
    """The public events except those with the keys in but: key, record's id, from, to (None, None without a change)."""
    fired_events = []
    for event in await published(served, company):
        if event.HasField("public") and event.public.event not in but:
            change = json.loads(event.public.change or b"{}")
            fired_events.append((event.public.event, event.public.entity_id, change.get("from"), change.get("to")))
    return fired_events


class House:
    """The two services, called by RPC name."""

    def __init__(
        self, catalog: RunningService, occupancy: RunningService, channels: Sequence[grpc.aio.Channel]
    ) -> None:
        in_catalog, in_occupancy = channels
        self._catalog, self._occupancy = (catalog, in_catalog), (occupancy, in_occupancy)

    async def __call__(self, rpc: str, request: Any, who: Identity) -> Any:
        contract = rpc_of(type(request))
        assert contract.name == rpc
        is_catalogs = contract.full_name.startswith("makeready.catalog.")
        service, channel = self._catalog if is_catalogs else self._occupancy
        return await service.call(channel, request, who)


class Company:
    """Calls the two services for one company: its callers read, the operator imports."""

    def __init__(self, house: House, company_id: int) -> None:
        self.house = house
        self.id = company_id
        self.caller = Identity(INTEGRATION, "gateway", company_id, 1, "read")
        self.writer = Identity(INTEGRATION, "gateway", company_id, 2, "write", 3)
        self.operator = Identity(OPERATOR, "operator", company_id)
        self.staff = Identity(STAFF, "gateway", company_id, staff_id=12)
        self._keys = itertools.count()

    async def write(self, rpc: str, unit_id: int, body: Any, key: str = "", who: Identity | None = None) -> WriteReply:
        """The reply of RecordNotice or RecordMoveIn; default: a new Idempotency-Key."""
        raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        request = {"unit_id": unit_id, "idempotency_key": key or f"key {next(self._keys)}", "body": raw}
        reply: WriteReply = (
            await self.house(rpc, getattr(residencies_pb2, f"{rpc}Request")(**request), who or self.writer)
        ).reply
        return reply

    async def notice(self, unit_id: int, move_out_date: str = "2999-01-31", **more: Any) -> dict[str, Any]:
        """Records a notice; returns its OccupancyRecord."""
        reply = await self.write("RecordNotice", unit_id, notice(move_out_date) | more)
        assert (reply.status, reply.replayed) == (201, False)
        return json.loads(reply.body)  # type: ignore[no-any-return]

    async def move_in(self, unit_id: int, **more: Any) -> dict[str, Any]:
        """Records a move-in; returns its OccupancyRecord."""
        reply = await self.write("RecordMoveIn", unit_id, move_in() | more)
        assert (reply.status, reply.replayed) == (201, False)
        return json.loads(reply.body)  # type: ignore[no-any-return]

    async def command(self, rpc: str, who: Identity | None = None, **fields: Any) -> Any:
        """Calls a command of staff; returns the record, or a list of them.

        Default: as a member of staff, with a new idempotency key.
        """
        response = await self.response(rpc, who, **fields)
        name = response.DESCRIPTOR.fields[0].name
        message = getattr(response, name)
        return json.loads(message.json) if name == "document" else message

    async def response(self, rpc: str, who: Identity | None = None, **fields: Any) -> Any:
        """As `command`, with the whole response."""
        contracts = (turn_board_pb2, turn_tasks_pb2, turn_templates_pb2, residency_commands_pb2)
        contract: Any = next(module for module in contracts if hasattr(module, f"{rpc}Request"))
        request = getattr(contract, f"{rpc}Request")(**fields)
        if "idempotency_key" in request.DESCRIPTOR.fields_by_name and "idempotency_key" not in fields:
            request.idempotency_key = f"act {next(self._keys)}"
        return await self.house(rpc, request, who or self.staff)

    async def residencies(self, unit_id: int) -> list[Any]:
        """The unit's turns as people see them, newest first."""
        request = residencies_pb2.ListResidenciesRequest(unit_id=unit_id)
        return list((await self.house("ListResidencies", request, self.staff)).residencies)

    async def audited(self) -> list[tuple[str, str, int, Any, Any]]:
        """The audit log, oldest first: actor, action, record's id, before, after."""
        entries = (await self.house("ListAudit", ListAuditRequest(limit=200), self.operator)).entries
        return [
            (entry.actor, entry.action, entry.subject_id, json.loads(entry.before), json.loads(entry.after))
            for entry in reversed(entries)
        ]

    async def sweep(self, now: str) -> dict[str, int]:
        """Runs the service's sweeps as of an instant, in all companies; returns their counts."""
        request = RunScheduledSweepsRequest(yes_for_all_companies=True)
        request.now.FromJsonString(now)
        return dict((await self.house("RunScheduledSweeps", request, self.operator)).done)

    async def served_turn(self, turn_id: int) -> bytes:
        """The turn as GET /turns/{id} serves it."""
        response = await self.house("GetTurn", turns_pb2.GetTurnRequest(turn_id=turn_id), self.caller)
        document: bytes = response.document.json
        return document

    async def results(self, kind: str, rows: Sequence[Any], **options: Any) -> list[ImportResult]:
        """The result of each row; a row is an object, or raw bytes. Lines count from 2, as below a heading."""
        rpc, request = KINDS[kind]
        sent = [
            ImportRow(line=line, json=row if isinstance(row, bytes) else json.dumps(row).encode())
            for line, row in enumerate(rows, start=2)
        ]
        response = await self.house(rpc, request(rows=sent, **options), self.operator)
        assert [result.line for result in response.results] == [row.line for row in sent]
        return list(response.results)

    async def put(self, kind: str, *rows: Any, **options: Any) -> list[str]:
        """The outcomes in lower case, with the field for a rejected row."""
        outcomes = []
        for result in await self.results(kind, rows, **options):
            name = ImportOutcome.Name(result.outcome).removeprefix("IMPORT_OUTCOME_").lower()
            assert bool(result.reason) == (name == "rejected")
            outcomes.append(f"{name} {result.field}".strip())
        return outcomes

    async def make_units(self, *external_ids: str) -> None:
        """Imports units with these external ids into property P1."""
        await self.put("properties", {"external_id": "P1", "name": "Elm Court", "address": "1 Elm St"})
        outcomes = await self.put(
            "units", *({"external_id": u, "property": "P1", "name": f"Unit {u}"} for u in external_ids)
        )
        assert set(outcomes) == {"created"}

    async def page(self, after_id: int = 0, limit: int = 200, **filters: Any) -> Any:
        request = turns_pb2.ListTurnsRequest(after_id=after_id, limit=limit, **filters)
        return (await self.house("ListTurns", request, self.caller)).page

    async def turns(self, **filters: Any) -> list[dict[str, Any]]:
        turns: list[dict[str, Any]] = json.loads((await self.page(**filters)).data)
        return turns

    async def turn(self, external_id: str) -> dict[str, Any]:
        (match,) = [turn for turn in await self.turns() if turn["external_id"] == external_id]
        return match

    async def units(self) -> dict[str, tuple[str | None, str | None]]:
        """The status and ready date that svc-catalog serves for each unit, by external_id."""
        request = places_pb2.ListUnitsRequest(limit=200)
        data = (await self.house("ListUnits", request, self.caller)).page.data
        return {unit["external_id"]: (unit["unit_status"], unit["projected_ready_on"]) for unit in json.loads(data)}

    async def unit_ids(self) -> dict[str, int]:
        request = places_pb2.ListUnitsRequest(limit=200)
        data = (await self.house("ListUnits", request, self.caller)).page.data
        return {unit["external_id"]: unit["entity_id"] for unit in json.loads(data)}

    async def know(self, database: Database, *, timezone: str, active: bool = True) -> None:
        """Updates the company in svc-occupancy's replica. database: svc-occupancy's."""
        version = await database.value(Statement(select(t.company.c.version).where(t.company.c.id == self.id)))
        reference = CompanyReference(id=self.id, version=version + 1, name="C", active=active, timezone=timezone)
        async with database.transaction() as connection:
            await consumers.put_references(connection, [References(companies=[reference])])

    async def known_unit(self, database: Database) -> int:
        """A unit without turns that svc-occupancy's replica has. database: svc-occupancy's."""
        await self.make_units("U1")
        unit_id = (await self.unit_ids())["U1"]
        there = Statement(select(t.unit.c.id).where(t.unit.c.id == unit_id, t.unit.c.version > 0))

        async def found() -> Any:
            return await database.value(there)

        await until(found, unit_id)
        return unit_id


async def people(served: Database, company: Company, version: int = 1, hold: int = 0) -> tuple[int, int, int]:
    """Puts a member of staff, a vendor and a vendor on hold into svc-occupancy's replicas; returns their ids.

    hold: a vendor that is on hold, too. Their external ids are S1, V1 and V2.
    """
    staff_id, vendor_id, held_id = (company.id * 10 + number for number in range(3))
    of_company: Any = {"version": version, "company_id": company.id}
    references = References(
        staff=[StaffReference(id=staff_id, name="Ana Ruiz", external_id="S1", **of_company)],
        vendors=[
            VendorReference(
                id=vendor_id, name="Ridge Paint", external_id="V1", on_hold=vendor_id == hold, **of_company
            ),
            VendorReference(id=held_id, name="Held Plumbing", external_id="V2", on_hold=True, **of_company),
        ],
    )
    async with served.transaction() as connection:
        await consumers.put_references(connection, [references])
    return staff_id, vendor_id, held_id


# In Toronto the clocks go forward on 2980-03-12 at 02:00 and back on 2980-11-05, under today's law.
LEFT, BEFORE_SIX, SIX = "2980-03-11", "2980-03-12T09:59:59Z", "2980-03-12T10:00:00Z"


async def lived_in(company: Company, served: Database, move_out_date: str = LEFT) -> tuple[int, int]:
    """Creates a unit with a resident who leaves at move_out_date; returns the ids of the unit and the turn."""
    unit_id = await company.known_unit(served)
    turn_id = (await company.move_in(unit_id))["entity_id"]
    await company.notice(unit_id, move_out_date)
    return unit_id, turn_id
