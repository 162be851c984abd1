"""The RPC of InspectionReportsService."""

from __future__ import annotations

from chassis.auth.identity import Call
from chassis.reports.reading import ReportReader
from makeready.catalog.v1 import inspection_reports_pb2 as pb
from svc_catalog.reports import measures


class InspectionReportsService:
    """Reports about inspections."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader

    async def GetInspectionReport(
        self, request: pb.GetInspectionReportRequest, call: Call
    ) -> pb.GetInspectionReportResponse:
        return pb.GetInspectionReportResponse(document=await self._reader.document(measures.INSPECTIONS, request, call))
