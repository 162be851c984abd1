"""Answers of svc-catalog about one company: vendors, inspections and notices."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from makeready.catalog.v1 import inspection_commands_pb2 as rows_pb
from makeready.catalog.v1 import inspection_details_pb2 as inspections_pb
from makeready.catalog.v1 import inspection_templates_pb2 as templates_pb
from makeready.catalog.v1 import inspections_pb2 as statuses_pb
from makeready.catalog.v1 import notices_pb2 as notices_pb
from makeready.catalog.v1 import vendor_details_pb2 as vendors_pb
from makeready.common.v1.documents_pb2 import Document

from .stubs import NOW, ago

HOSTILE = "\"><script>alert(1)</script>'{{7*7}}<img src=x onerror=alert(2)>"
SCHEDULED, IN_PROGRESS, COMPLETED = (
    statuses_pb.INSPECTION_STATUS_SCHEDULED,
    statuses_pb.INSPECTION_STATUS_IN_PROGRESS,
    statuses_pb.INSPECTION_STATUS_COMPLETED,
)


def day(number: int) -> str:
    return str(NOW.date() + datetime.timedelta(days=number))


def _vendor(vendor_id: int, name: str, state: int, days: int | None, **more: Any) -> vendors_pb.VendorDetails:
    values: dict[str, Any] = {
        "legal_name": name, "rating_count": 0, "is_active": True, "property_visibility": "all_properties",
        "onboarded_at": ago(days=700 + vendor_id), "insurance_tracked": state != 5, "source": "import", **more,
    }  # fmt: skip
    if days is not None:
        values["insurance_expires_on"] = day(days)
    return vendors_pb.VendorDetails(
        vendor_id=vendor_id, name=name, compliance_state=vendors_pb.ComplianceState.ValueType(state), **values
    )


def vendors() -> Sequence[vendors_pb.VendorDetails]:
    return [
        _vendor(1, "Casco Elevator", 3, -4, legal_name="Casco Bay Elevator Company, Inc.", on_hold=True,
                hold_reason="insurance_lapsed", held_at=ago(days=3), avg_rating=4.2, rating_count=31,
                website="https://casco.example/elevators", external_id="V-1007"),
        _vendor(2, "Northeast Plumbing Supply", 1, 214, avg_rating=4.8, rating_count=12),
        _vendor(3, HOSTILE, 2, 12, legal_name=HOSTILE, website=f"javascript:{HOSTILE}", external_id=HOSTILE,
                on_hold=True, hold_reason=HOSTILE, held_at=ago(hours=30)),
        _vendor(4, "漏水管理株式会社", 2, 0, avg_rating=3.9, rating_count=1),
        _vendor(5, "האחים כהן", 4, None),
        _vendor(6, "Müller Roofing", 5, None, is_active=False, retired_at=ago(days=20)),
        _vendor(7, "Old Mill Handyman", 1, 88, property_visibility="selected_properties"),
    ]  # fmt: skip


def _search_vendors(request: Any, who: Identity) -> Any:
    fitting = vendors() if who.company_id == 1 else []
    if request.HasField("external_id"):
        fitting = [vendor for vendor in fitting if vendor.external_id == request.external_id]
    if request.HasField("on_hold"):
        fitting = [vendor for vendor in fitting if vendor.on_hold == request.on_hold]
    if request.HasField("is_active"):
        fitting = [vendor for vendor in fitting if vendor.is_active == request.is_active]
    if request.HasField("insured_until"):
        fitting = [
            vendor
            for vendor in fitting
            if vendor.insurance_expires_on and vendor.insurance_expires_on <= request.insured_until
        ]
        fitting.sort(key=lambda vendor: vendor.insurance_expires_on)
    if request.words:
        fitting = [vendor for vendor in fitting if request.words.lower() in vendor.name.lower()]
    listed = fitting[: request.limit]
    return vendors_pb.SearchVendorsResponse(vendors=listed, next="9999-12-31.1" if len(fitting) > len(listed) else None)


def _get_vendor(request: Any, who: Identity) -> Any:
    for vendor in vendors():
        if vendor.vendor_id == request.vendor_id and who.company_id == 1:
            by = {1: "svc-catalog", 3: "administrator:2"}.get(vendor.vendor_id)
            return vendors_pb.GetVendorDetailsResponse(vendor=vendor, held_by=by)
    raise Refusal(404, "not_found", "The company has no vendor with that id; check the id.")


def _count_vendors(_request: Any, who: Identity) -> Any:
    if who.company_id != 1:
        return vendors_pb.CountVendorsResponse()
    return vendors_pb.CountVendorsResponse(active=6, on_hold=2, lapsed=1, ending=2, missing=1)


def _inspection(inspection_id: int, title: str, when: int | None, **more: Any) -> inspections_pb.InspectionDetails:
    values: dict[str, Any] = {
        "inspection_number": 40 + inspection_id, "inspection_type": "General", "status": SCHEDULED, "property_id": 1,
        "property_name": "Alder Court", "created_at": ago(days=60), "source": "administrator", **more,
    }  # fmt: skip
    if when is not None:
        values["scheduled_date"] = day(when)
    late = when is not None and when < 0 and values["status"] != COMPLETED
    return inspections_pb.InspectionDetails(inspection_id=inspection_id, title=title, late=late, **values)


def inspections() -> Sequence[inspections_pb.InspectionDetails]:
    ada: dict[str, Any] = {"assignee_id": 7, "assignee_name": "Nguyễn Thị Hồng Hạnh"}
    unit: dict[str, Any] = {"unit_id": 12, "unit_name": "Alder Court 102"}
    return [
        _inspection(1, "Fire alarm test, annual", -3, status=IN_PROGRESS, inspection_type="Fire Alarm",
                    is_compliance_inspection=True, compliance_type="NFPA 72", stale_announced_at=ago(days=2), **ada),
        _inspection(2, "Quarterly unit walk", -1, **unit),
        _inspection(3, HOSTILE, 0, inspection_type=HOSTILE, property_name=HOSTILE, unit_id=13, unit_name=HOSTILE,
                    assignee_id=9, assignee_name=HOSTILE, external_id=HOSTILE, compliance_type=HOSTILE,
                    is_compliance_inspection=True),
        _inspection(4, "Inspection du toit", 2, property_id=2, property_name="Résidence du Vieux-Port",
                    assignee_id=8, assignee_name="DeShawn Whitfield"),
        _inspection(5, "Pool opening", 2, property_id=3, property_name="Harbor Point Townhomes"),
        _inspection(6, "Move-out walk", 4, **unit, **ada),
        _inspection(7, "Elevator, five-year", 9, is_compliance_inspection=True, compliance_type="ASME A17.1"),
        _inspection(8, "Boiler room", -12, status=COMPLETED, result=inspections_pb.INSPECTION_RESULT_FAILED,
                    completed_date=day(-11), **ada),
        _inspection(9, "Gutters", -10, status=COMPLETED, result=inspections_pb.INSPECTION_RESULT_PASSED,
                    completed_date=day(-10)),
        _inspection(10, "Lobby doors", 6, cancelled_at=ago(hours=3), cancelled_by="administrator:1",
                    cancel_reason=f"The doors are replaced first. {HOSTILE}"),
    ]  # fmt: skip


def _of(request: Any, who: Identity) -> list[inspections_pb.InspectionDetails]:
    wants_cancelled = bool(getattr(request, "cancelled", False))
    fitting = [
        inspection
        for inspection in inspections()
        if inspection.HasField("cancelled_at") == wants_cancelled and who.company_id == 1
    ]
    if request.status:
        fitting = [inspection for inspection in fitting if inspection.status in request.status]
    if request.result:
        fitting = [inspection for inspection in fitting if inspection.result in request.result]
    if request.HasField("assignee_id"):
        fitting = [inspection for inspection in fitting if inspection.assignee_id == request.assignee_id]
    return fitting


def _search_inspections(request: Any, who: Identity) -> Any:
    fitting = [inspection for inspection in _of(request, who) if inspection.late or not request.late]
    listed = fitting[: request.limit]
    more = "2026-11-22.1" if len(fitting) > len(listed) else None
    return inspections_pb.SearchInspectionsResponse(inspections=listed, next=more)


def _days(request: Any, who: Identity) -> Any:
    answer = inspections_pb.ListInspectionDaysResponse()
    fitting = [
        inspection
        for inspection in _of(request, who)
        if request.from_date <= inspection.scheduled_date <= request.to_date
    ]
    for on in sorted({inspection.scheduled_date for inspection in fitting}):
        of_day = [inspection for inspection in fitting if inspection.scheduled_date == on]
        busy = 4 if on == day(2) else 0
        answer.days.add(date=on, inspections=of_day, count=len(of_day) + busy)
    return answer


def _get_inspection(request: Any, who: Identity) -> Any:
    for inspection in inspections():
        if inspection.inspection_id == request.inspection_id and who.company_id == 1:
            return inspections_pb.GetInspectionDetailsResponse(inspection=inspection)
    raise Refusal(404, "not_found", "The company has no inspection with that id; check the id.")


def _rows(request: Any, who: Identity) -> Any:
    if request.inspection_id not in {inspection.inspection_id for inspection in inspections()} or who.company_id != 1:
        raise Refusal(404, "not_found", "The company has no inspection with that id; check the id.")
    row = rows_pb.InspectionRow
    rows = [
        row(row_id=1, position=1, label="Control panel shows no fault", result="passed", inspected_by="staff:7",
            inspected_at=ago(minutes=50)),
        row(row_id=2, position=2, label="Horn on the third floor sounds", result="failed", category="Life Safety",
            note="Silent. The wire behind it is cut.\nTaped off until the electrician comes.", priority="High",
            photo_url="https://photos.example/horn.jpg", failed_at=ago(minutes=44), inspected_by="staff:7",
            inspected_at=ago(minutes=44), asset_id=21),
        row(row_id=3, position=3, label="Batteries hold for 24 hours", result="passed", failed_at=ago(days=1),
            inspected_by="administrator:1", inspected_at=ago(minutes=30)),
        row(row_id=4, position=4, label="Pull stations are unobstructed"),
    ]  # fmt: skip
    if request.inspection_id == 3:
        rows = [row(row_id=9, position=1, label=HOSTILE, result="failed", note=HOSTILE, category=HOSTILE,
                     priority=HOSTILE, photo_url=f"javascript:{HOSTILE}", inspected_by=HOSTILE)]  # fmt: skip
    return rows_pb.ListInspectionRowsResponse(rows=rows)


def _templates(_request: Any, who: Identity) -> Any:
    templates = [
        templates_pb.InspectionTemplate(template_id=8, name="Move-out", inspection_type="Move-out", is_default=True,
                                        rows=["Walls and ceilings", "Smoke alarm"]),
        templates_pb.InspectionTemplate(template_id=9, name=HOSTILE, inspection_type=HOSTILE, rows=[HOSTILE]),
    ]  # fmt: skip
    return templates_pb.ListInspectionTemplatesResponse(templates=templates if who.company_id == 1 else [])


def _record_row(result: str) -> Any:
    def answer(request: Any, who: Identity) -> Any:
        rows = _rows(rows_pb.ListInspectionRowsRequest(inspection_id=request.inspection_id), who).rows
        inspection_row = next(
            (inspection_row for inspection_row in rows if inspection_row.row_id == request.row_id), None
        )
        if inspection_row is None:
            raise Refusal(404, "not_found", "The inspection has no row with that id; check the id.")
        inspection_row.result = result
        return (rows_pb.PassInspectionRowResponse if result == "passed" else rows_pb.FailInspectionRowResponse)(
            row=inspection_row
        )

    return answer


def _count_inspections(_request: Any, who: Identity) -> Any:
    if who.company_id != 1:
        return inspections_pb.CountInspectionsResponse()
    return inspections_pb.CountInspectionsResponse(scheduled=6, in_progress=1, late=2, this_week=4)


def notices() -> Sequence[notices_pb.Notice]:
    def one(notice_id: int, subject: str, body: str, when: str, unit: str, **more: Any) -> notices_pb.Notice:
        return notices_pb.Notice(
            notice_id=notice_id, property_id=1, property_name=more.pop("property_name", "Alder Court"),
            subject=subject, body=body, when=when, unit=unit, url=f"http://localhost/notices/{notice_id}",
            created_at=ago(days=2), updated_at=ago(days=1), source="administrator", **more)  # fmt: skip

    return [
        one(2, "Elevator inspection", "The elevator stops for two hours.", "Tuesday, 9 to 11 am", "All units"),
        one(1, "Water off on Thursday", "We replace the main valve.\n\nPlease fill a pot in the morning, and leave "
            "taps closed: the first water may be brown.", "Thursday 26 November, 9 am to noon", "2 units",
            unit_id=[12, 13], published_at=ago(hours=5), external_id="N-88"),
        one(3, HOSTILE, HOSTILE, HOSTILE, HOSTILE, area=HOSTILE, external_id=HOSTILE, property_name=HOSTILE),
        one(4, "お知らせ：断水", "午前9時から正午まで断水します。", "11月26日", "桜コート", published_at=ago(days=40)),
    ]  # fmt: skip


def _list_notices(request: Any, who: Identity) -> Any:
    fitting = [
        notice
        for notice in (notices() if who.company_id == 1 else [])
        if not request.HasField("published") or notice.HasField("published_at") == request.published
    ]
    listed = fitting[: request.limit]
    return notices_pb.ListNoticesResponse(notices=listed, next=".2" if len(fitting) > len(listed) else None)


def _get_notice(request: Any, who: Identity) -> Any:
    for notice in notices():
        if notice.notice_id == request.notice_id and who.company_id == 1:
            units = [notices_pb.NoticeUnit(unit_id=12, name="Alder Court 102"),
                     notices_pb.NoticeUnit(unit_id=13, name="Alder Court 103")]  # fmt: skip
            data = '{"subject": "Water off on Thursday", "property": "Alder Court", "unit": "2 units", "url":'
            data += ' "https://console.example/notices/1", "created_at": "2026-11-22T10:00:00.000000Z", "when": "9 am"}'
            return notices_pb.GetNoticeResponse(
                notice=notice, units=units if notice.unit_id else [], event_data=data.encode()
            )
    raise Refusal(404, "not_found", "The company has no notice with that id; check the id.")


def _preview_notice(request: Any, who: Identity) -> Any:
    if who.company_id != 1 or request.property_id > 3:
        raise Refusal(404, "not_found", "The company has no property with that id; check the id.")
    names = {12: "Alder Court 102", 13: "Alder Court 103"}
    units = [notices_pb.NoticeUnit(unit_id=unit_id, name=names.get(unit_id, HOSTILE)) for unit_id in request.unit_id]
    unit = request.area or (f"{len(units)} units" if units else "All units")
    data = {"subject": request.subject, "property": "Alder Court", "unit": unit,
            "url": f"https://console.example/notices/{request.notice_id}", "created_at": "2026-11-22T15:00:00.000000Z",
            "when": request.when}  # fmt: skip
    notice = notices_pb.Notice(
        notice_id=request.notice_id, property_id=request.property_id, property_name="Alder Court", unit=unit,
        subject=request.subject, body=request.body, when=request.when,
    )  # fmt: skip
    return notices_pb.PreviewNoticeResponse(notice=notice, units=units, event_data=json.dumps(data).encode())


def _count_notices(_request: Any, who: Identity) -> Any:
    mine = int(who.company_id == 1)
    return notices_pb.CountNoticesResponse(drafts=mine, published_lately=2 * mine)


def vendors_inspections_notices() -> dict[str, Any]:
    return {
        "catalog.VendorDetailsService/SearchVendors": _search_vendors,
        "catalog.VendorDetailsService/GetVendorDetails": _get_vendor,
        "catalog.VendorDetailsService/CountVendors": _count_vendors,
        "catalog.InspectionDetailsService/SearchInspections": _search_inspections,
        "catalog.InspectionDetailsService/ListInspectionDays": _days,
        "catalog.InspectionDetailsService/GetInspectionDetails": _get_inspection,
        "catalog.InspectionDetailsService/CountInspections": _count_inspections,
        "catalog.InspectionCommandsService/ListInspectionRows": _rows,
        "catalog.InspectionTemplatesService/ListInspectionTemplates": _templates,
        "catalog.InspectionCommandsService/PassInspectionRow": _record_row("passed"),
        "catalog.InspectionCommandsService/FailInspectionRow": _record_row("failed"),
        "catalog.InspectionCommandsService/ScheduleInspection": rows_pb.ScheduleInspectionResponse(
            document=Document(entity_id=2)
        ),
        "catalog.InspectionCommandsService/AddInspectionRow": rows_pb.AddInspectionRowResponse(
            row=rows_pb.InspectionRow(row_id=5, position=5, label="Roof")
        ),
        "catalog.NoticesService/ListNotices": _list_notices,
        "catalog.NoticesService/GetNotice": _get_notice,
        "catalog.NoticesService/CountNotices": _count_notices,
        "catalog.NoticesService/PreviewNotice": _preview_notice,
    }
