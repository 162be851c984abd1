"""`makeready ticket …`: the back office's work on tickets, and their history."""

from __future__ import annotations

from typing import Any

from makeready.tickets.v1 import ticket_commands_pb2, ticket_views_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from makeready_cli.output import Answer, instant, table
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing

_DESK = ticket_commands_pb2.DESCRIPTOR.services_by_name["TicketCommandsService"].methods_by_name
_VIEWS = ticket_views_pb2.DESCRIPTOR.services_by_name["TicketViewsService"].methods_by_name
LISTING = Listing(
    "ticket",
    "svc-tickets",
    _VIEWS["SearchTickets"],
    "tickets",
    "ticket_id",
    {
        "ID": "ticket_id",
        "STATUS": "status",
        "PRIORITY": "priority",
        "TITLE": "title",
        "WHERE": "unit_name|property_name",
        "ASSIGNEE": "assignee_name",
        "VENDOR": "vendor_name",
        "OPENED": "created_at",
        "STALE": "is_stale",
        "EXTERNAL_ID": "external_id",
    },
    "external_id",
    flags={"statuses": "--status", "priorities": "--priority", "categories": "--category", "sources": "--source"},
    hidden=("before",),
)
COMMANDS = (
    RpcCommand(
        "open",
        "svc-tickets",
        _DESK["OpenTicket"],
        "open a ticket of a property, for staff or a resident",
    ),
    RpcCommand(
        "update",
        "svc-tickets",
        _DESK["UpdateTicket"],
        "correct what a ticket says, or its unit or asset",
    ),
    RpcCommand(
        "assign",
        "svc-tickets",
        _DESK["AssignTicket"],
        "give a ticket to a member of staff or a vendor, or take it from them",
        hidden=("from_assignee_id", "from_vendor_id"),
    ),
    RpcCommand("comment", "svc-tickets", _DESK["CommentOnTicket"], "add a comment to a ticket"),
    RpcCommand(
        "photograph",
        "svc-tickets",
        _DESK["AddTicketPhoto"],
        "add a photo to a ticket, which then shows it",
    ),
    RpcCommand(
        "remove-photo",
        "svc-tickets",
        _DESK["RemoveTicketPhoto"],
        "remove a photo from a ticket",
        description="Removes the address from the ticket. The file stays where it is; the console deletes its own.",
    ),
    RpcCommand(
        "status",
        "svc-tickets",
        _DESK["SetTicketStatus"],
        "change a ticket's status",
    ),
    RpcCommand(
        "comments",
        "svc-tickets",
        _DESK["ListTicketComments"],
        "list what was written and photographed about a ticket",
        description="Lists all comments, notes and photos of a ticket, the oldest first: when, whose, brought by whom.",
        all_pages=True,
        answer=lambda listed, _arguments: _comments(listed),
    ),
    RpcCommand(
        "history",
        "svc-tickets",
        pb.DESCRIPTOR.services_by_name["TicketsService"].methods_by_name["ListTicketHistory"],
        "list the changes of a ticket's status",
        description="Lists every change of a ticket's status, the oldest first: when, from what to what, why, and who "
        "made it with which request. A change without an actor was imported.",
        all_pages=True,
        answer=lambda listed, _arguments: _history(listed),
    ),
)


def add(commands: Commands) -> None:
    showing = LISTING.show(
        _VIEWS["GetTicketDetails"], "document", "`ticket comments` and `ticket history` list what happened to it."
    )
    add_commands(
        group(commands, "ticket", "open, assign, change and look at tickets"), LISTING.list, showing, *COMMANDS
    )


def _history(listed: pb.ListTicketHistoryResponse) -> Answer:
    found = [_change(one) for one in listed.changes]
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


def _change(change: pb.TicketChange) -> dict[str, Any]:
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


def _comments(listed: ticket_commands_pb2.ListTicketCommentsResponse) -> Answer:
    found = [_comment(one) for one in listed.comments]
    rows = [(one["created_at"], one["kind"], one["author"], one["actor"], one["body"]) for one in found]
    headers = ("CREATED", "KIND", "AUTHOR", "BY", "TEXT")
    return Answer({"comments": found}, table(headers, rows, "Nothing was written about it."))


def _comment(comment: ticket_commands_pb2.TicketComment) -> dict[str, Any]:
    return {
        "comment_id": comment.comment_id,
        "created_at": instant(comment.created_at),
        "kind": comment.kind,
        "body": comment.body,
        "author": comment.author or None,
        "actor": comment.actor or None,
    }
