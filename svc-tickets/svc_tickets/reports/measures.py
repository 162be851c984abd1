"""The measures of reports about tickets and vendors, each with what it says."""

from __future__ import annotations

from chassis.reports.reading import Measure, ReportDefinition

OPENED, FIRST_RESPONSE, COMPLETED, CANCELLED = "opened", "first_response", "completed", "cancelled"
REOPENED, ON_HOLD, BACKLOG = "reopened", "on_hold", "backlog"
ASSIGNED, VENDOR_RESPONSE, VENDOR_COMPLETION = "assigned", "vendor_response", "vendor_completion"
VENDOR_ON_HOLD, VENDOR_REOPENED, VENDOR_BACKLOG = "vendor_on_hold", "vendor_reopened", "vendor_backlog"

TICKETS = ReportDefinition(
    "tickets",
    (
        Measure(OPENED, "count", "tickets", "Tickets opened in the period."),
        Measure(
            FIRST_RESPONSE, "duration", "minutes",
            "From opening to the first comment or photo of staff or a vendor, or the first change of status. Tickets "
            "that staff or an inspection opened have none, unless a resident asked staff for them.",
        ),
        Measure(
            COMPLETED, "duration", "minutes",
            "From opening to completion, of tickets that are completed. Of a reopened one the last completion counts.",
        ),
        Measure(CANCELLED, "count", "tickets", "Tickets cancelled in the period that are still cancelled."),
        Measure(REOPENED, "count", "times", "How often a completed or cancelled ticket became open again."),
        Measure(
            ON_HOLD, "duration", "minutes",
            "How long completed and cancelled tickets had been On Hold, of those that ever were.",
        ),
        Measure(BACKLOG, "level", "tickets", "Tickets open at the end of the period: Open, In Progress or On Hold."),
    ),
    ranked_by=OPENED,
    dimensions={1: "property", 2: "category", 3: "priority", 4: "assignee", 5: "vendor", 6: "source"},
    named=frozenset({"property", "assignee", "vendor"}),
)  # fmt: skip
VENDORS = ReportDefinition(
    "vendors",
    (
        Measure(ASSIGNED, "count", "tickets", "Tickets assigned to their present vendor in the period."),
        Measure(
            VENDOR_RESPONSE, "duration", "minutes",
            "From the assignment to the vendor's first comment or photo, or the next change of status.",
        ),
        Measure(
            VENDOR_COMPLETION, "duration", "minutes",
            "From the assignment to completion, of tickets that are completed.",
        ),
        Measure(VENDOR_REOPENED, "count", "times", "How often a closed ticket of the vendor became open again."),
        Measure(
            VENDOR_ON_HOLD, "duration", "minutes",
            "How long closed tickets of the vendor had been On Hold, of those that ever were.",
        ),
        Measure(VENDOR_BACKLOG, "level", "tickets", "Tickets of the vendor that are open at the end of the period."),
    ),
    ranked_by=ASSIGNED,
    dimensions={1: "vendor", 2: "property", 3: "category", 4: "priority"},
    named=frozenset({"property", "vendor"}),
)  # fmt: skip
