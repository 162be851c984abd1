"""The feed of a company's events: pages of envelopes, in the order in which the events were stored."""

from __future__ import annotations

import datetime

from chassis.auth import identity
from chassis.db.database import Connection, Database
from chassis.lists.paging import ROWS_MAX
from chassis.refusals import invalid_request
from makeready.common.v1 import options_pb2
from makeready.common.v1.documents_pb2 import Feed
from makeready.events.v1 import events_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration.inputs import instant_of
from svc_webhooks.events.queries.feed import last_before
from svc_webhooks.feed.positions import expired, id_end, position, unpacked
from svc_webhooks.feed.queries import events as queries
from svc_webhooks.feed.queries.events import BY_NUMBER, FeedRow, Narrowed
from svc_webhooks.rules.events import ENTITY_TYPES

_KEYS = {
    value.number: value.GetOptions().Extensions[options_pb2.label]
    for value in events_pb2.EventKey.DESCRIPTOR.values
    if value.number
}
_ENTITY_TYPES = {
    value.number: value.GetOptions().Extensions[options_pb2.label]
    for value in pb.EventEntityType.DESCRIPTOR.values
    if value.number
}


class FeedRpcs:
    """Reads alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ListEvents(
        self, request: pb.FeedServiceListEventsRequest, call: identity.Call
    ) -> pb.FeedServiceListEventsResponse:
        company_id = identity.caller(call).company_id
        since = instant_of(request.since, "since") if request.HasField("since") else None
        until = instant_of(request.until, "until") if request.HasField("until") else None
        by = _narrowed(request)
        limit = min(request.limit, ROWS_MAX)
        async with self._database.transaction(BY_NUMBER, writes=False) as connection:
            after = await _start(connection, company_id, request, since)
            rows = await queries.page(connection, company_id, after, by, 0 if request.from_now else limit + 1)
            of_feed = rows[0]
            _check(of_feed, after, request.position)
            rows = [row for row in rows if row.number is not None]
            is_filtered = by != Narrowed()
            if rows and not is_filtered and rows[0].number != max(after, of_feed.begins_after or 0) + 1:
                raise expired()
            page = [row for row in rows if until is None or (row.stored_at and row.stored_at < until)]
            ended, page = len(page) < len(rows), page[:limit]
            missing = [row.event_id for row in page if row.body is None and row.event_id]
            bodies = await queries.bodies(connection, missing)
        response = pb.FeedServiceListEventsResponse(feed=Feed(more=len(rows) > limit and not ended))
        for row in page:
            assert row.event_id is not None and row.number is not None
            body = row.body if row.body is not None else bodies.get(row.event_id)
            if body is None:  # its day was dropped at this moment
                raise expired()
            response.feed.documents.append(body)
            response.positions.append(row.number)
        response.feed.position = _end(of_feed, after, page, at_newest=not ended and len(rows) <= limit)
        if request.from_now:
            response.feed.more = False
        return response


async def _start(
    connection: Connection, company_id: int, request: pb.FeedServiceListEventsRequest, since: datetime.datetime | None
) -> int:
    """The number after which the page begins. Raises Refusal 410."""
    if request.position:
        return unpacked(request.position).number
    return 0 if since is None else await last_before(connection, company_id, since)


def _check(row: FeedRow, after: int, packed: bytes) -> None:
    """Raises Refusal 410 if a reader at this position may have missed an event, or if its number now belongs to another
    event."""
    if not packed:
        return
    reader_position = unpacked(packed)
    begins_after = row.begins_after or 0
    event_id = row.begins_after_event_id if after == begins_after else row.after_event_id
    if reader_position.epoch != row.epoch or not begins_after <= after <= (row.newest or 0):
        raise expired()
    if reader_position.id_end != id_end(event_id):
        raise expired()


def _end(row: FeedRow, after: int, page: list[FeedRow], *, at_newest: bool) -> bytes:
    """The position behind the page. at_newest: nothing else of the feed passes the filters."""
    if at_newest:
        event_id = row.begins_after_event_id if row.newest == row.begins_after else row.newest_event_id
        return position(row.epoch, row.newest or 0, event_id).packed()
    if page:
        last = page[-1]
        assert last.number is not None
        return position(row.epoch, last.number, last.event_id).packed()
    if after <= (row.begins_after or 0):
        return position(row.epoch, row.begins_after or 0, row.begins_after_event_id).packed()
    return position(row.epoch, after, row.after_event_id).packed()


def _narrowed(request: pb.FeedServiceListEventsRequest) -> Narrowed:
    """Raises Refusal for filters that mean nothing."""
    key = _KEYS.get(request.event) if request.HasField("event") else None
    if not request.HasField("entity_type"):
        return Narrowed(key)
    if not request.HasField("entity_id"):
        raise invalid_request("entity_type needs entity_id beside it; give both.", "entity_type")
    kind = _ENTITY_TYPES.get(request.entity_type)
    keys = [event for event, entity_type in ENTITY_TYPES.items() if entity_type == kind and key in (None, event)]
    return Narrowed(key, request.entity_id, keys)
