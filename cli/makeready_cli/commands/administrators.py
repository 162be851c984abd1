"""`makeready administrator …`."""

from __future__ import annotations

import argparse
import secrets
import sys
from typing import Any

from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1.identity_pb2_grpc import CompaniesServiceStub
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator
from makeready_cli.errors import CommandError
from makeready_cli.output import Answer
from makeready_cli.parsers import Commands, command, group

PASSWORD_BYTES = 15  # 20 characters


def add(commands: Commands) -> None:
    verbs = group(commands, "administrator", "create administrators of a company")
    adding = command(
        verbs,
        "create",
        "create an administrator",
        description="Creates an administrator, who signs in to the administrator app and mints keys there.",
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


async def create_administrator(operator: Operator, arguments: argparse.Namespace) -> Answer:
    companies = CompaniesServiceStub(operator.channel("gateway"))
    password = _read_password() if arguments.password_stdin else secrets.token_urlsafe(PASSWORD_BYTES)
    request = pb.CreateAdministratorRequest(
        company_id=arguments.company_id, email=arguments.email, name=arguments.name, password=password
    )
    created = await operator.call("gateway", companies.CreateAdministrator, request)
    value: dict[str, Any] = {"administrator_id": created.administrator_id}
    text = f"Administrator {created.administrator_id} created."
    if not arguments.password_stdin:
        value["password"] = password
        text += f"\nThe password, shown only now: {password}"
    return Answer(value, text)


def _read_password() -> str:
    try:
        password = sys.stdin.readline().rstrip("\r\n")
        password.encode()
    except (UnicodeError, OSError):
        raise CommandError("The password on standard input is not UTF-8 text.") from None
    if not password:
        raise CommandError("There is no password on standard input.")
    return password
