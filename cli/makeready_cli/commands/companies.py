"""`makeready company …`."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from makeready.identity.v1 import identity_pb2 as pb
from makeready.tickets.v1 import tickets_pb2
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator
from makeready_cli.ensuring import companies_file
from makeready_cli.ensuring.differences import Step, differences
from makeready_cli.ensuring.keys_file import KeysFile
from makeready_cli.errors import CommandError, UsageError, printable
from makeready_cli.output import Answer, Record, instant, table
from makeready_cli.parsers import Commands, Settings, command, group
from makeready_cli.rpc.actor import add_actor
from makeready_cli.rpc.arguments import add_option, request_of
from makeready_cli.rpc.command import RpcCommand, add_commands

_RPCS = pb.DESCRIPTOR.services_by_name["CompaniesService"].methods_by_name
_TICKETS = tickets_pb2.DESCRIPTOR.services_by_name["TicketsService"].methods_by_name
# The company's own settings, with what differs from their fields.
_SETTINGS: dict[str, Settings] = {
    "name": {"type": types.text_argument},
    "external_id": {"metavar": "NAME"},
    "timezone": {"metavar": "TZ"},
    "second_factor_required": {},
}


def add(commands: Commands) -> None:
    verbs = group(commands, "company", "create, change, ensure, show and list companies")

    create = RpcCommand(
        "create",
        _RPCS["CreateCompany"],
        "create a company",
        company=False,
        settings={
            "name": {"type": types.text_argument},
            "timezone": {"metavar": "TZ", "default": "", "required": False},
            "external_id": {"metavar": "NAME", "required": False},
            "is_sandbox": {"flag": "--sandbox", "action": "store_true"},
            "sandbox_of": {"flag": "--of", "metavar": "ID", "type": types.record_id},
            "content": {"required": False},
        },
        answer=_created,
    )
    add_commands(verbs, create)

    _add_update(verbs)
    _add_ensure(verbs)
    _add_end(verbs)
    listing = RpcCommand("list", _RPCS["ListCompanies"], "list all companies", company=False, answer=_listed)
    showing = command(verbs, "show", "show a company's settings")
    showing.add_argument("company_id", metavar="ID", type=types.record_id)
    add_actor(showing, _RPCS["GetCompany"])
    showing.set_defaults(run=show)
    counting = RpcCommand(
        "stale-tickets",
        _TICKETS["CountStaleTickets"],
        "count the tickets that a threshold would make stale, before it is set",
        settings={"stale_after_hours": {"flag": "--ticket-stale-after-hours", "type": types.hours}},
        answer=_counted,
    )
    add_commands(verbs, listing, counting)


def _add_update(verbs: Commands) -> None:
    updating = command(verbs, "update", "change a company's settings; those not named stay")
    updating.add_argument("company_id", metavar="ID", type=types.record_id)
    active = updating.add_mutually_exclusive_group()
    active.add_argument("--active", dest="active", action="store_true", default=None, help="open the API to its keys")
    active.add_argument("--inactive", dest="active", action="store_false", help="answer its keys with 403")
    for name, overrides in _SETTINGS.items():
        add_option(updating, _RPCS["UpdateCompany"].input_type.fields_by_name[name], overrides)
    photo = updating.add_mutually_exclusive_group()
    needs_photo: Settings = {"dest": "photo_required_to_complete", "default": None}
    photo.add_argument(
        "--photo-required", **needs_photo, action="store_true", help="a ticket needs a photo before it can be completed"
    )
    photo.add_argument("--no-photo-required", **needs_photo, action="store_false", help="it needs none")
    updating.add_argument(
        "--ticket-stale-after-hours",
        dest="stale_after_hours",
        metavar="N",
        type=types.hours,
        help="how long a resident's ticket may be quiet before it counts as stale",
    )
    add_actor(updating, _RPCS["UpdateCompany"])
    updating.set_defaults(run=update)


def _add_ensure(verbs: Commands) -> None:
    ensuring = command(
        verbs,
        "ensure",
        "make companies as a file declares them",
        description="Creates and changes companies, their administrators and API keys, until they are as the file "
        "declares them. What the file does not name stays. It can be run again at any time, also after it was killed. "
        "Administrators get no link: `makeready administrator link EMAIL` makes it. deploy/README.md shows the file.",
    )
    ensuring.add_argument("-f", "--file", metavar="FILE", required=True, type=Path, help="the companies, in YAML")
    ensuring.add_argument(
        "--keys-to",
        metavar="FILE",
        type=Path,
        help="where minted keys are stored, as a Secret of Kubernetes; keep it: the keys are stored nowhere else",
    )
    ensuring.add_argument(
        "--check", action="store_true", help="change nothing; exit status 3 if something differs from the file"
    )
    ensuring.set_defaults(run=ensure)


def _add_end(verbs: Commands) -> None:
    ending = command(
        verbs,
        "end",
        "end a sandbox for good, and delete all that is kept of it",
        description="Ends a sandbox for good. Its keys are unknown from then on, and within a day all that is kept of "
        "it is deleted from every database. The live company whose sandbox it is stays as it is; a live company can't "
        "be ended.",
    )
    ending.add_argument("company_id", metavar="ID", type=types.record_id)
    ending.add_argument("--yes", action="store_true", help="needed: nothing brings the sandbox back")
    add_actor(ending, _RPCS["EndSandbox"])
    ending.set_defaults(run=end)


def _created(created: pb.CreateCompanyResponse, _arguments: argparse.Namespace) -> Answer:
    company_id = created.company.id
    return Answer({"company_id": company_id}, f"Company {company_id} created.")


async def update(operator: Operator, arguments: argparse.Namespace) -> Answer:
    """Sends each setting to the context that owns it."""
    company: pb.UpdateCompanyRequest = request_of(_RPCS["UpdateCompany"], arguments)
    policy: tickets_pb2.UpdateTicketPolicyRequest = request_of(_TICKETS["UpdateTicketPolicy"], arguments)
    has_policy = bool(policy.ListFields())
    if not has_policy and len(company.ListFields()) == 1:
        raise UsageError("name at least one setting to change")
    operator.trace()
    # The gateway first, even without a setting for it: it alone knows whether the company exists.
    updated = (await operator.call("gateway", company, pb.UpdateCompanyResponse)).company
    value = _shown(updated)
    if arguments.second_factor_required is not None:
        value["second_factor_required"] = updated.second_factor_required
    if has_policy:
        try:
            stored = await operator.call(
                "svc-tickets", policy, tickets_pb2.UpdateTicketPolicyResponse, company_id=arguments.company_id
            )
        except CommandError as failed:
            raise CommandError(f"The ticket policy stays as it was, all else is changed: {failed}") from None
        value |= _policy(stored)
    return _settings(value)


async def ensure(operator: Operator, arguments: argparse.Namespace) -> Answer:
    """Compares first: a fault of the file, or a difference that can't be closed, changes nothing."""
    declared = companies_file.read(arguments.file)
    if arguments.keys_to is None and not arguments.check and any(company.keys for company in declared):
        raise UsageError("the file has keys: --keys-to names the file where they are stored")
    operator.trace()
    with contextlib.ExitStack() as stack:
        keys = stack.enter_context(KeysFile(arguments.keys_to)) if arguments.keys_to is not None else None
        steps = await differences(operator, declared, keys)
        if not arguments.check:
            for done, step in enumerate(steps):
                try:
                    await step.apply()
                except CommandError as failed:
                    raise CommandError(
                        f"{step.company}: {step.kind} {step.name}: {failed} {done} of {len(steps)} steps are done; "
                        "running it again does the rest."
                    ) from None
    return _ensured(steps, len(declared), is_check=arguments.check)


def _ensured(steps: Sequence[Step], companies: int, *, is_check: bool) -> Answer:
    verbs = {"create": "is to be created", "change": "differs", "store": "is to be stored"}
    if not is_check:
        verbs = {"create": "created", "change": "changed", "store": "stored"}
    lines = [
        printable(
            f"{step.company}: {step.kind} {step.name} {verbs[step.action]}: "
            f"{json.dumps(step.values, ensure_ascii=False)}"
        )
        for step in steps
    ]
    if not steps:
        lines = [f"{companies} {'company is' if companies == 1 else 'companies are'} as declared."]
    value = {"steps": [step.record() for step in steps], "differs": bool(steps) and is_check}
    return Answer(value, "\n".join(lines), 3 if is_check and steps else 0)


async def show(operator: Operator, arguments: argparse.Namespace) -> Answer:
    """Reads the settings from the contexts that own them."""
    request = pb.GetCompanyRequest(company_id=arguments.company_id)
    company = (await operator.call("gateway", request, pb.GetCompanyResponse)).company
    request_of_policy = tickets_pb2.GetTicketPolicyRequest()
    policy = await operator.call(
        "svc-tickets", request_of_policy, tickets_pb2.GetTicketPolicyResponse, company_id=arguments.company_id
    )
    return _settings(_shown(company) | _policy(policy))


async def end(operator: Operator, arguments: argparse.Namespace) -> Answer:
    """Raises CommandError without a confirmation."""
    if not arguments.yes:
        request = pb.GetCompanyRequest(company_id=arguments.company_id)
        name = (await operator.call("gateway", request, pb.GetCompanyResponse)).company.name
        raise CommandError(
            f"This deletes sandbox {arguments.company_id} ({printable(name)}) with all its records for good. Repeat it "
            "with --yes to do that."
        )
    operator.trace()
    ended = await operator.call("gateway", pb.EndSandboxRequest(company_id=arguments.company_id), pb.EndSandboxResponse)
    value = {"company_id": ended.company.id, "ended_at": instant(ended.company.ended_at)}
    return Answer(value, f"Sandbox {ended.company.id} has ended; all of it is deleted within a day.")


def _policy(policy: tickets_pb2.GetTicketPolicyResponse | tickets_pb2.UpdateTicketPolicyResponse) -> Record:
    return {"photo_required": policy.photo_required_to_complete, "ticket_stale_after_hours": policy.stale_after_hours}


def _settings(value: Record) -> Answer:
    rows = [(name, _worded(setting)) for name, setting in value.items()]
    return Answer(value, table(("SETTING", "VALUE"), rows, ""))


def _counted(counted: tickets_pb2.CountStaleTicketsResponse, _arguments: argparse.Namespace) -> Answer:
    text = f"{counted.stale} tickets would be stale, {counted.newly_stale} of them are not stale now."
    return Answer({"stale": counted.stale, "newly_stale": counted.newly_stale}, text)


def _listed(listed: pb.ListCompaniesResponse, _arguments: argparse.Namespace) -> Answer:
    records = [{**_shown(company), "created_at": instant(company.created_at)} for company in listed.companies]
    rows = [[_worded(cell) for cell in company.values()] for company in records]
    return Answer(
        {"companies": records},
        table(
            ("ID", "NAME", "ACTIVE", "TIMEZONE", "EXTERNAL_ID", "SANDBOX", "OF", "ENDED", "CREATED"),
            rows,
            "No companies.",
        ),
    )


def _shown(company: pb.Company) -> Record:
    return {
        "company_id": company.id,
        "name": company.name,
        "active": company.active,
        "timezone": company.timezone,
        "external_id": company.external_id or None,
        "sandbox": company.is_sandbox,
        "sandbox_of": company.sandbox_of if company.HasField("sandbox_of") else None,
        "ended_at": instant(company.ended_at) if company.HasField("ended_at") else None,
    }


def _worded(setting: object) -> object:
    return {True: "yes", False: "no"}[setting] if isinstance(setting, bool) else setting
