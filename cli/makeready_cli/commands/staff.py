"""`makeready staff …`: the people to whom tickets and inspections are assigned, and who may sign in."""

from __future__ import annotations

from makeready.identity.v1 import staff_commands_pb2 as pb
from makeready_cli.commands.links import linked, make_link
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_DESK = pb.DESCRIPTOR.services_by_name["StaffCommandsService"].methods_by_name


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "staff", "add, change and list members of staff"),
        RpcCommand("add", "gateway", _DESK["AddStaff"], "add a member of staff"),
        RpcCommand("update", "gateway", _DESK["UpdateStaff"], "change a member of staff"),
        RpcCommand("list", "gateway", _DESK["ListStaff"], "list a company's staff"),
        RpcCommand("show", "gateway", _DESK["GetStaff"], "show a member of staff"),
        RpcCommand(
            "invite",
            "gateway",
            _DESK["InviteStaff"],
            "let a member of staff sign in, and print the link",
            answer=linked,
        ),
        make_link("make a link with which a member of staff sets a password"),
        RpcCommand("end", "gateway", _DESK["EndStaff"], "end a member of staff and their sessions"),
        RpcCommand("reinstate", "gateway", _DESK["ReinstateStaff"], "take back an ended member"),
    )
