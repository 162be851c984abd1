"""The rows of a new lease and of its parties."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import msgspec

from chassis.db.database import Database
from chassis.db.ids import Ids
from svc_occupancy.residencies import rules, tables
from svc_occupancy.residencies.inputs import PartyCreate

Row = Mapping[str, object]


class Leases:
    """Makes the rows with their ids, before the transaction that stores them."""

    def __init__(self, database: Database) -> None:
        self._lease_ids = Ids(database, tables.lease_id)
        self._party_ids = Ids(database, tables.party_id)

    async def rows(
        self,
        company_id: int,
        start_date: datetime.date,
        end_date: datetime.date | None,
        parties: Sequence[PartyCreate],
    ) -> tuple[Row, list[Row]]:
        """The rows of the lease and of its parties in their stored order, all without `transition_id`."""
        company = {"company_id": company_id}
        lease = company | {"id": await self._lease_ids.next(), "start_date": start_date, "end_date": end_date}
        ids = await self._party_ids.take(len(parties))
        return lease, [
            company | msgspec.structs.asdict(party) | {"id": party_id, "position": position}
            for position, (party_id, party) in enumerate(zip(ids, rules.stored_order(parties), strict=True))
        ]
