"""The RPCs of ResidencyCommandsService: notices and move-ins that staff record.

They follow the rules of those that feeds send, and have the same effects and events (spec 4.5). A turn that staff
manage names no feed (spec 2.10).
"""

from __future__ import annotations

from typing import Any

from chassis.auth import identity
from chassis.db.database import Database
from chassis.db.rows import InsertMany
from chassis.records import bodies
from chassis.records.shapes import Renderer
from chassis.refusals import invalid_request
from chassis.schedule import instants
from chassis.writes.commands import Command, CommandRunner, fields
from makeready.occupancy.v1 import residency_commands_pb2 as pb
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.residencies import rules, tables
from svc_occupancy.residencies.inputs import StaffMoveIn, StaffNotice
from svc_occupancy.residencies.leases import Leases
from svc_occupancy.turns.commands import change_unit, publish_change, run_on_unit, turn_editor
from svc_occupancy.turns.queries import HeldUnit
from svc_occupancy.turns.records import Turn
from svc_occupancy.turns.rules import check_date_seen

_ADD_LEASE = InsertMany(tables.lease, tables.lease.c.keys())
_ADD_PARTIES = InsertMany(tables.party, [one.name for one in tables.party.c if one.name != "forgotten_at"])
_NO_FEED = {"occupancy_source": None, "occupancy_fed_at": None}


class ResidencyCommandsService:
    """Records notices and move-ins for staff."""

    def __init__(
        self, database: Database, commands: CommandRunner, fetcher: ReplicaFetcher, turns: Renderer[Turn]
    ) -> None:
        self.commands = commands
        self.fetcher = fetcher
        self.turns = turn_editor(turns)
        self.leases = Leases(database)

    async def AddNotice(self, request: pb.AddNoticeRequest, call: identity.Call) -> pb.AddNoticeResponse:
        notice = bodies.check(StaffNotice, fields(request, *StaffNotice.__struct_fields__))

        async def work(command: Command, unit: HeldUnit) -> pb.AddNoticeResponse:
            rules.record_notice(_residency(command, unit))
            assert unit.turn is not None
            _check_seen(request, unit, notice)
            turn = await self.turns.lock(command, unit.turn.id)
            before = unit.state.unit_status
            changes: dict[str, Any] = {
                "move_out_date": notice.move_out_date,
                "notice_external_id": notice.external_id,
                "ntv_reason_code": notice.ntv_reason_code,
                "departure_destination_code": notice.departure_destination_code,
                "notes": notice.notes,
                # The resident is still there, whatever the date: the sweep must vacate the unit, or vacate it again.
                "vacated_on": None,
                **_NO_FEED,
            }
            at = command.next_instant(unit.turn.updated_at)
            # An event needs a turn that changes with it, as the turn's events sort by their instants.
            is_event = before != rules.NOTICE_STATUS
            document = await self.turns.change(command, turn, changes, is_event, "notice_recorded", at)
            ready_on = unit.turn.projected_ready_on
            await change_unit(command, unit, rules.NOTICE_STATUS, ready_on, "notice", unit.turn.id)
            if is_event:
                await publish_change(command, unit.turn.id, at, document, "status", before, rules.NOTICE_STATUS)
            return pb.AddNoticeResponse(document=document)

        return await run_on_unit(self.commands, self.fetcher, call, request, pb.AddNoticeResponse, work)

    async def AddMoveIn(self, request: pb.AddMoveInRequest, call: identity.Call) -> pb.AddMoveInResponse:
        names = [name for name in StaffMoveIn.__struct_fields__ if name != "parties"]
        party_names = pb.NewParty.DESCRIPTOR.fields_by_name
        sent = [fields(party, *party_names) for party in request.parties]
        wanted = bodies.check(StaffMoveIn, {**fields(request, *names), "parties": sent})
        rules.check_lease(wanted.lease_start_date, wanted.lease_end_date)
        rules.check_parties(wanted.parties)
        company_id = identity.company_id(call)
        await self.fetcher.fetch_company(company_id)
        lease, parties = await self.leases.rows(
            company_id, wanted.lease_start_date, wanted.lease_end_date, wanted.parties
        )

        async def work(command: Command, unit: HeldUnit) -> pb.AddMoveInResponse:
            active_id = None if unit.turn is None else unit.turn.id
            named = rules.named(wanted.predecessor_transition_id, active_id)
            if rules.record_move_in(_residency(command, unit), named):
                assert unit.turn is not None
                ended = await self.turns.lock(command, unit.turn.id)
                await self.turns.change(command, ended, {"status": "completed"}, action="completed")
            turn = {
                "property_id": unit.property_id,
                "unit_id": unit.id,
                "status": "active",
                "move_in_date": wanted.move_in_date,
                "external_id": wanted.external_id,
            }

            async def parts(turn_id: int) -> None:
                rows = [{**row, "transition_id": turn_id} for row in (lease, *parties)]
                await _ADD_LEASE.run(command.connection, rows[:1])
                await _ADD_PARTIES.run(command.connection, rows[1:])

            at = command.next_instant(command.now)
            saved = await self.turns.save_new(command, turn, "move_in_recorded", parts, at)
            turn_id, before = saved.record.entity_id, unit.state.unit_status
            await change_unit(command, unit, rules.MOVE_IN_STATUS, None, "move_in", turn_id)
            if before != rules.MOVE_IN_STATUS:
                await publish_change(command, turn_id, at, saved.document, "status", before, rules.MOVE_IN_STATUS)
            return pb.AddMoveInResponse(document=saved.document)

        return await run_on_unit(self.commands, self.fetcher, call, request, pb.AddMoveInResponse, work)


def _residency(command: Command, unit: HeldUnit) -> rules.Residency:
    """The unit's residency today."""
    move_out_date = None if unit.turn is None else unit.turn.move_out_date
    day = instants.local_date(command.now, unit.timezone or "UTC")
    return rules.residency(unit.turn is not None, move_out_date, day)


def _check_seen(request: pb.AddNoticeRequest, unit: HeldUnit, notice: StaffNotice) -> None:
    """Raises Refusal 422 if another resident lives in the unit, or leaves on another day, than the person saw."""
    assert unit.turn is not None
    if request.HasField("expected_turn_id") and request.expected_turn_id != unit.turn.id:
        message = "Another resident lives in the unit by now; look at it again before you record a notice."
        raise invalid_request(message, "expected_turn_id", 422)
    seen = request.expected_move_out_date if request.HasField("expected_move_out_date") else None
    check_date_seen(seen, unit.turn.move_out_date, "move-out date", "move_out_date", notice.move_out_date)
