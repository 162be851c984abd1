"""`makeready company …`."""

from __future__ import annotations

import argparse
from typing import Any

from makeready.identity.v1 import identity_pb2 as pb
from makeready.identity.v1.identity_pb2_grpc import CompaniesServiceStub
from makeready.tickets.v1 import tickets_pb2
from makeready.tickets.v1.tickets_pb2_grpc import TicketsServiceStub
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator
from makeready_cli.errors import CommandError, UsageError
from makeready_cli.output import Answer, instant, table
from makeready_cli.parsers import Commands, command, group
from makeready_cli.rpc.actor import add_actor
from makeready_cli.rpc.command import RpcCommand, add_commands

_RPCS = pb.DESCRIPTOR.services_by_name["CompaniesService"].methods_by_name


def add(commands: Commands) -> None:
    verbs = group(commands, "company", "create, change and list companies")

    create = RpcCommand(
        "create",
        "gateway",
        _RPCS["CreateCompany"],
        "create a company",
        ("name",),
        {"timezone": "IANA name (default UTC)"},
        company=False,
        settings={
            "name": {"type": types.text_argument},
            "timezone": {"metavar": "TZ", "default": "UTC", "required": False},
        },
        answer=_created,
    )
    add_commands(verbs, create)

    updating = command(verbs, "update", "change a company's settings; those not named stay")
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
    add_actor(updating, _RPCS["UpdateCompany"])
    updating.set_defaults(run=update)

    listing = RpcCommand("list", "gateway", _RPCS["ListCompanies"], "list all companies", company=False, answer=_listed)
    add_commands(verbs, listing)


def _created(created: pb.CreateCompanyResponse, _arguments: argparse.Namespace) -> Answer:
    company_id = created.company.id
    return Answer({"company_id": company_id}, f"Company {company_id} created.")


async def update(operator: Operator, arguments: argparse.Namespace) -> Answer:
    """Sends each setting to the context that owns it."""
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
        raise UsageError("name at least one setting to change")
    operator.trace()
    # The gateway first, even without a setting for it: it alone knows whether the company exists.
    companies = CompaniesServiceStub(operator.channel("gateway"))
    updated = (await operator.call("gateway", companies.UpdateCompany, company)).company
    value = _shown(updated)
    if has_policy:
        tickets = TicketsServiceStub(operator.channel("svc-tickets"))
        try:
            stored = await operator.call(
                "svc-tickets", tickets.UpdateTicketPolicy, policy, company_id=arguments.company_id
            )
        except CommandError as failed:
            raise CommandError(f"The ticket policy stays as it was, all else is changed: {failed}") from None
        value |= {
            "photo_required": stored.photo_required_to_complete,
            "ticket_stale_after_hours": stored.stale_after_hours,
        }
    rows = [(name, _worded(setting)) for name, setting in value.items()]
    return Answer(value, table(("SETTING", "VALUE"), rows, ""))


def _listed(found: pb.ListCompaniesResponse, _arguments: argparse.Namespace) -> Answer:
    records = [{**_shown(company), "created_at": instant(company.created_at)} for company in found.companies]
    rows = [[_worded(cell) for cell in company.values()] for company in records]
    return Answer({"companies": records}, table(("ID", "NAME", "ACTIVE", "TIMEZONE", "CREATED"), rows, "No companies."))


def _shown(company: pb.Company) -> dict[str, Any]:
    return {
        "company_id": company.id,
        "name": company.name,
        "active": company.active,
        "timezone": company.timezone,
    }


def _worded(setting: object) -> object:
    return {True: "yes", False: "no"}[setting] if isinstance(setting, bool) else setting
