"""A report as JSON, the same for every kind of records."""

from __future__ import annotations

import datetime
from typing import Literal

import msgspec


class ReportMeasure(msgspec.Struct, frozen=True, gc=False):
    """A measure of a report."""

    name: str
    """The measure's name, for example first_response."""
    kind: Literal["count", "duration", "level"]
    """A count is of the records of the period, and a duration measures each of them, too. A level is how many there are
    at the end of the period, such as a backlog."""
    unit: str
    """What is counted, or the unit of a duration: `minutes` or `days`. For example minutes."""
    definition: str
    """What it says, in a sentence."""


class ReportFigure(msgspec.Struct, frozen=True, gc=False):
    """What a measure was in a period."""

    measure: str
    """The name of one of `measures`, for example first_response."""
    count: int
    """How many records the figure is of; of a level, how many there are at the end of the period. For example 42."""
    median: int | None
    """The duration that half of the records do not exceed, in the measure's unit; null if the measure is no duration or
    there are no records. Up to 64 it is exact, above to within 2 %. For example 95."""
    p90: int | None
    """The duration that nine of ten records do not exceed, as `median`. For example 1440."""


class ReportPeriod(msgspec.Struct, frozen=True, gc=False):
    """The figures of a month or a day."""

    starts_on: datetime.date
    """Its first day, for example 2026-03-01."""
    figures: list[ReportFigure]
    """A figure of each measure, in their order."""


class ReportGroup(msgspec.Struct, frozen=True, gc=False):
    """The figures of a group of records in the whole period."""

    entity_id: int | None
    """The record that the group is named after, such as the property; null if the group has a value alone. For example
    7."""
    name: str | None
    """The name of that record, or the value that the group's records share; null for records without one. For example
    Alder Court."""
    figures: list[ReportFigure]
    """A figure of each measure, in their order."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """Figures of a period, in all, by month or day, and by group."""

    name: str
    """The report, as in its path, for example tickets."""
    from_month: str
    """The first month of the period, for example 2026-01."""
    to_month: str
    """The last month of the period, for example 2026-03."""
    timezone: str
    """The company's timezone, in which days and months begin. For example America/Chicago."""
    property_id: int | None
    """The property whose records alone count; null for all. For example 7."""
    bucket: Literal["day", "month"]
    """The length of `buckets`."""
    group_by: str | None
    """What `groups` have in common, for example category; null without groups."""
    is_complete: bool
    """False while figures of older records are still being made, such as after an upgrade."""
    measures: list[ReportMeasure]
    """What each figure says."""
    total: list[ReportFigure]
    """The figures of the whole period."""
    buckets: list[ReportPeriod]
    """The figures of each month or day that has begun, ascending."""
    groups: list[ReportGroup]
    """The groups, at most 100, those with the most records first."""
    groups_left_out: int
    """How many more groups have figures. For example 0."""


COLUMNS = ("part", "starts_on", "entity_id", "group", "measure", "unit", "count", "median", "p90")
"""Of a report as a table."""


def rows_of(report: Report) -> list[dict[str, object]]:
    """A report as a table with a row for each figure: of the total, of each month or day, and of each group."""
    units = {measure.name: measure.unit for measure in report.measures}
    parts: list[tuple[str, datetime.date | None, int | None, str | None, list[ReportFigure]]] = [
        ("total", None, None, None, report.total),
        *((report.bucket, bucket.starts_on, None, None, bucket.figures) for bucket in report.buckets),
        *((report.group_by or "", None, group.entity_id, group.name, group.figures) for group in report.groups),
    ]
    return [
        {
            "part": part,
            "starts_on": starts_on and starts_on.isoformat(),
            "entity_id": entity_id,
            "group": name,
            "measure": figure.measure,
            "unit": units[figure.measure],
            "count": figure.count,
            "median": figure.median,
            "p90": figure.p90,
        }
        for part, starts_on, entity_id, name, figures in parts
        for figure in figures
    ]
