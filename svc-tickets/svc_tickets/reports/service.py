"""The RPCs of TicketReportsService."""

from __future__ import annotations

from chassis.auth.identity import Call
from chassis.reports.reading import ReportReader
from makeready.tickets.v1 import ticket_reports_pb2 as pb
from svc_tickets.reports import measures


class TicketReportsService:
    """Reports about tickets and vendors."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader

    async def GetTicketReport(self, request: pb.GetTicketReportRequest, call: Call) -> pb.GetTicketReportResponse:
        return pb.GetTicketReportResponse(document=await self._reader.document(measures.TICKETS, request, call))

    async def GetVendorReport(self, request: pb.GetVendorReportRequest, call: Call) -> pb.GetVendorReportResponse:
        return pb.GetVendorReportResponse(document=await self._reader.document(measures.VENDORS, request, call))
