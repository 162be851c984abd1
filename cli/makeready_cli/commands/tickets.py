"""`makeready ticket …`: the back office's work on tickets, and their history."""

from __future__ import annotations

from makeready.tickets.v1 import ticket_commands_pb2, ticket_views_pb2
from makeready.tickets.v1 import tickets_pb2 as pb
from makeready_cli.output import Answer, records_table
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.listing import Listing
from makeready_cli.rpc.rendering import picked

_DESK = ticket_commands_pb2.DESCRIPTOR.services_by_name["TicketCommandsService"].methods_by_name
_VIEWS = ticket_views_pb2.DESCRIPTOR.services_by_name["TicketViewsService"].methods_by_name
_CHANGE = (
    "version occurred_at from=from_status to=to_status cancellation_reason_code? note? api_key_id? administrator_id? "
    "actor? request_id?"
)
LISTING = Listing(
    "ticket",
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
    RpcCommand("open", _DESK["OpenTicket"], "open a ticket of a property, for staff or a resident"),
    RpcCommand(
        "update",
        _DESK["UpdateTicket"],
        "correct what a ticket says, or its unit or asset",
        hidden=("from_priority", "from_category"),
    ),
    RpcCommand(
        "assign",
        _DESK["AssignTicket"],
        "give a ticket to a member of staff or a vendor, or take it from them",
        hidden=("from_assignee_id", "from_vendor_id"),
    ),
    RpcCommand("comment", _DESK["CommentOnTicket"], "add a comment to a ticket"),
    RpcCommand("photograph", _DESK["AddTicketPhoto"], "add a photo to a ticket, which then shows it"),
    RpcCommand(
        "remove-photo",
        _DESK["RemoveTicketPhoto"],
        "remove a photo from a ticket",
        description="Removes the address from the ticket. The file stays where it is; the console deletes its own.",
    ),
    RpcCommand("status", _DESK["SetTicketStatus"], "change a ticket's status"),
    RpcCommand(
        "comments",
        _DESK["ListTicketComments"],
        "list what was written and photographed about a ticket",
        description="Lists all comments, notes and photos of a ticket, the oldest first: when, whose, brought by whom.",
        all_pages=True,
        answer=lambda listed, _arguments: _comments(listed),
    ),
    RpcCommand(
        "history",
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
    add_commands(group(commands, "ticket", "open, assign, edit and view tickets"), LISTING.list, showing, *COMMANDS)


def _history(listed: pb.ListTicketHistoryResponse) -> Answer:
    changes = [picked(change, _CHANGE) for change in listed.changes]
    columns = {
        "OCCURRED": "occurred_at",
        "FROM": "from",
        "TO": "to",
        "REASON": "cancellation_reason_code",
        "BY": "actor",
        "ADMINISTRATOR": "administrator_id",
        "REQUEST": "request_id",
        "NOTE": "note",
    }
    return Answer({"changes": changes}, records_table(changes, columns, "Its status has not changed."))


def _comments(listed: ticket_commands_pb2.ListTicketCommentsResponse) -> Answer:
    comments = [picked(comment, "comment_id created_at kind body author? actor?") for comment in listed.comments]
    columns = {"CREATED": "created_at", "KIND": "kind", "AUTHOR": "author", "BY": "actor", "TEXT": "body"}
    return Answer({"comments": comments}, records_table(comments, columns, "Nothing was written about it."))
