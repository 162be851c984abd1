"""The pages of reports: figures of months as charts and tables, by group, as files."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web
from google.protobuf.message import Message
from markupsafe import Markup

from chassis.refusals import Refusal
from chassis.reports.records import COLUMNS, Report, ReportFigure, ReportGroup, ReportPeriod, rows_of
from console.areas.reports.measures import QUESTIONS, REPORTS, ChartOf, ReportView, tickets
from console.kit import charts, csv_files, lists
from console.kit.calls import Panel, together
from console.kit.context import PageContext
from console.kit.texts import _, ngettext

HERE = "Reports"
PATH = "/reports"
RPCS = tuple(dict.fromkeys(view.rpc for view in REPORTS))
CHART_WIDTH = 520  # of two side by side
FEW = 5
"""A percentile of fewer records says little of the next ones."""

_parsed = msgspec.json.Decoder(Report).decode


async def index(context: PageContext) -> web.StreamResponse:
    """All reports, each with its last twelve months, and the questions that they answer."""
    panels = await together(*(context.rpcs.panel(view.rpc, view.request()) for view in REPORTS))
    cards = [(view, panel, _headlines(view, panel)) for view, panel in zip(REPORTS, panels, strict=True)]
    return context.render("reports/index.html", here=HERE, cards=cards, questions=QUESTIONS)


def _headlines(view: ReportView, panel: Panel[Any]) -> list[tuple[str, str, Markup]]:
    """A report's first measures of the present month: label, figure, the months as bars."""
    if not panel.ok:
        return []
    report = _parsed(panel.document.json)
    headlines = []
    for name in view.headlines:
        series = [_of(bucket.figures, name) for bucket in report.buckets]
        is_duration = _kind(report, name) == "duration"
        values = [figure.median or 0 if is_duration else figure.count for figure in series]
        headlines.append((view.labels[name], amount(report, series[-1]), charts.spark(values)))
    return headlines


def page_of(view: ReportView) -> Callable[[PageContext], Awaitable[web.StreamResponse]]:
    """The page of a report."""
    return functools.partial(show, view)


async def show(view: ReportView, context: PageContext) -> web.StreamResponse:
    group_by = lists.chosen(context.query, "group_by", view.groups) or next(iter(view.groups))
    asks = {name: context.query.get(name, "").strip() for name in ("from_month", "to_month")}
    property_id = lists.number(context.query, "property_id")
    request = view.request(property_id=property_id, **{name: text for name, text in asks.items() if text})
    request.group_by = _number(view, group_by)
    fault = ""
    try:
        answer = await context.rpcs.call(view.rpc, request)
    except Refusal as refusal:
        if refusal.status == 404:
            raise web.HTTPNotFound from None
        if refusal.field not in asks:
            raise
        fault = refusal.message
        answer = await context.rpcs.call(view.rpc, view.request(group_by=request.group_by))
    report = _parsed(answer.document.json)
    if "csv" in context.query:
        table = [[row[name] for name in COLUMNS] for row in rows_of(report)]
        return csv_files.answer(f"report-{view.name}-{report.from_month}-to-{report.to_month}", COLUMNS, table)
    of_properties = await context.rpcs.panel(view.rpc, _of_properties(view, report))
    is_of_present = f"{context.wall.now:%Y-%m}" == report.to_month
    sort = lists.chosen(context.query, "sort", view.columns) or view.sorts.get(group_by, "")
    page = ReportPage(view, report, sort, is_of_present=is_of_present)
    return context.render(
        "reports/report.html", 400 if fault else 200, here=HERE, view=view, report=report, page=page, fault=fault,
        asks=asks, few=FEW, properties=_properties(of_properties), month_name=month_name,
    )  # fmt: skip


def _number(view: ReportView, group_by: str) -> int:
    """The enum's value for what the figures are grouped by: its values have the order of `groups`."""
    return list(view.groups).index(group_by) + 1


def _of_properties(view: ReportView, report: Report) -> Message:
    """The same period by property, for the choice of one."""
    by_property = _number(view, "property")
    request: Message = view.request(from_month=report.from_month, to_month=report.to_month, group_by=by_property)
    return request


def _properties(panel: Panel[Any]) -> list[tuple[int, str]]:
    if not panel.ok:
        return []
    groups = _parsed(panel.document.json).groups
    return sorted(
        ((group.entity_id, group.name or "") for group in groups if group.entity_id), key=lambda row: row[1].lower()
    )


def _of(figures: Sequence[ReportFigure], measure: str) -> ReportFigure:
    return next(figure for figure in figures if figure.measure == measure)


def _kind(report: Report, measure: str) -> str:
    return next(part.kind for part in report.measures if part.name == measure)


def _unit(report: Report, measure: str) -> str:
    return next(part.unit for part in report.measures if part.name == measure)


def amount(report: Report, figure: ReportFigure) -> str:
    """A count, or the median of a duration."""
    if _kind(report, figure.measure) != "duration":
        return f"{figure.count:,}"
    return length(figure.median, _unit(report, figure.measure))


def length(value: int | None, unit: str) -> str:
    """A duration in words: "35 min", "4.5 h", "12 days"."""
    if value is None:
        return "-"
    if unit == "days":
        return ngettext("%(num)s day", "%(num)s days", value) % {"num": value}
    if value < 90:
        return _("%(minutes)s min") % {"minutes": value}
    if value < 48 * 60:
        return _("%(hours)s h") % {"hours": f"{value / 60:.1f}".removesuffix(".0")}
    return _("%(days)s days") % {"days": f"{value / 1440:.1f}".removesuffix(".0")}


def month_name(starts_on: datetime.date) -> str:
    return f"{starts_on:%b %Y}"


def records(view: ReportView, figure: ReportFigure) -> str:
    """How many records are behind a duration: "4 tickets"."""
    return view.records.get(figure.measure, tickets)(figure.count)


class ReportPage:
    """A report with what its page draws."""

    def __init__(self, view: ReportView, report: Report, sort: str, *, is_of_present: bool) -> None:
        self.view, self.report, self.sort = view, report, sort
        self.charts = [Drawn(view, report, chart) for chart in view.charts]
        self.groups = list(report.groups)
        if sort:
            self.groups.sort(key=self._rank, reverse=True)
        ranked = sort or view.columns[0]
        self.most = max((self._rank_by(group, ranked) for group in self.groups), default=0)
        self.ranked = ranked
        self.is_of_present = is_of_present

    def _rank(self, group: ReportGroup) -> tuple[bool, int]:
        """Those with few records come last: what they say is chance."""
        figure = _of(group.figures, self.sort)
        is_duration = _kind(self.report, self.sort) == "duration"
        return not is_duration or figure.count >= FEW, self._rank_by(group, self.sort)

    def _rank_by(self, group: ReportGroup, measure: str) -> int:
        figure = _of(group.figures, measure)
        return (figure.median or 0) if _kind(self.report, measure) == "duration" else figure.count

    def bar(self, group: ReportGroup) -> Markup:
        return charts.bar(self._rank_by(group, self.ranked), self.most)

    @property
    def definitions(self) -> list[tuple[str, str]]:
        """What each measure says."""
        return [(self.view.labels[part.name], _(part.definition)) for part in self.report.measures]

    @property
    def headlines(self) -> list[tuple[str, str, ReportFigure, str]]:
        """Label, figure, and what else is known of it, for the whole period."""
        return [(self.view.labels[name], amount(self.report, figure), figure, self.beside(figure))
                for name in self.view.headlines for figure in [_of(self.report.total, name)]]  # fmt: skip

    def beside(self, figure: ReportFigure) -> str:
        if figure.median is None:
            return ""
        longest = length(figure.p90, _unit(self.report, figure.measure))
        return _("9 of 10 within %(length)s · %(records)s") % {
            "length": longest, "records": records(self.view, figure),
        }  # fmt: skip

    @property
    def period(self) -> str:
        """ "Dec 2025 to Nov 2026" """
        first, last = (
            month_name(datetime.date.fromisoformat(f"{month}-01"))
            for month in (self.report.from_month, self.report.to_month)
        )
        return first if first == last else _("%(first)s to %(last)s") % {"first": first, "last": last}

    def records(self, figure: ReportFigure) -> str:
        return records(self.view, figure)

    def figure(self, group: ReportGroup, measure: str) -> ReportFigure:
        return _of(group.figures, measure)

    def amount(self, figure: ReportFigure) -> str:
        return amount(self.report, figure)

    def p90(self, figure: ReportFigure) -> str:
        return length(figure.p90, _unit(self.report, figure.measure))

    def is_duration(self, measure: str) -> bool:
        return _kind(self.report, measure) == "duration"

    def name(self, group: ReportGroup) -> str:
        if group.name:
            return group.name
        return {"assignee": _("Unassigned"), "vendor": _("No vendor")}.get(self.report.group_by or "", _("None"))

    def path(self, **changed: object) -> str:
        """This page with other filters."""
        values = {
            "from_month": self.report.from_month, "to_month": self.report.to_month,
            "property_id": self.report.property_id, "group_by": self.report.group_by, "sort": self.sort,
        } | changed  # fmt: skip
        return f"{self.view.path}?{urlencode({name: value for name, value in values.items() if value})}"

    def list_of(self, group: ReportGroup, measure: str) -> str:
        """The list of the records behind a group's figure; "" where no list can show them."""
        dimension = self.report.group_by or ""
        value = str(group.entity_id or group.name or ("none" if dimension in ("assignee", "vendor") else ""))
        if measure == self.view.dated and self.report.buckets:
            days = self._days(self.report.buckets[0], self.report.buckets[-1])
            return self._tickets(view="all", **{dimension: value}, **days) if value else ""
        is_now = measure == self.view.present and self.is_of_present
        return self._tickets(view="open", **{dimension: value}) if value and is_now else ""

    def list_on(self, bucket: ReportPeriod, measure: str) -> str:
        """The list of the records behind a month's figure; "" where no list can show them."""
        return self._tickets(view="all", **self._days(bucket, bucket)) if measure == self.view.dated else ""

    @staticmethod
    def _days(first: ReportPeriod, last: ReportPeriod) -> dict[str, str]:
        until = (last.starts_on + datetime.timedelta(days=32)).replace(day=1) - datetime.timedelta(days=1)
        return {"from": first.starts_on.isoformat(), "to": until.isoformat()}

    def _tickets(self, **filters: object) -> str:
        of_property = {"property": self.report.property_id} if self.report.property_id else {}
        return f"/tickets?{urlencode(of_property | filters)}"


class Drawn:
    """A chart, and the rows of its table."""

    def __init__(self, view: ReportView, report: Report, chart: ChartOf) -> None:
        self.title, self.measure, self.behind = chart.title, chart.measure, chart.behind
        self.view = view
        self.id = f"{chart.behind}-{chart.measure}" if chart.behind else chart.measure
        self.label = chart.label or view.labels[chart.measure]
        self.behind_label = view.labels[chart.behind] if chart.behind else ""
        self.is_duration = _kind(report, chart.measure) == "duration" and not chart.behind
        self.unit = _unit(report, chart.measure)
        self.rows = [
            (bucket, _of(bucket.figures, chart.measure), _of(bucket.figures, chart.behind) if chart.behind else None)
            for bucket in report.buckets
        ]
        self.has_values = any(figure.count or (behind and behind.count) for _bucket, figure, behind in self.rows)
        self.has_few = self.is_duration and any(0 < figure.count < FEW for _bucket, figure, _behind in self.rows)
        self.scale, self.axis = self._axis()
        self.svg = self._svg()

    def _axis(self) -> tuple[float, str]:
        """By how much values are divided, and the unit of the axis."""
        if not self.is_duration:
            return 1, ""
        if self.unit == "days":
            return 1, _("days")
        most = max((figure.p90 or 0 for _bucket, figure, _behind in self.rows), default=0)
        if most >= 4 * 1440:
            return 1440, _("days")
        return (60, _("hours")) if most >= 240 else (1, _("minutes"))

    def _svg(self) -> Markup:
        months, marks = [], []
        step = max(len(self.rows) // 6, 1)
        for index, (bucket, figure, behind) in enumerate(self.rows):
            name = month_name(bucket.starts_on)
            if self.is_duration:
                value = None if figure.median is None else figure.median / self.scale
                before = None if figure.p90 is None else figure.p90 / self.scale
                estimated = value or 0.0 if figure.count < FEW else 0.0
                months.append(charts.Month(f"{name}: {self.words(figure)}", value or 0.0, estimated, before))
            else:
                before = behind.count if behind else None
                label = f"{name}: {self.label} {figure.count:,}"
                label += f", {self.behind_label} {behind.count:,}" if behind else ""
                months.append(charts.Month(label, figure.count, 0.0, before))
            if index % step == 0:
                has_year = bucket.starts_on.month == 1 or index == 0
                marks.append((index, f"{bucket.starts_on:%b %Y}" if has_year else f"{bucket.starts_on:%b}"))
        return charts.consumption(months, self.description, self.axis, marks, CHART_WIDTH)

    def words(self, figure: ReportFigure) -> str:
        if figure.median is None:
            return _("no records")
        words = _("median %(median)s, 9 of 10 within %(p90)s, %(records)s") % {
            "median": length(figure.median, self.unit), "p90": length(figure.p90, self.unit),
            "records": records(self.view, figure),
        }  # fmt: skip
        return words if figure.count >= FEW else f"{words} ({_('few records')})"

    @property
    def description(self) -> str:
        """The chart for those who hear it."""
        if not self.rows or not self.has_values:
            return _("%(title)s: nothing in the period.") % {"title": self.title}
        bucket, figure, _behind = self.rows[-1]
        last = self.words(figure) if self.is_duration else f"{figure.count:,}"
        return _("%(title)s by month. %(month)s: %(last)s. The table below has each month.") % {
            "title": self.title, "month": month_name(bucket.starts_on), "last": last,
        }  # fmt: skip
