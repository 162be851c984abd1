"""Commands of the back office. Each is one RPC: its arguments are the request's fields, and `--as` says who does it.

A field that the request always has is required, an optional one is an option, and a place is given by its position.
"""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.cli import arguments as types
from gateway.cli.answers import Answer, instant, labels, table
from gateway.cli.companies import ensure_company
from gateway.cli.system import Operator
from makeready.common.v1.documents_pb2 import Document

ACT, COMPANY = "idempotency_key", "company_id"
_WHOLE = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32)
_BROKEN_OFF = 60


@dataclass(frozen=True, slots=True)
class Verb:
    """One command. places: the fields given by position, after the company; helps: a phrase for each other field."""

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
        parser.add_argument(COMPANY, metavar="COMPANY_ID", type=types.record_id)
        fields = verb.rpc.input_type.fields_by_name
        for name in verb.places:
            parser.add_argument(name, metavar=name.upper(), type=_read(fields[name]))
        for name, one in fields.items():
            if name not in (ACT, COMPANY, *verb.places):
                _add_option(parser, verb, one)
        if ACT in fields:
            parser.add_argument("--idempotency-key", metavar="KEY", help="do it once however often it is sent")
        parser.add_argument(
            "--as",
            dest="actor",
            metavar="WHO",
            type=types.actor,
            help="who does it: an administrator's email or staff:ID (default: the operator)",
        )
        parser.set_defaults(run=_runs(verb))


def _add_option(parser: types.Parser, verb: Verb, one: FieldDescriptor) -> None:
    option = "--" + one.name.replace("_", "-")
    settings: dict[str, Any] = {"dest": one.name, "help": verb.helps.get(one.name)}
    if one.type == FieldDescriptor.TYPE_BOOL:
        parser.add_argument(option, action=argparse.BooleanOptionalAction, default=None, **settings)
        return
    settings |= {"type": _read(one), "metavar": one.name.upper()}
    if one.is_repeated:
        settings |= {"action": "append", "default": []}
    elif not one.has_presence:
        settings["required"] = True
    if one.enum_type is not None:
        settings["choices"] = list(labels(one.enum_type).values())
    elif one.name == "clear":
        settings["choices"] = [name for name, other in verb.rpc.input_type.fields_by_name.items() if other.has_presence]
    parser.add_argument(option, **settings)


def _read(one: FieldDescriptor) -> Callable[[str], Any]:
    if one.type in _WHOLE:
        return types.record_id if one.name.endswith(("_id", "_ids")) else types.whole_number
    if one.type == FieldDescriptor.TYPE_DOUBLE:
        return types.number
    if one.message_type is not None:
        assert one.message_type.full_name == Timestamp.DESCRIPTOR.full_name, f"{one.full_name} is no argument"
        return types.instant
    return str if one.enum_type is not None else types.any_text


def _runs(verb: Verb) -> Callable[[Operator, argparse.Namespace], Any]:
    async def run(operator: Operator, arguments: argparse.Namespace) -> Answer:
        await ensure_company(operator, arguments.company_id)
        request = _request(verb, arguments)
        if ACT in verb.rpc.input_type.fields_by_name:
            operator.trace()
        method = operator.channel(verb.service).unary_unary(
            f"/{verb.rpc.containing_service.full_name}/{verb.rpc.name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=GetMessageClass(verb.rpc.output_type).FromString,
        )
        token = await operator.vouched(arguments.actor, arguments.company_id, verb.service) if arguments.actor else ""
        found: Message = await operator.call(
            verb.service,
            method,
            request,
            company_id=arguments.company_id,
            token=token,
        )
        value = shown(found)
        return Answer(value, worded(value))

    return run


def _request(verb: Verb, arguments: argparse.Namespace) -> Any:
    request: Any = GetMessageClass(verb.rpc.input_type)()
    for name, one in verb.rpc.input_type.fields_by_name.items():
        value = getattr(arguments, name, None)
        if name == ACT:
            value = value or secrets.token_hex(16)
        if value is None:
            continue
        if one.is_repeated:
            getattr(request, name).extend(value)
        elif one.message_type is not None:
            getattr(request, name).FromDatetime(value)
        elif one.enum_type is not None:
            setattr(request, name, next(number for number, label in labels(one.enum_type).items() if label == value))
        else:
            setattr(request, name, value)
    return request


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
    """For a person: the rows of a list, else a line for each field."""
    lists = {name: rows for name, rows in value.items() if isinstance(rows, list)}
    if len(lists) == 1 and all(value[name] is None for name in value.keys() - lists.keys()):
        ((name, rows),) = lists.items()
        headers = list(rows[0]) if rows else []
        lines = [[_cell(row[header]) for header in headers] for row in rows]
        return table([header.upper() for header in headers], lines, f"No {name.replace('_', ' ')}.")
    return table(("FIELD", "VALUE"), [(name, _cell(one)) for name, one in value.items()], "Done.")


def _cell(value: Any) -> object:
    if isinstance(value, Mapping) and "name" in value:
        return value["name"]
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = json.dumps(value) if isinstance(value, (list, dict)) else value
    if isinstance(text, str) and len(text) > _BROKEN_OFF:
        return text[: _BROKEN_OFF - 1] + "…"
    return text
