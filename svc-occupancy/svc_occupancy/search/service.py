"""The RPC by which people find residents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from chassis.auth import identity
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.writes.audit import Audit
from makeready.occupancy.v1 import resident_search_pb2 as pb
from svc_occupancy.messages import filled
from svc_occupancy.search import queries, terms
from svc_occupancy.turns.rules import public_status


class ResidentSearchService:
    """Finds residents. Names, numbers and addresses that are searched for are never logged."""

    def __init__(self, database: Database, audit: Audit) -> None:
        self.database = database
        self.audit = audit

    async def SearchResidents(
        self, request: pb.SearchResidentsRequest, call: identity.Call
    ) -> pb.SearchResidentsResponse:
        company_id = identity.company_id(call)
        if not 0 <= request.limit <= terms.LIMIT_MAX:
            raise invalid_request(f"limit must be from 1 to {terms.LIMIT_MAX}.", "limit")
        limit, search = request.limit or terms.LIMIT, terms.search_of(company_id, request.words)
        parties, is_close = await self._found(company_id, search, limit + 1)
        page = parties[:limit]
        await self._audit(call, company_id, page, with_contacts=request.with_contacts, by_contacts=search.by_contacts)
        response = pb.SearchResidentsResponse(has_more=len(parties) > limit, is_close=is_close)
        for party in page:
            values: dict[str, object] = party._asdict() | {"turn_status": public_status(party.turn_status)}
            contacts = {} if request.with_contacts else dict.fromkeys(("phone", "email"))
            response.residents.append(filled(pb.FoundResident, values | contacts))
        return response

    async def _found(
        self, company_id: int, search: terms.Search, rows: int
    ) -> tuple[Sequence[queries.FoundParty], bool]:
        """The parties, and whether their names are only close to what was searched for."""
        exact = search.query(company_id)
        if not exact:
            return (), False
        whole = search.query(company_id, whole=True)
        parties = await queries.found(self.database, company_id, exact, whole, rows)
        if parties:
            return parties, False
        near = await queries.SPELLING.near(self.database, search.names, terms.name_prefix(company_id))
        if near:
            close = search.query(company_id, near=near)
            parties = await queries.found(self.database, company_id, close, whole, rows)
        return parties, bool(parties)

    async def _audit(
        self,
        call: identity.Call,
        company_id: int,
        parties: Sequence[queries.FoundParty],
        *,
        with_contacts: bool,
        by_contacts: bool,
    ) -> None:
        """Records whose contacts the answer has or tells, before it leaves."""
        seen: defaultdict[int, set[int]] = defaultdict(set)
        for party in parties:
            if by_contacts or (with_contacts and (party.phone or party.email)):
                seen[party.unit_id].add(party.turn_id)
        if not seen:
            return
        async with self.database.transaction() as connection:
            for unit_id, turn_ids in sorted(seen.items()):
                after = {"turn_ids": sorted(turn_ids, reverse=True)}
                await self.audit.add(connection, call, company_id, "unit.contacts_viewed", "unit", unit_id, {}, after)
            # Nothing has changed: pages that show the units need not be loaded anew.
            connection.changed.clear()
