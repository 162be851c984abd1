"""The RPCs of TurnsService: identity, statement, record."""

from __future__ import annotations

from chassis.auth import identity
from chassis.changes.reads import RecordReads
from chassis.db.database import Database
from chassis.imports.importer import Batch, Importer
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer
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
        self.renderer = turns
        self.turns = RecordReads("turn", database, turns, queries.TURNS_PAGE, queries.TURN_CHANGES)

    async def ListTurns(self, request: pb.ListTurnsRequest, call: identity.Call) -> pb.ListTurnsResponse:
        company_id = identity.company_id(call)
        return pb.ListTurnsResponse(page=await self.turns.page(company_id, request))

    async def GetTurn(self, request: pb.GetTurnRequest, call: identity.Call) -> pb.GetTurnResponse:
        company_id = identity.company_id(call)
        return pb.GetTurnResponse(document=await self.turns.fetch(company_id, request.turn_id))

    async def ListTurnChanges(
        self, request: pb.ListTurnChangesRequest, call: identity.Call
    ) -> pb.ListTurnChangesResponse:
        company_id = identity.company_id(call)
        return pb.ListTurnChangesResponse(feed=await self.turns.feed(company_id, request))

    async def ImportTurns(self, request: pb.ImportTurnsRequest, call: identity.Call) -> pb.ImportTurnsResponse:
        work = TurnImport(self.outbox, self.renderer, events=request.events, call=call)
        results = await self.importer.run(work.save, TurnRow, request, call, self._prepare)
        return pb.ImportTurnsResponse(results=results)

    async def _prepare(self, batch: Batch[TurnRow]) -> None:
        await self.fetcher.fetch_units(batch.company_id, batch.named("unit"))
        await self.fetcher.fetch_company(batch.company_id)
