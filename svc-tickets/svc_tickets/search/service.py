"""The RPCs of TicketViewsService: tickets as people look for them and at them."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from chassis.auth.identity import Call, company_id
from chassis.db.database import Database
from chassis.lists.paging import limit_of
from chassis.lists.spelling import Near
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import of_request
from makeready.tickets.v1 import ticket_views_pb2 as pb
from svc_tickets.policy import queries as policy
from svc_tickets.replicas import places
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.search import filters, records, rules
from svc_tickets.search import queries as q
from svc_tickets.search.fill import SearchFiller
from svc_tickets.tickets.queries import texts as text_queries
from svc_tickets.tickets.queries.read import TICKET_DOCUMENTS
from svc_tickets.tickets.records import TicketRenderer
from svc_tickets.tickets.rules import fields
from svc_tickets.tickets.rules.staleness import CLOSED

PAGE_ROWS = 50
TIMELINE_ROWS = 100
TEXTS_ROWS, TEXTS_ROWS_MAX = 50, 200
COUNTED_MAX = 200
# The ages of open tickets that are counted apart, in hours; the last one has no end.
AGES = (0, 24, 72, 168, 336, 672)
AGE_NAMES = ("under a day", "1 to 3 days", "3 to 7 days", "1 to 2 weeks", "2 to 4 weeks", "older")
ASSET_DAYS = 365
EVER, NEVER = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1970, 9999))

_PLACE: tuple[Literal["property_id", "unit_id", "asset_id"], ...] = ("property_id", "unit_id", "asset_id")
_OPEN = frozenset(fields.STATUSES) - frozenset(CLOSED)


class TicketViewsService:
    """Searches, counts and shows tickets, for people."""

    def __init__(
        self,
        database: Database,
        replicas: ReplicaFetcher,
        renderer: TicketRenderer,
        filler: SearchFiller,
        clocks: CompanyClocks,
    ) -> None:
        self._database, self._replicas = database, replicas
        self._renderer, self._filler, self._clocks = renderer, filler, clocks

    async def SearchTickets(self, request: pb.SearchTicketsRequest, call: Call) -> pb.SearchTicketsResponse:
        company, now = company_id(call), await self._clocks.now(call)
        limit = limit_of(request, PAGE_ROWS, q.PAGE_MAX)
        if request.HasField("after") and request.HasField("before"):
            raise invalid_request("Give after or before, not both.", "before")
        cursor = rules.read_cursor(request.after or request.before) if request.after or request.before else None
        backwards = bool(request.before)
        stale_after = await self._stale_after(company)
        search = filters.search(request, company, now, stale_after)
        tickets = await q.page(self._database, company, search, cursor, limit + 1, backwards=backwards)
        near: Near = {}
        if not tickets:
            prefix = rules.term(company, "w", "")
            near = await q.SPELLING.near(self._database, filters.corrigible(request), prefix)
        if near:
            search = filters.search(request, company, now, stale_after, near)
            tickets = await q.page(self._database, company, search, cursor, limit + 1, backwards=backwards)
        page = tickets[:limit]
        if backwards:
            page.reverse()
        rows = await q.summaries(self._database, company, [ticket.id for ticket in page])
        answer = pb.SearchTicketsResponse(is_filling=self._filler.is_filling, is_close=bool(near and tickets))
        answer.tickets.extend(
            records.summary(rows[ticket.id], stale_after, now) for ticket in page if ticket.id in rows
        )
        has_more = len(tickets) > limit
        if page and (backwards or has_more):
            answer.next = str(rules.Cursor(page[-1].key, page[-1].id))
        if page and (has_more if backwards else cursor is not None):
            answer.previous = str(rules.Cursor(page[0].key, page[0].id))
        return answer

    async def CountTickets(self, request: pb.CountTicketsRequest, call: Call) -> pb.CountTicketsResponse:
        company, now = company_id(call), await self._clocks.now(call)
        stale_after = await self._stale_after(company)
        stale_to = now - stale_after
        soon_to = stale_to + datetime.timedelta(hours=rules.SOON_HOURS)
        # From the oldest age to the youngest, since keys ascend.
        ages = [rules.opened_key(now - datetime.timedelta(hours=hours)) for hours in reversed(AGES[1:])]
        of_property = request.property_id if request.HasField("property_id") else None
        counts = await q.counts(self._database, company, of_property, ages, stale_to, soon_to)
        answer = pb.CountTicketsResponse(stale_after_hours=stale_after // datetime.timedelta(hours=1))
        by: dict[str, list[q.Count]] = defaultdict(list)
        for count in counts:
            by[q.group_of(count)].append(count)
        for count in by["all"]:
            answer.open, answer.stale, answer.soon_stale = count.tickets, count.stale, count.soon_stale
            answer.unassigned, answer.urgent_unassigned = count.unassigned, count.urgent_unassigned
        of_age = {len(AGES) - 1 - (count.id or 0): count for count in by["age"]}
        for place, name in enumerate(AGE_NAMES):
            hours_to = AGES[place + 1] if place + 1 < len(AGES) else 0
            _add(answer.by_age, of_age.get(place), name, hours_from=AGES[place], hours_to=hours_to)
        for part, kind, words in (
            (answer.by_status, "status", [status for status in fields.STATUSES if status in _OPEN]),
            (answer.by_priority, "priority", fields.PRIORITIES),
        ):
            of_word = {count.value: count for count in by[kind]}
            for word in words:
                _add(part, of_word.get(word), word)
        answer.emergencies = answer.by_priority[-1].tickets
        for part, kind in ((answer.by_assignee, "assignee"), (answer.by_property, "property")):
            most = sorted(by[kind], key=lambda count: (-count.tickets, count.id or 0))[:COUNTED_MAX]
            names = await q.names(self._database, company, kind, [count.id for count in most if count.id])
            for count in most:
                _add(part, count, names.get(count.id or 0, ""), id=count.id or 0)
        return answer

    async def GetTicketDetails(self, request: pb.GetTicketDetailsRequest, call: Call) -> pb.GetTicketDetailsResponse:
        company, now = company_id(call), await self._clocks.now(call)
        since = rules.opened_key(now - datetime.timedelta(days=ASSET_DAYS))
        ticket = await q.ticket(self._database, company, request.ticket_id, since)
        (document,) = await TICKET_DOCUMENTS.fetch(self._database, self._renderer, [(company, request.ticket_id)])
        if ticket is None or document is None:
            raise fields.no_such_ticket()
        company_policy = await policy.policy(self._database, company)
        stale_after = datetime.timedelta(hours=company_policy.stale_after_hours)
        return pb.GetTicketDetailsResponse(
            ticket=records.summary(ticket.summary, stale_after, now),
            document=document,
            photo_required=company_policy.photo_required_to_complete,
            photos=records.photos(ticket),
            **ticket.details._asdict(),
        )

    async def ListTicketTimeline(
        self, request: pb.ListTicketTimelineRequest, call: Call
    ) -> pb.ListTicketTimelineResponse:
        company, limit = company_id(call), limit_of(request, TIMELINE_ROWS, q.PAGE_MAX)
        kinds = set(request.kinds) or set(pb.TimelineKind.values())
        sources = [name for name, its_kinds in records.KINDS_OF_SOURCES.items() if kinds & set(its_kinds)]
        events = await q.timeline(
            self._database, company, request.ticket_id, sources, _read_place(request.after), limit + 1
        )
        if events is None:
            raise fields.no_such_ticket()
        page = events[:limit]
        names = await self._names_in(company, page)
        if any(map(records.has_texts, page)):
            removals = await text_queries.removals(self._database, company, [request.ticket_id])
            removed_at = removals.get(request.ticket_id)
            page = [records.without_removed_texts(event, removed_at) for event in page]
        entries = (records.entry(event, names) for event in page)
        answer = pb.ListTicketTimelineResponse(entries=(entry for entry in entries if entry.kind in kinds))
        if len(events) > limit:
            last = page[-1]
            answer.next = f"{rules.opened_key(last.occurred_at)}.{last.rank}.{last.id}"
        return answer

    async def BatchGetTickets(self, request: pb.BatchGetTicketsRequest, call: Call) -> pb.BatchGetTicketsResponse:
        if not 1 <= len(request.ticket_ids) <= q.PAGE_MAX:
            raise invalid_request(f"ticket_ids must name 1 to {q.PAGE_MAX} tickets.", "ticket_ids")
        company, now = company_id(call), await self._clocks.now(call)
        ids = list(dict.fromkeys(request.ticket_ids))
        rows = await q.summaries(self._database, company, ids)
        stale_after = await self._stale_after(company)
        summaries = (records.summary(rows[ticket_id], stale_after, now) for ticket_id in ids if ticket_id in rows)
        return pb.BatchGetTicketsResponse(tickets=summaries)

    async def GetTicketPlace(self, request: pb.GetTicketPlaceRequest, call: Call) -> pb.GetTicketPlaceResponse:
        place_ids = [getattr(request, name) if request.HasField(name) else None for name in _PLACE]
        if not any(place_ids):
            raise invalid_request("Give property_id, unit_id or asset_id.")
        place = await places.named(self._database, self._replicas, company_id(call), *place_ids)
        return pb.GetTicketPlaceResponse(**place._asdict())

    async def ListTicketTexts(self, request: pb.ListTicketTextsRequest, call: Call) -> pb.ListTicketTextsResponse:
        limit = limit_of(request, TEXTS_ROWS, TEXTS_ROWS_MAX)
        opened_from, opened_to = of_request(request, "opened_from"), of_request(request, "opened_to")
        texts = await text_queries.of_unit(
            self._database, company_id(call), request.unit_id, opened_from or EVER, opened_to or NEVER, limit + 1
        )
        if texts is None:
            raise Refusal(404, "not_found", "The company has no unit with that id.", "unit_id")
        tickets, comments = texts
        messages = (records.texts(ticket, comments[ticket.id]) for ticket in tickets[:limit])
        return pb.ListTicketTextsResponse(tickets=messages, has_more=len(tickets) > limit)

    async def ListTicketsOfInspection(
        self, request: pb.ListTicketsOfInspectionRequest, call: Call
    ) -> pb.ListTicketsOfInspectionResponse:
        company, now = company_id(call), await self._clocks.now(call)
        tickets = await q.of_inspection(self._database, company, request.inspection_id)
        rows = await q.summaries(self._database, company, [ticket.ticket_id for ticket in tickets])
        stale_after = await self._stale_after(company) if tickets else datetime.timedelta()
        return pb.ListTicketsOfInspectionResponse(
            tickets=(
                pb.TicketOfRow(row_id=ticket.row_id, ticket=records.summary(rows[ticket.ticket_id], stale_after, now))
                for ticket in tickets
                if ticket.ticket_id in rows
            )
        )

    async def _stale_after(self, company: int) -> datetime.timedelta:
        return datetime.timedelta(hours=await policy.stale_after_hours(self._database, company))

    async def _names_in(self, company: int, events: Sequence[q.Event]) -> Mapping[str, Mapping[int, str]]:
        """The names of the people, vendors and places that changes name by id."""
        ids: dict[str, set[int]] = defaultdict(set)
        for event in events:
            if event.before is not None:
                for name, values in records.changes_of(event).items():
                    if name in records.NAMED:
                        ids[records.NAMED[name]].update(value for value in values if isinstance(value, int))
        return {
            kind: await q.names(self._database, company, kind, sorted(ids_of_kind)) for kind, ids_of_kind in ids.items()
        }


def _read_place(text: str) -> tuple[datetime.datetime, int, int]:
    """The event that a timeline's page follows; for an empty text the first page's. Raises Refusal."""
    if not text:
        return datetime.datetime.max.replace(tzinfo=datetime.UTC), 9, rules.LARGEST
    first, _, last = text.rpartition(".")
    key, _, rank = first.rpartition(".")
    if all(part.isascii() and part.isdigit() and len(part) < 19 for part in (key, rank, last)):
        try:
            at = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=int(key))
        except OverflowError:
            pass
        else:
            return at, min(int(rank), 9), int(last)
    raise Refusal(400, "invalid_cursor", "The cursor was not issued by this list.")


def _add(part: RepeatedCompositeFieldContainer[pb.TicketCount], count: q.Count | None, name: str, **more: int) -> None:
    counted = {} if count is None else {"tickets": count.tickets, "on_hold": count.on_hold, "stale": count.stale}
    part.add(name=name, **counted, **more)
