"""Answers about reports: a year of figures, with months that have few records or none."""

from __future__ import annotations

import datetime
import json
from typing import Any

from chassis.auth.identity import Identity
from makeready.catalog.v1 import inspection_reports_pb2 as inspections_pb
from makeready.common.v1.documents_pb2 import Document
from makeready.occupancy.v1 import turn_reports_pb2 as turns_pb
from makeready.tickets.v1 import ticket_reports_pb2 as pb

MEASURES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "tickets": (
        ("opened", "count", "tickets"),
        ("first_response", "duration", "minutes"),
        ("completed", "duration", "minutes"),
        ("cancelled", "count", "tickets"),
        ("reopened", "count", "times"),
        ("on_hold", "duration", "minutes"),
        ("backlog", "level", "tickets"),
    ),
    "turns": (
        ("moved_out", "count", "turns"),
        ("ready", "duration", "days"),
        ("notice_to_ready", "duration", "days"),
        ("moved_in", "duration", "days"),
        ("ready_to_move_in", "duration", "days"),
        ("not_ready", "duration", "days"),
        ("down", "duration", "days"),
        ("task_completed", "duration", "days"),
        ("vacant", "level", "units"),
    ),
    "vendors": (
        ("assigned", "count", "tickets"),
        ("vendor_response", "duration", "minutes"),
        ("vendor_completion", "duration", "minutes"),
        ("vendor_reopened", "count", "times"),
        ("vendor_on_hold", "duration", "minutes"),
        ("vendor_backlog", "level", "tickets"),
    ),
    "inspections": (
        ("inspected", "count", "inspections"),
        ("inspections_passed", "count", "inspections"),
        ("inspections_failed", "count", "inspections"),
        ("items", "count", "items"),
        ("items_failed", "count", "items"),
    ),
}
HOSTILE_NAME = "\"><script>alert(1)</script>'{{7*7}}"


def _months() -> list[datetime.date]:
    month = datetime.datetime.now(datetime.UTC).date().replace(day=1)
    months = [month]
    while len(months) < 12:
        months.append((months[-1] - datetime.timedelta(days=1)).replace(day=1))
    return months[::-1]


def _figures(report: str, scale: int) -> list[dict[str, Any]]:
    return [
        {
            "measure": name,
            "count": scale * (1 + place),
            "median": 50 * scale if kind == "duration" and scale else None,
            "p90": 700 * scale if kind == "duration" and scale else None,
        }
        for place, (name, kind, _unit) in enumerate(MEASURES[report])
    ]


def _report(name: str, dimensions: dict[int, str], who: Identity, request: Any) -> bytes:
    is_theirs = who.company_id == 1
    months = _months()
    dimension = dimensions[request.group_by] if request.group_by else None
    groups = [
        {"entity_id": 1, "name": "Alder Court", "figures": _figures(name, 4)},
        {"entity_id": 2, "name": HOSTILE_NAME, "figures": _figures(name, 1)},
        {"entity_id": None, "name": None, "figures": _figures(name, 0)},
    ]
    report = {
        "name": name,
        "from_month": f"{months[0]:%Y-%m}",
        "to_month": f"{months[-1]:%Y-%m}",
        "timezone": "America/Chicago",
        "property_id": request.property_id if request.HasField("property_id") else None,
        "bucket": "month",
        "group_by": dimension,
        "is_complete": False,
        "measures": [
            {"name": measure, "kind": kind, "unit": unit, "definition": f"What {measure} says."}
            for measure, kind, unit in MEASURES[name]
        ],
        "total": _figures(name, 30 if is_theirs else 0),
        "buckets": [
            {"starts_on": month.isoformat(), "figures": _figures(name, place % 5 if is_theirs else 0)}
            for place, month in enumerate(months)
        ],
        "groups": groups if dimension and is_theirs else [],
        "groups_left_out": 3 if is_theirs else 0,
    }
    return json.dumps(report).encode()


def _tickets(request: pb.GetTicketReportRequest, who: Identity) -> pb.GetTicketReportResponse:
    names = {1: "property", 2: "category", 3: "priority", 4: "assignee", 5: "vendor", 6: "source"}
    return pb.GetTicketReportResponse(document=Document(json=_report("tickets", names, who, request)))


def _vendors(request: pb.GetVendorReportRequest, who: Identity) -> pb.GetVendorReportResponse:
    names = {1: "vendor", 2: "property", 3: "category", 4: "priority"}
    return pb.GetVendorReportResponse(document=Document(json=_report("vendors", names, who, request)))


def _turns(request: turns_pb.GetTurnReportRequest, who: Identity) -> turns_pb.GetTurnReportResponse:
    names = {1: "property", 2: "task_type"}
    return turns_pb.GetTurnReportResponse(document=Document(json=_report("turns", names, who, request)))


def _inspections(
    request: inspections_pb.GetInspectionReportRequest, who: Identity
) -> inspections_pb.GetInspectionReportResponse:
    names = {1: "property", 2: "type", 3: "item"}
    document = Document(json=_report("inspections", names, who, request))
    return inspections_pb.GetInspectionReportResponse(document=document)


def report_answers() -> dict[str, Any]:
    return {
        "occupancy.TurnReportsService/GetTurnReport": _turns,
        "tickets.TicketReportsService/GetTicketReport": _tickets,
        "tickets.TicketReportsService/GetVendorReport": _vendors,
        "catalog.InspectionReportsService/GetInspectionReport": _inspections,
    }
