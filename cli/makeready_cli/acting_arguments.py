"""What the commands of the back office take: an argument for each field of an RPC's request."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from makeready.common.v1 import options_pb2
from makeready_cli import arguments as types
from makeready_cli.answers import labels
from makeready_cli.failures import Failed, Misused

ACT, COMPANY, CLEAR = "idempotency_key", "company_id", "clear"
KEY_BYTES = 16
_WHOLE = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32)
# What a value looks like, by the end of its field's name.
_LOOKS = {"_id": "ID", "_ids": "ID", "_on": "DATE", "_date": "DATE", "_url": "URL", "_at": "TIME"}
# Who may act, as a sentence names them.
_KINDS = {
    options_pb2.KIND_OPERATOR: "the operator",
    options_pb2.KIND_ADMINISTRATOR: "administrators",
    options_pb2.KIND_STAFF: "staff",
}


def add_fields(parser: types.Parser, rpc: MethodDescriptor, places: tuple[str, ...], helps: Mapping[str, str]) -> None:
    """places: the fields given by position, after the company; all others are options."""
    parser.add_argument(COMPANY, metavar="COMPANY_ID", type=types.record_id, help="the company whose records they are")
    fields = rpc.input_type.fields_by_name
    for name in places:
        parser.add_argument(name, metavar=name.upper(), type=_read(fields[name]), help=helps.get(name))
    for name, one in fields.items():
        if name not in (ACT, COMPANY, CLEAR, *places):
            _add_option(parser, one, helps.get(name, ""))
    if CLEAR in fields:
        parser.add_argument(
            "--clear",
            metavar="FIELD",
            action="append",
            default=[],
            type=_field_name,
            choices=[name for name, one in fields.items() if one.has_presence],
            help=f"{helps.get(CLEAR, 'leave this field without a value')}; may be repeated",
        )
    if ACT in fields:
        parser.add_argument("--idempotency-key", metavar="KEY", help="do it once, however often it is sent")


def _field_name(text: str) -> str:
    """A field's own name, however it is spelled as an option."""
    return text.removeprefix("--").replace("-", "_")


def _add_option(parser: types.Parser, one: FieldDescriptor, phrase: str) -> None:
    option = "--" + one.name.replace("_", "-")
    settings: dict[str, Any] = {"dest": one.name}
    if one.type == FieldDescriptor.TYPE_BOOL:
        parser.add_argument(
            option, action=argparse.BooleanOptionalAction, default=None, help=phrase or None, **settings
        )
        return
    phrases = [phrase] if phrase else []
    settings |= {"type": _read(one), "metavar": _look(one), "required": not one.has_presence}
    if one.is_repeated:
        settings |= {"action": "append", "default": [], "required": False}
        phrases.append("may be repeated")
    if one.enum_type is not None:
        settings["choices"] = list(labels(one.enum_type).values())
        phrases.append("one of: " + ", ".join(settings["choices"]))
    parser.add_argument(option, help="; ".join(phrases) or None, **settings)


def _look(one: FieldDescriptor) -> str:
    if one.message_type is not None:
        return "TIME"
    if end := next((end for end in _LOOKS if one.name.endswith(end)), ""):
        return _LOOKS[end]
    return "N" if one.type in (*_WHOLE, FieldDescriptor.TYPE_DOUBLE) else one.name.upper()


def _read(one: FieldDescriptor) -> Callable[[str], Any]:
    if one.type in _WHOLE:
        return types.record_id if one.name.endswith(("_id", "_ids")) else types.whole_number
    if one.type == FieldDescriptor.TYPE_DOUBLE:
        return types.number
    if one.message_type is not None:
        assert one.message_type.full_name == Timestamp.DESCRIPTOR.full_name, f"{one.full_name} is no argument"
        return types.instant
    return str if one.enum_type is not None else types.any_text


def request_of(rpc: MethodDescriptor, places: tuple[str, ...], arguments: argparse.Namespace) -> Any:
    """The RPC's request. Raises Misused where it would change nothing, whatever the record."""
    request: Any = GetMessageClass(rpc.input_type)()
    fields = rpc.input_type.fields_by_name
    for name, one in fields.items():
        value = getattr(arguments, name, None)
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
    if CLEAR in fields and not any(one.name not in (ACT, COMPANY, *places) for one, _ in request.ListFields()):
        raise Misused("name at least one field to change, or to --clear")
    if ACT in fields and not request.idempotency_key:
        request.idempotency_key = secrets.token_hex(KEY_BYTES)
    return request


def add_actor(parser: types.Parser, rpc: MethodDescriptor) -> None:
    """`--as`, which says who acts; `who_acts` then knows what for."""
    who = "an administrator's email"
    if options_pb2.KIND_STAFF in _allowed(rpc):
        who += ", or staff:ID"
    parser.set_defaults(act=rpc)
    parser.add_argument(
        "--as", dest="actor", metavar="WHO", type=types.actor, help=f"who does it: {who} (default: the operator)"
    )


def who_acts(arguments: argparse.Namespace) -> tuple[str, int] | None:
    """Whom `--as` names; None where it is the operator. Raises Failed where they may not do this."""
    actor: tuple[str, int] | None = getattr(arguments, "actor", None)
    if actor is None:
        return None
    rpc: MethodDescriptor = arguments.act
    email, _staff_id = actor
    if (options_pb2.KIND_ADMINISTRATOR if email else options_pb2.KIND_STAFF) not in _allowed(rpc):
        who = "An administrator" if email else "A member of staff"
        may = " and ".join(name for kind, name in _KINDS.items() if kind in _allowed(rpc))
        raise Failed(f"{who} may not do this; {may} may.")
    return actor


def _allowed(rpc: MethodDescriptor) -> frozenset[int]:
    return frozenset(rpc.GetOptions().Extensions[options_pb2.allowed])
