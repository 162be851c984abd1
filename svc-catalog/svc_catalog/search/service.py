"""The RPCs by which people find, list and count places and meters, and read what meters measured."""

from __future__ import annotations

import datetime
import zoneinfo
from collections import defaultdict
from collections.abc import Mapping, Sequence

from asyncpg import Record
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.auth import identity
from chassis.db.database import Database
from chassis.lists.spelling import Near
from chassis.lists.words import folded, query_words, tsquery
from chassis.refusals import invalid_request
from makeready.catalog.v1 import meter_search_pb2 as meters_pb
from makeready.catalog.v1 import place_search_pb2 as pb
from svc_catalog.meters.rules import SCOPES, UTILITY_TYPES
from svc_catalog.places.rules import ASSET_STATUSES, UNIT_STATUSES
from svc_catalog.search import queries as q
from svc_catalog.search import records, rules
from svc_catalog.search.tables import lexeme_prefix

FOUND, FOUND_MAX = 8, 50
PAGE_MAX, UNITS_PAGE_MAX = 200, q.ROWS_MAX
MONTHS, MONTHS_MAX = 36, 60
# "" is a status that is not known.
_STATUSES = ("", *UNIT_STATUSES)


class PlaceSearchService:
    """Finds, lists and counts properties, units and assets."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def SearchPlaces(self, request: pb.SearchPlacesRequest, call: identity.Call) -> pb.SearchPlacesResponse:
        company_id = identity.company_id(call)
        if not 0 <= request.limit <= FOUND_MAX:
            raise invalid_request(f"limit must be from 1 to {FOUND_MAX}.", "limit")
        response, words = pb.SearchPlacesResponse(), query_words(request.words)
        if not words:
            return response
        await self._find(request, company_id, words, response, {})
        if not response.ListFields():
            prefixes = {kind: lexeme_prefix(company_id, kind) for kind in q.BY_KIND}
            near = {kind: await q.SPELLING.near(self.database, words, prefix) for kind, prefix in prefixes.items()}
            if any(near.values()):
                await self._find(request, company_id, words, response, near)
                response.is_close = bool(response.ListFields())
        return response

    async def _find(
        self,
        request: pb.SearchPlacesRequest,
        company_id: int,
        words: Sequence[str],
        response: pb.SearchPlacesResponse,
        near: Mapping[str, Near],
    ) -> None:
        """Adds what has the words to the response. near: words that may be meant, by kind."""
        limit, text = request.limit or FOUND, folded(request.words).strip()
        for kind, pages in q.BY_KIND.items():
            prefix = lexeme_prefix(company_id, kind)
            values = {
                "company_id": company_id,
                "kind": kind,
                "rows": limit + 1,
                "query": tsquery(words, prefix, near=near.get(kind, {})),
                "whole": tsquery(words, prefix, whole=True),
            }
            best = q.BEST
            if request.HasField("property_id"):
                best, values["property_id"] = q.BEST_IN_PROPERTY, request.property_id
            ids = [row[0] for row in await self.database.rows(best, **values)]
            if len(ids) > limit:
                response.more.append(kind)
            for row in await pages.by_ids(self.database, company_id, ids[:limit]):
                records.add_to_search(response, kind, row)
                if text in _own_names(row):
                    response.exact.append(f"{kind} {row['id']}")

    async def SearchProperties(
        self, request: pb.SearchPropertiesRequest, call: identity.Call
    ) -> pb.SearchPropertiesResponse:
        company_id, limit = identity.company_id(call), rules.limit_of(request.limit, PAGE_MAX)
        filters = _words(request.words, company_id, "property")
        if filters is None:
            return pb.SearchPropertiesResponse()
        rows = await q.PROPERTIES.rows(self.database, company_id, request.after_id, limit + 1, filters)
        page, next_after_id = _cut(rows, limit)
        ids = [row["id"] for row in page]
        counts: defaultdict[int, list[pb.Count]] = defaultdict(list)
        values = {"company_id": company_id, "property_ids": ids, "unit_statuses": _STATUSES}
        for property_id, status, number in await self.database.rows(q.UNITS_OF, **values) if ids else ():
            counts[property_id].append(records.count(status, number))
        response = pb.SearchPropertiesResponse(next_after_id=next_after_id)
        for row in page:
            message = records.property_row(row)
            message.units.extend(counts[message.property_id])
            response.properties.append(message)
        return response

    async def SearchUnits(self, request: pb.SearchUnitsRequest, call: identity.Call) -> pb.SearchUnitsResponse:
        company_id, limit = identity.company_id(call), rules.limit_of(request.limit, UNITS_PAGE_MAX)
        filters = _words(request.words, company_id, "unit")
        if filters is None:
            return pb.SearchUnitsResponse()
        filters |= _set(request, "property_id")
        filters |= _several("statuses", rules.allowed(request.unit_status, _STATUSES, "unit_status"))
        rows = await q.UNITS.rows(self.database, company_id, request.after_id, limit + 1, filters)
        page, next_after_id = _cut(rows, limit)
        return pb.SearchUnitsResponse(units=map(records.unit_row, page), next_after_id=next_after_id)

    async def SearchAssets(self, request: pb.SearchAssetsRequest, call: identity.Call) -> pb.SearchAssetsResponse:
        company_id, limit = identity.company_id(call), rules.limit_of(request.limit, PAGE_MAX)
        filters = _words(request.words, company_id, "asset")
        if filters is None:
            return pb.SearchAssetsResponse()
        filters |= _set(request, "property_id", "unit_id")
        filters |= _several("statuses", rules.allowed(request.status, ASSET_STATUSES, "status"))
        if request.category:
            filters["category"] = request.category
        pages = q.ASSETS
        for name in ("warranty_from", "warranty_by"):
            if getattr(request, name):
                filters[name], pages = rules.day_of(getattr(request, name), name), q.WARRANTIES
        rows = await pages.rows(self.database, company_id, request.after_id, limit + 1, filters)
        page, next_after_id = _cut(rows, limit)
        return pb.SearchAssetsResponse(assets=map(records.asset_row, page), next_after_id=next_after_id)

    async def CountPlaces(self, request: pb.CountPlacesRequest, call: identity.Call) -> pb.CountPlacesResponse:
        rows = await self.database.rows(
            q.COUNTS,
            company_id=identity.company_id(call),
            unit_statuses=_STATUSES,
            asset_statuses=ASSET_STATUSES,
            warranty_from=rules.day_of(request.warranty_from, "warranty_from"),
            warranty_by=rules.day_of(request.warranty_by, "warranty_by"),
        )
        response = pb.CountPlacesResponse()
        for field, status, number in rows:
            count = records.count(status, number)
            if field in ("units", "assets"):
                if number:
                    getattr(response, field).append(count)
            else:
                getattr(response, field).CopyFrom(count)
        return response

    async def SummarizeProperty(
        self, request: pb.SummarizePropertyRequest, call: identity.Call
    ) -> pb.SummarizePropertyResponse:
        where = await self._property(request.property_id, call)
        response = pb.SummarizePropertyResponse()
        for field, status, number in await self.database.rows(q.SUMMARY, **where):
            if field == "meters":
                response.meters += number
                response.meters_inactive += 0 if status == "true" else number
            else:
                getattr(response, field).append(pb.Count(status=status, count=number))
        return response

    async def ListPlacesOf(self, request: pb.ListPlacesOfRequest, call: identity.Call) -> pb.ListPlacesOfResponse:
        where = await self._property(request.property_id, call)
        response = pb.ListPlacesOfResponse()
        for row in await self.database.rows(q.BUILDINGS, **where):
            response.buildings.add(
                building_id=row["id"], name=row["name"], external_id=row["external_id"], units=row["count"]
            )
        for row in await self.database.rows(q.FLOORS, **where):
            response.floors.add(
                floor_id=row["id"], name=row["name"], building_id=row["building_id"], units=row["count"]
            )
        for row in await self.database.rows(q.FLOORPLANS, **where):
            measures = {name: row[name] for name in ("bedrooms", "bathrooms", "square_feet")}
            response.floorplans.add(floorplan_id=row["id"], name=row["name"], units=row["count"], **measures)
        for row in await self.database.rows(q.LOCATIONS, **where):
            response.locations.add(
                location_id=row["id"], name=row["name"], location_type=row["location_type"], assets=row["count"]
            )
        return response

    async def _property(self, property_id: int, call: identity.Call) -> dict[str, int]:
        where = {"company_id": identity.company_id(call), "property_id": property_id}
        if await self.database.value(q.IS_PROPERTY, **where) is None:
            raise rules.no_record("property")
        return where


class MeterSearchService:
    """Lists meters, and what they measured."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def SearchMeters(
        self, request: meters_pb.SearchMetersRequest, call: identity.Call
    ) -> meters_pb.SearchMetersResponse:
        company_id, limit = identity.company_id(call), rules.limit_of(request.limit, PAGE_MAX)
        filters = _words(request.words, company_id, "meter")
        if filters is None:
            return meters_pb.SearchMetersResponse()
        filters |= _set(request, "property_id", "unit_id", "is_active")
        filters |= _several("utility_types", rules.allowed(request.utility_type, UTILITY_TYPES, "utility_type"))
        if request.scope:
            filters["scope"] = rules.allowed([request.scope], SCOPES, "scope")[0]
        rows = await q.METERS.rows(self.database, company_id, request.after_id, limit + 1, filters)
        page, next_after_id = _cut(rows, limit)
        return meters_pb.SearchMetersResponse(meters=map(records.meter_row, page), next_after_id=next_after_id)

    async def ListReadingsSince(
        self, request: meters_pb.ListReadingsSinceRequest, call: identity.Call
    ) -> meters_pb.ListReadingsSinceResponse:
        limit = rules.limit_of(request.limit, PAGE_MAX)
        where = await self._meter(request.meter_id, call)
        values = {**where, "rows": limit + rules.BEFORE}
        if request.before_id:
            values["before_id"] = request.before_id
        # The notes compare with readings before `since`, so these are read too.
        rows = await self.database.rows(q.READINGS[bool(request.before_id)], **values)
        since = request.since.ToDatetime(datetime.UTC) if request.HasField("since") else None
        periods = [
            rules.Period(row["period_start"], row["period_end"], row["consumption"], row["unit_of_measure"])
            for row in rows
        ]
        since_then = [
            (row, note)
            for row, note in zip(rows, rules.notes(periods), strict=True)
            if since is None or row["period_start"] >= since
        ]
        page = since_then[:limit]
        return meters_pb.ListReadingsSinceResponse(
            readings=[records.reading_row(row, note) for row, note in page],
            next_before_id=page[-1][0]["id"] if len(since_then) > limit else None,
        )

    async def SumReadings(
        self, request: meters_pb.SumReadingsRequest, call: identity.Call
    ) -> meters_pb.SumReadingsResponse:
        if not 0 <= request.months <= MONTHS_MAX:
            raise invalid_request(f"months must be from 1 to {MONTHS_MAX}.", "months")
        where = await self._meter(request.meter_id, call)
        until = _instant(request.until)
        terms = await self.database.row(q.TERMS, **where, until=until)
        assert terms is not None
        zone = zoneinfo.ZoneInfo(terms["timezone"])
        begins = rules.months_before(until.astimezone(zone), request.months or MONTHS)
        sums = await self.database.rows(
            q.MONTHS,
            **where,
            timezone=terms["timezone"],
            unit_of_measure=terms["unit_of_measure"],
            since=begins[0],
            until=until,
        )
        response = meters_pb.SumReadingsResponse(unit_of_measure=terms["unit_of_measure"] or "")
        response.left_out = sum(row["readings"] for row in sums if not row["is_unit"])
        by_month = {row["month"]: row for row in sums if row["is_unit"]}
        for begin, end in zip(begins, [*begins[1:], until], strict=True):
            month = response.months.add(month=f"{begin:%Y-%m}")
            row = by_month.get(month.month)
            if row is not None:
                month.consumption, month.readings = row["consumption"], row["readings"]
                month.estimated, month.cost = row["estimated"] or 0.0, row["cost"] if row["cost"] is not None else 0.0
                if row["cost"] is None:
                    month.ClearField("cost")
                whole = (end - begin).total_seconds()
                month.covered = min(row["seconds"] / whole, 1.0) if whole > 0 else 1.0
        return response

    async def _meter(self, meter_id: int, call: identity.Call) -> dict[str, int]:
        where = {"company_id": identity.company_id(call), "meter_id": meter_id}
        if await self.database.value(q.IS_METER, **where) is None:
            raise rules.no_record("meter")
        return where


def _words(text: str, company_id: int, kind: str) -> dict[str, object] | None:
    """The filter by words; None if the text has no letters, so that nothing matches."""
    if not text.strip():
        return {}
    words = query_words(text)
    return {"query": tsquery(words, lexeme_prefix(company_id, kind))} if words else None


def _set(request: Message, *names: str) -> dict[str, object]:
    return {name: getattr(request, name) for name in names if request.HasField(name)}


def _several(name: str, values: Sequence[str]) -> dict[str, object]:
    return {name: values} if values else {}


def _cut(rows: Sequence[Record], limit: int) -> tuple[Sequence[Record], int | None]:
    """A page, and the id after which the next one begins, if there is one."""
    page = rows[:limit]
    return page, page[-1]["id"] if len(rows) > limit else None


def _own_names(row: Record) -> set[str]:
    """The texts that name exactly this record."""
    names = ("name", "external_id", "unit_number", "asset_tag", "serial_number", "meter_number")
    return {folded(row[name]) for name in names if name in row.keys() and row[name]}  # noqa: SIM118 - a Record


def _instant(stamp: Timestamp) -> datetime.datetime:
    return stamp.ToDatetime(datetime.UTC)
