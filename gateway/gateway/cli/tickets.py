"""`makeready ticket history …`."""

from __future__ import annotations

import argparse
from typing import Any

from gateway.cli import arguments as types
from gateway.cli.answers import Answer, instant, table
from gateway.cli.companies import ensure_company
from gateway.cli.system import Operator
from makeready.tickets.v1 import tickets_pb2 as pb
from makeready.tickets.v1.tickets_pb2_grpc import TicketsServiceStub


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "ticket", "look at a ticket")
    telling = types.command(
        verbs,
        "history",
        "tell what became of a ticket's status",
        description="Lists every change of a ticket's status, the oldest first: when, from what to what, why, and who "
        "made it with which request. A change without a key came in a file.",
    )
    telling.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    telling.add_argument("ticket_id", metavar="TICKET_ID", type=types.record_id)
    telling.set_defaults(run=list_history)


async def list_history(operator: Operator, arguments: argparse.Namespace) -> Answer:
    await ensure_company(operator, arguments.company_id)
    tickets = TicketsServiceStub(operator.channel("svc-tickets"))
    request = pb.ListTicketHistoryRequest(ticket_id=arguments.ticket_id)
    found: list[dict[str, Any]] = []
    while True:
        answer = await operator.call("svc-tickets", tickets.ListTicketHistory, request, company_id=arguments.company_id)
        found += map(_shown, answer.changes)
        if not answer.HasField("next_after_version"):
            break
        request.after_version = answer.next_after_version
    rows = [
        (
            one["occurred_at"],
            one["from"],
            one["to"],
            one["cancellation_reason_code"],
            one["api_key_id"],
            one["administrator_id"],
            one["request_id"],
            one["note"],
        )
        for one in found
    ]
    headers = ("OCCURRED", "FROM", "TO", "REASON", "KEY", "ADMINISTRATOR", "REQUEST", "NOTE")
    return Answer({"changes": found}, table(headers, rows, "Its status has not changed."))


def _shown(change: pb.TicketChange) -> dict[str, Any]:
    return {
        "version": change.version,
        "occurred_at": instant(change.occurred_at),
        "from": change.from_status,
        "to": change.to_status,
        "cancellation_reason_code": change.cancellation_reason_code or None,
        "note": change.note or None,
        "api_key_id": change.api_key_id or None,
        "administrator_id": change.administrator_id or None,
        "request_id": change.request_id or None,
    }
