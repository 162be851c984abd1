"""The RPCs of TurnBoardService: what staff say of units and turns, once each, and who hears of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.message import Message

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import invalid_request
from chassis.writes import commands
from chassis.writes.commands import Command, CommandRunner
from makeready.common.v1.documents_pb2 import Document
from makeready.events.v1.events_pb2 import References
from makeready.occupancy.v1 import turn_board_pb2 as pb
from svc_occupancy.board import inputs, queries, records, rules
from svc_occupancy.replicas.fetch import Owners
from svc_occupancy.turn_tasks.commands import cancel_open_tasks
from svc_occupancy.turns import events as turn_events
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.turns import records as turn_records
from svc_occupancy.turns.commands import held_turn, not_of_company
from svc_occupancy.turns.queries import HeldUnit, Row
from svc_occupancy.units import queries as unit_queries
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units.events import tell

BOARD_ROWS, BOARD_ROWS_MAX = 1000, 5000
_NOTICE_NAMES = ("notice_external_id", "ntv_reason_code", "departure_destination_code", "notes")

Reply = TypeVar("Reply", bound=Message)


class _UnitLacking(Exception):  # noqa: N818 - says what is the matter
    """The replica has not got a unit that its owner may have."""


class TurnBoardService:
    """Takes in what staff say of units, and shows where they stand."""

    def __init__(self, database: Database, made: CommandRunner, owners: Owners, links: turn_records.Links) -> None:
        self.database = database
        self.commands = made
        self.owners = owners
        self.links = links

    async def ListBoard(self, request: pb.ListBoardRequest, call: identity.Call) -> pb.ListBoardResponse:
        rows = request.limit if request.HasField("limit") else BOARD_ROWS
        if not 1 <= rows <= BOARD_ROWS_MAX:
            raise invalid_request(f"limit must be from 1 to {BOARD_ROWS_MAX}.", "limit")
        property_id = request.property_id if request.HasField("property_id") else None
        first_id = min(request.after_id, bodies.ID_MAX - 1) + 1
        found = await queries.board(self.database, identity.company_id(call), first_id, rows + 1, property_id)
        response = pb.ListBoardResponse(units=map(records.board_unit, found[:rows]))
        if len(found) > rows:
            response.next_after_id = found[rows - 1]["unit_id"]
        return response

    async def SetUnitStatus(self, request: pb.SetUnitStatusRequest, call: identity.Call) -> pb.SetUnitStatusResponse:
        status = bodies.check(inputs.StatusOfUnit, commands.fields(request, "unit_status")).unit_status

        async def work(command: Command, unit: HeldUnit) -> pb.SetUnitStatusResponse:
            turn = unit.turn
            rules.check_unit_status(
                status, is_lived_in=turn is not None, move_out_date=None if turn is None else turn["move_out_date"]
            )
            if status != unit.status:
                newest = turn or await turn_queries.newest_turn(command.connection, command.company_id, unit.id)
                await _change(command, unit, status, turn)
                if newest is not None:
                    await self._touch(command, newest, [("turn.status_changed", "unit_status", unit.status, status)])
            (row,) = await queries.board(command.connection, command.company_id, unit.id, 1)
            return pb.SetUnitStatusResponse(unit=records.board_unit(row))

        return await self._on_unit(call, request, request.unit_id, pb.SetUnitStatusResponse, work)

    async def ScheduleTurn(self, request: pb.ScheduleTurnRequest, call: identity.Call) -> pb.ScheduleTurnResponse:
        given = commands.fields(request, "projected_ready_on")
        if not given:
            raise invalid_request("projected_ready_on is required; to have none, clear it.", "projected_ready_on")
        ready_on = bodies.check(inputs.Schedule, given).projected_ready_on

        async def work(command: Command) -> pb.ScheduleTurnResponse:
            unit, turn = await held_turn(command, request.turn_id)
            rules.check_schedule(turn["status"], turn["move_out_date"], ready_on)
            before = turn["projected_ready_on"]
            if ready_on != before:
                after = {**turn, "projected_ready_on": ready_on}
                await command.audit("turn.scheduled", "turn", turn["id"], _dates(turn), _dates(after))
                if unit.status is not None:
                    await _change(command, unit, unit.status, after)
                await self._touch(command, after, [("turn.schedule_changed", "projected_ready_on", before, ready_on)])
            return pb.ScheduleTurnResponse(document=await self._document(command, turn["id"]))

        return await self.commands.run(call, request, pb.ScheduleTurnResponse, work)

    async def CancelNotice(self, request: pb.CancelNoticeRequest, call: identity.Call) -> pb.CancelNoticeResponse:
        async def work(command: Command, unit: HeldUnit) -> pb.CancelNoticeResponse:
            turn = unit.turn
            if turn is None:
                raise invalid_request("The unit has no active resident whose notice could be cancelled.", status=422)
            if turn["move_out_date"] is not None:
                gone = dict.fromkeys(("move_out_date", "projected_ready_on", "vacated_on", *_NOTICE_NAMES))
                after = {**turn, **gone}
                await command.audit("turn.notice_cancelled", "turn", turn["id"], _dates(turn), _dates(after))
                await cancel_open_tasks(command, turn["id"])
                changes: list[tuple[str, str, Any, Any]] = []
                if unit.status != "Occupied":
                    changes.append(("turn.status_changed", "unit_status", unit.status, "Occupied"))
                if (ready_on := turn["projected_ready_on"]) is not None:
                    changes.append(("turn.schedule_changed", "projected_ready_on", ready_on, None))
                await _change(command, unit, "Occupied", after)
                await self._touch(command, after, changes)
            return pb.CancelNoticeResponse(document=await self._document(command, turn["id"]))

        return await self._on_unit(call, request, request.unit_id, pb.CancelNoticeResponse, work)

    async def _on_unit(
        self,
        call: identity.Call,
        request: Any,
        unit_id: int,
        reply: type[Reply],
        work: Callable[[Command, HeldUnit], Awaitable[Reply]],
    ) -> Reply:
        """The work on a unit that is held. One that the replica lacks is asked for between two tries."""
        asked = False

        async def with_unit(command: Command) -> Reply:
            unit = await turn_queries.held_unit(command.connection, command.company_id, unit_id)
            if unit is None:
                raise not_of_company("unit") if asked else _UnitLacking
            return await work(command, unit)

        try:
            return await self.commands.run(call, request, reply, with_unit)
        except _UnitLacking:
            asked = True
            await self.owners.fetch_unit(identity.company_id(call), unit_id)
            return await self.commands.run(call, request, reply, with_unit)

    async def _touch(self, command: Command, turn: Row, changes: list[tuple[str, str, Any, Any]]) -> None:
        """Stores a turn as it is now, and fires what moved: each event, its field, before and after."""
        at = command.next_instant(turn["updated_at"])
        await turn_queries.save_turn(command.connection, {**turn, "updated_at": at})
        shown = (await self._document(command, turn["id"])).json
        for event, field, before, after in changes:
            await command.publish_event(event, turn["id"], at, shown, turn_events.change(field, before, after))

    async def _document(self, command: Command, turn_id: int) -> Document:
        (row,) = await turn_queries.turns(command.connection, command.company_id, [turn_id])
        return Document(json=turn_events.encode(self.links.turn(row)), entity_id=turn_id, version=row[-1])


async def _change(command: Command, unit: HeldUnit, status: unit_rules.UnitStatus, turn: Row | None) -> None:
    """Keeps what a unit is now, and tells svc-catalog. turn: its active one, as it is now."""
    state = unit.state(command.company_id, status, turn)
    if state is None:
        return
    await unit_queries.save_states(command.connection, [dict(state)])
    told = References()
    tell(told, state)
    await command.publish_references(told)
    if status != unit.status:
        before, after = {"unit_status": unit.status}, {"unit_status": status}
        await command.audit("unit.status_changed", "unit", unit.id, before, after)


def _dates(turn: Row) -> dict[str, Any]:
    names = ("move_out_date", "projected_ready_on", *_NOTICE_NAMES)
    return {name: turn[name] for name in names}
