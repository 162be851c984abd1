"""The RPCs of ResidencyCommandsService: notices and move-ins that staff record, and the date of a planned move-in.

They follow the rules of those that feeds send, and have the same effects and events (spec 4.5). A turn that staff
manage names no feed (spec 2.10).
"""

from __future__ import annotations

import datetime

from chassis.auth import identity
from chassis.db.database import Database
from chassis.db.rows import InsertMany
from chassis.records import bodies
from chassis.records.shapes import Renderer
from chassis.refusals import invalid_request
from chassis.schedule import instants
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import LockedRecord
from makeready.common.v1.documents_pb2 import Document
from makeready.occupancy.v1 import residency_commands_pb2 as pb
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.residencies import effects, rules, tables
from svc_occupancy.residencies.inputs import MoveInChange, StaffMoveIn, StaffNotice
from svc_occupancy.residencies.leases import Leases
from svc_occupancy.turns.commands import change_unit, hold_unit_of, publish_change, run_on_unit, turn_editor
from svc_occupancy.turns.queries import HeldUnit
from svc_occupancy.turns.records import Turn
from svc_occupancy.turns.rules import check_date_seen
from svc_occupancy.turns.tables import StoredTurn, next_planned_version
from svc_occupancy.units import rules as unit_rules
from svc_occupancy.units.queries import status_before
from svc_occupancy.units.rules import ActiveTurn

_ADD_LEASE = InsertMany(tables.lease, tables.lease.c.keys())
_ADD_PARTIES = InsertMany(tables.party, [column.name for column in tables.party.c if column.name != "forgotten_at"])
_NO_FEED = {"occupancy_source": None, "occupancy_fed_at": None}
_MOVED = "move_in_changed"  # the action in the audit log


class ResidencyCommandsService:
    """Records notices and move-ins for staff, and moves the date of a planned move-in."""

    def __init__(
        self, database: Database, commands: CommandRunner, fetcher: ReplicaFetcher, turns: Renderer[Turn]
    ) -> None:
        self.commands = commands
        self.fetcher = fetcher
        self.turns = turn_editor(turns)
        self.leases = Leases(database)

    async def AddNotice(self, request: pb.AddNoticeRequest, call: identity.Call) -> pb.AddNoticeResponse:
        notice = bodies.check(StaffNotice, fields(request, *StaffNotice.__struct_fields__))
        await self.fetcher.fetch_company(identity.company_id(call))

        async def work(command: Command, unit: HeldUnit) -> pb.AddNoticeResponse:
            effect = effects.notice(unit, notice, _today(command, unit))
            _check_seen(request, effect.turn, notice)
            turn = await self.turns.lock(command, effect.turn.id)
            at, before = command.next_instant(effect.turn.updated_at), unit.state.unit_status
            # An event needs a turn that changes with it, as the turn's events sort by their instants.
            is_event = effect.status not in (None, before)
            document = await self.turns.change(
                command, turn, effect.changes | _NO_FEED, is_event, "notice_recorded", at
            )
            if effect.status is not None:
                await change_unit(
                    command, unit, effect.status, effect.turn.projected_ready_on, "notice", effect.turn.id
                )
            if is_event:
                await publish_change(command, effect.turn.id, at, document, "status", before, effect.status)
            return pb.AddNoticeResponse(document=document)

        return await run_on_unit(self.commands, self.fetcher, call, request, pb.AddNoticeResponse, work)

    async def AddMoveIn(self, request: pb.AddMoveInRequest, call: identity.Call) -> pb.AddMoveInResponse:
        names = [name for name in StaffMoveIn.__struct_fields__ if name != "parties"]
        party_names = pb.NewParty.DESCRIPTOR.fields_by_name
        sent = [fields(party, *party_names) for party in request.parties]
        new = bodies.check(StaffMoveIn, {**fields(request, *names), "parties": sent})
        rules.check_lease(new.lease_start_date, new.lease_end_date)
        rules.check_parties(new.parties)
        company_id = identity.company_id(call)
        await self.fetcher.fetch_company(company_id)
        lease, parties = await self.leases.rows(company_id, new.lease_start_date, new.lease_end_date, new.parties)

        async def work(command: Command, unit: HeldUnit) -> pb.AddMoveInResponse:
            effect = effects.move_in(unit, new.move_in_date, new.predecessor_transition_id, _today(command, unit))
            if effect.begins and unit.turn is not None:
                ended = await self.turns.lock(command, unit.turn.id)
                await self.turns.change(command, ended, {"status": "completed"}, action="completed")
            turn = {
                "property_id": unit.property_id,
                "unit_id": unit.id,
                "status": "active",
                "move_in_date": new.move_in_date,
                "external_id": new.external_id,
                **effect.columns,
            }

            async def parts(turn_id: int) -> None:
                rows = [{**row, "transition_id": turn_id} for row in (lease, *parties)]
                await _ADD_LEASE.run(command.connection, rows[:1])
                await _ADD_PARTIES.run(command.connection, rows[1:])

            at = command.next_instant(command.now)
            saved = await self.turns.save_new(command, turn, "move_in_recorded", parts, at)
            turn_id, before = saved.record.entity_id, unit.state.unit_status
            if effect.begins:
                await change_unit(command, unit, rules.MOVE_IN_STATUS, None, "move_in", turn_id)
                if before != rules.MOVE_IN_STATUS:
                    await publish_change(command, turn_id, at, saved.document, "status", before, rules.MOVE_IN_STATUS)
            return pb.AddMoveInResponse(document=saved.document)

        return await run_on_unit(self.commands, self.fetcher, call, request, pb.AddMoveInResponse, work)

    async def ChangeMoveIn(self, request: pb.ChangeMoveInRequest, call: identity.Call) -> pb.ChangeMoveInResponse:
        date = bodies.check(MoveInChange, fields(request, "move_in_date")).move_in_date
        await self.fetcher.fetch_company(identity.company_id(call))

        async def work(command: Command) -> pb.ChangeMoveInResponse:
            unit = await hold_unit_of(command, request.turn_id)
            turn = await self.turns.lock(command, request.turn_id)
            row, today = turn.row, _today(command, unit)
            began_by_itself = row["began_at"] is not None
            rules.check_change_of_move_in(row["status"], has_begun=row["has_begun"], began_by_itself=began_by_itself)
            seen = request.expected_move_in_date if request.HasField("expected_move_in_date") else None
            check_date_seen(seen, row["move_in_date"], "move-in date", "move_in_date", date)
            if date == row["move_in_date"]:
                return pb.ChangeMoveInResponse(document=turn.document)
            if row["has_begun"] and date > today:
                return pb.ChangeMoveInResponse(document=await self._put_off(command, unit, turn, date, today))
            planned_version = next_planned_version(has_begun=row["has_begun"], version=row["version"])
            changes = {"move_in_date": date, "planned_version": planned_version}
            return pb.ChangeMoveInResponse(document=await self.turns.change(command, turn, changes, action=_MOVED))

        return await self.commands.run(call, request, pb.ChangeMoveInResponse, work)

    async def _put_off(
        self, command: Command, unit: HeldUnit, turn: LockedRecord[Turn], date: datetime.date, today: datetime.date
    ) -> Document:
        """Plans a current turn again, which had begun by itself: the turn that it ended is current again."""
        turn_id, row, before = turn.row["id"], turn.row, unit.state.unit_status
        at = command.next_instant(row["updated_at"])
        planned = {"has_begun": False, "began_at": None, "vacated_on": None, "planned_version": row["version"] + 1}
        document = await self.turns.change(command, turn, {"move_in_date": date, **planned}, action=_MOVED, at=at)
        changed_id, changed, current, ready_on = turn_id, document, None, None
        if row["predecessor_id"] is not None:
            ended = await self.turns.lock(command, row["predecessor_id"])
            if ended.row["status"] == "completed":
                at = command.next_instant(max(at, ended.row["updated_at"]))
                changed = await self.turns.change(command, ended, {"status": "active"}, action="reopened", at=at)
                changed_id, ready_on = ended.row["id"], ended.row["projected_ready_on"]
                current = ActiveTurn(changed_id, ended.row["move_out_date"], ready_on)
        stood = await status_before(command.connection, command.company_id, unit.id, turn_id)
        after = unit_rules.status_put_off(before, stood, current, today)
        await change_unit(command, unit, after, ready_on, "move_in_changed", None if current is None else changed_id)
        if after != before:
            await publish_change(command, changed_id, at, changed, "status", before, after)
        return document


def _today(command: Command, unit: HeldUnit) -> datetime.date:
    """Today in the company's timezone."""
    return instants.local_date(command.now, unit.timezone or "UTC")


def _check_seen(request: pb.AddNoticeRequest, turn: StoredTurn, notice: StaffNotice) -> None:
    """Raises Refusal 422 if the notice would be another resident's than the person saw, or if that resident leaves on
    another day by now."""
    if request.HasField("expected_turn_id") and request.expected_turn_id != turn.id:
        message = "The notice would be another resident's; look at the unit again before you record it."
        raise invalid_request(message, "expected_turn_id", 422)
    seen = request.expected_move_out_date if request.HasField("expected_move_out_date") else None
    check_date_seen(seen, turn.move_out_date, "move-out date", "move_out_date", notice.move_out_date)
