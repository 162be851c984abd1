"""A company at work, as `mirror` copies it: integrations, files and people change records of all nine kinds.

Every write is repeated until it is answered, whoever is killed meanwhile; a refusal is an answer too.
"""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from chassis.auth.identity import OPERATOR, Identity
from chassis.refusals import Refusal
from makeready.catalog.v1 import (
    inspection_commands_pb2,
    inspections_pb2,
    meter_commands_pb2,
    meters_pb2,
    place_commands_pb2,
    places_pb2,
    vendor_commands_pb2,
    vendors_pb2,
)
from makeready.common.v1.documents_pb2 import IMPORT_OUTCOME_REJECTED, ImportRow
from makeready.events.v1 import replicas_pb2
from makeready.identity.v1 import staff_commands_pb2, staff_pb2
from makeready.occupancy.v1 import turn_board_pb2, turns_pb2
from makeready.tickets.v1 import ticket_commands_pb2, tickets_pb2

from .harness import Harness
from .processes import PATIENCE_SECONDS
from .writes import Caller, Write, move_in, notice

# The contracts of the RPCs that the writers call, by service.
CONTRACTS: dict[str, tuple[Any, ...]] = {
    "gateway": (staff_pb2, staff_commands_pb2),
    "svc-catalog": (
        places_pb2,
        place_commands_pb2,
        vendors_pb2,
        vendor_commands_pb2,
        inspections_pb2,
        inspection_commands_pb2,
        meters_pb2,
        meter_commands_pb2,
    ),
    "svc-tickets": (
        tickets_pb2,
        ticket_commands_pb2,
        replicas_pb2,
    ),
    "svc-occupancy": (turns_pb2, turn_board_pb2),
}
PROPERTIES, UNITS_EACH, STAFF, VENDORS, TICKETS = 6, 4, 6, 6, 40
STATUSES = ("Open", "In Progress", "On Hold", "Completed", "Cancelled")
FIRING = ("Tickets", "Turns", "Inspections", "Vendors")
"""Files of these kinds may fire events."""
LIFE_SAFETY = "A walk of consultants"


def _rpcs() -> dict[str, tuple[str, Any]]:
    """By RPC: its service, the class of its request."""
    rpcs = {}
    for service, contracts in CONTRACTS.items():
        for contract in contracts:
            for service_type in contract.DESCRIPTOR.services_by_name.values():
                for method in service_type.methods:
                    request = getattr(contract, method.input_type.name, None)
                    rpcs[method.name] = (service, request)
    return rpcs


RPCS = _rpcs()


class Writers:
    """The writers of one company. Call `found`, then `run`."""

    def __init__(self, harness: Harness, caller: Caller, chance: random.Random) -> None:
        self.harness = harness
        self.caller = caller
        self.company_id = caller.company.company_id
        self.answers: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        """How often each RPC was sent."""
        """How often each kind of write was done or refused."""
        self._chance = chance
        self._who = Identity(OPERATOR, "operator", self.company_id)
        self._numbers = itertools.count(1)
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._ids: dict[str, list[int]] = {}
        self._readings: dict[int, list[int]] = {}
        self._acts: tuple[Callable[[], Awaitable[object]], ...] = (
            *(self._opens, self._progresses, self._leaves, self._moves_in),
            *(self._files_tickets, self._files_old_tickets, self._files_turns, self._files_places, self._files_assets),
            *(self._files_vendors, self._files_inspections, self._files_meters, self._files_staff),
            *(self._renames_property, self._renames_unit, self._renames_staff, self._renames_vendor),
            *(self._moves_unit, self._changes_asset, self._holds_vendor, self._plans_inspection),
            *(self._walks_inspection, self._cancels_inspection, self._changes_meter, self._reads_meter),
            *(self._corrects_reading, self._assigns, self._rewrites_ticket, self._sets_unit, self._schedules_turn),
        )

    # The company

    async def found(self) -> None:
        """Makes its first records."""
        await self._import("Staff", [self._staff(n) for n in range(STAFF)])
        await self._import("Vendors", [self._vendor(n) for n in range(VENDORS)])
        await self._import("Properties", [self._property(n) for n in range(PROPERTIES)])
        await self._import("Units", [self._unit(n) for n in range(PROPERTIES * UNITS_EACH)])
        await self._import("Assets", [self._asset(n) for n in range(2 * PROPERTIES)])
        await self._import("Meters", [self._meter(n) for n in range(2 * PROPERTIES)])
        await self._import("Readings", [self._reading(n) for n in range(6 * PROPERTIES)])
        await self._import("Inspections", [self._inspection(n) for n in range(4 * PROPERTIES)])
        await self._import("Tickets", [self._ticket(n) for n in range(TICKETS)])
        await self._import("Turns", [self._turn(n) for n in range(0, PROPERTIES * UNITS_EACH, 2)])
        self._ids["staff"] = [member.staff_id for member in (await self._ask("ListStaff")).staff]
        for kind in ("properties", "units", "assets", "vendors", "inspections", "meters", "tickets", "turns"):
            self._ids[kind] = await asyncio.to_thread(self._walked, f"/{kind}")
        for meter_id in self._ids["meters"]:
            self._readings[meter_id] = await asyncio.to_thread(self._walked, f"/meters/{meter_id}/readings")

    def _walked(self, path: str) -> list[int]:
        return [record["entity_id"] for record in self.caller.company.walk(path)]

    async def run(self, writers: int, pause_seconds: float, ended: asyncio.Event) -> None:
        """Several do all acts in random order, again and again, until `ended` is set and each act was done once.

        pause_seconds: between two acts of a writer, at most.
        """
        rounds = (self._chance.sample(self._acts, len(self._acts)) for _ in itertools.count())
        acts = itertools.chain.from_iterable(rounds)
        acts_left = len(self._acts)

        async def writer() -> None:
            nonlocal acts_left
            while acts_left > 0 or not ended.is_set():
                acts_left -= 1
                act = next(acts)
                try:
                    await act()
                    self.answers[act.__name__] += 1
                except Refusal as refused:
                    assert refused.status in (404, 409, 422), (act.__name__, refused)
                    self.answers[f"{act.__name__} refused"] += 1
                await asyncio.sleep(self._chance.uniform(0, pause_seconds))

        async with asyncio.TaskGroup() as together:
            for _ in range(writers):
                together.create_task(writer())

    async def rebuild_replicas(self) -> None:
        """Rebuilds the units of svc-tickets as after a restore, which ends the cursors of its records."""
        for overwrite in (True, False):
            await self._ask("RebuildReplicas", kind="units", overwrite=overwrite)

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()

    # Rows of files

    def _name(self, noun: str) -> str:
        return f"{noun} {next(self._numbers)} Größe"

    def _key(self) -> str:
        return f"mirror {self.company_id} {next(self._numbers)}"

    def _any(self, kind: str) -> int:
        return self._chance.choice(self._ids[kind])

    def _unit_key(self) -> str:
        return f"U{self._chance.randrange(PROPERTIES * UNITS_EACH)}"

    def _staff(self, n: int) -> dict[str, Any]:
        return {"external_id": f"S{n}", "name": self._name("Ana")}

    def _vendor(self, n: int) -> dict[str, Any]:
        business = {"legal_name": f"Business {n // 2}", "website": f"https://b{n // 2}.example"}
        return {"external_id": f"V{n}", "name": self._name("Vendor"), **business, "avg_rating": 3.5}

    def _property(self, n: int) -> dict[str, Any]:
        return {
            "external_id": f"P{n}",
            "name": self._name("Court"),
            "address": "1 Elm St",
            "latitude": 42.36,
            "city": "",
        }

    def _unit(self, n: int) -> dict[str, Any]:
        parts = {"building": f"B{n % 2}", "floor": f"F{n % 3}", "floorplan": f"Plan {n % 2}", "bedrooms": 1 + n % 2}
        return {"external_id": f"U{n}", "property": f"P{n % PROPERTIES}", "name": self._name("Unit"), **parts}

    def _asset(self, n: int) -> dict[str, Any]:
        description = {
            "category": "HVAC",
            "make": "Acme",
            "model": "X",
            "status": self._chance.choice(["Active", "Retired"]),
        }
        return {
            "external_id": f"A{n}",
            "property": f"P{n % PROPERTIES}",
            "name": self._name("Boiler"),
            **description,
        } | ({"location": "Cellar", "location_type": "mechanical_room"} if n % 2 else {"location": f"U{n}"})

    def _meter(self, n: int) -> dict[str, Any]:
        place = {"unit": f"U{n}"} if n % 2 else {}
        description = {"utility_type": "water", "is_active": self._chance.random() < 0.8}
        return {
            "external_id": f"M{n}",
            "property": f"P{n % PROPERTIES}",
            "name": self._name("Meter"),
            **description,
            **place,
        }

    def _reading(self, n: int) -> dict[str, Any]:
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=n)
        period = {"period_start": f"{day}T00:00:00Z", "period_end": f"{day}T23:00:00Z"}
        amount = round(self._chance.uniform(0, 900), 2)
        return {"external_id": f"R{n}", "meter": f"M{n % (2 * PROPERTIES)}", **period, "consumption": amount}

    def _inspection(self, n: int) -> dict[str, Any]:
        """Operations' own, which the API serves, or a walk of consultants, which it does not."""
        kind = self._chance.choice([{"kind": "operations", "engagement": ""}, {"kind": "consulting_walk"}])
        if kind["kind"] == "consulting_walk":
            kind["engagement"] = LIFE_SAFETY
        place = {"property": f"P{n % PROPERTIES}", "unit": f"U{n % PROPERTIES}", "assignee": f"S{n % STAFF}"}
        return {"external_id": f"I{n}", **place, "title": self._name("Roof"), "inspection_number": 1000 + n, **kind}

    def _ticket(self, n: int) -> dict[str, Any]:
        unit = self._chance.randrange(PROPERTIES * UNITS_EACH)
        place = (
            {"property": f"P{unit % PROPERTIES}", "unit": f"U{unit}"} if n % 3 else {"property": f"P{n % PROPERTIES}"}
        )
        people = {"assignee": f"S{n % STAFF}", "assigned_vendor": f"V{n % VENDORS}"} if n % 2 else {}
        return {"external_id": f"T{n}", **place, **people, "title": self._name("Tap"), "category": "Plumbing"}

    def _turn(self, n: int) -> dict[str, Any]:
        dates = {"move_in_date": "2024-04-01", "move_out_date": self._chance.choice(["", "2981-05-01"])}
        return {"external_id": f"L{n}", "unit": f"U{n}", **dates}

    # Integrations

    async def _opens(self) -> None:
        body = {"unit_id": self._any("units"), "title": self._name("Drip"), "category": "Leak"}
        ticket = await self._send(Write("", "POST", "/tickets", body))
        self._ids["tickets"].append(ticket["entity_id"])

    async def _progresses(self) -> None:
        status = self._chance.choice(STATUSES)
        more = {
            "Completed": {"note": "All of it was mended today."},
            "Cancelled": {"cancellation_reason_code": "duplicate_ticket"},
        }
        body = {"status": status, **more.get(status, {})}
        await self._send(Write("", "PATCH", f"/tickets/{self._any('tickets')}", body))

    async def _leaves(self) -> None:
        await self._send(notice(self._any("units"), self._chance.choice(["2024-05-31", "2981-05-31"])))

    async def _moves_in(self) -> None:
        await self._send(move_in(self._any("units"), external_id=self._name("lease")))

    # Files

    async def _files_tickets(self) -> None:
        await self._import("Tickets", [self._ticket(self._chance.randrange(2 * TICKETS)) for _ in range(1)])

    async def _files_old_tickets(self) -> None:
        """Tickets whose file says that they changed a year ago."""
        old = {"created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-02-01T00:00:00Z"}
        await self._import("Tickets", [self._ticket(next(self._numbers) + 1000) | old for _ in range(3)])

    async def _files_turns(self) -> None:
        status = self._chance.choice(["Active", "Completed"])
        row = self._turn(2 * self._chance.randrange(PROPERTIES * UNITS_EACH // 2)) | {"status": status}
        await self._import("Turns", [row])

    async def _files_places(self) -> None:
        await self._import("Properties", [self._property(self._chance.randrange(PROPERTIES))])
        plan = {"bedrooms": self._chance.randrange(1, 6)}
        await self._import("Units", [self._unit(self._chance.randrange(PROPERTIES * UNITS_EACH)) | plan])

    async def _files_assets(self) -> None:
        await self._import("Assets", [self._asset(self._chance.randrange(2 * PROPERTIES))])

    async def _files_vendors(self) -> None:
        n = self._chance.randrange(VENDORS)
        states = ["compliant", "expiring", "missing"]
        state = {
            "last_compliance_state": self._chance.choice(states),
            "website": f"https://{next(self._numbers)}.example",
        }
        await self._import("Vendors", [self._vendor(n) | state])

    async def _files_inspections(self) -> None:
        await self._import("Inspections", [self._inspection(n) for n in self._chance.sample(range(4 * PROPERTIES), 5)])

    async def _files_meters(self) -> None:
        await self._import("Meters", [self._meter(self._chance.randrange(2 * PROPERTIES))])
        await self._import("Readings", [self._reading(n) for n in self._chance.sample(range(30 * PROPERTIES), 5)])

    async def _files_staff(self) -> None:
        await self._import("Staff", [self._staff(self._chance.randrange(STAFF))])

    # People

    async def _renames_property(self) -> None:
        await self._ask("UpdateProperty", property_id=self._any("properties"), name=self._name("Court"))

    async def _renames_unit(self) -> None:
        external_id = f"X{next(self._numbers)}"  # the files then make another unit
        change = {"name": self._name("Unit")} if self._chance.random() < 0.8 else {"external_id": external_id}
        await self._ask("UpdateUnit", unit_id=self._any("units"), **change)

    async def _renames_staff(self) -> None:
        await self._ask("UpdateStaff", staff_id=self._any("staff"), name=self._name("Bo"))

    async def _renames_vendor(self) -> None:
        names = {"name": self._name("Vendor"), "legal_name": f"Business {self._chance.randrange(3)}"}
        await self._ask("UpdateVendor", vendor_id=self._any("vendors"), **names)

    async def _moves_unit(self) -> None:
        plan = {"floorplan": f"Plan {self._chance.randrange(3)}", "square_feet": next(self._numbers)}
        await self._ask("UpdateUnit", unit_id=self._any("units"), building=self._name("House"), **plan)

    async def _changes_asset(self) -> None:
        status = f"ASSET_STATUS_{self._chance.choice(['ACTIVE', 'NEEDS_SERVICE', 'RETIRED'])}"
        await self._ask("UpdateAsset", asset_id=self._any("assets"), status=status)

    async def _holds_vendor(self) -> None:
        vendor_id = self._any("vendors")
        await self._ask("HoldVendor", vendor_id=vendor_id, reason="A complaint")
        await self._ask("ReleaseVendor", vendor_id=vendor_id)
        await self._ask(
            "RecordInsurance", vendor_id=vendor_id, expires_on=self._chance.choice(["2024-01-01", "2981-01-01"])
        )

    async def _plans_inspection(self) -> None:
        scheduled = await self._ask(
            "ScheduleInspection",
            property_id=self._any("properties"),
            title=self._name("Stairs"),
            scheduled_date="2981-03-01",
            assignee_id=self._any("staff"),
            row=["Rail", "Light"],
        )
        self._ids["inspections"].append(scheduled.document.entity_id)

    async def _walks_inspection(self) -> None:
        inspection_id = self._any("inspections")
        await self._ask("StartInspection", inspection_id=inspection_id)
        for number, row in enumerate((await self._ask("ListInspectionRows", inspection_id=inspection_id)).rows):
            rpc = "FailInspectionRow" if number else "PassInspectionRow"
            await self._ask(rpc, inspection_id=inspection_id, row_id=row.row_id)
        await self._ask("CompleteInspection", inspection_id=inspection_id)

    async def _cancels_inspection(self) -> None:
        await self._ask("CancelInspection", inspection_id=self._any("inspections"), reason="The roof is replaced.")

    async def _changes_meter(self) -> None:
        await self._ask("UpdateMeter", meter_id=self._any("meters"), meter_number=f"{next(self._numbers)}")

    async def _reads_meter(self) -> None:
        meter_id, number = self._any("meters"), next(self._numbers)
        period = {"period_start": f"2025-06-01T00:00:00.{number:06}Z", "period_end": "2025-06-30T00:00:00Z"}
        recorded = await self._ask("RecordReading", meter_id=meter_id, **period, consumption=number / 8)
        self._readings[meter_id].append(recorded.document.entity_id)

    async def _corrects_reading(self) -> None:
        meter_id = self._any("meters")
        reading_id = self._chance.choice(self._readings[meter_id])
        await self._ask("CorrectReading", meter_id=meter_id, reading_id=reading_id, consumption=next(self._numbers) / 7)

    async def _assigns(self) -> None:
        people = {"assignee_id": self._any("staff"), "vendor_id": self._any("vendors")}
        await self._ask("AssignTicket", ticket_id=self._any("tickets"), **people)

    async def _rewrites_ticket(self) -> None:
        await self._ask("UpdateTicket", ticket_id=self._any("tickets"), title=self._name("Sink"), priority="High")

    async def _sets_unit(self) -> None:
        status = self._chance.choice(["Vacant Ready", "Vacant Not Ready", "Down"])
        await self._ask("SetUnitStatus", unit_id=self._any("units"), unit_status=status)

    async def _schedules_turn(self) -> None:
        day = self._chance.randrange(1, 29)
        await self._ask("ScheduleTurn", turn_id=self._any("turns"), projected_ready_on=f"2981-06-{day:02}")

    # Calls

    async def _send(self, write: Write) -> Any:
        """The record that answers it."""
        reply = await self.caller.insist(write, self.caller.api_key(), self._key())
        if reply.status >= 400:
            raise Refusal(reply.status, reply.code, reply.json["error"]["message"])
        return reply.json

    async def _import(self, kind: str, rows: list[dict[str, Any]]) -> None:
        """Imports the rows. A rejected one counts as refused: another writer may have renamed its unit."""
        sent = [ImportRow(line=line, json=json.dumps(row).encode()) for line, row in enumerate(rows, start=2)]
        fires = {"events": True} if kind in FIRING and self._chance.random() < 0.5 else {}
        done = await self._ask(f"Import{kind}", rows=sent, **fires)
        for result in done.results:
            if result.outcome == IMPORT_OUTCOME_REJECTED:
                self.answers[f"row of {kind} rejected: {result.field}"] += 1

    async def _ask(self, rpc: str, **values: Any) -> Any:
        """The answer of an RPC, asked until it comes. Raises Refusal."""
        service, request_type = RPCS[rpc]
        if "idempotency_key" in request_type.DESCRIPTOR.fields_by_name:
            values["idempotency_key"] = self._key()
        request = request_type(**values)
        running = self.harness.services[service]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            if service not in self._channels:
                self._channels[service] = grpc.aio.insecure_channel(running.target)
            self.asked[rpc] += 1
            try:
                return await running.call(self._channels[service], request, self._who)
            except grpc.aio.AioRpcError as error:
                self.answers[f"{error.code().name}"] += 1
                assert time.monotonic() < deadline, (rpc, error)
            await asyncio.sleep(0.1)
