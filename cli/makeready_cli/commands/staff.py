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
        RpcCommand("add", _DESK["AddStaff"], "add a member of staff"),
        RpcCommand("update", _DESK["UpdateStaff"], "change a member of staff"),
        RpcCommand("list", _DESK["ListStaff"], "list a company's staff"),
        RpcCommand("show", _DESK["GetStaff"], "show a member of staff"),
        RpcCommand("invite", _DESK["InviteStaff"], "let a member of staff sign in, and print the link", answer=linked),
        make_link("make a link with which a member of staff sets a password"),
        RpcCommand("end", _DESK["EndStaff"], "deactivate a staff member and end their sessions"),
        RpcCommand("reinstate", _DESK["ReinstateStaff"], "reactivate a staff member"),
    )
