"""`makeready company …` and `makeready administrator …`."""

from __future__ import annotations

import argparse
import secrets
import sys
from typing import Any

from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1.identity_pb2_grpc import CompaniesServiceStub
from makeready.tickets.v1 import tickets_pb2
from makeready.tickets.v1.tickets_pb2_grpc import TicketsServiceStub
from makeready_cli import arguments as types
from makeready_cli.acting_arguments import add_actor
from makeready_cli.answers import Answer, instant, table
from makeready_cli.failures import Failed, Misused
from makeready_cli.system import Operator

_UPDATE = pb.DESCRIPTOR.services_by_name["CompaniesService"].methods_by_name["UpdateCompany"]
PASSWORD_BYTES = 15  # 20 characters


def add(commands: types.Commands) -> None:
    verbs = types.group(commands, "company", "create, change and list companies")

    creating = types.command(verbs, "create", "create a company")
    creating.add_argument("name", metavar="NAME", type=types.text_argument)
    creating.add_argument("--timezone", metavar="TZ", default="UTC", help="IANA name (default UTC)")
    creating.set_defaults(run=create)

    updating = types.command(verbs, "update", "change a company's settings; those not named stay")
    updating.add_argument("company_id", metavar="ID", type=types.record_id)
    active = updating.add_mutually_exclusive_group()
    active.add_argument("--active", dest="active", action="store_true", default=None, help="open the API to its keys")
    active.add_argument("--inactive", dest="active", action="store_false", help="answer its keys with 403")
    updating.add_argument("--timezone", metavar="TZ", help="IANA name, such as America/Toronto")
    photo = updating.add_mutually_exclusive_group()
    photo.add_argument(
        "--photo-required",
        dest="photo_required",
        action="store_true",
        default=None,
        help="a ticket needs a photo before it can be completed",
    )
    photo.add_argument("--no-photo-required", dest="photo_required", action="store_false", help="it needs none")
    updating.add_argument(
        "--ticket-stale-after-hours",
        metavar="N",
        type=types.hours,
        help="how long a resident's ticket may be quiet before it counts as stale",
    )
    add_actor(updating, _UPDATE)
    updating.set_defaults(run=update)

    types.command(verbs, "list", "list all companies").set_defaults(run=list_all)

    verbs = types.group(commands, "administrator", "create administrators of a company")
    adding = types.command(
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
        help="read the password from the first line of standard input; without it one is made and told once",
    )
    adding.set_defaults(run=create_administrator)


async def create(operator: Operator, arguments: argparse.Namespace) -> Answer:
    companies = CompaniesServiceStub(operator.channel("gateway"))
    request = pb.CreateCompanyRequest(name=arguments.name, timezone=arguments.timezone)
    company = (await operator.call("gateway", companies.CreateCompany, request)).company
    return Answer({"company_id": company.id}, f"Company {company.id} created.")


async def update(operator: Operator, arguments: argparse.Namespace) -> Answer:
    """Each setting goes to the context that owns it."""
    company = pb.UpdateCompanyRequest(company_id=arguments.company_id)
    if arguments.active is not None:
        company.active = arguments.active
    if arguments.timezone is not None:
        company.timezone = arguments.timezone
    policy = tickets_pb2.UpdateTicketPolicyRequest()
    if arguments.photo_required is not None:
        policy.photo_required_to_complete = arguments.photo_required
    if arguments.ticket_stale_after_hours is not None:
        policy.stale_after_hours = arguments.ticket_stale_after_hours
    has_policy = bool(policy.ListFields())
    if not has_policy and len(company.ListFields()) == 1:
        raise Misused("name at least one setting to change")
    operator.trace()
    # The gateway first, also where nothing is for it: it alone knows whether there is such a company.
    companies = CompaniesServiceStub(operator.channel("gateway"))
    updated = (await operator.call("gateway", companies.UpdateCompany, company)).company
    value = _shown(updated)
    if has_policy:
        tickets = TicketsServiceStub(operator.channel("svc-tickets"))
        try:
            kept = await operator.call(
                "svc-tickets", tickets.UpdateTicketPolicy, policy, company_id=arguments.company_id
            )
        except Failed as failed:
            raise Failed(f"The ticket policy stays as it was, all else is changed: {failed}") from None
        value |= {
            "photo_required": kept.photo_required_to_complete,
            "ticket_stale_after_hours": kept.stale_after_hours,
        }
    rows = [(name, _worded(setting)) for name, setting in value.items()]
    return Answer(value, table(("SETTING", "VALUE"), rows, ""))


async def list_all(operator: Operator, _arguments: argparse.Namespace) -> Answer:
    companies = CompaniesServiceStub(operator.channel("gateway"))
    found = await operator.call("gateway", companies.ListCompanies, pb.ListCompaniesRequest())
    shown = [{**_shown(company), "created_at": instant(company.created_at)} for company in found.companies]
    rows = [[_worded(cell) for cell in company.values()] for company in shown]
    return Answer({"companies": shown}, table(("ID", "NAME", "ACTIVE", "TIMEZONE", "CREATED"), rows, "No companies."))


async def ensure_company(operator: Operator, company_id: int) -> None:
    """Raises Failed where there is no such company: other contexts need not know all of them yet."""
    companies = CompaniesServiceStub(operator.channel("gateway"))
    found = await operator.call("gateway", companies.ListCompanies, pb.ListCompaniesRequest(), as_operator=True)
    if all(company.id != company_id for company in found.companies):
        raise Failed("No company has that id; `makeready company list` shows them.")


def _shown(company: pb.Company) -> dict[str, Any]:
    return {
        "company_id": company.id,
        "name": company.name,
        "active": company.active,
        "timezone": company.timezone,
    }


def _worded(setting: object) -> object:
    return {True: "yes", False: "no"}[setting] if isinstance(setting, bool) else setting


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
        text += f"\nThe password, told this once: {password}"
    return Answer(value, text)


def _read_password() -> str:
    try:
        password = sys.stdin.readline().rstrip("\r\n")
        password.encode()
    except (UnicodeError, OSError):
        raise Failed("The password on standard input is not UTF-8 text.") from None
    if not password:
        raise Failed("There is no password on standard input.")
    return password
