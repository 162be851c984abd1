"""The RPCs of TurnBoardService: staff set unit status and schedules; each command takes effect and is published once.

Every command locks the unit before its turn, as notices, move-ins, imports and sweeps do. With one lock order for all
writers, none can deadlock.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
from google.protobuf.message import Message

from chassis.auth import identity
from chassis.db.database import Database
from chassis.lists.paging import limit_of
from chassis.records import bodies
from chassis.records.shapes import Renderer
from chassis.refusals import invalid_request
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableFields
from makeready.common.v1.documents_pb2 import Document
from makeready.occupancy.v1 import turn_board_pb2 as pb
from svc_occupancy import dates
from svc_occupancy.board import queries, records, rules
from svc_occupancy.replicas import queries as replica_queries
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.turn_tasks.commands import cancel_open_tasks, people_of
from svc_occupancy.turn_tasks.tables import StoredTask
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.turns.commands import (
    change_unit,
    departure_dealt_with,
    hold_unit_of,
    publish_change,
    run_on_unit,
    turn_editor,
)
from svc_occupancy.turns.inputs import TurnRow
from svc_occupancy.turns.queries import NOTICE_NAMES, HeldUnit
from svc_occupancy.turns.records import Turn
from svc_occupancy.turns.rules import (
    Current,
    check_cancellation,
    check_date_seen,
    check_notice_cancellation,
    is_clash,
    not_of_company,
)
from svc_occupancy.turns.tables import StoredTurn, next_planned_version
from svc_occupancy.units.rules import UNIT_STATUSES, UnitStatus, unit_status

BOARD_ROWS, BOARD_ROWS_MAX = 1000, 5000
_STATUS = EditableFields(TurnRow, "unit_status")
_SCHEDULE = EditableFields(TurnRow, "projected_ready_on")


class TurnBoardService:
    """Changes units and turns for staff, and lists the board."""

    def __init__(
        self, database: Database, commands: CommandRunner, fetcher: ReplicaFetcher, turns: Renderer[Turn]
    ) -> None:
        self.database = database
        self.commands = commands
        self.fetcher = fetcher
        self.turns = turn_editor(turns)

    async def ListBoard(self, request: pb.ListBoardRequest, call: identity.Call) -> pb.ListBoardResponse:
        company_id, property_id = identity.company_id(call), _property_of(request)
        bounds = (dates.ROWS, dates.ROWS_MAX) if request.with_tasks else (BOARD_ROWS, BOARD_ROWS_MAX)
        rows = limit_of(request, *bounds)
        statuses = rules.asked_statuses(request.unit_statuses, under_way=request.under_way)
        if statuses and request.clashes:
            raise invalid_request("clashes go with no status: they are of units with any.", "clashes")
        if request.HasField("after_id" if statuses else "after"):
            raise invalid_request("after_id belongs to the order of ids, and after to that of ready dates.", "after")
        after = dates.position_after(request)
        today = await replica_queries.today(self.database, company_id, self.commands.clocks)
        if statuses:
            search = (company_id, statuses, after, rows + 1, today)
            units = await queries.under_way(self.database, *search, property_id)
        else:
            first_id = min(request.after_id, bodies.ID_MAX - 1) + 1
            from_id = (company_id, first_id, rows + 1, today, property_id)
            units = await queries.board(self.database, *from_id, clashes=request.clashes)
        page = units[:rows]
        cards = await self._with_tasks(company_id, page) if request.with_tasks else map(records.board_unit, page)
        response = pb.ListBoardResponse(units=cards)
        if len(units) > rows and statuses:
            response.next_after = str(dates.position_of(page[-1].ready_on, page[-1].unit_id))
        elif len(units) > rows:
            response.next_after_id = page[-1].unit_id
        return response

    async def _with_tasks(self, company_id: int, units: Sequence[records.BoardUnit]) -> list[pb.BoardUnit]:
        """The units with their tasks; see BoardUnit.tasks."""
        tasks_of_units: dict[int, list[StoredTask]] = {}
        tasks = await queries.tasks(self.database, company_id, units)
        for task in tasks:
            tasks_of_units.setdefault(task.unit_id, []).append(task)
        people = await people_of(self.database, company_id, tasks)
        return [
            records.board_unit(
                unit, rules.shown_tasks(tasks_of_units.get(unit.unit_id, ()), queries.TASKS_SHOWN), people
            )
            for unit in units
        ]

    async def GetBoardUnit(self, request: pb.GetBoardUnitRequest, call: identity.Call) -> pb.GetBoardUnitResponse:
        company_id = identity.company_id(call)
        today = await replica_queries.today(self.database, company_id, self.commands.clocks)
        unit = await queries.unit(self.database, company_id, request.unit_id, today)
        if unit is None:
            raise not_of_company("unit")
        (card,) = await self._with_tasks(company_id, [unit])
        response = pb.GetBoardUnitResponse(unit=card)
        planned = await queries.planned_turns(self.database, company_id, request.unit_id)
        turn_ids = [turn.turn_id for turn in planned] + ([] if unit.turn_id is None else [unit.turn_id])
        residents = await queries.residents(self.database, company_id, turn_ids)
        before: Current | None = None
        if unit.turn_id is not None:
            response.residents.extend(map(records.resident, residents[unit.turn_id]))
            before = turn = await turn_queries.stored_turn(self.database, company_id, unit.turn_id)
            if turn is not None and turn.move_out_date is not None:
                response.notice.CopyFrom(records.notice(turn))
        for following in planned:
            clash = is_clash(before, following)
            response.planned.append(records.planned_turn(following, residents[following.turn_id], is_clash=clash))
            before = following
        return response

    async def CountBoard(self, request: pb.CountBoardRequest, call: identity.Call) -> pb.CountBoardResponse:
        company_id, property_id = identity.company_id(call), _property_of(request)
        today = await replica_queries.today(self.database, company_id, self.commands.clocks)
        counts = await queries.counts(self.database, company_id, property_id)
        by_status: Counter[UnitStatus | None] = Counter()
        by_property: Counter[int] = Counter()
        for counted in counts:
            by_status[counted.unit_status] += counted.units
            by_property[counted.property_id or 0] += counted.units
        tasks = await queries.task_counts(self.database, company_id, today, property_id)
        response = pb.CountBoardResponse(
            statuses=[
                pb.StatusCount(unit_status=status or "", units=by_status[status])
                for status in (*UNIT_STATUSES, None)
                if by_status[status]
            ],
            tasks_open=tasks.open,
            tasks_late=tasks.late,
            days_empty=await queries.days_empty(self.database, company_id, today, property_id),
        )
        if property_id is not None:
            response.units = by_status.total()
            return response
        response.units = await queries.units(self.database, company_id)
        several = [place for place, _ in by_property.most_common(queries.PROPERTIES_MAX)]
        names = await queries.property_names(self.database, company_id, several)
        for place, name in sorted(names.items(), key=lambda named: (named[1].casefold(), named[0])):
            response.properties.add(property_id=place, property=name, units=by_property[place])
        return response

    async def ListUnitStatusChanges(
        self, request: pb.ListUnitStatusChangesRequest, call: identity.Call
    ) -> pb.ListUnitStatusChangesResponse:
        company_id, rows = identity.company_id(call), limit_of(request, dates.ROWS, dates.ROWS_MAX)
        if await turn_queries.place(self.database, company_id, request.unit_id) is None:
            raise not_of_company("unit")
        before = request.before_version if request.HasField("before_version") else bodies.ID_MAX
        changes = await queries.status_changes(self.database, company_id, request.unit_id, before, rows + 1)
        response = pb.ListUnitStatusChangesResponse(changes=map(records.status_change, changes[:rows]))
        if len(changes) > rows:
            response.next_before_version = changes[rows - 1].version
        return response

    async def SetUnitStatus(self, request: pb.SetUnitStatusRequest, call: identity.Call) -> pb.SetUnitStatusResponse:
        status: UnitStatus = _STATUS.of(request)["unit_status"]

        async def work(command: Command, unit: HeldUnit) -> pb.SetUnitStatusResponse:
            turn, before = unit.turn, unit.state.unit_status
            rules.check_status_seen(_sent(request, "expected_unit_status"), before, status)
            rules.check_unit_status(
                status, is_lived_in=turn is not None, move_out_date=None if turn is None else turn.move_out_date
            )
            if status != before:
                last_turn = turn or await turn_queries.turn_of_vacant_unit(command.connection, command.company_id, unit)
                ready_on, turn_id = (None, None) if turn is None else (turn.projected_ready_on, turn.id)
                await change_unit(command, unit, status, ready_on, "board", turn_id)
                if last_turn is not None:
                    changes: dict[str, object] = {"planned_version": last_turn.next_planned_version}
                    if turn is not None:
                        changes["vacated_on"] = await departure_dealt_with(command, unit, turn, status)
                    at, document = await self._touch(command, msgspec.structs.replace(last_turn, **changes))
                    await publish_change(command, last_turn.id, at, document, "status", before, status)
            today = await replica_queries.today(command.connection, command.company_id, self.commands.clocks)
            row = await queries.unit(command.connection, command.company_id, unit.id, today)
            assert row is not None
            return pb.SetUnitStatusResponse(unit=records.board_unit(row))

        return await run_on_unit(self.commands, self.fetcher, call, request, pb.SetUnitStatusResponse, work)

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
            seen = _sent(request, "expected_ready_on")
            check_date_seen(seen, before, "ready date", "projected_ready_on", ready_on)
            if ready_on == before:
                return pb.ScheduleTurnResponse(document=turn.document)
            at = command.next_instant(turn.row["updated_at"])
            is_planned = not turn.row["has_begun"]
            planned_version = next_planned_version(has_begun=not is_planned, version=turn.row["version"])
            changes = values | {"planned_version": planned_version}
            document = await self.turns.change(command, turn, changes, action="scheduled", at=at)
            if unit.state.unit_status is not None and not is_planned:
                await change_unit(command, unit, unit.state.unit_status, ready_on, "board", request.turn_id)
            await publish_change(command, request.turn_id, at, document, "schedule", before, ready_on)
            return pb.ScheduleTurnResponse(document=document)

        return await self.commands.run(call, request, pb.ScheduleTurnResponse, work)

    async def CancelNotice(self, request: pb.CancelNoticeRequest, call: identity.Call) -> pb.CancelNoticeResponse:
        async def work(command: Command, unit: HeldUnit) -> pb.CancelNoticeResponse:
            if unit.turn is None:
                raise invalid_request("The unit has no active resident whose notice could be cancelled.", status=422)
            turn = await self.turns.lock(command, unit.turn.id)
            if unit.turn.move_out_date is None:
                return pb.CancelNoticeResponse(document=turn.document)
            check_notice_cancellation(None if unit.next is None else unit.next.move_in_date)
            changes: list[tuple[Literal["status", "schedule"], object, object]] = []
            if (status := unit.state.unit_status) != "Occupied":
                changes.append(("status", status, "Occupied"))
            if (ready_on := unit.turn.projected_ready_on) is not None:
                changes.append(("schedule", ready_on, None))
            moments = [command.next_instant(unit.turn.updated_at) for _ in range(max(1, len(changes)))]
            ended = dict.fromkeys(("move_out_date", "projected_ready_on", "vacated_on", *NOTICE_NAMES))
            document = await self.turns.change(command, turn, ended, action="notice_cancelled", at=moments[-1])
            await cancel_open_tasks(command, unit.turn.id)
            await change_unit(command, unit, "Occupied", None, "notice_cancelled", unit.turn.id)
            for at, (aspect, before, after) in zip(moments, changes, strict=False):
                await publish_change(command, unit.turn.id, at, document, aspect, before, after)
            return pb.CancelNoticeResponse(document=document)

        return await run_on_unit(self.commands, self.fetcher, call, request, pb.CancelNoticeResponse, work)

    async def CancelTurn(self, request: pb.CancelTurnRequest, call: identity.Call) -> pb.CancelTurnResponse:
        async def work(command: Command) -> pb.CancelTurnResponse:
            unit = await hold_unit_of(command, request.turn_id)
            turn = await self.turns.lock(command, request.turn_id)
            check_cancellation(turn.row["status"])
            if turn.row["status"] == "cancelled":
                return pb.CancelTurnResponse(document=turn.document)
            at = command.next_instant(turn.row["updated_at"])
            is_planned, before = not turn.row["has_begun"], unit.state.unit_status
            planned_version = next_planned_version(has_begun=not is_planned, version=turn.row["version"])
            changes = {"status": "cancelled", "planned_version": planned_version}
            document = await self.turns.change(command, turn, changes, action="cancelled", at=at)
            await cancel_open_tasks(command, request.turn_id)
            if is_planned:
                predecessor_id = turn.row["predecessor_id"]
                await turn_queries.move_up(command.connection, command.company_id, request.turn_id, predecessor_id)
                return pb.CancelTurnResponse(document=document)
            today = await replica_queries.today(command.connection, command.company_id, self.commands.clocks)
            after = unit_status(None, today, before)
            await change_unit(command, unit, after, None, "turn_cancelled", None)
            if after != before:
                await publish_change(command, request.turn_id, at, document, "status", before, after)
            return pb.CancelTurnResponse(document=document)

        return await self.commands.run(call, request, pb.CancelTurnResponse, work)

    async def _touch(self, command: Command, turn: StoredTurn) -> tuple[datetime.datetime, Document]:
        """Increases the version of a turn whose unit changed, though the public turn itself did not.

        Returns the turn's instant and record. Writes no audit entry, because the unit's entry has everything.
        """
        at = command.next_instant(turn.updated_at)
        await self.turns.table.update(command.connection, msgspec.structs.asdict(turn), at)
        _, document = await self.turns.rendered(command, turn.id)
        return at, document


def _sent(request: Message, field: str) -> str | None:
    """The text of an optional field; None if it is absent."""
    return getattr(request, field) if request.HasField(field) else None


def _property_of(request: pb.ListBoardRequest | pb.CountBoardRequest) -> int | None:
    return request.property_id if request.HasField("property_id") else None
