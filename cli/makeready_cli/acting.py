"""Commands of the back office. Each is one RPC: its arguments are the request's fields, and `--as` says who does it.

A field that the request always has is required, an optional one is an option, and a place is given by its position.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.auth.clients import ServiceUnavailable
from makeready.common.v1.documents_pb2 import Document
from makeready_cli import arguments as types
from makeready_cli.acting_arguments import ACT, add_actor, add_fields, request_of
from makeready_cli.answers import Answer, instant, labels, table
from makeready_cli.companies import ensure_company
from makeready_cli.failures import Failed
from makeready_cli.system import Operator, is_transient, told

ATTEMPTS = 2
PAUSE_SECONDS = 0.5
_BROKEN_OFF = 60
_NEXT = "next_"


@dataclass(frozen=True, slots=True)
class Verb:
    """One command. places: the fields given by position, after the company; helps: a phrase for each field."""

    name: str
    service: str
    rpc: MethodDescriptor
    brief: str
    places: tuple[str, ...] = ()
    helps: Mapping[str, str] = field(default_factory=dict)
    description: str = ""


def add(verbs: types.Commands, *several: Verb) -> None:
    for verb in several:
        parser = types.command(verbs, verb.name, verb.brief, verb.description)
        add_fields(parser, verb.rpc, verb.places, verb.helps)
        add_actor(parser, verb.rpc)
        parser.set_defaults(run=_runs(verb))


def _runs(verb: Verb) -> Callable[[Operator, argparse.Namespace], Awaitable[Answer]]:
    async def run(operator: Operator, arguments: argparse.Namespace) -> Answer:
        request = request_of(verb.rpc, verb.places, arguments)
        await ensure_company(operator, arguments.company_id)
        if ACT in verb.rpc.input_type.fields_by_name:
            operator.trace()
        value = shown(await _answered(operator, verb, request, arguments))
        return Answer(value, worded(value))

    return run


async def _answered(operator: Operator, verb: Verb, request: Any, arguments: argparse.Namespace) -> Message:
    """The RPC's response. What can be repeated without a second effect is, once, where no answer came."""
    method = operator.channel(verb.service).unary_unary(
        f"/{verb.rpc.containing_service.full_name}/{verb.rpc.name}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(verb.rpc.output_type).FromString,
    )
    acts = ACT in verb.rpc.input_type.fields_by_name
    reads = verb.rpc.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    for attempt in range(ATTEMPTS if acts or reads else 1):
        if attempt:
            await asyncio.sleep(PAUSE_SECONDS)
        try:
            found: Message = await operator.ask(verb.service, method, request, company_id=arguments.company_id)
        except ServiceUnavailable as error:
            unavailable = error
            if not is_transient(error):
                break
        else:
            return found
    again = f" To do it once all the same, repeat it with --idempotency-key {request.idempotency_key}." if acts else ""
    raise Failed(told(verb.service, unavailable) + again) from None


def shown(message: Message) -> dict[str, Any]:
    """A response as `--json` prints it; a document, and a message that is all there is, is the record itself. What has
    presence and is absent is null."""
    fields: Mapping[str, Any] = message.DESCRIPTOR.fields_by_name
    if isinstance(message, Document):
        record: dict[str, Any] = json.loads(message.json)
        return record
    if len(fields) == 1:
        ((name, one),) = fields.items()
        if one.message_type is not None and not one.is_repeated and one.message_type is not Timestamp.DESCRIPTOR:
            return shown(getattr(message, name))
    return {name: _shown(one, message, getattr(message, name)) for name, one in fields.items()}


def _shown(one: FieldDescriptor, message: Message, value: Any) -> Any:
    if one.is_repeated:
        return [_shown_one(one, item) for item in value]
    return None if one.has_presence and not message.HasField(one.name) else _shown_one(one, value)


def _shown_one(one: FieldDescriptor, value: Any) -> Any:
    if one.enum_type is not None:
        return labels(one.enum_type).get(value)
    if isinstance(value, Timestamp):
        return instant(value)
    if isinstance(value, bytes):  # a JSON object
        return json.loads(value)
    return shown(value) if isinstance(value, Message) else value


def worded(value: Mapping[str, Any]) -> str:
    """For a person: the rows of a list and where it goes on, else a line for each field."""
    lists = [name for name, rows in value.items() if isinstance(rows, list)]
    rest = {name: one for name, one in value.items() if name not in lists}
    if len(lists) == 1 and all(name.startswith(_NEXT) for name in rest):
        ((name, rows),) = ((name, value[name]) for name in lists)
        headers = list(rows[0]) if rows else []
        lines = [[cell(row[header]) for header in headers] for row in rows]
        text = table([header.upper() for header in headers], lines, f"No {name.replace('_', ' ')}.")
        more = (f"More with --{name.removeprefix(_NEXT).replace('_', '-')} {one}." for name, one in rest.items() if one)
        return "\n".join((text, *more))
    return table(("FIELD", "VALUE"), [(name, cell(one)) for name, one in value.items()], "Done.")


def cell(value: Any) -> object:
    """A value in a table."""
    if isinstance(value, Mapping) and "name" in value:
        return value["name"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = json.dumps(value) if isinstance(value, (list, dict)) else value
    if isinstance(text, str) and len(text) > _BROKEN_OFF:
        return text[: _BROKEN_OFF - 1] + "…"
    return text
