"""`makeready ticket …`: what the back office does with tickets, and what became of them."""

from __future__ import annotations

import argparse
from typing import Any

from makeready.tickets.v1 import ticket_commands_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from makeready.tickets.v1.ticket_commands_pb2_grpc import TicketCommandsServiceStub
from makeready.tickets.v1.tickets_pb2_grpc import TicketsServiceStub
from makeready_cli import acting
from makeready_cli import arguments as types
from makeready_cli.acting import Verb
from makeready_cli.acting_arguments import add_actor
from makeready_cli.answers import Answer, instant, table
from makeready_cli.companies import ensure_company
from makeready_cli.system import Operator

_DESK = ticket_commands_pb2.DESCRIPTOR.services_by_name["TicketCommandsService"].methods_by_name
_LIST_COMMENTS = _DESK["ListTicketComments"]
_LIST_HISTORY = pb.DESCRIPTOR.services_by_name["TicketsService"].methods_by_name["ListTicketHistory"]
_BY = "whose it is (default staff)"
VERBS = (
    Verb(
        "open",
        "svc-tickets",
        _DESK["OpenTicket"],
        "open a ticket of a property, for staff or a resident",
        helps={
            "unit_id": "a unit of the property",
            "asset_id": "an asset of the property",
            "category": "a trade, such as Plumbing",
            "priority": "Low, Medium (default), High or Emergency",
            "room": "where the work is, such as Kitchen",
            "room_instance": "which of several such rooms",
            "permission_to_enter": "whether staff may enter while nobody is at home",
            "preferred_access_time": "when a visit would suit, in words",
            "photo_url": "the address of a photo",
            "by": "who opens it (default staff)",
        },
    ),
    Verb(
        "assign",
        "svc-tickets",
        _DESK["AssignTicket"],
        "give a ticket to a member of staff or a vendor, or take it from them",
        ("ticket_id",),
        {
            "assignee_id": "the member of staff",
            "vendor_id": "the vendor; not one on hold",
            "clear": "take it from them",
        },
    ),
    Verb("comment", "svc-tickets", _DESK["CommentOnTicket"], "add a comment to a ticket", ("ticket_id",), {"by": _BY}),
    Verb(
        "photograph",
        "svc-tickets",
        _DESK["AddTicketPhoto"],
        "add a photo to a ticket, which then shows it",
        ("ticket_id",),
        {"photo_url": "its address", "by": _BY},
    ),
    Verb(
        "status",
        "svc-tickets",
        _DESK["SetTicketStatus"],
        "change a ticket's status",
        ("ticket_id",),
        {
            "note": "what was done, in 5 or more words; with Completed",
            "cancellation_reason_code": "with Cancelled",
            "cancellation_notes": "why, in 5 or more words; with see_notes",
        },
    ),
)


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "ticket", "open, assign, change and look at tickets")
    acting.add(verbs, *VERBS)
    commenting = types.command(
        verbs,
        "comments",
        "list what was written and photographed about a ticket",
        description="Lists all comments, notes and photos of a ticket, the oldest first: when, whose, brought by whom.",
    )
    commenting.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    commenting.add_argument("ticket_id", metavar="TICKET_ID", type=types.record_id)
    add_actor(commenting, _LIST_COMMENTS)
    commenting.set_defaults(run=list_comments)
    telling = types.command(
        verbs,
        "history",
        "tell what became of a ticket's status",
        description="Lists every change of a ticket's status, the oldest first: when, from what to what, why, and who "
        "made it with which request. A change that nobody made came in a file.",
    )
    telling.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    telling.add_argument("ticket_id", metavar="TICKET_ID", type=types.record_id)
    add_actor(telling, _LIST_HISTORY)
    telling.set_defaults(run=list_history)


async def list_history(operator: Operator, arguments: argparse.Namespace) -> Answer:
    await ensure_company(operator, arguments.company_id)
    tickets = TicketsServiceStub(operator.channel("svc-tickets"))
    request = pb.ListTicketHistoryRequest(ticket_id=arguments.ticket_id)
    found: list[dict[str, Any]] = []
    while True:
        answer = await operator.call(
            "svc-tickets",
            tickets.ListTicketHistory,
            request,
            company_id=arguments.company_id,
        )
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
            one["actor"],
            one["administrator_id"],
            one["request_id"],
            one["note"],
        )
        for one in found
    ]
    headers = ("OCCURRED", "FROM", "TO", "REASON", "BY", "ADMINISTRATOR", "REQUEST", "NOTE")
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
        "actor": change.actor or None,
        "request_id": change.request_id or None,
    }


async def list_comments(operator: Operator, arguments: argparse.Namespace) -> Answer:
    await ensure_company(operator, arguments.company_id)
    desk = TicketCommandsServiceStub(operator.channel("svc-tickets"))
    request = ticket_commands_pb2.ListTicketCommentsRequest(ticket_id=arguments.ticket_id)
    found: list[dict[str, Any]] = []
    while True:
        answer = await operator.call(
            "svc-tickets",
            desk.ListTicketComments,
            request,
            company_id=arguments.company_id,
        )
        found += map(_comment_shown, answer.comments)
        if not answer.HasField("next_after_comment_id"):
            break
        request.after_comment_id = answer.next_after_comment_id
    rows = [(one["created_at"], one["kind"], one["author"], one["actor"], one["body"]) for one in found]
    headers = ("CREATED", "KIND", "AUTHOR", "BY", "TEXT")
    return Answer({"comments": found}, table(headers, rows, "Nothing was written about it."))


def _comment_shown(comment: ticket_commands_pb2.TicketComment) -> dict[str, Any]:
    return {
        "comment_id": comment.comment_id,
        "created_at": instant(comment.created_at),
        "kind": comment.kind,
        "body": comment.body,
        "author": comment.author or None,
        "actor": comment.actor or None,
    }
