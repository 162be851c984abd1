"""The pages of property notices: the list, one notice, and the panel of a property."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from aiohttp import web
from google.protobuf.timestamp_pb2 import Timestamp

from console.kit import csv_files
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.panels import include
from makeready.catalog.v1 import notices_pb2 as pb

HERE = "Notices"
PATH = "/notices"
LIST = "catalog.NoticesService/ListNotices"
GET = "catalog.NoticesService/GetNotice"
EVENT = "property.notice.published"
COUNT = "catalog.NoticesService/CountNotices"
SHOWN, CSV_ROWS, IN_PANEL = 50, 200, 5
VIEWS = {"drafts": False, "published": True}
_HEADER = ("id", "subject", "property", "for", "when", "published_at", "created_at", "body", "external_id")


async def list_notices(context: PageContext) -> web.StreamResponse:
    """Those that are being composed first, then what was published last."""
    view, property_id = context.query.get("view", ""), context.query.get("property_id", "")
    filters = {"view": view if view in VIEWS else "", "property_id": property_id if _is_id(property_id) else ""}
    request = pb.ListNoticesRequest(newest_first=True, limit=CSV_ROWS if "csv" in context.query else SHOWN)
    if filters["view"]:
        request.published = VIEWS[view]
    if filters["property_id"]:
        request.property_id = int(property_id)
    if after := context.query.get("after", "")[:60]:
        request.after = after
    page, counts = await together(context.rpcs.call(LIST, request), context.rpcs.panel(COUNT, pb.CountNoticesRequest()))
    if "csv" in context.query:
        return _csv(page.notices)
    name = next((notice.property_name for notice in page.notices), filters["property_id"])
    return context.render(
        "notices/list.html", here=HERE, notices=page.notices, counts=counts, filters=filters,
        views=_views(filters, counts), property_name=name if filters["property_id"] else "",
        without=with_query(PATH, {"view": filters["view"]}), later="after" in context.query,
        next=with_query(PATH, {**filters, "after": page.next}) if page.HasField("next") else "",
        first=with_query(PATH, filters), csv_path=with_query(PATH, {**filters, "csv": 1}), csv_rows=CSV_ROWS,
        is_filtered=any(filters.values()),
        new=with_query(f"{PATH}/new", {"property_id": filters["property_id"]}),
    )  # fmt: skip


def _views(filters: Mapping[str, str], counts: Panel[pb.CountNoticesResponse]) -> Sequence[tuple[str, str, bool]]:
    drafts = f" {counts.drafts:,}" if counts.ok and counts.drafts else ""
    return [
        (label, with_query(PATH, {**filters, "view": name}), name == filters["view"])
        for name, label in (("", "All"), ("drafts", f"Drafts{drafts}"), ("published", "Published"))
    ]


def _csv(notices: Sequence[pb.Notice]) -> web.Response:
    def at(stamp: Timestamp) -> str:
        return str(stamp.ToJsonString()) if stamp.seconds else ""

    values = (
        (notice.notice_id, notice.subject, notice.property_name, notice.unit, notice.when, at(notice.published_at),
         at(notice.created_at), notice.body, notice.external_id)
        for notice in notices
    )  # fmt: skip
    return csv_files.answer("notices", _HEADER, values)


async def show_notice(context: PageContext) -> web.StreamResponse:
    return await notice_page(context)


async def notice_page(context: PageContext, status: int = 200, error: str = "") -> web.Response:
    """What residents read, beside what subscribers get. error: why an action was refused."""
    notice_id = context.number("notice_id")
    response, events, history = await together(
        context.rpcs.call(GET, pb.GetNoticeRequest(notice_id=notice_id)),
        include(context, "/events/panel", kind="notice", id=notice_id),
        include(context, "/audit/panel", kind="notice", id=notice_id),
    )
    is_published = response.notice.HasField("published_at")
    return context.render(
        "notices/notice.html", status, here=HERE, notice=response.notice, units=response.units,
        is_published=is_published,
        data=pretty(response.event_data) if is_published else envelope(context, response.event_data), events=events,
        history=history, error=error,
    )  # fmt: skip


def envelope(context: PageContext, data: bytes, *, is_new: bool = False) -> str:
    """The body of the event's delivery, with a line a value (spec 6.2)."""
    record = json.loads(data)
    if is_new:
        record["url"] = record["url"].removesuffix("0") + "…"
    body = {
        "schema_version": 1,
        "event_id": "made when it is published",
        "event": EVENT,
        "occurred_at": record["created_at"],
        "company_id": context.session.person.company_id,
        "data": record,
        "change": None,
    }
    return json.dumps(body, ensure_ascii=False, indent=2)


def pretty(data: bytes) -> str:
    """JSON with a line a value."""
    return json.dumps(json.loads(data), ensure_ascii=False, indent=2)


async def panel(context: PageContext) -> web.StreamResponse:
    """The newest notices of a property."""
    property_id = context.query.get("property_id", "")
    if not _is_id(property_id):
        raise web.HTTPNotFound
    request = pb.ListNoticesRequest(newest_first=True, limit=IN_PANEL, property_id=int(property_id))
    page = await context.rpcs.call(LIST, request)
    path = with_query(PATH, {"property_id": property_id})
    new = with_query(f"{PATH}/new", {"property_id": property_id})
    return context.render("notices/panel.html", notices=page.notices, path=path, new=new)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < len(text) < 19
