"""Deletes ended sandboxes: the gateway's own rows, and it asks all others until nothing is left anywhere."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import structlog
from prometheus_client import Gauge

from chassis.auth.clients import ServiceClient
from chassis.db.database import Database
from chassis.refusals import Refusal, Unavailable
from chassis.schedule.instants import Clock
from chassis.writes.purging import CompanyPurge
from gateway.identity.companies import queries
from makeready.common.v1 import company_purge_pb2

LOOK_SECONDS = 30
SETTLED = datetime.timedelta(hours=1)
"""By then whatever was under way at the end has ended: tokens last a minute, an upload to the console half an hour."""
LATE = datetime.timedelta(days=1)

log = structlog.stdlib.get_logger(__name__)
TO_PURGE = Gauge("makeready_sandboxes_to_purge", "Ended sandboxes of which something may be left in a database")


class SandboxPurge:
    """Notes when nothing of an ended sandbox is left: see `look`. Any number of gateways may run it at once."""

    def __init__(self, database: Database, purge: CompanyPurge, contexts: Sequence[ServiceClient], real: Clock) -> None:
        self._database, self._purge, self._contexts, self._real = database, purge, contexts, real

    async def look(self, _slot: datetime.datetime) -> None:
        """Looks at each ended sandbox of which something may be left."""
        rows = await queries.sandboxes_to_purge(self._database)
        TO_PURGE.set(len(rows))
        for row in rows:
            services = await self.services_with_rows(row["id"])
            if row["console_purged_at"] is None or row["console_purged_at"] < row["ended_at"] + SETTLED:
                services.append("console")
            now = self._real()
            if not services and now >= row["ended_at"] + SETTLED:
                await queries.note_purge(self._database, row["id"])
                log.info("sandbox_purged", company_id=row["id"])
            elif now >= row["ended_at"] + LATE:
                log.error("sandbox_not_purged", company_id=row["id"], ended_at=str(row["ended_at"]), services=services)

    async def services_with_rows(self, company_id: int) -> list[str]:
        """The services that have rows of an ended company left, or do not answer. They delete them soon after."""
        services = ["gateway"] if await self._purge.left(company_id) else []
        request = company_purge_pb2.CountCompanyRowsRequest(company_id=company_id)
        for context in self._contexts:
            try:
                answer = await context.call(request, company_purge_pb2.CountCompanyRowsResponse)
            except (Unavailable, Refusal) as error:
                log.info("context_away", context=context.name, reason=str(error))
                services.append(context.name)
                continue
            if answer.rows or not answer.is_ended:
                services.append(context.name)
        return services
