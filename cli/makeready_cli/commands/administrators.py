"""`makeready administrator …`."""

from __future__ import annotations

import argparse
import secrets

from makeready.identity.v1 import administrators_pb2
from makeready.identity.v1 import identity_pb2 as pb
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator
from makeready_cli.commands.links import linked, make_link
from makeready_cli.commands.passwords import read_password
from makeready_cli.output import Answer, Record
from makeready_cli.parsers import Commands, command, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_RPCS = administrators_pb2.DESCRIPTOR.services_by_name["AdministratorsService"].methods_by_name
PASSWORD_BYTES = 15  # 20 characters


def add(commands: Commands) -> None:
    verbs = group(commands, "administrator", "create, invite and change administrators of a company")
    adding = command(
        verbs,
        "create",
        "create an administrator",
        description="Creates an administrator, who signs in to the console and mints keys there.",
    )
    adding.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    adding.add_argument("email", metavar="EMAIL", type=types.text_argument)
    adding.add_argument("--name", metavar="N", default="", help="the person's name")
    adding.add_argument(
        "--password-stdin",
        action="store_true",
        help="read the password from the first line of standard input; without it one is generated and printed once",
    )
    adding.set_defaults(run=create_administrator)
    add_commands(
        verbs,
        RpcCommand("list", _RPCS["ListAdministrators"], "list a company's administrators"),
        RpcCommand(
            "invite",
            _RPCS["InviteAdministrator"],
            "create an administrator, and print the link that sets the password",
            answer=linked,
        ),
        make_link("make a link with which an administrator sets a password"),
        RpcCommand("update", _RPCS["UpdateAdministrator"], "change an administrator"),
        RpcCommand("deactivate", _RPCS["DeactivateAdministrator"], "end an administrator and their sessions"),
        RpcCommand("reactivate", _RPCS["ReactivateAdministrator"], "let an administrator sign in again"),
    )


async def create_administrator(operator: Operator, arguments: argparse.Namespace) -> Answer:
    password = read_password() if arguments.password_stdin else secrets.token_urlsafe(PASSWORD_BYTES)
    request = pb.CreateAdministratorRequest(
        company_id=arguments.company_id, email=arguments.email, name=arguments.name, password=password
    )
    created = await operator.call("gateway", request, pb.CreateAdministratorResponse)
    value: Record = {"administrator_id": created.administrator_id}
    text = f"Administrator {created.administrator_id} created."
    if not arguments.password_stdin:
        value["password"] = password
        text += f"\nThe password, shown only now: {password}"
    return Answer(value, text)
