"""The pages of vendors: lists, one vendor, and the panels that other pages show."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

from console.kit import csv_files, links, names
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.panels import include
from console.kit.texts import _
from makeready.catalog.v1 import vendor_details_pb2 as pb

HERE = "Vendors"
PATH = "/vendors"
SEARCH = "catalog.VendorDetailsService/SearchVendors"
GET = "catalog.VendorDetailsService/GetVendorDetails"
COUNT = "catalog.VendorDetailsService/CountVendors"
NAMES = names.RPC

SHOWN, CSV_ROWS, IN_PANEL = 50, 200, 6
SOON_DAYS = 30
TEXT_MAX = 200
LAPSED = "insurance_lapsed"
ENDS = (".", "!", "?", "…", "。")
STATES = ("compliant", "expiring", "noncompliant", "missing", "unknown")
# What each state means, its colour and its shape.
WORDS = {
    "compliant": ("green", "check", _("Compliant")),
    "expiring": ("amber", "clock", _("Expiring")),
    "noncompliant": ("red", "x", _("Not compliant")),
    "missing": ("amber", "warn", _("No insurance")),
    "unknown": ("", "dash", _("Not on file")),
}
VIEWS = ("working", "hold", "insurance", "missing", "ended", "all")
_HEADER = (
    "id",
    "name",
    "legal_name",
    "compliance_state",
    "insurance_expires_on",
    "on_hold",
    "hold_reason",
    "held_at",
    "is_active",
    "avg_rating",
    "rating_count",
    "website",
    "external_id",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A vendor as the templates show it. days_left: of its insurance, negative once it has ended; None if none is on
    record. reason: why it is on hold, in words."""

    vendor: pb.VendorDetails
    state: str
    insured_until: datetime.date | None
    days_left: int | None
    reason: str

    @property
    def tone(self) -> str:
        return WORDS[self.state][0]

    @property
    def icon(self) -> str:
        return WORDS[self.state][1]

    @property
    def word(self) -> str:
        return WORDS[self.state][2]

    @property
    def sentence(self) -> str:
        """The reason with a full stop, unless it ends with a sign of its own."""
        return self.reason if self.reason.endswith(ENDS) else f"{self.reason}."

    @property
    def left(self) -> str:
        """ "12 days left", _("last day"), "ended 3 days ago" """
        if self.days_left is None:
            return ""
        days = f"{abs(self.days_left):,} day" + ("" if abs(self.days_left) == 1 else "s")
        if self.days_left == 0:
            return _("last day")
        return _("%(days)s left") % {"days": days} if self.days_left > 0 else _("expired %(days)s ago") % {"days": days}

    @property
    def left_tone(self) -> str:
        if self.days_left is None or self.days_left > SOON_DAYS:
            return ""
        return "in-amber b" if self.days_left >= 0 else "in-red b"

    @property
    def links_to(self) -> str:
        """The address of its website, if it is one that a page may link to."""
        website = self.vendor.website
        return website if links.of_another_site(website) else ""


def row_of(vendor: pb.VendorDetails, today: datetime.date) -> Row:
    until = datetime.date.fromisoformat(vendor.insurance_expires_on) if vendor.insurance_expires_on else None
    reason = _("Insurance lapsed") if vendor.hold_reason == LAPSED else vendor.hold_reason
    state = STATES[vendor.compliance_state - 1] if vendor.compliance_state else "unknown"
    return Row(vendor, state, until, (until - today).days if until else None, reason)


def _today(context: PageContext) -> datetime.date:
    return context.wall.now.date()


def _read_filters(context: PageContext) -> tuple[dict[str, str], pb.SearchVendorsRequest, Sequence[str]]:
    """The filters of the address, their request, and the errors in them."""
    filters = {name: context.query.get(name, "").strip()[:TEXT_MAX] for name in ("view", "q", "state", "until")}
    if filters["view"] not in VIEWS:
        filters["view"] = ""
    view, today = filters["view"] or "working", _today(context)
    request, errors = pb.SearchVendorsRequest(words=filters["q"].replace("\0", "")), []
    if view in ("working", "hold", "insurance", "missing"):
        request.is_active = True
    elif view == "ended":
        request.is_active = False
    if view == "hold":
        request.on_hold = True
    if view == "insurance":
        request.insured_until = str(today + datetime.timedelta(days=SOON_DAYS))
    if view == "missing":
        request.state.append(pb.COMPLIANCE_STATE_MISSING)
    elif filters["state"] in STATES:
        request.state.append(pb.ComplianceState.Value(f"COMPLIANCE_STATE_{filters['state'].upper()}"))
    if filters["until"]:
        try:
            request.insured_until = datetime.date.fromisoformat(filters["until"]).isoformat()
        except ValueError:
            errors.append(_("Enter a date such as 2027-01-31."))
    return filters, request, errors


async def list_vendors(context: PageContext) -> web.StreamResponse:
    filters, request, errors = _read_filters(context)
    request.limit = CSV_ROWS if "csv" in context.query else SHOWN
    if after := context.query.get("after", "")[:40]:
        request.after = after
    page, counts = await together(
        context.rpcs.call(SEARCH, request), context.rpcs.panel(COUNT, pb.CountVendorsRequest(days=SOON_DAYS))
    )
    rows = [row_of(vendor, _today(context)) for vendor in page.vendors]
    if "csv" in context.query:
        return _csv(rows)
    return context.render(
        "vendors/list.html", here=HERE, rows=rows, counts=counts, filters=filters, errors=errors, states=STATES,
        words=WORDS, views=_views(filters, counts), is_filtered=any(filters.values()), later="after" in context.query,
        next=with_query(PATH, {**filters, "after": page.next}) if page.HasField("next") else "",
        first=with_query(PATH, filters), csv_path=with_query(PATH, {**filters, "csv": 1}), csv_rows=CSV_ROWS,
    )  # fmt: skip


def _views(filters: Mapping[str, str], counts: Panel[pb.CountVendorsResponse]) -> Sequence[tuple[str, str, bool]]:
    """The views with their counts: words, path, and whether it is this one."""

    def number(name: str) -> str:
        total = getattr(counts, name) if counts.ok else 0
        return "" if not total else f" {total:,}{'+' if total >= 1000 else ''}"

    soon = "" if not counts.ok else f" {counts.lapsed + counts.ending:,}" if counts.lapsed + counts.ending else ""
    words = {
        "working": _("Active") + number("active"),
        "hold": _("On hold") + number("on_hold"),
        "insurance": _("Insurance expiring") + soon,
        "missing": _("No insurance") + number("missing"),
        "ended": _("Inactive"),
        "all": _("All"),
    }
    others = {name: value for name, value in filters.items() if name not in ("view", "until", "state")}
    return [
        (label, with_query(PATH, {"view": "" if name == "working" else name, **others}),
         name == (filters["view"] or "working"))
        for name, label in words.items()
    ]  # fmt: skip


def _csv(rows: Sequence[Row]) -> web.Response:
    values = []
    for row in rows:
        vendor = row.vendor
        held = vendor.held_at.ToJsonString() if vendor.HasField("held_at") else ""
        rating = vendor.avg_rating if vendor.HasField("avg_rating") else ""
        values.append(
            (vendor.vendor_id, vendor.name, vendor.legal_name, row.state, vendor.insurance_expires_on, vendor.on_hold,
             vendor.hold_reason, held, vendor.is_active, rating, vendor.rating_count, vendor.website,
             vendor.external_id)
        )  # fmt: skip
    return csv_files.answer("vendors", _HEADER, values)


async def show_vendor(context: PageContext) -> web.StreamResponse:
    vendor_id = context.number("vendor_id")
    response, tickets, events, history = await together(
        context.rpcs.call(GET, pb.GetVendorDetailsRequest(vendor_id=vendor_id)),
        include(context, "/tickets/panel", vendor_id=vendor_id),
        include(context, "/events/panel", kind="vendor", id=vendor_id),
        include(context, "/audit/panel", kind="vendor", id=vendor_id),
    )
    by = await names.names_of(context.rpcs, [response.held_by])
    return context.render(
        "vendors/vendor.html", here=HERE, row=row_of(response.vendor, _today(context)), held_by=_held_by(response, by),
        tickets=tickets, events=events, history=history,
    )  # fmt: skip


def _held_by(response: pb.GetVendorDetailsResponse, by: names.Names) -> str:
    """Who placed the hold, in words; empty if no entry says so."""
    if not response.HasField("held_by"):
        return "" if response.vendor.hold_reason != LAPSED else _("an import")
    if by[response.held_by].kind in ("administrator", "staff", "caller"):
        return by[response.held_by].name
    return _("the operator") if response.held_by == "operator" else _("the hourly insurance check")


async def panel(context: PageContext) -> web.StreamResponse:
    """The vendor of a ticket: whether it may have work."""
    vendor_id = _number(context, "vendor_id")
    response = await context.rpcs.call(GET, pb.GetVendorDetailsRequest(vendor_id=vendor_id))
    return context.render("vendors/panel.html", row=row_of(response.vendor, _today(context)))


async def home(context: PageContext) -> web.StreamResponse:
    """Vendors on hold, and insurance that ends soon."""
    soon = pb.SearchVendorsRequest(
        is_active=True, limit=IN_PANEL, insured_until=str(_today(context) + datetime.timedelta(days=SOON_DAYS))
    )
    counts, held, ending = await together(
        context.rpcs.call(COUNT, pb.CountVendorsRequest(days=SOON_DAYS)),
        context.rpcs.call(SEARCH, pb.SearchVendorsRequest(on_hold=True, limit=2)),
        context.rpcs.call(SEARCH, soon),
    )
    today = _today(context)
    return context.render(
        "vendors/home.html", counts=counts, held=[row_of(vendor, today) for vendor in held.vendors],
        ending=[row_of(vendor, today) for vendor in ending.vendors], soon_days=SOON_DAYS,
    )  # fmt: skip


async def search_hits(context: PageContext) -> web.StreamResponse:
    """The vendors that a search finds by words; one that alone has the words as its external id is opened."""
    words = context.query.get("q", "")[:TEXT_MAX].replace("\0", "").strip()
    if not words:
        return context.render("vendors/found.html", rows=[], words="", more="")
    exact, by_words = await together(
        context.rpcs.call(SEARCH, pb.SearchVendorsRequest(external_id=words, limit=1)),
        context.rpcs.call(SEARCH, pb.SearchVendorsRequest(words=words, limit=IN_PANEL)),
    )
    if exact.vendors:
        return context.redirect(f"{PATH}/{exact.vendors[0].vendor_id}")
    rows = [row_of(vendor, _today(context)) for vendor in by_words.vendors]
    more = with_query(PATH, {"view": "all", "q": words}) if by_words.HasField("next") else ""
    return context.render("vendors/found.html", rows=rows, words=words, more=more)


def _number(context: PageContext, name: str) -> int:
    """An id in a panel's query. Raises HTTPNotFound."""
    text = context.query.get(name, "")
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 19):
        raise web.HTTPNotFound
    return int(text)
