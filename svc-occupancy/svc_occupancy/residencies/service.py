"""The RPCs of ResidenciesService: identity, rule, statement, record (spec 4.5)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
from asyncpg import Record
from sqlalchemy import Table

from chassis.auth import identity
from chassis.db.database import Database
from chassis.db.ids import Ids
from chassis.lists.paging import limit_of
from chassis.messaging.outbox import Outbox
from chassis.records import bodies
from chassis.records.shapes import encode
from chassis.refusals import created_by_missing, not_found
from chassis.schedule import instants
from chassis.schedule.clocks import CompanyClocks
from chassis.writes import idempotency
from chassis.writes.audit import Audit
from makeready.common.v1.documents_pb2 import WriteReply
from makeready.occupancy.v1 import residencies_pb2 as pb
from svc_occupancy import dates
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.residencies import effects, queries, records, rules, tables
from svc_occupancy.residencies.inputs import MoveInCreate, NoticeCreate
from svc_occupancy.residencies.leases import Leases, Row
from svc_occupancy.turns import events as turn_events
from svc_occupancy.turns import queries as turn_queries
from svc_occupancy.turns import rules as turn_rules
from svc_occupancy.turns import tables as turn_tables
from svc_occupancy.turns.queries import HeldUnit, by_column
from svc_occupancy.turns.records import TURN
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units.events import references_of
from svc_occupancy.units.queries import columns_of_states
from svc_occupancy.units.rules import StatusCause, UnitStatus, status_change
from svc_occupancy.units.tables import unit_status_change


class _ReplicaLacksError(Exception):
    """A replica lacks a row that its owner may have."""

    def __init__(self, noun: Literal["unit", "company"]) -> None:
        super().__init__(noun)
        self.noun = noun


class ResidenciesService:
    """Records the notices and move-ins that feeds send, and lists residencies for people."""

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        fetcher: ReplicaFetcher,
        audit: Audit,
        links_url: str,
        clocks: CompanyClocks,
    ) -> None:
        self.database = database
        self.audit = audit
        self.outbox = outbox
        self.fetcher = fetcher
        self.turns = TURN.renderer(links_url)
        self.notices = records.NOTICE.renderer(links_url)
        self.move_ins = records.MOVE_IN.renderer(links_url)
        self.clocks = clocks
        # One id at a time, because a unit's turns must have ascending ids, even across API and imports. From a block
        # reserved before an import, a move-in would get a lower id than the imported turn that it succeeds.
        self.turn_ids = Ids(database, turn_tables.transition_id, block=1)
        self.leases = Leases(database)

    async def RecordNotice(self, request: pb.RecordNoticeRequest, call: identity.Call) -> pb.RecordNoticeResponse:
        notice, canonical = bodies.decode(NoticeCreate, request.body)
        provider = turn_rules.provider(notice.provider, "provider")
        claim = _claim(request, call, "notice", canonical)

        def decide(unit: HeldUnit, today: datetime.date, at: datetime.datetime) -> idempotency.Decision:
            effect = effects.notice(unit, notice, today)
            now = instants.after(at, effect.turn.updated_at)
            changes = effect.changes | {"occupancy_source": provider, "occupancy_fed_at": now, "updated_at": now}
            turn = msgspec.structs.replace(effect.turn, **changes)
            values = {f"turn_{name}": value for name, value in changes.items()} | {"turn_id": turn.id}
            record = self.notices.of_values(by_column(turn))
            return self._decision(call, unit, turn, "notice", effect.status, record, {}, values)

        def asks_the_day(unit: HeldUnit) -> bool:
            return unit.turn is not None and unit.turn.vacated_on is not None

        return pb.RecordNoticeResponse(
            reply=await self._write(queries.NOTICE, claim, call, request.unit_id, decide, asks_the_day)
        )

    async def RecordMoveIn(self, request: pb.RecordMoveInRequest, call: identity.Call) -> pb.RecordMoveInResponse:
        new, canonical = bodies.decode(MoveInCreate, request.body)
        provider = turn_rules.provider(new.provider, "provider")
        rules.check_lease(new.lease_start_date, new.lease_end_date)
        rules.check_parties(new.parties)
        claim = _claim(request, call, "move-in", canonical)
        turn_id = await self.turn_ids.next()
        dates_of_lease = (new.lease_start_date, new.lease_end_date)
        rows_of_lease = await self.leases.rows(claim.company_id, *dates_of_lease, new.parties)
        lease, *parties = ({**row, "transition_id": turn_id} for row in (rows_of_lease[0], *rows_of_lease[1]))

        def decide(unit: HeldUnit, today: datetime.date, now: datetime.datetime) -> idempotency.Decision:
            effect = effects.move_in(unit, new.move_in_date, new.predecessor_transition_id, today)
            turn = StoredTurn(
                company_id=claim.company_id,
                id=turn_id,
                version=1,
                property_id=unit.property_id,
                unit_id=unit.id,
                status="active",
                move_out_date=None,
                move_in_date=new.move_in_date,
                projected_ready_on=None,
                occupancy_source=provider,
                occupancy_fed_at=now,
                created_at=now,
                updated_at=now,
                external_id=new.external_id,
                source="api",
                notice_external_id=None,
                ntv_reason_code=None,
                departure_destination_code=None,
                notes=None,
                vacated_on=None,
                began_at=None,
                **effect.columns,
            )
            values: dict[str, object] = {"completed_ids": [], "completed_at": now}
            if effect.begins and unit.turn is not None:
                # After the turn's own updated_at, which an import can set to any instant.
                completed_at = instants.after(now, unit.turn.updated_at)
                values = {"completed_ids": [unit.turn.id], "completed_at": completed_at}
            rows: dict[Table, Sequence[Row]] = {
                turn_tables.transition: [msgspec.structs.asdict(turn)],
                tables.lease: [lease],
                tables.party: parties,
            }
            of_lease = {column: lease[column.name] for column in tables.lease.c}
            record = self.move_ins.of_values(by_column(turn) | of_lease | {records.PARTIES: parties})
            status = rules.MOVE_IN_STATUS if effect.begins else None
            return self._decision(call, unit, turn, "move_in", status, record, rows, values)

        return pb.RecordMoveInResponse(
            reply=await self._write(queries.MOVE_IN, claim, call, request.unit_id, decide, lambda _: True)
        )

    async def ListResidencies(
        self, request: pb.ListResidenciesRequest, call: identity.Call
    ) -> pb.ListResidenciesResponse:
        company_id, rows = identity.company_id(call), limit_of(request, dates.ROWS, dates.ROWS_MAX)
        before = request.before_turn_id if request.HasField("before_turn_id") else bodies.ID_MAX
        async with self.database.transaction() as connection:
            place = await turn_queries.place(connection, company_id, request.unit_id)
            if place is None:
                raise turn_rules.not_of_company("unit")
            residencies = await queries.residencies(connection, company_id, request.unit_id, before, rows + 1)
            page = residencies[:rows]
            parties: dict[int, list[Record]] = {row["id"]: [] for row in page}
            for party in await queries.parties(connection, company_id, list(parties)):
                parties[party["transition_id"]].append(party)
            seen = [turn_id for turn_id, rows_of_turn in parties.items() if any(map(rules.has_contacts, rows_of_turn))]
            if seen:
                after = {"turn_ids": seen}
                await self.audit.add(
                    connection, call, company_id, "unit.contacts_viewed", "unit", request.unit_id, {}, after
                )
                # Nothing has changed: pages that show the unit need not be loaded anew.
                connection.changed.clear()
        response = pb.ListResidenciesResponse(
            residencies=[records.residency(row, parties[row["id"]]) for row in page], **place._asdict()
        )
        if len(residencies) > rows:
            response.next_before_turn_id = page[-1]["id"]
        return response

    async def _write(
        self,
        form: idempotency.IdempotentWrite,
        claim: idempotency.Claim,
        call: identity.Call,
        unit_id: int,
        decide: Callable[[HeldUnit, datetime.date, datetime.datetime], idempotency.Decision],
        asks_the_day: Callable[[HeldUnit], bool],
    ) -> WriteReply:
        """Writes the decision for the unit, on today's date and at the present instant of the company. If a replica
        lacks a row, fetches it and retries in a new transaction. asks_the_day: whether the decision depends on the
        date."""
        caller, fetched = identity.caller(call), set[str]()

        def look(row: Record | None) -> idempotency.Decision:
            if caller.administrator_id is None:
                raise created_by_missing()
            if row is None:
                raise not_found("unit") if "unit" in fetched else _ReplicaLacksError("unit")
            unit = HeldUnit(claim.company_id, row)
            if unit.timezone is None and "company" not in fetched and asks_the_day(unit):
                raise _ReplicaLacksError("company")
            now = self.clocks.ahead_by(unit.clock_offset)()
            return decide(unit, instants.local_date(now, unit.timezone or "UTC"), now)

        while True:
            try:
                reply = await form.write(
                    self.database, claim, unit_id, look, company_id=claim.company_id, unit_id=unit_id
                )
            except _ReplicaLacksError as lacking:
                fetched.add(lacking.noun)
                if lacking.noun == "unit":
                    await self.fetcher.fetch_unit(claim.company_id, unit_id)
                else:
                    await self.fetcher.fetch_company(claim.company_id)
            else:
                self.outbox.wake()
                return reply

    def _decision(
        self,
        call: identity.Call,
        unit: HeldUnit,
        turn: StoredTurn,
        cause: StatusCause,
        status: UnitStatus | None,
        record: records.OccupancyRecord,
        rows: Mapping[Table, Sequence[Row]],
        values: Mapping[str, object],
    ) -> idempotency.Decision:
        """The write's rows and values, together with the unit's new state and the events. status: the unit's new one;
        None if the unit stays as it is."""
        at, before = turn.updated_at, unit.state.unit_status
        state = None if status is None else unit.state.became(status, turn.projected_ready_on)
        changes, events, states = [], [], [] if state is None else [state]
        if state is not None:
            actor = call.identity.actor
            changes = status_change(unit.state, state, at=at, cause=cause, actor=actor, turn_id=turn.id)
            events.append(
                self.outbox.references(
                    references_of(states), company_id=turn.company_id, occurred_at=at, request_id=call.request_id
                )
            )
        if changes:
            events.append(
                self.outbox.public(
                    "turn.status_changed",
                    company_id=turn.company_id,
                    entity_id=turn.id,
                    occurred_at=at,
                    data=encode(self.turns.of_values(unit.shown(turn))),
                    change=turn_events.change("unit_status", before, status),
                    request_id=call.request_id,
                )
            )
        return idempotency.Decision(
            201,
            encode(record),
            {**rows, unit_status_change: [change._asdict() for change in changes]},
            {"company_id": turn.company_id, **values, **columns_of_states(states, "state_")},
            events,
            [("turn", turn.id)],
        )


def _claim(
    request: pb.RecordNoticeRequest | pb.RecordMoveInRequest, call: identity.Call, verb: str, canonical: bytes
) -> idempotency.Claim:
    operation = f"POST /units/{request.unit_id}/{verb}"
    return idempotency.claim_of(request, identity.caller(call), operation, canonical)
