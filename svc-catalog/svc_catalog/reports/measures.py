"""The measures of reports about inspections, each with what it says."""

from __future__ import annotations

from chassis.reports.reading import Measure, ReportDefinition

COMPLETED, PASSED, FAILED = "inspected", "inspections_passed", "inspections_failed"
ITEMS, ITEMS_FAILED = "items", "items_failed"
TYPE, ITEM = "type", "item"

INSPECTIONS = ReportDefinition(
    "inspections",
    (
        Measure(COMPLETED, "count", "inspections", "Inspections completed in the period."),
        Measure(PASSED, "count", "inspections", "Inspections completed in the period that passed."),
        Measure(FAILED, "count", "inspections", "Inspections completed in the period that failed."),
        Measure(ITEMS, "count", "items", "Items of the checklists of these inspections that passed or failed."),
        Measure(ITEMS_FAILED, "count", "items", "Items of the checklists of these inspections that failed."),
    ),
    ranked_by=COMPLETED,
    dimensions={1: "property", 2: TYPE, 3: ITEM},
    # Of an item there are no inspections, but how often it failed.
    ranks={ITEM: ITEMS_FAILED},
)
