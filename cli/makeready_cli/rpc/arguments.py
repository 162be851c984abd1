"""The arguments of a command: one for each field of its RPC's request."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from makeready.common.v1 import options_pb2
from makeready_cli import argument_types as types
from makeready_cli.errors import UsageError
from makeready_cli.output import labels
from makeready_cli.parsers import Parser, Settings

IDEMPOTENCY_KEY, COMPANY, CLEAR = "idempotency_key", "company_id", "clear"
KEY_BYTES = 16
_WHOLE = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32)
# The metavar of a value, by the ending of its field's name.
_METAVARS = {"_id": "ID", "_ids": "ID", "_on": "DATE", "_date": "DATE", "_url": "URL", "_at": "TIME"}


def add_fields(
    parser: Parser, rpc: MethodDescriptor, settings: Mapping[str, Settings], hidden: tuple[str, ...] = ()
) -> None:
    """Adds an argument for each field, as the options `help` and `positional` of the contract describe it. settings:
    overrides for `add_argument` by field, with `flag` for another spelling of the option; hidden: fields without an
    argument."""
    fields = rpc.input_type.fields_by_name
    for name, field in fields.items():
        if _is_positional(field):
            words: Settings = {"metavar": name.upper(), "type": _read(field), "help": _help(field) or None}
            parser.add_argument(name, **words | settings.get(name, {}))
    for name, field in fields.items():
        if name not in (IDEMPOTENCY_KEY, COMPANY, CLEAR, *hidden) and not _is_positional(field):
            add_option(parser, field, settings.get(name, {}))
    if CLEAR in fields:
        parser.add_argument(
            "--clear",
            metavar="FIELD",
            action="append",
            default=[],
            type=_field_name,
            choices=[name for name, field in fields.items() if field.has_presence],
            help=f"{_help(fields[CLEAR]) or 'leave this field without a value'}; may be repeated",
        )
    if IDEMPOTENCY_KEY in fields:
        parser.add_argument("--idempotency-key", metavar="KEY", help="do it once, however often it is sent")


def _help(field: FieldDescriptor) -> str:
    """What the value is, as a phrase; empty without one."""
    phrase: str = field.GetOptions().Extensions[options_pb2.help]
    return phrase


def _is_positional(field: FieldDescriptor) -> bool:
    return bool(field.GetOptions().Extensions[options_pb2.positional])


def _field_name(text: str) -> str:
    """A field's own name, from its option's spelling."""
    return text.removeprefix("--").replace("-", "_")


def add_option(parser: Parser, field: FieldDescriptor, instead: Settings) -> None:
    """Adds an option for a field. instead: overrides, see `add_fields`."""
    instead = dict(instead)
    flag = instead.pop("flag", "--" + field.name.replace("_", "-"))
    settings: Settings = {"dest": field.name}
    phrases = [phrase] if (phrase := _help(field)) else []
    if field.type == FieldDescriptor.TYPE_BOOL:
        settings |= {"action": argparse.BooleanOptionalAction, "default": None}
    else:
        settings |= {"type": _read(field), "metavar": _metavar(field), "required": not field.has_presence}
    if field.is_repeated:
        settings |= {"action": "append", "default": [], "required": False}
        phrases.append("may be repeated")
    if field.enum_type is not None:
        settings["choices"] = list(labels(field.enum_type).values())
        phrases.append("one of: " + ", ".join(settings["choices"]))
    settings["help"] = "; ".join(phrases) or None
    parser.add_argument(flag, **settings | instead)


def _metavar(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return "TIME" if _is_instant(field) else "JSON"
    if end := next((end for end in _METAVARS if field.name.endswith(end)), ""):
        return _METAVARS[end]
    return "N" if field.type in (*_WHOLE, FieldDescriptor.TYPE_DOUBLE) else field.name.upper()


def _read(field: FieldDescriptor) -> Callable[[str], Any]:
    if field.type in _WHOLE:
        return types.record_id if field.name.endswith(("_id", "_ids")) else types.whole_number
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return types.number
    if field.message_type is not None:
        return types.instant if _is_instant(field) else types.json_of(GetMessageClass(field.message_type))
    return str if field.enum_type is not None else types.any_text


def _is_instant(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name == Timestamp.DESCRIPTOR.full_name


def _numbers(field: FieldDescriptor) -> dict[str, int]:
    """The numbers of an enum's labels."""
    assert field.enum_type is not None
    return {label: number for number, label in labels(field.enum_type).items()}


def request_of(rpc: MethodDescriptor, arguments: argparse.Namespace) -> Any:
    """The RPC's request. Raises UsageError if it could not change any record."""
    request: Any = GetMessageClass(rpc.input_type)()
    fields = rpc.input_type.fields_by_name
    for name, field in fields.items():
        value = getattr(arguments, name, None)
        if value is None:
            continue
        if field.is_repeated:
            getattr(request, name).extend(value if field.enum_type is None else map(_numbers(field).get, value))
        elif field.message_type is not None:
            getattr(request, name).FromDatetime(value)
        elif field.enum_type is not None:
            setattr(request, name, _numbers(field)[value])
        else:
            setattr(request, name, value)
    if CLEAR in fields and not any(
        field.name not in (IDEMPOTENCY_KEY, COMPANY) and not _is_positional(field) for field, _ in request.ListFields()
    ):
        raise UsageError("name at least one field to change, or to --clear")
    if IDEMPOTENCY_KEY in fields and not request.idempotency_key:
        request.idempotency_key = secrets.token_hex(KEY_BYTES)
    return request
