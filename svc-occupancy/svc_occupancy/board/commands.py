"""The RPCs of TurnBoardService: staff set unit status and schedules; each command takes effect and is published once.

Every command locks the unit before its turn, as notices, move-ins, imports and sweeps do. With one lock order for all
writers, none can deadlock.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from google.protobuf.message import Message

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.records.shapes import Renderer
from chassis.refusals import invalid_request
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableFields, RecordEditor
from makeready.common.v1.documents_pb2 import Document
from makeready.occupancy.v1 import turn_board_pb2 as pb
from svc_occupancy.board import queries, records, rules
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.turn_tasks.commands import cancel_open_tasks
from svc_occupancy.turns import events as turn_events
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.turns.commands import hold_unit_of
from svc_occupancy.turns.inputs import TurnRow
from svc_occupancy.turns.queries import NOTICE_NAMES, HeldUnit
from svc_occupancy.turns.records import Turn
from svc_occupancy.turns.rules import not_of_company
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units import queries as unit_queries
from svc_occupancy.units.events import references_of
from svc_occupancy.units.rules import UnitStatus

BOARD_ROWS, BOARD_ROWS_MAX = 1000, 5000
_STATUS = EditableFields(TurnRow, "unit_status")
_SCHEDULE = EditableFields(TurnRow, "projected_ready_on")
# The audited columns of a turn. They include the notice's, which the public record lacks.
_AUDITED = ("move_out_date", "projected_ready_on", *NOTICE_NAMES)

Reply = TypeVar("Reply", bound=Message)


class _ReplicaLacksError(Exception):
    """The replica lacks a unit that its owner may have."""


class TurnBoardService:
    """Changes units and turns for staff, and lists the board."""

    def __init__(
        self, database: Database, commands: CommandRunner, fetcher: ReplicaFetcher, turns: Renderer[Turn]
    ) -> None:
        self.database = database
        self.commands = commands
        self.fetcher = fetcher
        self.turns = RecordEditor(
            "turn",
            turn_queries.EDITABLE_TURNS,
            turn_queries.SERVED_TURN,
            turns,
            audited_columns=_AUDITED,
            missing=lambda: not_of_company("turn"),
        )

    async def ListBoard(self, request: pb.ListBoardRequest, call: identity.Call) -> pb.ListBoardResponse:
        rows = request.limit if request.HasField("limit") else BOARD_ROWS
        if not 1 <= rows <= BOARD_ROWS_MAX:
            raise invalid_request(f"limit must be from 1 to {BOARD_ROWS_MAX}.", "limit")
        property_id = request.property_id if request.HasField("property_id") else None
        first_id = min(request.after_id, bodies.ID_MAX - 1) + 1
        found = await queries.board(self.database, identity.company_id(call), first_id, rows + 1, property_id)
        response = pb.ListBoardResponse(units=map(records.board_unit, found[:rows]))
        if len(found) > rows:
            response.next_after_id = found[rows - 1].unit_id
        return response

    async def SetUnitStatus(self, request: pb.SetUnitStatusRequest, call: identity.Call) -> pb.SetUnitStatusResponse:
        status: UnitStatus = _STATUS.of(request)["unit_status"]

        async def work(command: Command, unit: HeldUnit) -> pb.SetUnitStatusResponse:
            turn, before = unit.turn, unit.state.unit_status
            rules.check_unit_status(
                status, is_lived_in=turn is not None, move_out_date=None if turn is None else turn.move_out_date
            )
            if status != before:
                newest = turn or await turn_queries.newest_turn(command.connection, command.company_id, unit.id)
                await _change_unit(command, unit, status, None if turn is None else turn.projected_ready_on)
                if newest is not None:
                    at, document = await self._touch(command, newest)
                    await _publish(command, newest.id, at, document, "status", before, status)
            (row,) = await queries.board(command.connection, command.company_id, unit.id, 1)
            return pb.SetUnitStatusResponse(unit=records.board_unit(row))

        return await self._on_unit(call, request, request.unit_id, pb.SetUnitStatusResponse, work)

    async def ScheduleTurn(self, request: pb.ScheduleTurnRequest, call: identity.Call) -> pb.ScheduleTurnResponse:
        values = _SCHEDULE.of(request)
        if not values:
            raise invalid_request("projected_ready_on is required; to have none, clear it.", "projected_ready_on")
        ready_on: datetime.date | None = values["projected_ready_on"]

        async def work(command: Command) -> pb.ScheduleTurnResponse:
            unit = await hold_unit_of(command, request.turn_id)
            turn = await self.turns.lock(command, request.turn_id)
            rules.check_schedule(turn.row["status"], turn.row["move_out_date"], ready_on)
            before = turn.row["projected_ready_on"]
            if ready_on == before:
                return pb.ScheduleTurnResponse(document=turn.document)
            at = command.next_instant(turn.row["updated_at"])
            document = await self.turns.change(command, turn, values, action="scheduled", at=at)
            if unit.state.unit_status is not None:
                await _change_unit(command, unit, unit.state.unit_status, ready_on)
            await _publish(command, request.turn_id, at, document, "schedule", before, ready_on)
            return pb.ScheduleTurnResponse(document=document)

        return await self.commands.run(call, request, pb.ScheduleTurnResponse, work)

    async def CancelNotice(self, request: pb.CancelNoticeRequest, call: identity.Call) -> pb.CancelNoticeResponse:
        async def work(command: Command, unit: HeldUnit) -> pb.CancelNoticeResponse:
            if unit.turn is None:
                raise invalid_request("The unit has no active resident whose notice could be cancelled.", status=422)
            turn = await self.turns.lock(command, unit.turn.id)
            if unit.turn.move_out_date is None:
                return pb.CancelNoticeResponse(document=turn.document)
            changes: list[tuple[str, Any, Any]] = []
            if (status := unit.state.unit_status) != "Occupied":
                changes.append(("status", status, "Occupied"))
            if (ready_on := unit.turn.projected_ready_on) is not None:
                changes.append(("schedule", ready_on, None))
            instants = [command.next_instant(unit.turn.updated_at) for _ in range(max(1, len(changes)))]
            ended = dict.fromkeys(("move_out_date", "projected_ready_on", "vacated_on", *NOTICE_NAMES))
            document = await self.turns.change(command, turn, ended, action="notice_cancelled", at=instants[-1])
            await cancel_open_tasks(command, unit.turn.id)
            await _change_unit(command, unit, "Occupied", None)
            for at, (what, before, after) in zip(instants, changes, strict=False):
                await _publish(command, unit.turn.id, at, document, what, before, after)
            return pb.CancelNoticeResponse(document=document)

        return await self._on_unit(call, request, request.unit_id, pb.CancelNoticeResponse, work)

    async def _on_unit(
        self,
        call: identity.Call,
        request: Any,
        unit_id: int,
        reply: type[Reply],
        work: Callable[[Command, HeldUnit], Awaitable[Reply]],
    ) -> Reply:
        """Runs work with the unit locked. If the replica lacks the unit, fetches it and tries once more."""
        asked = False

        async def with_unit(command: Command) -> Reply:
            unit = await turn_queries.held_unit(command.connection, command.company_id, unit_id)
            if unit is None:
                raise not_of_company("unit") if asked else _ReplicaLacksError
            return await work(command, unit)

        try:
            return await self.commands.run(call, request, reply, with_unit)
        except _ReplicaLacksError:
            asked = True
            await self.fetcher.fetch_unit(identity.company_id(call), unit_id)
            return await self.commands.run(call, request, reply, with_unit)

    async def _touch(self, command: Command, turn: StoredTurn) -> tuple[datetime.datetime, Document]:
        """Increases the version of a turn whose unit changed, though the turn itself did not.

        Returns the turn's instant and record. Writes no audit entry, because the unit's entry has everything.
        """
        at = command.next_instant(turn.updated_at)
        await self.turns.table.update(command.connection, msgspec.structs.asdict(turn), at)
        _, document = await self.turns.rendered(command, turn.id)
        return at, document


async def _publish(
    command: Command, turn_id: int, at: datetime.datetime, document: Document, what: str, before: Any, after: Any
) -> None:
    """Publishes the event. what: `status` of the turn's unit, or `schedule`."""
    field = {"status": "unit_status", "schedule": "projected_ready_on"}[what]
    change = turn_events.change(field, before, after)
    await command.publish_event(f"turn.{what}_changed", turn_id, at, document.json, change)


async def _change_unit(command: Command, unit: HeldUnit, status: UnitStatus, ready_on: datetime.date | None) -> None:
    """Stores the unit's new state and publishes it to svc-catalog. ready_on: the active turn's new date."""
    state = unit.state.became(status, ready_on)
    if state is None:
        return
    await unit_queries.save_states(command.connection, [state])
    await command.publish_references(references_of([state]))
    if status != unit.state.unit_status:
        before, after = {"unit_status": unit.state.unit_status}, {"unit_status": status}
        await command.audit("unit.status_changed", "unit", unit.id, before, after)
