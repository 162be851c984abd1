"""`--as`: the actor on whose behalf a command runs, checked against the RPC's allowed kinds."""

from __future__ import annotations

import argparse

from google.protobuf.descriptor import MethodDescriptor

from makeready.common.v1 import options_pb2
from makeready_cli import argument_types as types
from makeready_cli.errors import CommandError
from makeready_cli.parsers import Parser

_AS = "on_behalf_of"  # no field of a request has this name
# The kinds of actors, for sentences.
_KINDS = {
    options_pb2.KIND_OPERATOR: "the operator",
    options_pb2.KIND_ADMINISTRATOR: "administrators",
    options_pb2.KIND_STAFF: "staff",
}


def add_actor(parser: Parser, rpc: MethodDescriptor) -> None:
    """Adds `--as`. `actor_of` later checks the actor against the kinds that may call the RPC."""
    who = "an administrator's email"
    if options_pb2.KIND_STAFF in _allowed(rpc):
        who += ", or staff:ID"
    parser.set_defaults(rpc=rpc)
    is_needed = options_pb2.KIND_OPERATOR not in _allowed(rpc)
    parser.add_argument(
        "--as",
        dest=_AS,
        metavar="WHO",
        type=types.actor,
        required=is_needed,
        help=f"who does it: {who}" + ("" if is_needed else " (default: the operator)"),
    )


def actor_of(arguments: argparse.Namespace) -> tuple[str, int] | None:
    """The (email, staff id) that `--as` names, one of them empty; None for the operator. Raises CommandError if the
    actor may not call the RPC."""
    actor: tuple[str, int] | None = getattr(arguments, _AS, None)
    if actor is None:
        return None
    rpc: MethodDescriptor = arguments.rpc
    email, _staff_id = actor
    if (options_pb2.KIND_ADMINISTRATOR if email else options_pb2.KIND_STAFF) not in _allowed(rpc):
        who = "An administrator" if email else "A member of staff"
        may = " and ".join(name for kind, name in _KINDS.items() if kind in _allowed(rpc))
        raise CommandError(f"{who} may not do this; {may} may.")
    return actor


def is_for_people(rpc: MethodDescriptor) -> bool:
    """Whether administrators or staff may call the RPC, in addition to the operator."""
    return not _allowed(rpc).isdisjoint({options_pb2.KIND_ADMINISTRATOR, options_pb2.KIND_STAFF})


def _allowed(rpc: MethodDescriptor) -> frozenset[int]:
    return frozenset(rpc.GetOptions().Extensions[options_pb2.allowed])
