"""A report of a period, from stored figures: it costs the same however many records there are.

The period is whole months. The report has its figures in all, by month or by day, and by group. A report reads rows of
`report_figure` alone: of each measure at most one a month, or a day, and GROUPS_MAX groups' months.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import sqlalchemy as sa

from chassis.auth.identity import Call, company_id
from chassis.db.database import Connection, Database
from chassis.db.statements import TEXTS, Statement, param
from chassis.refusals import Refusal, invalid_request
from chassis.reports import facts, histograms
from chassis.reports.facts import ALL, DAY, EVERYWHERE, MONTH, PROPERTY
from chassis.reports.keeping import FigureKeeper
from chassis.reports.records import Report, ReportFigure, ReportGroup, ReportMeasure, ReportPeriod
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import local_date
from makeready.common.v1 import reports_pb2
from makeready.common.v1.documents_pb2 import Document

MONTHS_DEFAULT, MONTHS_MAX, MONTHS_OF_DAYS_MAX = 12, 36, 3
GROUPS_MAX = 100
Names = Callable[[Connection, int, str, Sequence[int]], Awaitable[Mapping[int, str]]]
"""The names of a company's records by id: for the dimension, such as "vendor"."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a report counts or measures. definition: one sentence, for readers.

    A count is of the records of the period, and a duration measures each of them, too. A level is how many there are at
    the end of the period, such as a backlog.
    """

    name: str
    kind: Literal["count", "duration", "level"]
    unit: str
    definition: str


@dataclass(frozen=True)
class ReportDefinition:
    """A report of a context.

    ranked_by: the measure by whose count groups are chosen and ordered; ranks: another one, for some dimensions.
    dimensions: those by which people may group, with the enum's number; named: those whose values are ids of records
    with names.
    """

    name: str
    measures: Sequence[Measure]
    ranked_by: str
    dimensions: Mapping[int, str]
    named: frozenset[str] = field(default=frozenset({PROPERTY}))
    ranks: Mapping[str, str] = field(default_factory=dict)

    def rank_of(self, dimension: str) -> str:
        return self.ranks.get(dimension, self.ranked_by)

    def names(self, *kinds: str) -> list[str]:
        return [measure.name for measure in self.measures if measure.kind in kinds]


@dataclass(frozen=True, slots=True)
class Period:
    """The months from the first to the last one; `until` is the day after them."""

    since: datetime.date
    until: datetime.date

    @property
    def months(self) -> list[datetime.date]:
        months = [self.since]
        while (following := next_month(months[-1])) < self.until:
            months.append(following)
        return months

    def days(self, today: datetime.date) -> list[datetime.date]:
        """Its days until today."""
        count = (min(self.until, today + datetime.timedelta(days=1)) - self.since).days
        return [self.since + datetime.timedelta(days=n) for n in range(max(count, 0))]


def next_month(month: datetime.date) -> datetime.date:
    return (month.replace(day=1) + datetime.timedelta(days=32)).replace(day=1)


def months_before(month: datetime.date, count: int) -> datetime.date:
    months = month.year * 12 + month.month - 1 - count
    return datetime.date(months // 12, months % 12 + 1, 1)


def period_of(from_month: str, to_month: str, today: datetime.date, *, by_day: bool) -> Period:
    """The period that a request asks for: months as 2026-03, empty ones are chosen. Raises Refusal 400 and 422."""
    longest = MONTHS_OF_DAYS_MAX if by_day else MONTHS_MAX
    last = _month("to_month", to_month) if to_month else None
    first = _month("from_month", from_month) if from_month else None
    count = 1 if by_day else MONTHS_DEFAULT
    if last is None:
        last = today.replace(day=1) if first is None else min(today.replace(day=1), months_before(first, 1 - longest))
        last = max(last, first or last)
    if first is None:
        first = months_before(last, count - 1)
    if first > last:
        raise invalid_request("from_month must not be after to_month.", "from_month", 422)
    if months_before(last, longest - 1) > first:
        grain = DAY if by_day else MONTH
        raise invalid_request(f"A report by {grain} covers {longest} months at most.", "from_month", 422)
    return Period(first, next_month(last))


def _month(name: str, text: str) -> datetime.date:
    try:
        month = datetime.datetime.strptime(text, "%Y-%m").date()
        if text != month.strftime("%Y-%m") or not 1990 <= month.year <= 2200:
            raise ValueError
    except ValueError:
        raise invalid_request(f"{name} must be a month of the years 1990 to 2200, such as 2026-03.", name) from None
    return month


class ReportReader:
    """Makes reports from the figures of a context."""

    def __init__(
        self,
        database: Database,
        figure: sa.Table,
        company: sa.Table,
        clocks: CompanyClocks,
        names: Names,
        keepers: Sequence[FigureKeeper],
    ) -> None:
        """company: the replica of the companies. names: also of the dimension "property"."""
        self._database, self._clocks, self._names, self._keepers = database, clocks, names, keepers
        self._statements = ReportStatements(figure)
        self._zone = Statement(sa.select(company.c.timezone).where(company.c.id == param("company_id", sa.BigInteger)))

    async def document(self, report: ReportDefinition, request: Any, call: Call) -> Document:
        """The report that a request asks for: its fields are from_month, to_month, bucket, group_by, property_id.
        Raises Refusal 400, 404 and 422."""
        company = company_id(call)
        by_day = request.bucket == reports_pb2.REPORT_BUCKET_DAY
        dimension = report.dimensions[request.group_by] if request.group_by else ""
        now = await self._clocks.now(call)
        async with self._database.transaction(REPEATABLE, writes=False) as connection:
            zone = await connection.value(self._zone, company_id=company) or "UTC"
            today = local_date(now, zone)
            period = period_of(request.from_month, request.to_month, today, by_day=by_day)
            property_id = request.property_id if request.HasField("property_id") else None
            if property_id is not None and property_id not in await self._names(
                connection, company, PROPERTY, [property_id]
            ):
                raise Refusal(404, "not_found", "No property has that id.", "property_id")
            read = _Reading(self._statements, connection, report, company, property_id or EVERYWHERE, period)
            total, buckets = await read.series(period.days(today) if by_day else period.months, today, by_day=by_day)
            groups: list[ReportGroup] = []
            left_out = 0
            if dimension:
                groups, left_out = await read.groups(dimension, self._names)
        document = Report(
            name=report.name,
            from_month=f"{period.since:%Y-%m}",
            to_month=f"{period.months[-1]:%Y-%m}",
            timezone=zone,
            property_id=property_id,
            bucket="day" if by_day else "month",
            group_by=dimension or None,
            is_complete=not any(keeper.is_filling for keeper in self._keepers),
            measures=[ReportMeasure(part.name, part.kind, part.unit, part.definition) for part in report.measures],
            total=total,
            buckets=buckets,
            groups=groups,
            groups_left_out=left_out,
        )
        return Document(json=msgspec.json.encode(document))


REPEATABLE = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"


class ReportStatements:
    """Each reads figures of a company, a grain, a dimension and a property, of some measures."""

    def __init__(self, figure: sa.Table) -> None:
        c = figure.c
        base = [
            c.company_id == param("company_id", sa.BigInteger),
            c.grain == param("grain", sa.Text),
            c.dimension == param("dimension", sa.Text),
            c.property_id == param("property_id", sa.BigInteger),
            c.measure == sa.func.any(param("measures", TEXTS)),
        ]
        since, until = param("since", sa.Date), param("until", sa.Date)
        inside = [*base, c.starts_on >= since, c.starts_on < until]
        before = [*base, c.starts_on < until]
        in_groups = c.value == sa.func.any(param("values", TEXTS))
        self.series = Statement(sa.select(c.measure, c.starts_on, c.amount, c.histogram).where(*inside))
        amount = sa.func.sum(c.amount).cast(sa.BigInteger)
        self.levels = Statement(sa.select(c.measure, amount).where(*before).group_by(c.measure))
        self.values = Statement(sa.select(c.value, amount.label("amount")).where(*inside).group_by(c.value))
        self.level_values = Statement(
            sa.select(c.value, amount.label("amount")).where(*before).group_by(c.value).having(amount != sa.text("0"))
        )
        self.groups = Statement(sa.select(c.measure, c.value, c.amount, c.histogram).where(*inside, in_groups))
        self.group_levels = Statement(
            sa.select(c.measure, c.value, amount).where(*before, in_groups).group_by(c.measure, c.value)
        )


Amounts = dict[str, facts.Figure]


class _Reading:
    """The figures of one report."""

    def __init__(
        self,
        statements: ReportStatements,
        connection: Connection,
        report: ReportDefinition,
        company: int,
        property_id: int,
        period: Period,
    ) -> None:
        self._statements, self._connection, self._report, self._period = statements, connection, report, period
        self._key = {"company_id": company, "property_id": property_id}
        self._company = company
        self._counted, self._levels = report.names("count", "duration"), report.names("level")

    async def series(
        self, starts: Sequence[datetime.date], today: datetime.date, *, by_day: bool
    ) -> tuple[list[ReportFigure], list[ReportPeriod]]:
        """The figures of the whole period, and of each bucket that has begun."""
        period, names = self._period, [*self._counted, *self._levels]
        key = {**self._key, "dimension": ALL, "measures": names}
        rows = await self._connection.rows(
            self._statements.series, **key, grain=DAY if by_day else MONTH, since=period.since, until=period.until
        )
        before = await self._connection.rows(
            self._statements.levels, **key | {"measures": self._levels}, grain=MONTH, until=period.since
        )
        levels = {row[0]: row[1] for row in before}
        by_start: dict[datetime.date, Amounts] = defaultdict(lambda: defaultdict(facts.Figure))
        for row in rows:
            by_start[row["starts_on"]][row["measure"]].add(row["amount"], histograms.read(row["histogram"]))
        total: Amounts = defaultdict(facts.Figure)
        buckets = []
        for start in starts:
            amounts = by_start[start]
            for name in self._counted:
                total[name].add(amounts[name].amount, amounts[name].histogram)
            for name in self._levels:
                levels[name] = amounts[name].amount = levels.get(name, 0) + amounts[name].amount
            if start <= today:
                buckets.append(ReportPeriod(start, self._figures(amounts)))
        for name in self._levels:
            total[name].amount = levels.get(name, 0)
        return self._figures(total), buckets

    async def groups(self, dimension: str, names: Names) -> tuple[list[ReportGroup], int]:
        """The figures of the groups with the most records, and how many groups are left out."""
        period = self._period
        key = {**self._key, "grain": MONTH, "dimension": dimension, "until": period.until}
        ranked = await self._connection.rows(
            self._statements.values,
            **key,
            since=period.since,
            measures=[self._report.ranks.get(dimension, self._report.ranked_by)],
        )
        ranks = {row["value"]: row["amount"] for row in ranked}
        if self._levels:
            for row in await self._connection.rows(self._statements.level_values, **key, measures=self._levels):
                ranks.setdefault(row["value"], 0)
        chosen = sorted(ranks, key=lambda value: (-ranks[value], value))[:GROUPS_MAX]
        amounts: dict[str, Amounts] = defaultdict(lambda: defaultdict(facts.Figure))
        for row in await self._connection.rows(
            self._statements.groups, **key, since=period.since, measures=self._counted, values=chosen
        ):
            amounts[row["value"]][row["measure"]].add(row["amount"], histograms.read(row["histogram"]))
        for measure, value, amount in await self._connection.rows(
            self._statements.group_levels, **key, measures=self._levels, values=chosen
        ):
            amounts[value][measure].amount = amount
        is_named = dimension in self._report.named
        ids = [int(value) for value in chosen if value and is_named]
        found_names = await names(self._connection, self._company, dimension, ids) if ids else {}
        groups = []
        for value in chosen:
            entity_id = int(value) if value and is_named else None
            name = value if entity_id is None else found_names.get(entity_id, "")
            groups.append(ReportGroup(entity_id, name or None, self._figures(amounts[value])))
        return groups, len(ranks) - len(chosen)

    def _figures(self, amounts: Amounts) -> list[ReportFigure]:
        figures = []
        for measure in self._report.measures:
            amount = amounts[measure.name]
            is_duration = measure.kind == "duration"
            figures.append(
                ReportFigure(
                    measure.name,
                    amount.amount,
                    histograms.percentile(amount.histogram, 0.5) if is_duration else None,
                    histograms.percentile(amount.histogram, 0.9) if is_duration else None,
                )
            )
        return figures
