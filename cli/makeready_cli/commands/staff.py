"""`makeready staff …`: the people to whom tickets and inspections are assigned, and who may sign in."""

from __future__ import annotations

from makeready.identity.v1 import staff_commands_pb2 as pb
from makeready_cli.commands.links import linked, make_link
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_DESK = pb.DESCRIPTOR.services_by_name["StaffCommandsService"].methods_by_name

_STAFF = {
    "name": "the person's name",
    "email": "in lower case from then on",
    "title": "what the person does, for example Superintendent",
    "external_id": "the company's own identifier, by which an import finds the record",
}
_PAGE = {"after_id": "go on after this one", "limit": "how many to list at most (default 200)"}


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "staff", "add, change and list members of staff"),
        RpcCommand("add", "gateway", _DESK["AddStaff"], "add a member of staff", helps=_STAFF),
        RpcCommand("update", "gateway", _DESK["UpdateStaff"], "change a member of staff", ("staff_id",), _STAFF),
        RpcCommand("list", "gateway", _DESK["ListStaff"], "list a company's staff", helps=_PAGE),
        RpcCommand("show", "gateway", _DESK["GetStaff"], "show a member of staff", ("staff_id",)),
        RpcCommand(
            "invite",
            "gateway",
            _DESK["InviteStaff"],
            "let a member of staff sign in, and print the link",
            ("staff_id",),
            answer=linked,
        ),
        make_link("make a link with which a member of staff sets a password"),
        RpcCommand("end", "gateway", _DESK["EndStaff"], "end a member of staff and their sessions", ("staff_id",)),
        RpcCommand("reinstate", "gateway", _DESK["ReinstateStaff"], "take back an ended member", ("staff_id",)),
    )
