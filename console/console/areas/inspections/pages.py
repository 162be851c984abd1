"""The pages that show inspections: list, calendar, one inspection, and the panels of other pages."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from aiohttp import web

from console.areas.inspections import bulk, fields
from console.kit import csv_files, names, photos
from console.kit.browser_session import STAFF
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.forms import Form
from console.kit.links import with_query
from console.kit.panels import include
from console.kit.texts import _, ngettext
from makeready.catalog.v1 import inspection_commands_pb2 as rows_pb
from makeready.catalog.v1 import inspection_details_pb2 as pb
from makeready.catalog.v1 import inspections_pb2

HERE = "Inspections"
PATH = "/inspections"
SEARCH = "catalog.InspectionDetailsService/SearchInspections"
DAYS = "catalog.InspectionDetailsService/ListInspectionDays"
GET = "catalog.InspectionDetailsService/GetInspectionDetails"
COUNT = "catalog.InspectionDetailsService/CountInspections"
ROWS = "catalog.InspectionCommandsService/ListInspectionRows"
NAMES = names.RPC
SHOWS_ONE = (GET, ROWS, NAMES)

SHOWN, CSV_ROWS, IN_PANEL, DONE_IN_PANEL = 50, 200, 6, 3
IN_MONTH, IN_WEEK = 4, 20
SCHEDULED = inspections_pb2.INSPECTION_STATUS_SCHEDULED
IN_PROGRESS = inspections_pb2.INSPECTION_STATUS_IN_PROGRESS
COMPLETED = inspections_pb2.INSPECTION_STATUS_COMPLETED
OPEN = (SCHEDULED, IN_PROGRESS)
WORK_ROWS = 100
ONE_DAY = datetime.timedelta(days=1)
VIEWS = ("open", "late", "week", "completed", "failed", "cancelled", "all")
SHOWS = ("list", "week", "month")
PLACES = ("property_id", "unit_id", "assignee_id")
NOBODY_HAS_IT = "0"
"""As the filter `assignee_id`."""
FILTERS = ("view", *PLACES, "from", "to")
# What each status means, its colour and its shape.
STATUSES = {
    SCHEDULED: ("blue", "o", "Scheduled"),
    IN_PROGRESS: ("amber", "half", "In Progress"),
    COMPLETED: ("green", "check", "Completed"),
}
_HEADER = (
    "id",
    "number",
    "title",
    "type",
    "property",
    "unit",
    "scheduled_date",
    "completed_date",
    "status",
    "result",
    "late",
    "assignee",
    "compliance",
    "external_id",
)


@dataclass(frozen=True, slots=True)
class Row:
    """An inspection as the templates show it. days_late: since its day; 0 if it is not late."""

    inspection: pb.InspectionDetails
    scheduled: datetime.date | None
    completed: datetime.date | None
    days_late: int

    @property
    def title(self) -> str:
        inspection = self.inspection
        return inspection.title or inspection.inspection_type or _("Untitled inspection")

    @property
    def status(self) -> tuple[str, str, str]:
        """Colour, shape and word."""
        if self.inspection.HasField("cancelled_at"):
            return "", "x", _("Cancelled")
        if self.inspection.result == pb.INSPECTION_RESULT_FAILED:
            return "red", "x", _("Failed")
        if self.inspection.result == pb.INSPECTION_RESULT_PASSED:
            return "green", "check", _("Passed")
        return STATUSES.get(self.inspection.status, ("", "dash", _("Unknown")))

    @property
    def is_open(self) -> bool:
        """Whether there is something to do with it."""
        return self.inspection.status in OPEN and not self.inspection.HasField("cancelled_at")

    @property
    def late(self) -> str:
        """ "3 days overdue" """
        words = ngettext("%(num)s day overdue", "%(num)s days overdue", self.days_late)
        return words % {"num": f"{self.days_late:,}"} if self.days_late else ""


def row_of(inspection: pb.InspectionDetails, today: datetime.date) -> Row:
    scheduled = datetime.date.fromisoformat(inspection.scheduled_date) if inspection.scheduled_date else None
    completed = datetime.date.fromisoformat(inspection.completed_date) if inspection.completed_date else None
    day = scheduled or completed
    return Row(inspection, scheduled, completed, (today - day).days if inspection.late and day else 0)


def _today(context: PageContext) -> datetime.date:
    return context.wall.now.date()


def _filters(context: PageContext) -> tuple[dict[str, str], list[str]]:
    """The filters of the address as texts, and the errors in them."""
    filters, errors = {name: context.query.get(name, "").strip()[:40] for name in FILTERS}, []
    if filters["view"] not in VIEWS or filters["view"] == "open":
        filters["view"] = ""
    for name in PLACES:
        text = filters[name]
        if text and not (text.isascii() and text.isdigit() and len(text) < 19):
            filters[name] = ""
            errors.append(_("Property, unit and staff filters must be numbers."))
    for name in ("from", "to"):
        try:
            filters[name] = filters[name] and datetime.date.fromisoformat(filters[name]).isoformat()
        except ValueError:
            filters[name] = ""
            errors.append(_("Enter a date such as 2027-01-31."))
    if filters["from"] and filters["to"] and filters["to"] < filters["from"]:
        filters["to"] = ""
        errors.append(_("The end date is before the start date."))
    return filters, list(dict.fromkeys(errors))


class PlaceIds(TypedDict, total=False):
    """Those of a request that narrow a list."""

    property_id: int
    unit_id: int
    assignee_id: int


def _places(filters: Mapping[str, str]) -> PlaceIds:
    return cast(PlaceIds, {name: int(filters[name]) for name in PLACES if filters.get(name)})


def _search(filters: Mapping[str, str], today: datetime.date) -> pb.SearchInspectionsRequest:
    view = filters["view"] or "open"
    request = pb.SearchInspectionsRequest(**_places(filters))
    if view in ("open", "late", "week"):
        request.status.extend(OPEN)
    if view == "late":
        request.late = True
    if view == "week":
        request.from_date, request.to_date = str(today), str(today + 6 * ONE_DAY)
    if view == "completed":
        request.status.append(COMPLETED)
    if view == "failed":
        request.result.append(pb.INSPECTION_RESULT_FAILED)
    request.cancelled = view == "cancelled"
    request.newest_first = view in ("completed", "failed", "cancelled", "all")
    if view != "week":
        if filters["from"]:
            request.from_date = filters["from"]
        if filters["to"]:
            request.to_date = filters["to"]
    return request


async def list_inspections(context: PageContext) -> web.StreamResponse:
    """As a list, late ones first, or as a calendar of a week or a month."""
    filters, errors = _filters(context)
    shows = context.query.get("show", "")
    count = context.rpcs.panel(COUNT, _count(filters))
    if shows in ("week", "month") and "csv" not in context.query:
        return await _calendar(context, filters, shows, errors, count)
    request = _search(filters, _today(context))
    request.limit = CSV_ROWS if "csv" in context.query else SHOWN
    if after := context.query.get("after", "")[:40]:
        request.after = after
    page, counts = await together(context.rpcs.call(SEARCH, request), count)
    rows = [row_of(inspection, _today(context)) for inspection in page.inspections]
    if "csv" in context.query:
        return _csv(rows)
    return context.render(
        "inspections/list.html", here=HERE, rows=rows, later="after" in context.query,
        next=with_query(PATH, {**filters, "after": page.next}) if page.HasField("next") else "",
        first=with_query(PATH, filters), csv_rows=CSV_ROWS,
        listing=Listing(context, filters, errors, counts, "list", rows), bulk=bulk.RECORDS,
        all_path=with_query(PATH, {**filters, "after": request.after, "tick": "all"}),
        ticks_all=context.query.get("tick") == "all",
    )  # fmt: skip


def _count(filters: Mapping[str, str]) -> pb.CountInspectionsRequest:
    places = _places(filters)
    return pb.CountInspectionsRequest(property_id=places.get("property_id"), assignee_id=places.get("assignee_id"))


@dataclass(frozen=True, slots=True)
class Listing:
    """What the list and the calendar share. shows: "list", "week" or "month". rows: what is on the page."""

    context: PageContext
    filters: Mapping[str, str]
    errors: Sequence[str]
    counts: Panel[pb.CountInspectionsResponse]
    shows: str
    rows: Sequence[Row]

    @property
    def places(self) -> Mapping[str, str]:
        """The filters that go along to another view."""
        return {name: self.filters[name] for name in PLACES}

    @property
    def is_filtered(self) -> bool:
        return any(self.filters.values())

    @property
    def csv_path(self) -> str:
        return _path({**self.filters, "csv": "1"})

    @property
    def plan_path(self) -> str:
        """Where an inspection of the place is planned; empty for who may not."""
        return _plan_path(self.context, {name: value for name, value in self.places.items() if value != "0"})

    @property
    def chips(self) -> Sequence[tuple[str, str, str]]:
        """The filters by place and person: what each is, its name, and the list without it."""
        inspections = [row.inspection for row in self.rows]
        labels = (
            ("property_id", _("Property"), next((inspection.property_name for inspection in inspections), "")),
            ("unit_id", _("Unit"), next((inspection.unit_name for inspection in inspections), "")),
            ("assignee_id", _("Assigned to"), next((inspection.assignee_name for inspection in inspections), "")),
        )
        return [
            (label, _("Unassigned") if value == NOBODY_HAS_IT else name or value, self._with(**{field: ""}))
            for field, label, name in labels
            if (value := self.filters[field])
        ]

    @property
    def views(self) -> Sequence[tuple[str, str, bool]]:
        """The words of each view with its number, its path, and whether it is this one."""
        counts = self.counts.value or pb.CountInspectionsResponse()
        words = {
            "open": _("Open") + _counted(counts.scheduled + counts.in_progress),
            "late": _("Overdue") + _counted(counts.late),
            "week": _("Next 7 days") + _counted(counts.this_week),
            "completed": _("Completed"),
            "failed": _("Failed"),
            "cancelled": _("Cancelled"),
            "all": _("All"),
        }
        chosen = self.filters["view"] or "open"
        return [
            (label, _path({**self.places, "view": "" if name == "open" else name}), name == chosen)
            for name, label in words.items()
        ]

    @property
    def forms(self) -> Sequence[tuple[str, str, bool]]:
        """The same as a list and as a calendar: words, path, and whether it is this one."""
        labels = (("List", "list"), ("Week", "week"), ("Month", "month"))
        return [(label, _path({**self.places, "show": name}), name == self.shows) for label, name in labels]

    @property
    def mine(self) -> str:
        """The list of a member of staff's inspections; empty where it is that one."""
        session = self.context.session
        is_theirs = session.kind == STAFF and self.filters["assignee_id"] != str(session.person.person_id)
        return self._with(assignee_id=str(session.person.person_id)) if is_theirs else ""

    @property
    def nobodys(self) -> str:
        """The list of what nobody has; empty where it is that one."""
        return "" if self.filters["assignee_id"] == NOBODY_HAS_IT else self._with(assignee_id=NOBODY_HAS_IT)

    def _with(self, **changes: str) -> str:
        return _path({**self.filters, **changes, "show": self.shows})


def _counted(number: int) -> str:
    """A number behind the words of a view. It is counted to 1,000."""
    return f" {number:,}{'+' if number >= 1000 else ''}" if number else ""


def _path(values: Mapping[str, str]) -> str:
    """The list with these filters; "list" is what it shows by default."""
    kept = {name: value for name, value in values.items() if (name, value) != ("show", "list")}
    # A zero counts here: it is nobody.
    return with_query(PATH, {name: value for name, value in kept.items() if value})


@dataclass(frozen=True, slots=True)
class Day:
    date: datetime.date
    rows: Sequence[Row]
    count: int
    is_other: bool
    """Whether it is of the month before or after."""
    path: str
    """The list of its inspections."""

    @property
    def more(self) -> int:
        return self.count - len(self.rows)


async def _calendar(
    context: PageContext,
    filters: dict[str, str],
    shows: str,
    errors: Sequence[str],
    count: Awaitable[Panel[pb.CountInspectionsResponse]],
) -> web.StreamResponse:
    today = _today(context)
    try:
        day = datetime.date.fromisoformat(context.query.get("day", "") or str(today))
        day = min(max(day, datetime.date(1900, 1, 1)), datetime.date(9000, 1, 1))
    except ValueError:
        day = today
    if shows == "week":
        first = day - day.weekday() * ONE_DAY
        last, before, after = first + 6 * ONE_DAY, first - 7 * ONE_DAY, first + 7 * ONE_DAY
        title = f"{first.day} {first:%B} to {last.day} {last:%B} {last.year}"
    else:
        start = day.replace(day=1)
        end = day.replace(day=calendar.monthrange(day.year, day.month)[1])
        first, last = start - start.weekday() * ONE_DAY, end + (6 - end.weekday()) * ONE_DAY
        before, after, title = start - ONE_DAY, end + ONE_DAY, f"{day:%B} {day.year}"
    of_place = {name: filters[name] for name in PLACES}
    request = pb.ListInspectionDaysRequest(
        from_date=str(first), to_date=str(last), limit=IN_WEEK if shows == "week" else IN_MONTH, **_places(filters)
    )
    response, counts = await together(context.rpcs.call(DAYS, request), count)
    by_day = {inspection_day.date: inspection_day for inspection_day in response.days}
    days = []
    for number in range((last - first).days + 1):
        on = first + number * ONE_DAY
        inspection_day = by_day.get(str(on), pb.InspectionDay())
        path = _path({**of_place, "view": "all", "from": str(on), "to": str(on)})
        rows = [row_of(inspection, today) for inspection in inspection_day.inspections]
        days.append(Day(on, rows, inspection_day.count, shows == "month" and on.month != day.month, path))
    rows = [row for calendar_day in days for row in calendar_day.rows]

    def turn(on: datetime.date) -> str:
        return _path({**of_place, "show": shows, "day": str(on)})

    return context.render(
        "inspections/calendar.html", here=HERE, days=days, title=title, today=today, before=turn(before),
        after=turn(after), now=_path({**of_place, "show": shows}),
        listing=Listing(context, {**filters, "view": "", "from": "", "to": ""}, errors, counts, shows, rows),
    )  # fmt: skip


def _csv(rows: Sequence[Row]) -> web.Response:
    values = []
    for row in rows:
        inspection = row.inspection
        result = (
            pb.InspectionResult.Name(inspection.result).removeprefix("INSPECTION_RESULT_").lower()
            if inspection.result
            else ""
        )
        values.append(
            (inspection.inspection_id, inspection.inspection_number or "", inspection.title, inspection.inspection_type,
             inspection.property_name, inspection.unit_name, inspection.scheduled_date, inspection.completed_date,
             "Cancelled" if inspection.HasField("cancelled_at") else STATUSES[inspection.status][2], result,
             inspection.late, inspection.assignee_name,
             inspection.compliance_type or inspection.is_compliance_inspection, inspection.external_id)
        )  # fmt: skip
    return csv_files.answer("inspections", _HEADER, values)


async def show_inspection(context: PageContext) -> web.StreamResponse:
    return await page(context)


@dataclass(frozen=True, slots=True)
class SentForms:
    """The form on an inspection's page that was sent and is shown again."""

    completing: Form | None = None
    cancelling: Form | None = None
    adding: Form | None = None


async def page(
    context: PageContext, status: int = 200, *, error: str = "", sent: SentForms | None = None
) -> web.Response:
    """One inspection. error: why an action of one button was refused."""
    sent = sent or SentForms()
    inspection_id = context.number("inspection_id")
    response, rows, tickets, events, history = await together(
        context.rpcs.call(GET, pb.GetInspectionDetailsRequest(inspection_id=inspection_id)),
        context.rpcs.call(ROWS, rows_pb.ListInspectionRowsRequest(inspection_id=inspection_id)),
        include(context, "/tickets/panel", inspection_id=inspection_id),
        include(context, "/events/panel", kind="inspection", id=inspection_id),
        include(context, "/audit/panel", kind="inspection", id=inspection_id),
    )
    by = await names.names_of(
        context.rpcs, [*(row.inspected_by for row in rows.rows), response.inspection.cancelled_by]
    )
    failed = sum(row.result == "failed" for row in rows.rows)
    looked_at = sum(row.HasField("result") for row in rows.rows)
    return context.render(
        "inspections/inspection.html", status, here=HERE, error=error, is_cancelling=sent.cancelling is not None,
        completing=sent.completing or fields.complete_form(inspection_id, _today(context)),
        cancelling=sent.cancelling or fields.cancel_form(inspection_id),
        adding=sent.adding or fields.row_form(inspection_id),
        row=row_of(response.inspection, _today(context)), rows=rows.rows, names=by,
        shown_photos={item.row_id: photos.shown(context.site.url, item.photo_url) for item in rows.rows},
        failed=failed, looked_at=looked_at, tickets=tickets, events=events, history=history,
    )  # fmt: skip


async def work(context: PageContext) -> web.StreamResponse:
    """The open inspections of a member of staff, for their list of work."""
    staff_id = context.query.get("staff_id", "")
    if not _is_id(staff_id):
        raise web.HTTPNotFound
    request = pb.SearchInspectionsRequest(status=OPEN, limit=WORK_ROWS, assignee_id=int(staff_id))
    page = await context.rpcs.call(SEARCH, request)
    return context.render(
        "inspections/work.html", inspections=page.inspections, has_more=page.HasField("next"), in_progress=IN_PROGRESS
    )


async def panel(context: PageContext) -> web.StreamResponse:
    """The inspections of a property or a unit: the open ones, and the last that were done."""
    sent = {name: context.query.get(name, "") for name in ("property_id", "unit_id")}
    place = _places({name: text for name, text in sent.items() if _is_id(text)})
    if not place:
        raise web.HTTPNotFound
    ahead, done = await together(
        context.rpcs.call(SEARCH, pb.SearchInspectionsRequest(status=OPEN, limit=IN_PANEL, **place)),
        context.rpcs.call(
            SEARCH, pb.SearchInspectionsRequest(status=[COMPLETED], newest_first=True, limit=DONE_IN_PANEL, **place)
        ),
    )
    today = _today(context)
    return context.render(
        "inspections/panel.html", ahead=[row_of(inspection, today) for inspection in ahead.inspections],
        done=[row_of(inspection, today) for inspection in done.inspections], of_unit="unit_id" in place,
        path=with_query(PATH, {"view": "all", **place}), plan=_plan_path(context, place),
    )  # fmt: skip


async def home(context: PageContext) -> web.StreamResponse:
    """Inspections that are late."""
    counts, late = await together(
        context.rpcs.call(COUNT, pb.CountInspectionsRequest()),
        context.rpcs.call(SEARCH, pb.SearchInspectionsRequest(late=True, limit=1)),
    )
    first = next((row_of(inspection, _today(context)) for inspection in late.inspections), None)
    return context.render("inspections/home.html", counts=counts, first=first)


def _plan_path(context: PageContext, values: Mapping[str, object]) -> str:
    """The form of a new inspection with these values; empty for one who may not open it."""
    return with_query(f"{PATH}/new", values) if context.navigation.opens(f"{PATH}/new") else ""


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < len(text) < 19
