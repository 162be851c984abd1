"""The RPCs of TicketViewsService: tickets as people look for them and at them."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chassis.auth.identity import Call, company_id
from chassis.db.database import Database
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import Clock, of_request
from makeready.tickets.v1 import ticket_views_pb2 as pb
from svc_tickets.policy import queries as policy
from svc_tickets.replicas import places
from svc_tickets.replicas.fetch import ReplicaFetcher
from svc_tickets.search import filters, records, rules
from svc_tickets.search import queries as q
from svc_tickets.search.fill import SearchFiller
from svc_tickets.tickets.queries import texts as text_queries
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
        clock: Clock,
    ) -> None:
        self._database, self._replicas = database, replicas
        self._renderer, self._filler, self._clock = renderer, filler, clock

    async def SearchTickets(self, request: pb.SearchTicketsRequest, call: Call) -> pb.SearchTicketsResponse:
        company, now = company_id(call), self._clock()
        limit = _limit(request, PAGE_ROWS)
        if request.HasField("after") and request.HasField("before"):
            raise invalid_request("Give after or before, not both.", "before")
        cursor = rules.read_cursor(request.after or request.before) if request.after or request.before else None
        backwards = bool(request.before)
        stale_after = await self._stale_after(company)
        search = filters.search(request, company, now, stale_after)
        found = await q.page(self._database, company, search, cursor, limit + 1, backwards=backwards)
        shown = found[:limit]
        if backwards:
            shown.reverse()
        rows = await q.summaries(self._database, company, [one.id for one in shown])
        answer = pb.SearchTicketsResponse(is_filling=self._filler.is_filling)
        answer.tickets.extend(records.summary(rows[one.id], stale_after, now) for one in shown if one.id in rows)
        has_more = len(found) > limit
        if shown and (backwards or has_more):
            answer.next = str(rules.Cursor(shown[-1].key, shown[-1].id))
        if shown and (has_more if backwards else cursor is not None):
            answer.previous = str(rules.Cursor(shown[0].key, shown[0].id))
        return answer

    async def CountTickets(self, request: pb.CountTicketsRequest, call: Call) -> pb.CountTicketsResponse:
        company, now = company_id(call), self._clock()
        stale_after = await self._stale_after(company)
        stale_to = now - stale_after
        soon_to = stale_to + datetime.timedelta(hours=rules.SOON_HOURS)
        # From the oldest age to the youngest, since keys ascend.
        ages = [rules.opened_key(now - datetime.timedelta(hours=hours)) for hours in reversed(AGES[1:])]
        of_property = request.property_id if request.HasField("property_id") else None
        counts = await q.counts(self._database, company, of_property, ages, stale_to, soon_to)
        answer = pb.CountTicketsResponse(stale_after_hours=stale_after // datetime.timedelta(hours=1))
        by: dict[str, list[q.Count]] = defaultdict(list)
        for one in counts:
            by[q.group_of(one)].append(one)
        for one in by["all"]:
            answer.open, answer.stale, answer.soon_stale = one.tickets, one.stale, one.soon_stale
            answer.unassigned, answer.urgent_unassigned = one.unassigned, one.urgent_unassigned
        of_age = {len(AGES) - 1 - (one.id or 0): one for one in by["age"]}
        for place, name in enumerate(AGE_NAMES):
            hours_to = AGES[place + 1] if place + 1 < len(AGES) else 0
            _add(answer.by_age, of_age.get(place), name, hours_from=AGES[place], hours_to=hours_to)
        for part, kind, words in (
            (answer.by_status, "status", [one for one in fields.STATUSES if one in _OPEN]),
            (answer.by_priority, "priority", fields.PRIORITIES),
        ):
            of_word = {one.value: one for one in by[kind]}
            for word in words:
                _add(part, of_word.get(word), word)
        answer.emergencies = answer.by_priority[-1].tickets
        for part, kind in ((answer.by_assignee, "assignee"), (answer.by_property, "property")):
            most = sorted(by[kind], key=lambda one: (-one.tickets, one.id or 0))[:COUNTED_MAX]
            names = await q.names(self._database, company, kind, [one.id for one in most if one.id])
            for one in most:
                _add(part, one, names.get(one.id or 0, ""), id=one.id or 0)
        return answer

    async def GetTicketDetails(self, request: pb.GetTicketDetailsRequest, call: Call) -> pb.GetTicketDetailsResponse:
        company, now = company_id(call), self._clock()
        since = rules.opened_key(now - datetime.timedelta(days=ASSET_DAYS))
        found = await q.ticket(self._database, company, request.ticket_id, since)
        if found is None:
            raise fields.no_such_ticket()
        own = await policy.policy(self._database, company)
        stale_after = datetime.timedelta(hours=own.stale_after_hours)
        return pb.GetTicketDetailsResponse(
            ticket=records.summary(found.summary, stale_after, now),
            document=self._renderer.document(found.record),
            photo_required=own.photo_required_to_complete,
            photos=records.photos(found),
            **found.details._asdict(),
        )

    async def ListTicketTimeline(
        self, request: pb.ListTicketTimelineRequest, call: Call
    ) -> pb.ListTicketTimelineResponse:
        company, limit = company_id(call), _limit(request, TIMELINE_ROWS)
        wanted = set(request.kinds) or set(pb.TimelineKind.values())
        sources = [name for name, kinds in records.KINDS_OF_SOURCES.items() if wanted & set(kinds)]
        found = await q.timeline(
            self._database, company, request.ticket_id, sources, _read_place(request.after), limit + 1
        )
        if found is None:
            raise fields.no_such_ticket()
        shown = found[:limit]
        names = await self._names_in(company, shown)
        if any(map(records.has_texts, shown)):
            removals = await text_queries.removals(self._database, company, [request.ticket_id])
            removed_at = removals.get(request.ticket_id)
            shown = [records.without_removed_texts(one, removed_at) for one in shown]
        entries = (records.entry(one, names) for one in shown)
        answer = pb.ListTicketTimelineResponse(entries=(one for one in entries if one.kind in wanted))
        if len(found) > limit:
            last = shown[-1]
            answer.next = f"{rules.opened_key(last.occurred_at)}.{last.rank}.{last.id}"
        return answer

    async def BatchGetTickets(self, request: pb.BatchGetTicketsRequest, call: Call) -> pb.BatchGetTicketsResponse:
        if not 1 <= len(request.ticket_ids) <= q.PAGE_MAX:
            raise invalid_request(f"ticket_ids must name 1 to {q.PAGE_MAX} tickets.", "ticket_ids")
        company, now = company_id(call), self._clock()
        ids = list(dict.fromkeys(request.ticket_ids))
        rows = await q.summaries(self._database, company, ids)
        stale_after = await self._stale_after(company)
        shown = (records.summary(rows[one], stale_after, now) for one in ids if one in rows)
        return pb.BatchGetTicketsResponse(tickets=shown)

    async def GetTicketPlace(self, request: pb.GetTicketPlaceRequest, call: Call) -> pb.GetTicketPlaceResponse:
        given = [getattr(request, name) if request.HasField(name) else None for name in _PLACE]
        if not any(given):
            raise invalid_request("Give property_id, unit_id or asset_id.")
        found = await places.named(self._database, self._replicas, company_id(call), *given)
        return pb.GetTicketPlaceResponse(**found._asdict())

    async def ListTicketTexts(self, request: pb.ListTicketTextsRequest, call: Call) -> pb.ListTicketTextsResponse:
        limit = _limit(request, TEXTS_ROWS, TEXTS_ROWS_MAX)
        opened_from, opened_to = of_request(request, "opened_from"), of_request(request, "opened_to")
        found = await text_queries.of_unit(
            self._database, company_id(call), request.unit_id, opened_from or EVER, opened_to or NEVER, limit + 1
        )
        if found is None:
            raise Refusal(404, "not_found", "The company has no unit with that id.", "unit_id")
        tickets, comments = found
        shown = (records.texts(one, comments[one.id]) for one in tickets[:limit])
        return pb.ListTicketTextsResponse(tickets=shown, has_more=len(tickets) > limit)

    async def ListTicketsOfInspection(
        self, request: pb.ListTicketsOfInspectionRequest, call: Call
    ) -> pb.ListTicketsOfInspectionResponse:
        company, now = company_id(call), self._clock()
        found = await q.of_inspection(self._database, company, request.inspection_id)
        rows = await q.summaries(self._database, company, [one.ticket_id for one in found])
        stale_after = await self._stale_after(company) if found else datetime.timedelta()
        return pb.ListTicketsOfInspectionResponse(
            tickets=(
                pb.TicketOfRow(row_id=one.row_id, ticket=records.summary(rows[one.ticket_id], stale_after, now))
                for one in found
                if one.ticket_id in rows
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
                        ids[records.NAMED[name]].update(one for one in values if isinstance(one, int))
        return {kind: await q.names(self._database, company, kind, sorted(some)) for kind, some in ids.items()}


def _limit(request: Any, default: int, most: int = q.PAGE_MAX) -> int:
    limit: int = request.limit if request.HasField("limit") else default
    if not 1 <= limit <= most:
        raise invalid_request(f"limit must be from 1 to {most}.", "limit")
    return limit


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


def _add(part: Any, one: q.Count | None, name: str, **more: int) -> None:
    counted = {} if one is None else {"tickets": one.tickets, "on_hold": one.on_hold, "stale": one.stale}
    part.add(name=name, **counted, **more)
