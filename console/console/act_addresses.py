"""From where people act in the console. Entries of the audit log have a request's id; here stands its address.

Every act of every context goes through this process, so one table has what would be a column in each audit log."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects.postgresql import ARRAY, INTERVAL, insert

from chassis.db.database import Database, DatabaseUnavailable
from chassis.db.statements import Statement, param
from console.tables import act_address

KEPT_DAYS, DELETE_SECONDS = 366, 3600

log = structlog.stdlib.get_logger(__name__)

_a = act_address.c
_company_id = param("company_id", sa.BigInteger)
_ADD = Statement(
    insert(act_address)
    .values(company_id=_company_id, request_id=param("request_id", sa.Text), address=param("address", sa.Text))
    .on_conflict_do_nothing()
)
_OF = Statement(
    sa.select(_a.request_id, _a.address).where(
        _a.company_id == _company_id, _a.request_id == sa.func.any(param("request_ids", ARRAY(sa.Text)))
    )
)
_OLD = Statement(
    sa.delete(act_address).where(
        _a.acted_at < sa.func.clock_timestamp() - sa.cast(sa.literal_column(f"'{KEPT_DAYS} days'"), INTERVAL)
    )
)


class ActAddresses:
    """Those of all companies. Every method raises DatabaseUnavailable."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """database: the open database; raises DatabaseUnavailable before it is open."""
        self._database = database

    async def add(self, company_id: int, request_id: str, address: str) -> None:
        """Stores from where a request came."""
        await self._database().execute(_ADD, company_id=company_id, request_id=request_id, address=address)

    async def keep_deleting(self) -> None:
        """Deletes what is older than KEPT_DAYS, once an hour, until cancelled."""
        while True:
            try:
                await self._database().execute(_OLD)
            except DatabaseUnavailable as error:
                log.warning("old_addresses_stay", reason=str(error))
            await asyncio.sleep(DELETE_SECONDS)

    async def of(self, company_id: int, request_ids: Iterable[str]) -> Mapping[str, str]:
        """The addresses of requests, by their ids. A browser may give two requests one id, so it can have several."""
        addresses = defaultdict(set)
        for row in await self._database().rows(_OF, company_id=company_id, request_ids=sorted(set(request_ids))):
            addresses[row["request_id"]].add(row["address"])
        return {request_id: ", ".join(sorted(each)) for request_id, each in addresses.items()}
