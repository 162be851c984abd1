"""The pages of assets."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from console.areas.places.places import (
    ASSET_STATUSES,
    COUNT,
    SEARCH_PROPERTIES,
    by_status,
    counts_request,
    fetched,
    instant_of,
    properties_request,
)
from console.kit import charts, csv_files, links, lists
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import include
from console.kit.records import Record
from console.kit.texts import _
from console.kit.times import count
from makeready.catalog.v1 import place_search_pb2 as pb
from makeready.catalog.v1 import places_pb2

HERE = "Assets"
PATH = "/assets"
LIST = "catalog.PlaceSearchService/SearchAssets"
GET = "catalog.AssetsService/GetAsset"
LISTS = (LIST, SEARCH_PROPERTIES, COUNT)
OF_PANEL = 12
WARRANTIES = {
    "30": _("ends within 30 days"),
    "90": "ends within 90 days",
    "365": "ends within a year",
    "over": _("expired"),
}


async def list_assets(context: PageContext) -> web.StreamResponse:
    property_id, unit_id = lists.number(context.query, "property_id"), lists.number(context.query, "unit_id")
    after, status = lists.number(context.query, "after"), lists.chosen(context.query, "status", ASSET_STATUSES)
    warranty = lists.chosen(context.query, "warranty", WARRANTIES)
    filters = {
        "status": status,
        "warranty": warranty,
        "kind": context.query.get("kind", "")[: lists.WORDS_MAX],
        "property_id": property_id,
        "unit_id": unit_id,
        "q": lists.words(context.query),
    }
    first, last = _period(warranty, context.wall.now.date())

    async def page(after_id: int, limit: int = lists.CSV_ROWS) -> tuple[Sequence[pb.AssetRow], int]:
        request = pb.SearchAssetsRequest(
            words=lists.words(context.query), property_id=property_id, unit_id=unit_id,
            status=[status] if status else [], category=str(filters["kind"]), warranty_from=first, warranty_by=last,
            after_id=after_id, limit=limit,
        )  # fmt: skip
        response = await context.rpcs.call(LIST, request)
        return response.assets, response.next_after_id

    if "csv" in context.query:
        return _csv(await lists.every(page))
    (rows, following), properties, counts = await together(
        page(after or 0, lists.PAGE_ROWS),
        context.rpcs.panel(SEARCH_PROPERTIES, properties_request()),
        context.rpcs.panel(COUNT, counts_request(context)),
    )
    return context.render(
        "places/assets.html", here=HERE, rows=rows, next=following, after=after, filters=filters, counts=counts,
        by_status=by_status(counts.assets, ASSET_STATUSES) if counts.ok else [], properties=properties,
        warranties=WARRANTIES, today=context.wall.now.date(), date=datetime.date.fromisoformat,
    )  # fmt: skip


def _period(warranty: str, today: datetime.date) -> tuple[str, str]:
    """The first and the last day on which a warranty ends."""
    if warranty == "over":
        return "", (today - datetime.timedelta(days=1)).isoformat()
    if warranty:
        return today.isoformat(), (today + datetime.timedelta(days=int(warranty))).isoformat()
    return "", ""


def _csv(rows: Sequence[pb.AssetRow]) -> web.Response:
    header = (
        *("id", "name", "category", "sub_category", "asset_tag", "make", "model", "serial_number", "status"),
        *("property_id", "property", "unit_id", "location", "year", "installed_on", "warranty_expires_on"),
        *("expected_life_years", "external_id"),
    )
    table = [
        [
            *(row.asset_id, row.name, row.category, row.sub_category, row.asset_tag, row.make, row.model),
            *(row.serial_number, row.status, row.property.id, row.property.name, row.unit.id or None),
            *(row.unit.name or row.location.name, row.year if row.HasField("year") else None, row.installed_on),
            row.warranty_expires_on,
            row.expected_life_years if row.HasField("expected_life_years") else None,
            row.external_id,
        ]
        for row in rows
    ]
    return csv_files.answer("assets", header, table)


async def panel(context: PageContext) -> web.StreamResponse:
    """The assets of a property or of a unit."""
    property_id, unit_id = lists.number(context.query, "property_id"), lists.number(context.query, "unit_id")
    if property_id is None and unit_id is None:
        raise web.HTTPNotFound
    request = pb.SearchAssetsRequest(property_id=property_id, unit_id=unit_id, limit=OF_PANEL)
    asset_list = await context.rpcs.call(LIST, request)
    all_of = links.address(PATH, {"property_id": property_id, "unit_id": unit_id})
    return context.render("places/assets_panel.html", asset_list=asset_list, all_of=all_of)


@dataclass(frozen=True, slots=True)
class Life:
    """The life of an asset, for its bar. Shares are parts of the whole bar, from 0 to 1."""

    begin: datetime.date
    end: datetime.date
    today: float
    """How much of the bar is past."""
    warranty: float
    """Where the warranty ends; 0 without one."""
    warranty_end: datetime.date | None
    is_old: bool
    """Whether it is older than it was expected to get."""
    expected_end: datetime.date | None
    sentence: str


def life_of(asset: Record, today: datetime.date) -> Life | None:
    """None if the record says too little for a bar: no day of installation, or neither an expected life nor a
    warranty."""
    begin, warranty = _date(asset["installed_on"]), _date(asset["warranty_expires_on"])
    years = asset["expected_life_years"]
    if begin is None:
        return None
    expected = _years_later(begin, years) if years else None
    if (expected is None and warranty is None) or begin > today:
        return None
    end = max(day for day in (expected, warranty, today) if day is not None)
    whole = max((end - begin).days, 1)
    words = [_("%(age)s old") % {"age": _apart(begin, today)}]
    if expected is not None:
        over = f"{_apart(expected, today)} more than the {years} expected"
        words.append(f"of {years} expected" if expected >= today else over)
    return Life(
        begin=begin,
        end=end,
        today=(today - begin).days / whole,
        warranty=min(max((warranty - begin).days / whole, 0), 1) if warranty else 0,
        warranty_end=warranty,
        is_old=expected is not None and expected < today,
        expected_end=expected,
        sentence=", ".join(words) + ".",
    )


def _date(text: str | None) -> datetime.date | None:
    return datetime.date.fromisoformat(text) if text else None


def _described(life: Life, today: datetime.date) -> str:
    """The bar in words."""
    words = [f"Installed in {life.begin:%Y}.", life.sentence]
    if life.warranty_end is not None:
        words.append(f"Its warranty {'ended' if life.warranty_end < today else 'ends'} on {life.warranty_end}.")
    return " ".join(words)


def _years_later(day: datetime.date, years: int) -> datetime.date:
    year = min(day.year + years, datetime.MAXYEAR)
    return datetime.date(year, 3, 1) if (day.month, day.day) == (2, 29) else day.replace(year=year)


def _apart(first: datetime.date, last: datetime.date) -> str:
    """The whole years between two days, or the months under a year."""
    months = (last.year - first.year) * 12 + last.month - first.month - (last.day < first.day)
    return count(months // 12, "year") if months >= 12 else count(max(months, 0), "month")


async def show_asset(context: PageContext) -> web.StreamResponse:
    asset_id = context.number("asset_id")
    asset = await fetched(context, GET, places_pb2.GetAssetRequest(asset_id=asset_id))
    tickets, upkeep, audit = await together(
        include(context, "/tickets/panel", asset_id=asset_id),
        include(context, "/pm-tasks/panel", asset_id=asset_id, property_id=asset["property"]["id"]),
        include(context, "/audit/panel", kind="asset", id=asset_id),
    )
    today = context.wall.now.date()
    warranty, installed = _date(asset["warranty_expires_on"]), _date(asset["installed_on"])
    life = life_of(asset, today)
    span = charts.Span(life.today, life.warranty, f"{life.begin:%Y}", f"{life.end:%Y}") if life else None
    return context.render(
        "places/asset.html", here=HERE, asset=asset, tickets=tickets, upkeep=upkeep, audit=audit,
        life=life, span=span, words=_described(life, today) if life else "", today=today, warranty=warranty,
        installed=installed,
        created=instant_of(asset["created_at"]), changed=instant_of(asset["updated_at"]),
    )  # fmt: skip
