"""How a process and its database are, for `makeready status`."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Awaitable, Callable

import sqlalchemy as sa
from prometheus_client import Gauge

from chassis.auth.identity import Call
from chassis.db.database import Database, DatabaseFull, DatabaseUnavailable
from chassis.db.statements import Statement
from chassis.messaging.transport import Transport
from chassis.runtime.settings import Environment
from makeready.common.v1 import status_pb2 as pb

# Sorts 4 MB with 64 kB of memory, so that the server writes them to a temporary file on the database's disk. A full
# disk shows without a change of any table, and the space is free again at once.
PROBE_MEMORY = "SET LOCAL work_mem = '64kB'"
_PROBE = Statement(
    sa.text(
        "SELECT max(one.line) FROM (SELECT md5(n::text) || repeat('x', 1000) AS line FROM generate_series(1, 4000) AS n"
        " ORDER BY line OFFSET 0) AS one"
    )
)
_SIZE = Statement(sa.text("SELECT pg_database_size(current_database())"))

BUILD = Gauge("makeready_build_info", "1, with the release and the revision of the process", ["version", "revision"])

Backlog = Callable[[], Awaitable[pb.DeliveriesBacklog]]


class Status:
    """Serves StatusService. A service that delivers sets `backlog`."""

    def __init__(self, database: Database, transport: Transport) -> None:
        self._database, self._transport = database, transport
        self.backlog: Backlog | None = None

    async def GetStatus(self, _request: pb.GetStatusRequest, _call: Call) -> pb.GetStatusResponse:
        status = pb.GetStatusResponse(
            version=version(), nats_fault=self._transport.fault, nats_disk_full=self._transport.is_full
        )
        try:
            status.database_bytes = await self._database.value(_SIZE)
            if self.backlog is not None:
                status.deliveries.CopyFrom(await self.backlog())
            async with self._database.transaction(PROBE_MEMORY) as connection:
                await connection.value(_PROBE)
        except DatabaseFull as error:
            status.database_fault, status.database_disk_full = str(error), True
        except DatabaseUnavailable as error:
            status.database_fault = str(error)
        return status


@functools.cache
def version() -> str:
    """The release of this process."""
    return importlib.metadata.version("makeready-chassis")


def publish_build_info(environment: Environment) -> None:
    """Sets makeready_build_info. The image names the commit that it was built from in MAKEREADY_REVISION."""
    BUILD.labels(version(), environment.text("MAKEREADY_REVISION", "") or "unknown").set(1)
