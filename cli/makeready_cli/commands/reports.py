"""`makeready report …`: figures of a company's months, and how they are made anew."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from chassis.auth.clients import ServiceUnavailable
from chassis.reports.records import COLUMNS, Report, ReportFigure, rows_of
from makeready.catalog.v1 import inspection_reports_pb2
from makeready.common.v1 import reports_pb2 as pb
from makeready.occupancy.v1 import turn_reports_pb2
from makeready.tickets.v1 import ticket_reports_pb2
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, ensure_company, is_unknown, unavailable_message
from makeready_cli.csv_text import csv_of
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer, table
from makeready_cli.parsers import Commands, command, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_INSPECTIONS = inspection_reports_pb2.DESCRIPTOR.services_by_name["InspectionReportsService"].methods_by_name
_TICKETS = ticket_reports_pb2.DESCRIPTOR.services_by_name["TicketReportsService"].methods_by_name
_TURNS = turn_reports_pb2.DESCRIPTOR.services_by_name["TurnReportsService"].methods_by_name
CSV = "print CSV, with a row for each figure of each month, day and group"
PART_SECONDS = 120.0


def add(commands: Commands) -> None:
    verbs = group(commands, "report", "figures of months: counts, medians, backlogs")
    add_commands(
        verbs,
        *(
            RpcCommand(name, rpc, brief, flags={"--csv": CSV}, answer=_answer)
            for name, rpc, brief in (
                ("tickets", _TICKETS["GetTicketReport"], "report on tickets: response, completion, backlog"),
                ("turns", _TURNS["GetTurnReport"], "report on turns: days to ready and to the move-in"),
                ("vendors", _TICKETS["GetVendorReport"], "report on vendors: response, completion, time on hold"),
                ("inspections", _INSPECTIONS["GetInspectionReport"], "report on inspections: passed, failed, items"),
            )
        ),
    )
    rebuilding = command(
        verbs,
        "rebuild",
        "make a company's figures anew from its records",
        description="Deletes the figures of all reports and makes them anew from the records and their history. They "
        "are kept up by themselves, so this is for when they are in doubt. Reports say that they are incomplete "
        "meanwhile. It may be repeated and broken off at any time: what is missing follows within the hour.",
    )
    rebuilding.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id, help="the company")
    rebuilding.set_defaults(run=rebuild)


def _answer(response: Any, arguments: argparse.Namespace) -> Answer:
    report = msgspec.json.decode(response.document.json, type=Report)
    value: dict[str, Any] = msgspec.json.decode(response.document.json)
    return Answer(value, csv_of(COLUMNS, rows_of(report)) if arguments.csv else _text(report))


def _text(report: Report) -> str:
    """The periods and the groups, a column for each measure."""
    headers = [measure.name.replace("_", " ").upper() for measure in report.measures]
    units = {measure.name: measure.unit for measure in report.measures}
    lines = [
        [bucket.starts_on.isoformat(), *(_cell(figure, units) for figure in bucket.figures)]
        for bucket in report.buckets
    ]
    lines.append(["all", *(_cell(figure, units) for figure in report.total)])
    lines += [[row.name or "none", *(_cell(figure, units) for figure in row.figures)] for row in report.groups]
    return table([report.bucket.upper(), *headers], lines, "")


def _cell(figure: ReportFigure, units: dict[str, str]) -> str:
    if figure.median is None:
        return str(figure.count)
    return f"{figure.count}, {figure.median} to {figure.p90} {units[figure.measure]}"


async def rebuild(operator: Operator, arguments: argparse.Namespace) -> Answer:
    company_id = arguments.company_id
    await ensure_company(operator, company_id)
    operator.trace()
    records: dict[str, int] = {}
    for service in operator.system.services:
        try:
            records[service] = await _rebuilt(operator, service, company_id)
        except ServiceUnavailable as error:
            if not is_unknown(error):
                raise CommandError(unavailable_message(service, error)) from None
    text = table(("SERVICE", "RECORDS"), list(records.items()), "No service keeps figures.")
    return Answer({"company_id": company_id, "records": records}, text)


async def _rebuilt(operator: Operator, service: str, company_id: int) -> int:
    """Makes the figures of a service anew; returns of how many records."""
    request = pb.RebuildReportsRequest(company_id=company_id)
    records = 0
    while True:
        part = await operator.ask(
            service, request, pb.RebuildReportsResponse, company_id=company_id, deadline_seconds=PART_SECONDS
        )
        records += part.records
        if part.done:
            return records
        request.part, request.above = part.part, part.above
