"""The RPCs of TurnsService: identity, statement, record."""

from __future__ import annotations

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import Batch, Importer
from chassis.lists.paging import page
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer
from chassis.refusals import not_found
from makeready.occupancy.v1 import turns_pb2 as pb
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.turns import queries
from svc_occupancy.turns.imports import TurnImport
from svc_occupancy.turns.inputs import TurnRow
from svc_occupancy.turns.records import Turn


class TurnsService:
    """Lists, fetches and imports turns (spec 4.9), and lists their changes."""

    def __init__(
        self, database: Database, outbox: Outbox, importer: Importer, fetcher: ReplicaFetcher, turns: Renderer[Turn]
    ) -> None:
        self.database = database
        self.outbox = outbox
        self.importer = importer
        self.fetcher = fetcher
        self.turns = turns

    async def ListTurns(self, request: pb.ListTurnsRequest, call: identity.Call) -> pb.ListTurnsResponse:
        company_id = identity.company_id(call)
        filters = queries.TURNS_PAGE.filters_of(request)
        rows = await queries.TURNS_PAGE.rows(self.database, company_id, request.after_id, request.limit, filters)
        return pb.ListTurnsResponse(page=page(rows, request.limit, self.turns.record))

    async def GetTurn(self, request: pb.GetTurnRequest, call: identity.Call) -> pb.GetTurnResponse:
        row = await queries.turn(self.database, identity.company_id(call), request.turn_id)
        if row is None:
            raise not_found("turn")
        return pb.GetTurnResponse(document=self.turns.document(row))

    async def ListTurnChanges(
        self, request: pb.ListTurnChangesRequest, call: identity.Call
    ) -> pb.ListTurnChangesResponse:
        company_id = identity.company_id(call)
        feed = await queries.TURN_CHANGES.feed(self.database, company_id, request, self.turns.record_of_wider_row)
        return pb.ListTurnChangesResponse(feed=feed)

    async def ImportTurns(self, request: pb.ImportTurnsRequest, call: identity.Call) -> pb.ImportTurnsResponse:
        work = TurnImport(self.outbox, self.turns, events=request.events, call=call)
        results = await self.importer.run(work.save, TurnRow, request, call, self._prepare)
        return pb.ImportTurnsResponse(results=results)

    async def _prepare(self, batch: Batch[TurnRow]) -> None:
        await self.fetcher.fetch_units(batch.company_id, batch.named("unit"))
        await self.fetcher.fetch_company(batch.company_id)
