"""The reports as people see them: their charts, and the questions that lead to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.kit.texts import _, ngettext
from makeready.catalog.v1 import inspection_reports_pb2 as inspections_pb
from makeready.occupancy.v1 import turn_reports_pb2 as turns_pb
from makeready.tickets.v1 import ticket_reports_pb2 as tickets_pb


def tickets(count: int) -> str:
    return ngettext("%(num)s ticket", "%(num)s tickets", count) % {"num": f"{count:,}"}


def turns(count: int) -> str:
    return ngettext("%(num)s turn", "%(num)s turns", count) % {"num": f"{count:,}"}


def turn_tasks(count: int) -> str:
    return ngettext("%(num)s task", "%(num)s tasks", count) % {"num": f"{count:,}"}


@dataclass(frozen=True, slots=True)
class ChartOf:
    """One chart of a report: a measure in front, and behind it another one, if there is one. Of a duration the median
    stands in front of the 90th percentile."""

    title: str
    measure: str
    behind: str = ""
    label: str = ""
    """Of the measure in front, if its name does not say what is counted."""


@dataclass(frozen=True, slots=True)
class ReportView:
    """A report as a page. rpc, request: from which it comes. labels: the names of measures; groups: those of what the
    figures can be grouped by, the first one at first. columns: the measures of the table of groups, a duration as its
    median. headlines: the measures of the whole period. dated: the measure whose records a list shows by their day;
    present: the one whose records a list shows as they are now. records: how many there are behind a duration, in
    words, by measure; tickets where it is not said. sorts: by which measure the groups are sorted at first."""

    name: str
    title: str
    lead: str
    rpc: str
    request: type[Any]
    labels: Mapping[str, str]
    charts: Sequence[ChartOf]
    groups: Mapping[str, str]
    columns: Sequence[str]
    headlines: Sequence[str]
    dated: str = ""
    present: str = ""
    records: Mapping[str, Callable[[int], str]] = field(default_factory=dict)
    sorts: Mapping[str, str] = field(default_factory=dict)

    @property
    def groups_in_property(self) -> str:
        """What the figures of one property are grouped by, if nothing is chosen."""
        return next(name for name in self.groups if name != "property")

    @property
    def path(self) -> str:
        return f"/reports/{self.name}"


TICKETS = ReportView(
    "tickets",
    _("Tickets"),
    _("How much work comes in, how soon it is answered and done, and what is left."),
    "tickets.TicketReportsService/GetTicketReport",
    tickets_pb.GetTicketReportRequest,
    {
        "opened": _("Opened"),
        "first_response": _("First response"),
        "completed": _("Completion"),
        "cancelled": _("Cancelled"),
        "reopened": _("Reopened"),
        "on_hold": _("Time on hold"),
        "backlog": _("Backlog"),
    },
    (
        ChartOf(_("Opened and completed"), "completed", "opened", _("Completed")),
        ChartOf(_("Backlog"), "backlog"),
        ChartOf(_("Time to first response"), "first_response"),
        ChartOf(_("Time to completion"), "completed"),
        ChartOf(_("Reopened"), "reopened"),
        ChartOf(_("Time on hold"), "on_hold"),
    ),
    {
        "property": _("Property"),
        "category": _("Category"),
        "priority": _("Priority"),
        "assignee": _("Assigned to"),
        "vendor": _("Vendor"),
        "source": _("Reported by"),
    },
    ("opened", "first_response", "completed", "reopened", "on_hold", "backlog"),
    ("opened", "first_response", "completed", "reopened", "backlog"),
    dated="opened",
    present="backlog",
)
VENDORS = ReportView(
    "vendors",
    _("Vendors"),
    _("How soon vendors respond and complete their tickets, and how long these are on hold."),
    "tickets.TicketReportsService/GetVendorReport",
    tickets_pb.GetVendorReportRequest,
    {
        "assigned": _("Assigned"),
        "vendor_response": _("Response"),
        "vendor_completion": _("Completion"),
        "vendor_reopened": _("Reopened"),
        "vendor_on_hold": _("Time on hold"),
        "vendor_backlog": _("Backlog"),
    },
    (
        ChartOf(_("Assigned and completed"), "vendor_completion", "assigned", _("Completed")),
        ChartOf(_("Backlog"), "vendor_backlog"),
        ChartOf(_("Time to response"), "vendor_response"),
        ChartOf(_("Time to completion"), "vendor_completion"),
        ChartOf(_("Reopened"), "vendor_reopened"),
        ChartOf(_("Time on hold"), "vendor_on_hold"),
    ),
    {"vendor": _("Vendor"), "property": _("Property"), "category": _("Category"), "priority": _("Priority")},
    ("assigned", "vendor_response", "vendor_completion", "vendor_reopened", "vendor_on_hold", "vendor_backlog"),
    ("assigned", "vendor_response", "vendor_completion", "vendor_backlog"),
    present="vendor_backlog",
)
TURNS = ReportView(
    "turns",
    _("Turns"),
    _("How many days units take from the move-out to ready and to the next move-in, and where the days go."),
    "occupancy.TurnReportsService/GetTurnReport",
    turns_pb.GetTurnReportRequest,
    {
        "moved_out": _("Moved out"),
        "ready": _("Move-out to ready"),
        "notice_to_ready": _("Notice to ready"),
        "moved_in": _("Move-out to move-in"),
        "ready_to_move_in": _("Ready to move-in"),
        "not_ready": _("Vacant Not Ready"),
        "down": _("Down"),
        "task_completed": _("Task completed"),
        "vacant": _("Vacant units"),
    },
    (
        ChartOf(_("Moved out and moved in"), "moved_in", "moved_out", _("Moved in")),
        ChartOf(_("Vacant units"), "vacant"),
        ChartOf(_("Days from move-out to ready"), "ready"),
        ChartOf(_("Days from move-out to move-in"), "moved_in"),
        ChartOf(_("Days from notice to ready"), "notice_to_ready"),
        ChartOf(_("Days from ready to move-in"), "ready_to_move_in"),
        ChartOf(_("Days Vacant Not Ready"), "not_ready"),
        ChartOf(_("Days from move-out to a completed task"), "task_completed"),
    ),
    {"property": _("Property"), "task_type": _("Task")},
    ("moved_out", "ready", "moved_in", "ready_to_move_in", "task_completed", "vacant"),
    ("moved_out", "ready", "notice_to_ready", "moved_in", "ready_to_move_in", "vacant"),
    records={
        "ready": turns,
        "notice_to_ready": turns,
        "moved_in": turns,
        "ready_to_move_in": turns,
        "not_ready": turns,
        "down": turns,
        "task_completed": turn_tasks,
    },
)
INSPECTIONS = ReportView(
    "inspections",
    _("Inspections"),
    _("How many inspections pass and fail, and which items of their checklists fail most."),
    "catalog.InspectionReportsService/GetInspectionReport",
    inspections_pb.GetInspectionReportRequest,
    {
        "inspected": _("Completed"),
        "inspections_passed": _("Passed"),
        "inspections_failed": _("Failed"),
        "items": _("Items inspected"),
        "items_failed": _("Items failed"),
    },
    (
        ChartOf(_("Completed and failed"), "inspections_failed", "inspected", _("Failed")),
        ChartOf(_("Items inspected and failed"), "items_failed", "items", _("Items failed")),
    ),
    {"property": _("Property"), "type": _("Type"), "item": _("Checklist item")},
    ("inspected", "inspections_passed", "inspections_failed", "items", "items_failed"),
    ("inspected", "inspections_passed", "inspections_failed", "items_failed"),
    sorts={"item": "items_failed"},
)
REPORTS = (TICKETS, TURNS, INSPECTIONS, VENDORS)

QUESTIONS = (
    (_("Which property has the most work?"), "/reports/tickets?group_by=property#groups"),
    (_("What kind of work is it?"), "/reports/tickets?group_by=category#groups"),
    (_("How soon do we respond?"), "/reports/tickets#first_response"),
    (_("How long does work take?"), "/reports/tickets#completed"),
    (_("Is the backlog growing?"), "/reports/tickets#backlog"),
    (_("Who has the most open work?"), "/reports/tickets?group_by=assignee&sort=backlog#groups"),
    (_("What work comes back?"), "/reports/tickets?group_by=category&sort=reopened#groups"),
    (_("Which vendor is slow?"), "/reports/vendors?group_by=vendor&sort=vendor_completion#groups"),
    (_("Which vendor has the most open work?"), "/reports/vendors?group_by=vendor&sort=vendor_backlog#groups"),
    (_("How long from notice to ready?"), "/reports/turns#notice_to_ready"),
    (_("Where are units vacant longest?"), "/reports/turns?group_by=property&sort=moved_in#groups"),
    (_("Which make-ready task holds units up?"), "/reports/turns?group_by=task_type&sort=task_completed#groups"),
    (_("Which inspections fail?"), "/reports/inspections?group_by=type&sort=inspections_failed#groups"),
    (_("What fails most often?"), "/reports/inspections?group_by=item&sort=items_failed#groups"),
    (_("What is overdue?"), "/tickets?view=waiting"),
)
"""What managers ask, and where the answer stands."""
