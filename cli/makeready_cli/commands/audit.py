"""`makeready audit list`: the changes that people made to a company's records, from the logs of all services."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence

from makeready.common.v1 import audit_pb2 as pb
from makeready.identity.v1 import actors_pb2
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, ensure_company
from makeready_cli.errors import printable
from makeready_cli.output import Answer, Record, table
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.arguments import request_of
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.rendering import cell, record_of

PAGE_MAX = 200
ACTORS_MAX = 500
# The kinds of actors that are API keys, as records and audit entries spell them.
_KEYS = ("caller:", "api_key:")
_ACTORS = actors_pb2.DESCRIPTOR.services_by_name["ActorsService"].methods_by_name["BatchGetActors"]
_LIST = pb.DESCRIPTOR.services_by_name["AuditService"].methods_by_name["ListAudit"]


def add(commands: Commands) -> None:
    listing = RpcCommand(
        "list",
        _LIST,
        "list what people did to a company's records",
        "Lists who did what to which record, and what it was before and after: the newest first, from the "
        "logs of all services.",
        settings={
            "subject": {"metavar": "KIND", "type": types.text_argument, "required": False},
            "actor": {"type": types.text_argument},
            "request_id": {"type": types.text_argument},
            "limit": {"type": types.rows, "required": False, "default": 50, "help": "how many at most (default 50)"},
        },
        hidden=("before_id",),
        run=list_entries,
    )
    names = RpcCommand(
        "actors",
        _ACTORS,
        "name actors of the log, such as administrator:1 or caller:3",
        settings={"actors": {"flag": "--actor", "metavar": "ACTOR", "required": True}},
    )
    add_commands(group(commands, "audit", "show the history of records and people"), listing, names)


async def list_entries(operator: Operator, arguments: argparse.Namespace) -> Answer:
    await ensure_company(operator, arguments.company_id)
    by_service = await asyncio.gather(*(_entries(operator, arguments, service) for service in operator.system.services))
    # Entries may share an instant; within a service their ids give the order.
    entries = sorted((entry for of_service in by_service for entry in of_service), key=_age, reverse=True)[
        : arguments.limit
    ]
    rows = [
        (
            entry["recorded_at"],
            entry["actor"],
            entry["action"],
            entry["subject_id"],
            _worded(entry["before"]),
            _worded(entry["after"]),
            entry["request_id"],
        )
        for entry in entries
    ]
    headers = ("RECORDED", "ACTOR", "ACTION", "ID", "BEFORE", "AFTER", "REQUEST")
    keys = await _keys_of_deactivated(operator, arguments.company_id, entries)
    lines = [table(headers, rows, "No entries.")]
    lines += [
        printable(f"Key {key['key_id']} was minted by {key['administrator']}, who is deactivated.") for key in keys
    ]
    return Answer({"entries": entries, "keys_of_deactivated": keys}, "\n".join(lines))


async def _keys_of_deactivated(operator: Operator, company_id: int, entries: Sequence[Record]) -> list[Record]:
    """The keys that the entries name, as actors or as records, whose administrators are deactivated."""
    by_keys = {entry["actor"] for entry in entries if entry["actor"].startswith(_KEYS)}
    about_keys = {f"api_key:{entry['subject_id']}" for entry in entries if entry["subject"] == "key"}
    actors = sorted(by_keys | about_keys)
    names: dict[int, str] = {}
    for start in range(0, len(actors), ACTORS_MAX):
        request = actors_pb2.BatchGetActorsRequest(actors=actors[start : start + ACTORS_MAX])
        answer = await operator.call("gateway", request, actors_pb2.BatchGetActorsResponse, company_id=company_id)
        for actor in answer.actors:
            if actor.HasField("administrator_active") and not actor.administrator_active:
                names[int(actor.actor.partition(":")[2])] = actor.administrator_name
    return [{"key_id": key_id, "administrator": name} for key_id, name in sorted(names.items())]


async def _entries(operator: Operator, arguments: argparse.Namespace, service: str) -> list[Record]:
    """The newest entries of one service, up to the limit for all services together."""
    request = request_of(_LIST, arguments)
    entries: list[Record] = []
    while len(entries) < arguments.limit:
        request.limit = min(PAGE_MAX, arguments.limit - len(entries))
        answer = await operator.call(service, request, pb.ListAuditResponse, company_id=arguments.company_id)
        entries += (_shown(entry, service) for entry in answer.entries)
        if len(answer.entries) < request.limit:
            break
        request.before_id = answer.entries[-1].id
    return entries


def _shown(entry: pb.AuditEntry, service: str) -> Record:
    values = {"before": json.loads(entry.before), "after": json.loads(entry.after)}
    return {"service": service} | record_of(entry) | values


def _age(entry: Record) -> tuple[str, str, int]:
    return entry["recorded_at"], entry["service"], entry["id"]


def _worded(values: Record) -> str:
    return ", ".join(f"{name}={'-' if value is None else cell(value)}" for name, value in values.items()) or "-"
