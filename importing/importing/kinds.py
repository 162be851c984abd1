"""The kinds of records that can be imported: each kind's columns, and the RPC that takes its rows.

The owner of a kind checks its rows. The columns are known here too, so that a mistyped one is reported before the first
row is sent. They come from `kinds.json`, which `make openapi` generates from the owners' Structs.
"""

from __future__ import annotations

import importlib
import importlib.resources
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from makeready.common.v1 import documents_pb2 as common


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a kind. Its type is text, integer, number, boolean, date or date-time; `values` has the allowed ones,
    if they are few. It `refers_to` the kind of the record that it names by its external_id, or to none (empty)."""

    name: str
    type: str
    required: bool
    values: tuple[str, ...] = ()
    refers_to: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record. Every row needs the columns `required`. `contract` is the module of its proto, and `rpc_name`
    is Service.Method. The rows of a file are stored in the order of the columns `order`, or of the file if it is
    empty."""

    name: str
    service: str
    contract: str
    rpc_name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    columns: tuple[Column, ...]
    order: tuple[Column, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)

    @property
    def rpc(self) -> MethodDescriptor:
        service, _, method = self.rpc_name.partition(".")
        descriptor: MethodDescriptor = (
            importlib.import_module(self.contract).DESCRIPTOR.services_by_name[service].methods_by_name[method]
        )
        return descriptor

    def request_of(self, rows: Iterable[common.ImportRow], dry_run: bool, events: bool) -> Any:
        """The RPC's request. Kinds that fire no public event on import have no field `events`."""
        request: Any = GetMessageClass(self.rpc.input_type)(rows=rows, dry_run=dry_run)
        if events and "events" in request.DESCRIPTOR.fields_by_name:
            request.events = True
        return request


def _kind(declared: dict[str, Any]) -> Kind:
    declared_columns = declared["columns"]
    required = tuple(column["name"] for column in declared_columns if column["required"])
    optional = tuple(column["name"] for column in declared_columns if not column["required"])
    columns = tuple(
        Column(
            column["name"],
            column["type"],
            column["required"],
            tuple(column.get("values", ())),
            column.get("refers_to", ""),
        )
        for column in declared_columns
    )
    order = tuple(column for name in declared.get("order", ()) for column in columns if column.name == name)
    return Kind(
        declared["name"], declared["service"], declared["contract"], declared["rpc"], required, optional, columns, order
    )


_FILE = importlib.resources.files(__package__ or "importing") / "kinds.json"
KINDS = {declared["name"]: _kind(declared) for declared in json.loads(_FILE.read_text())["kinds"]}

# The kinds of which contexts besides the owner have copies.
COPIED = ("staff", "properties", "units", "assets", "vendors")

# The kind of the records that a column names by their external_id. KINDS has a kind after those that it names.
REFERENCES = {
    "property": "properties",
    "unit": "units",
    "location": "units",
    "asset": "assets",
    "assignee": "staff",
    "assigned_vendor": "vendors",
    "meter": "meters",
    "turn": "turns",
}
