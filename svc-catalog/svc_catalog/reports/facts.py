"""What an inspection adds to the figures of reports. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from chassis.reports.facts import ALL, Fact, RecordFacts
from svc_catalog.reports import measures as m

DEFINITIONS = 1
"""To be raised with each change of what `facts_of` returns: all figures are then made anew."""


@dataclass(frozen=True, slots=True)
class CompletedInspection:
    """An inspection that was completed. labels, results: of its rows that passed or failed, in their order."""

    id: int
    state: str
    property_id: int
    inspection_type: str | None
    result: str | None
    completed_date: datetime.date
    labels: Sequence[str]
    results: Sequence[str]


def facts_of(inspection: CompletedInspection) -> list[RecordFacts]:
    """Those of the inspection, by its type, and those of each row, by its label as well."""
    day, kind = inspection.completed_date, inspection.inspection_type or ALL
    facts = [Fact(m.COMPLETED, day)]
    if inspection.result is not None:
        facts.append(Fact(m.PASSED if inspection.result == "passed" else m.FAILED, day))
    by_type = {m.TYPE: kind}
    rows = []
    for label, result in zip(inspection.labels, inspection.results, strict=True):
        of_row = [Fact(m.ITEMS, day)] + [Fact(m.ITEMS_FAILED, day)] * (result == "failed")
        rows.append(RecordFacts(inspection.property_id, by_type | {m.ITEM: label}, of_row))
    return [RecordFacts(inspection.property_id, by_type, facts), *rows]
