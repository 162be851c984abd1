"""The RPC of TurnReportsService."""

from __future__ import annotations

from chassis.auth.identity import Call
from chassis.reports.reading import ReportReader
from makeready.occupancy.v1 import turn_reports_pb2 as pb
from svc_occupancy.reports import measures


class TurnReportsService:
    """The report on turns."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader

    async def GetTurnReport(self, request: pb.GetTurnReportRequest, call: Call) -> pb.GetTurnReportResponse:
        return pb.GetTurnReportResponse(document=await self._reader.document(measures.TURNS, request, call))
