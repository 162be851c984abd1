"""`makeready notice …`: notices to the residents of a property."""

from __future__ import annotations

from makeready.catalog.v1 import notices_pb2 as pb
from makeready_cli.parsers import Commands, group
from makeready_cli.rpc.command import RpcCommand, add_commands

_RPCS = pb.DESCRIPTOR.services_by_name["NoticesService"].methods_by_name
_CATALOG = "svc-catalog"
_NOTICE = {
    "property_id": "the property whose residents it is for",
    "subject": "what it is about, in one line",
    "body": "what it says",
    "when": "when the announced work or event takes place, in words",
    "unit_id": "a unit that it is for; once for each (default: the whole property)",
    "area": "the part of the property that it is for, in words",
    "external_id": "the company's own identifier, by which an import finds it",
}


def add(commands: Commands) -> None:
    as_of = {"as_of": "the notice's updated_at as you have read it: refused if it has changed since"}
    changes = _NOTICE | as_of | {"whole_property": "for the whole property, not for units or an area"}
    listed = {
        "property_id": "only notices of this property",
        "after_id": "only notices with a higher id",
        "newest_first": "drafts first, then those published last (default: ascending by id)",
        "published": "only published notices, or only drafts; with --newest-first",
        "after": "`next` of the page before; with --newest-first",
        "limit": "1 to 200 (default: 50)",
    }
    add_commands(
        group(commands, "notice", "notices to residents"),
        RpcCommand("compose", _CATALOG, _RPCS["ComposeNotice"], "compose a notice", helps=_NOTICE),
        RpcCommand(
            "update", _CATALOG, _RPCS["UpdateNotice"], "change a notice that is not published", ("notice_id",), changes
        ),
        RpcCommand(
            "publish",
            _CATALOG,
            _RPCS["PublishNotice"],
            "publish a notice, which then stays as it is",
            ("notice_id",),
            as_of,
        ),
        RpcCommand(
            "discard", _CATALOG, _RPCS["DiscardNotice"], "delete a notice that is not published", ("notice_id",)
        ),
        RpcCommand("list", _CATALOG, _RPCS["ListNotices"], "list the company's notices", helps=listed),
    )
