"""`makeready notice …`: notices to the residents of a property."""

from __future__ import annotations

from makeready.catalog.v1 import notices_pb2 as pb
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_RPCS = pb.DESCRIPTOR.services_by_name["NoticesService"].methods_by_name


def add(commands: Commands) -> None:
    add_commands(
        group(commands, "notice", "notices to residents"),
        RpcCommand("compose", _RPCS["ComposeNotice"], "compose a notice"),
        RpcCommand("update", _RPCS["UpdateNotice"], "change a notice that is not published"),
        RpcCommand("publish", _RPCS["PublishNotice"], "publish a notice, which then stays as it is"),
        RpcCommand("discard", _RPCS["DiscardNotice"], "delete a notice that is not published"),
        RpcCommand("list", _RPCS["ListNotices"], "list the company's notices"),
    )
