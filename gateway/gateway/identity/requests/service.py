"""The RPCs about the request log, and its days."""

from __future__ import annotations

import asyncio
import datetime

from asyncpg import Record

from chassis.auth.identity import ADMINISTRATOR, Call, caller
from chassis.db.database import Database
from chassis.db.partitions import DAY, PATIENT_SECONDS
from chassis.records.bodies import ID_MAX
from chassis.refusals import invalid_request
from chassis.schedule.instants import Clock, of_request
from gateway.identity.companies import queries as companies
from gateway.identity.requests import queries, records, rules
from makeready.common.v1.documents_pb2 import Document, Feed
from makeready.identity.v1 import requests_pb2 as pb

LOOK_SECONDS = 3600
_EVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class RequestFeedService:
    """The requests of a caller's company, in the order in which they were stored."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def FollowRequests(self, request: pb.FollowRequestsRequest, call: Call) -> pb.FollowRequestsResponse:
        who = caller(call)
        since = of_request(request, "since") or _EVER
        key_id = request.key_id if request.HasField("key_id") else None
        if who.scope == "read":
            # Another key's requests are not there.
            key_id = who.api_key_id if key_id in (None, who.api_key_id) else 0
        filters = queries.Filters(
            who.company_id,
            key_id,
            rules.statuses(request.status),
            request.code,
            request.route,
            since,
            request.request_id,
            # Who follows the log would follow itself.
            "" if request.route or request.request_id else rules.FOLLOWED_ROUTE,
        )
        after = int.from_bytes(request.position, "big") or max(rules.id_at(since) - rules.CLOCK_MICROSECONDS, -1)
        if request.from_now:
            page = await queries.newest(self.database, filters, ID_MAX, 1)
            return pb.FollowRequestsResponse(feed=Feed(position=_position(page.looked_to or after)))
        page = await queries.oldest(self.database, filters, after, min(request.limit, rules.PAGE_MAX))
        documents = map(records.document, page.rows)
        position = _position(after if page.looked_to is None else page.looked_to)
        return pb.FollowRequestsResponse(feed=Feed(documents=documents, position=position, more=page.has_more))

    async def FetchRequest(self, request: pb.FetchRequestRequest, call: Call) -> pb.FetchRequestResponse:
        who = caller(call)
        row = await queries.with_request_id(self.database, request.request_id)
        # Another key's request is not there for a key that reads.
        if row is None or row["company_id"] != who.company_id or (
            who.scope == "read" and row["api_key_id"] != who.api_key_id
        ):  # fmt: skip
            raise rules.no_request()
        return pb.FetchRequestResponse(
            document=Document(json=records.document_with_bodies(row), entity_id=row["id"], version=1)
        )


class RequestLogService:
    """The answered requests of a company's keys."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.clock = clock

    async def ListRequests(self, request: pb.ListRequestsRequest, call: Call) -> pb.ListRequestsResponse:
        limit = request.limit if request.HasField("limit") else rules.PAGE
        if not 1 <= limit <= rules.PAGE_MAX:
            raise invalid_request(f"limit must be from 1 to {rules.PAGE_MAX}.", "limit")
        if request.HasField("entity_id") and not request.entity_type:
            raise invalid_request("entity_id needs an entity_type.", "entity_id")
        filters = queries.Filters(
            request.company_id,
            request.key_id if request.HasField("key_id") else None,
            rules.statuses(request.status),
            request.code,
            request.route,
            of_request(request, "since") or _EVER,
            request.request_id,
            writes=request.writes,
            until=of_request(request, "until") or queries.NEVER,
            record=(request.entity_type, request.entity_id),
        )
        await companies.administered_company(self.database, request.company_id, call)
        before_id = request.before_id if request.HasField("before_id") else ID_MAX
        page = await queries.newest(self.database, filters, before_id, limit)
        following = page.looked_to if page.has_more else None
        return pb.ListRequestsResponse(requests=map(_message, page.rows), next_before_id=following)

    async def GetRequest(self, request: pb.GetRequestRequest, call: Call) -> pb.GetRequestResponse:
        row = await queries.with_request_id(self.database, request.request_id)
        if row is None or (call.identity.kind == ADMINISTRATOR and row["company_id"] != call.identity.company_id):
            raise rules.no_request()
        message = _message(row)
        for name in ("request_body", "response_body"):
            if row[name] is not None:
                setattr(message, name, row[name])
        return pb.GetRequestResponse(request=message)

    async def make_days(self) -> None:
        """Makes the days ahead of the clock, until cancelled."""
        while True:
            today = self.clock().date()
            days = [today + number * DAY for number in range(rules.AHEAD_DAYS + 1)]
            await queries.DAYS.make_days(self.database, days, PATIENT_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)

    async def drop_days(self, now: datetime.datetime) -> int:
        """Drops days of which 30 days have passed since their end; returns their number."""
        await self.database.check_clock()
        first_day, days = now.date() - rules.RETENTION_DAYS * DAY, 0
        while (over := await queries.DAYS.drop_next(self.database, first_day)) is not None:
            days += len(over.days)
        return days


def _position(after_id: int) -> bytes:
    return max(after_id, 1).to_bytes(8, "big")


def _message(row: Record) -> pb.LoggedRequest:
    details = records.decode(row["details"])
    names = ("id", "company_id", "request_id", "method", "route", "status", "code")
    not_same = ("ids", "record_type", "record_id")
    of_details = tuple(name for name in records.Details.__struct_fields__ if name not in not_same)
    message = pb.LoggedRequest(
        key_id=row["api_key_id"],
        path=records.path(row["route"], details.ids),
        entity_type=details.record_type,
        entity_id=details.record_id,
        **{name: row[name] for name in names},
        **{name: getattr(details, name) for name in of_details},
    )
    message.requested_at.FromDatetime(row["requested_at"])
    return message
