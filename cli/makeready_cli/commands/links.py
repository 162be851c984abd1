"""The links with which people set their passwords, as commands print them."""

from __future__ import annotations

import argparse
from typing import Any

from makeready.identity.v1 import administrators_pb2 as pb
from makeready_cli import argument_types as types
from makeready_cli.output import Answer
from makeready_cli.rpc.command import RpcCommand
from makeready_cli.rpc.rendering import record_of

_LINK = pb.DESCRIPTOR.services_by_name["AdministratorsService"].methods_by_name["MakeLink"]


def linked(response: Any, _arguments: argparse.Namespace) -> Answer:
    """The answer of a command that makes a link. The link is printed once."""
    link = record_of(response.link)
    value = record_of(response)
    text = f"The {link['purpose']} of {link['email']}, valid until {link['expires_at']}, shown only now:\n{link['url']}"
    return Answer(value, text)


def make_link(brief: str) -> RpcCommand:
    """`link EMAIL`: no two people sign in with one e-mail, so it needs no company."""
    return RpcCommand(
        "link",
        _LINK,
        brief,
        company=False,
        settings={"email": {"type": types.text_argument}},
        hidden=("administrator_id", "staff_id"),
        answer=linked,
    )
