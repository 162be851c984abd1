"""The RPCs about the usage of API keys."""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.auth.identity import Call
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.schedule.instants import Clock, of_request
from gateway.identity.companies import queries as companies
from gateway.identity.usage import queries, rules
from gateway.identity.usage.tables import OUTCOMES
from makeready.identity.v1 import key_usage_pb2 as pb


class KeyUsageService:
    """For what a company's keys are used."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.clock = clock

    async def ListKeyUsage(self, request: pb.ListKeyUsageRequest, call: Call) -> pb.ListKeyUsageResponse:
        key_ids = sorted(set(request.key_ids))
        if len(key_ids) > rules.USAGE_KEYS_MAX:
            raise invalid_request(f"key_ids must name at most {rules.USAGE_KEYS_MAX} keys.", "key_ids")
        counted_from, counted_to = of_request(request, "counted_from"), of_request(request, "counted_to")
        first, last = rules.hours_of(counted_from, counted_to, self.clock(), len(key_ids))
        await companies.administered_company(self.database, request.company_id, call)
        rows = await queries.usage(self.database, request.company_id, key_ids, first, last)
        answer = pb.ListKeyUsageResponse(hours=map(_hour, rows))
        answer.counted_from.FromDatetime(first)
        answer.counted_to.FromDatetime(last)
        return answer

    async def delete_old(self, now: datetime.datetime) -> int:
        """Deletes what is stored no longer; returns the number of rows."""
        await self.database.check_clock()
        return await queries.delete_old(self.database, now)


def _hour(row: Record) -> pb.KeyUsage:
    message = pb.KeyUsage(key_id=row["api_key_id"], **{name: row[name] for name in OUTCOMES})
    message.hour.FromDatetime(row["hour"])
    return message
