"""The kinds of imports: the columns of their rows, from the Structs with which the services check them.

Written to the command line's package, which reports a mistyped column before the first row is sent, and into the
tables of docs/imports.md, with the sentence below a Struct's field that says what the column means.
"""

from __future__ import annotations

import datetime
import importlib
import pkgutil
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from chassis.records.bodies import Between, Text
from reference.events import Schema
from reference.structs import Undescribed, words_of

MADE_BY = "Made by `make openapi` from the services' Structs: change those instead."
BEGIN, END = "<!-- columns: made by `make openapi` from the services' Structs -->", "<!-- end of columns -->"


@dataclass(frozen=True, slots=True)
class Import:
    """A kind of rows. package: of the service that owns it; struct: the name of its row, in a module named `inputs` or
    `records`; contract, rpc: the RPC that takes the rows; order: the columns in whose order the rows of a file are
    stored, if that is not the order of the file."""

    kind: str
    package: str
    struct: str
    contract: str
    rpc: str
    order: tuple[str, ...] = ()


# In the order of the command line and of docs/imports.md.
IMPORTS = (
    Import("staff", "gateway", "StaffRow", "identity.v1.staff_pb2", "StaffService.ImportStaff"),
    Import("properties", "svc_catalog", "PropertyRow", "catalog.v1.places_pb2", "PropertiesService.ImportProperties"),
    Import("units", "svc_catalog", "UnitRow", "catalog.v1.places_pb2", "UnitsService.ImportUnits"),
    Import("assets", "svc_catalog", "AssetRow", "catalog.v1.places_pb2", "AssetsService.ImportAssets"),
    Import("vendors", "svc_catalog", "VendorRow", "catalog.v1.vendors_pb2", "VendorsService.ImportVendors"),
    Import(
        "inspections",
        "svc_catalog",
        "InspectionRow",
        "catalog.v1.inspections_pb2",
        "InspectionsService.ImportInspections",
    ),
    Import("meters", "svc_catalog", "MeterRow", "catalog.v1.meters_pb2", "MetersService.ImportMeters"),
    Import(
        "readings",
        "svc_catalog",
        "ReadingRow",
        "catalog.v1.meters_pb2",
        "MetersService.ImportReadings",
        ("meter", "period_start", "period_end"),
    ),
    Import("notices", "svc_catalog", "NoticeRow", "catalog.v1.notices_pb2", "NoticesService.ImportNotices"),
    Import("tickets", "svc_tickets", "TicketRow", "tickets.v1.tickets_pb2", "TicketsService.ImportTickets"),
    Import("pm-tasks", "svc_tickets", "PmTaskRow", "tickets.v1.pm_tasks_pb2", "PmTasksService.ImportPmTasks"),
    Import("turns", "svc_occupancy", "TurnRow", "occupancy.v1.turns_pb2", "TurnsService.ImportTurns"),
    Import(
        "turn-tasks", "svc_occupancy", "TurnTaskRow", "occupancy.v1.turn_tasks_pb2", "TurnTasksService.ImportTurnTasks"
    ),
)
# Columns whose value is the external_id of a record of another kind.
REFERENCES = {
    "property": "properties",
    "unit": "units",
    "asset": "assets",
    "assignee": "staff",
    "assigned_vendor": "vendors",
    "meter": "meters",
    "turn": "turns",
}
_TYPES = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    datetime.date: "date",
    datetime.datetime: "date-time",
}


def document() -> Schema:
    """Every kind, the service and RPC that take its rows, and its columns, the required ones first."""
    return {"$comment": MADE_BY, "kinds": [_kind(kind) for kind in IMPORTS]}


def with_table(page: str) -> str:
    """docs/imports.md with new tables between its two markers. Raises ValueError if a marker is missing."""
    before, begin, remainder = page.partition(BEGIN)
    _, end, after = remainder.partition(END)
    if not begin or not end:
        raise ValueError(f"docs/imports.md lacks {BEGIN} or {END}")
    lines = ["| kind | columns |", "|---|---|"]
    kinds = document()["kinds"]
    for kind in kinds:
        columns = (f"**{column['name']}**" if column["required"] else str(column["name"]) for column in kind["columns"])
        lines.append(f"| {kind['name']} | {', '.join(columns)} |")
    lines += ["", "| cap | columns |", "|---|---|", *(f"| {cap} | {columns} |" for cap, columns in _caps(kinds))]
    meanings = [
        f"| {name} of {kind.kind} | {words} |" for kind in IMPORTS for name, words in words_of(_struct(kind)).items()
    ]
    lines += ["", "| column | means |", "|---|---|", *meanings]
    return before + "\n".join((begin, *lines, end)) + after


def _caps(kinds: list[Schema]) -> Iterator[tuple[str, str]]:
    """Each cap with its columns, texts first. The columns of the cap that most texts have are not named."""
    texts: dict[int, list[str]] = {}
    numbers: dict[tuple[int, int], list[str]] = {}
    for kind in kinds:
        for column in kind["columns"]:
            name = f"{column['name']} of {kind['name']}"
            if "longest" in column:
                texts.setdefault(column["longest"], []).append(name)
            elif "highest" in column:
                numbers.setdefault((column["lowest"], column["highest"]), []).append(name)
    most = max(texts, key=lambda longest: len(texts[longest]))
    for longest, names in sorted(texts.items()):
        yield (
            f"{longest:,} code points",
            "every other text without a rule of its own" if longest == most else ", ".join(names),
        )
    for (lowest, highest), names in sorted(numbers.items(), key=lambda cap: cap[0][1]):
        bounds = (str(bound) if abs(bound) < 10_000 else f"{bound:,}" for bound in (lowest, highest))
        yield " to ".join(bounds), ", ".join(names)


def _kind(kind: Import) -> Schema:
    struct = _struct(kind)
    hints = typing.get_type_hints(struct, include_extras=True)
    columns = [_column(field, hints[field.name]) for field in msgspec.structs.fields(struct)]
    return {
        "name": kind.kind,
        "service": kind.package.replace("_", "-"),
        "contract": f"makeready.{kind.contract}",
        "rpc": kind.rpc,
        "columns": sorted(columns, key=lambda column: not column["required"]),
    } | ({"order": list(kind.order)} if kind.order else {})


def _struct(kind: Import) -> type[msgspec.Struct]:
    path = importlib.import_module(kind.package).__path__
    for module in pkgutil.walk_packages(path, f"{kind.package}."):
        if re.match("records|inputs", module.name.rpartition(".")[2]):
            struct_of_module = vars(importlib.import_module(module.name)).get(kind.struct)
            if struct_of_module is not None and struct_of_module.__module__ == module.name:
                struct: type[msgspec.Struct] = struct_of_module
                return struct
    raise Undescribed(f"{kind.package} has no {kind.struct} in a module named inputs or records")


def _column(field: msgspec.structs.FieldInfo, hint: Any) -> Schema:
    column = {"name": field.encode_name, "required": field.required}
    for part in _parts(hint):
        if isinstance(part, Text):
            column["longest"] = part.longest
        elif isinstance(part, Between):
            column |= {"lowest": part.lowest, "highest": part.highest}
        elif typing.get_origin(part) is Literal:
            column |= {"type": "text", "values": list(typing.get_args(part))}
        elif isinstance(part, type) and part in _TYPES:
            column["type"] = _TYPES[part]
    if "type" not in column:
        raise Undescribed(f"the column {field.encode_name} has a type that no file can hold: {hint}")
    if field.encode_name in REFERENCES:
        column["refers_to"] = REFERENCES[field.encode_name]
    return column


def _parts(hint: Any) -> Iterator[Any]:
    """The types in a hint without None, and their markers."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType, Annotated):
        for arm in typing.get_args(hint) if origin is not Annotated else (hint.__origin__, *hint.__metadata__):
            yield from _parts(arm)
    else:
        yield hint
