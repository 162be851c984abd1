"""The pages of meters and their readings."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from aiohttp import web

from console.kit import charts, csv_files, links, lists, times
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.panels import include
from console.kit.records import record_of
from console.kit.texts import _
from console.kit.times import amount
from makeready.catalog.v1 import meter_search_pb2 as pb
from makeready.catalog.v1 import meters_pb2
from makeready.catalog.v1 import place_search_pb2 as places_pb

HERE = "Meters"
PATH = "/meters"
LIST = "catalog.MeterSearchService/SearchMeters"
PROPERTIES = "catalog.PlaceSearchService/SearchProperties"
GET = "catalog.MetersService/GetMeter"
READINGS = "catalog.MeterSearchService/ListReadingsSince"
SUMS = "catalog.MeterSearchService/SumReadings"
LISTS = (LIST, PROPERTIES)
SHOWS = (GET, READINGS, SUMS)
UTILITY_TYPES = ("electric", "gas", "water", "sewer", "trash", "other")
SCOPES = {"master": _("Whole property"), "common_area": _("Common areas"), "unit": _("One unit")}
STATES = {"active": _("active"), "inactive": _("inactive")}
PROPERTIES_MAX, OF_PANEL = 200, 12
MONTHS = 24


async def list_meters(context: PageContext) -> web.StreamResponse:
    property_id, unit_id = lists.number(context.query, "property_id"), lists.number(context.query, "unit_id")
    after, utility = lists.number(context.query, "after"), lists.chosen(context.query, "type", UTILITY_TYPES)
    state, scope = lists.chosen(context.query, "state", STATES), lists.chosen(context.query, "scope", SCOPES)
    filters = {
        **{"type": utility, "state": state, "scope": scope, "property_id": property_id, "unit_id": unit_id},
        "q": lists.words(context.query),
    }

    async def page(after_id: int, limit: int = lists.CSV_ROWS) -> tuple[Sequence[pb.MeterRow], int]:
        request = pb.SearchMetersRequest(
            words=lists.words(context.query), property_id=property_id, unit_id=unit_id, scope=scope, after_id=after_id,
            utility_type=[utility] if utility else [], is_active=state == "active" if state else None, limit=limit,
        )  # fmt: skip
        response = await context.rpcs.call(LIST, request)
        return response.meters, response.next_after_id

    if "csv" in context.query:
        return _meters_csv(await lists.every(page))
    (rows, following), properties = await together(
        page(after or 0, lists.PAGE_ROWS),
        context.rpcs.panel(PROPERTIES, places_pb.SearchPropertiesRequest(limit=PROPERTIES_MAX)),
    )
    return context.render(
        "meters/list.html", here=HERE, rows=rows, next=following, after=after, filters=filters, scopes=SCOPES,
        states=STATES, types=UTILITY_TYPES, properties=properties,
    )  # fmt: skip


def _meters_csv(rows: Sequence[pb.MeterRow]) -> web.Response:
    header = (
        *("id", "name", "utility_type", "scope", "meter_number", "unit_of_measure", "is_active", "property_id"),
        *("property", "unit_id", "unit", "last_period_end", "last_consumption", "external_id"),
    )
    table = []
    for row in rows:
        last = row.last_reading if row.HasField("last_reading") else None
        table.append([
            *(row.meter_id, row.name, row.utility_type, row.scope, row.meter_number, row.unit_of_measure),
            *("yes" if row.is_active else "no", row.property.id, row.property.name, row.unit.id or None, row.unit.name),
            *((last.period_end.ToJsonString(), last.consumption) if last else (None, None)),
            row.external_id,
        ])  # fmt: skip
    return csv_files.answer("meters", header, table)


async def panel(context: PageContext) -> web.StreamResponse:
    """The meters of a property or of a unit."""
    property_id, unit_id = lists.number(context.query, "property_id"), lists.number(context.query, "unit_id")
    if property_id is None and unit_id is None:
        raise web.HTTPNotFound
    request = pb.SearchMetersRequest(property_id=property_id, unit_id=unit_id, limit=OF_PANEL)
    all_of = links.address(PATH, {"property_id": property_id, "unit_id": unit_id})
    page = await context.rpcs.call(LIST, request)
    return context.render("meters/panel.html", page=page, all_of=all_of, scopes=SCOPES)


async def show_meter(context: PageContext) -> web.StreamResponse:
    meter_id, before = context.number("meter_id"), lists.number(context.query, "before")
    now = context.wall.now

    async def page(before_id: int, limit: int = lists.CSV_ROWS) -> tuple[Sequence[pb.ReadingRow], int]:
        request = pb.ListReadingsSinceRequest(meter_id=meter_id, before_id=before_id, limit=limit)
        response = await context.rpcs.call(READINGS, request)
        return response.readings, response.next_before_id

    if "csv" in context.query:
        return _readings_csv(await lists.record(lists.every(page)), meter_id)
    sums_request = pb.SumReadingsRequest(meter_id=meter_id, months=MONTHS + 12)
    sums_request.until.FromDatetime(now)
    meter = await lists.record(context.rpcs.call(GET, meters_pb2.GetMeterRequest(meter_id=meter_id)))
    (readings, following), sums, audit = await together(
        lists.record(page(before or 0, lists.PAGE_ROWS)),
        context.rpcs.panel(SUMS, sums_request),
        include(context, "/audit/panel", kind="meter", id=meter_id),
    )
    record = record_of(meter.document)
    chart = chart_of(sums.value, now) if sums.ok else None
    return context.render(
        "meters/meter.html", here=HERE, meter=record, readings=readings, next=following, before=before, sums=sums,
        chart=chart, audit=audit, scopes=SCOPES, notes_of=notes,
        created=datetime.datetime.fromisoformat(record["created_at"]),
    )  # fmt: skip


def _readings_csv(rows: Sequence[pb.ReadingRow], meter_id: int) -> web.Response:
    header = (
        *("id", "meter_id", "period_start", "period_end", "consumption", "unit_of_measure", "cost", "is_estimated"),
        *("external_id", "source"),
    )
    table = [
        [
            *(row.reading_id, meter_id, row.period_start.ToJsonString(), row.period_end.ToJsonString()),
            *(row.consumption, row.unit_of_measure, row.cost if row.HasField("cost") else None),
            *("yes" if row.is_estimated else "no", row.external_id, row.source),
        ]
        for row in rows
    ]
    return csv_files.answer(f"readings-of-meter-{meter_id}", header, table)


def notes(row: pb.ReadingRow) -> list[tuple[str, str]]:
    """What stands out about a reading: (tone, sentence)."""
    remarks = []
    if row.gap_seconds > 0:
        remarks.append(("red", _("gap of %(time)s before this reading") % {"time": times.apart(row.gap_seconds)}))
    elif row.gap_seconds < 0:
        remarks.append(
            ("amber", _("overlaps the previous reading by %(time)s") % {"time": times.apart(row.gap_seconds)})
        )
    if row.HasField("times_usual"):
        more = row.times_usual >= 1
        remarks.append(
            (
                "amber",
                _("%(times)s times the usual") % {"times": f"{row.times_usual:.1f}"}
                if more
                else _("%(share)s of the usual") % {"share": _part(row.times_usual)},
            )
        )
    return remarks


def _part(times_usual: float) -> str:
    return "nothing" if times_usual <= 0 else f"{times_usual * 100:.0f} %"


class Chart:
    """The last MONTHS months of a meter, each with the one a year before."""

    def __init__(self, sums: pb.SumReadingsResponse, now: datetime.datetime) -> None:
        every = list(sums.months)
        self.unit, self.left_out = sums.unit_of_measure, sums.left_out
        self.months = [self._month(month, earlier) for month, earlier in zip(every[12:], every, strict=False)]
        self.shown = every[12:]
        self.has_values = any(month.readings for month in self.shown)
        self.has_before = any(month.readings for month in every[:MONTHS])
        self.has_costs = any(month.HasField("cost") for month in self.shown)
        self.has_estimates = any(month.estimated for month in self.shown)
        self.gaps = [_name(month) for month in self.shown if month.covered < 0.95 and not self._is_at_edge(month)]
        self.description = self._words()
        marks = [
            (
                index,
                f"{_name(month)[:3]} {month.month[:4]}"
                if month.month.endswith("-01") or not index
                else _name(month)[:3],
            )
            for index, month in enumerate(self.shown)
            if index % 3 == 0
        ]
        self.svg = charts.consumption(self.months, self.description, self.unit, marks)
        self.now = now

    def _is_at_edge(self, month: pb.MonthOfReadings) -> bool:
        """Whether a month is not over, or lies before the first reading: no gap."""
        first = next((other.month for other in self.shown if other.readings), "")
        return month.month == self.shown[-1].month or not first or month.month <= first

    def _month(self, month: pb.MonthOfReadings, earlier: pb.MonthOfReadings) -> charts.Month:
        words = [f"{_name(month)} {month.month[:4]}: {self._amount_words(month)}"]
        if month.estimated:
            words.append(
                "estimated" if month.estimated >= month.consumption else f"{amount(month.estimated)} of it estimated"
            )
        if month.HasField("cost"):
            words.append(f"cost {amount(month.cost)}")
        if earlier.readings:
            words.append(f"a year before {amount(earlier.consumption)}")
        return charts.Month(
            label=", ".join(words),
            value=month.consumption if month.readings else None,
            estimated=month.estimated,
            before=earlier.consumption if earlier.readings else None,
            cost=month.cost if month.HasField("cost") else None,
        )

    def _amount_words(self, month: pb.MonthOfReadings) -> str:
        return f"{amount(month.consumption)} {self.unit}".strip() if month.readings else "no reading"

    def _words(self) -> str:
        with_readings = [month for month in self.shown if month.readings]
        if not with_readings:
            return "No reading in the last 24 months."
        most, least = (
            max(with_readings, key=lambda month: month.consumption),
            min(with_readings, key=lambda month: month.consumption),
        )
        words = [
            f"Consumption by month, {_name(self.shown[0])} {self.shown[0].month[:4]} to {_name(self.shown[-1])} "
            f"{self.shown[-1].month[:4]}. Most in {_name(most)} {most.month[:4]}: {self._amount_words(most)}. "
            f"Least in {_name(least)} {least.month[:4]}: {self._amount_words(least)}."
        ]
        if change := self.change:
            words.append(change)
        if self.gaps:
            words.append(f"Readings are missing in {', '.join(self.gaps)}.")
        return " ".join(words)

    @property
    def change(self) -> str:
        """The last twelve months that are over, beside the twelve before."""
        over = self.shown[-13:-1]
        before = self.shown[-25:-13] if len(self.shown) >= 25 else self.shown[:-13][-12:]
        both = [
            (current, two)
            for current, two in zip(over, [*before][-len(over) :], strict=False)
            if current.readings and two.readings
        ]
        if len(both) < 10:
            return ""
        now, then = sum(current.consumption for current, _ in both), sum(two.consumption for _, two in both)
        if then <= 0:
            return ""
        percent = round((now / then - 1) * 100)
        if percent == 0:
            return "The last twelve months are as the twelve before."
        return (
            f"The last twelve months have {abs(percent)} % {'more' if percent > 0 else 'less'} than the twelve before."
        )


def chart_of(sums: pb.SumReadingsResponse | None, now: datetime.datetime) -> Chart | None:
    """The chart; None without a month to show."""
    return Chart(sums, now) if sums is not None and len(sums.months) > 12 else None


_NAMES = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)


def _name(month: pb.MonthOfReadings) -> str:
    return _NAMES[int(month.month[5:]) - 1]
