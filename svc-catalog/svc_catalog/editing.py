"""What the back office does alike with every kind of record: what a request may say, what is added and changed, who
hears of it. The rules of a field are those of its row in an import."""

from __future__ import annotations

import datetime
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from asyncpg import Record, UniqueViolationError
from google.protobuf.message import Message
from sqlalchemy import BigInteger, Table, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection
from chassis.db.statements import Statement, param
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.writes import commands
from makeready.common.v1 import options_pb2
from makeready.common.v1.documents_pb2 import Document
from makeready.events.v1.events_pb2 import References
from svc_catalog.documents import document
from svc_catalog.references import ReferenceRows

_STAMPS = ("created_at", "updated_at", "version")


class Kept:
    """The records of one table, whose key is company_id and id, and which has external_id, source and created_at.

    columns: what people set, besides external_id. also: what a record must fulfil to be found.
    """

    def __init__(self, table: Table, *columns: str, also: Sequence[ColumnElement[bool]] = ()) -> None:
        self.columns = ("external_id", *(name for name in columns if name not in _STAMPS))
        self.stamps = tuple(name for name in _STAMPS if name in table.c)
        same = (table.c.company_id == param("company_id", BigInteger), table.c.id == param("entity_id", BigInteger))
        there = (*same, *also)
        self._for_update = Statement(select(table).where(*there).with_for_update(key_share=True))
        self._as_it_is = Statement(select(table).where(*there).with_for_update(read=True, key_share=True))
        fresh = ("company_id", "source", *self.columns, *(name for name in self.stamps if name != "version"))
        self._insert = Statement(
            insert(table).values({name: param(name, table.c[name].type) for name in fresh}).returning(table.c.id)
        )
        values: dict[str, Any] = {name: param(f"new_{name}", table.c[name].type) for name in self.columns}
        if "updated_at" in self.stamps:
            values["updated_at"] = param("new_updated_at", table.c.updated_at.type)
        if "version" in self.stamps:
            values["version"] = table.c.version + 1
        self._update = Statement(update(table).where(*same).values(values))

    async def for_update(self, connection: Connection, company_id: int, entity_id: int) -> Record | None:
        """The company's record, locked against changes."""
        return await connection.row(self._for_update, company_id=company_id, entity_id=entity_id)

    async def as_it_is(self, connection: Connection, company_id: int, entity_id: int) -> Record | None:
        """The company's record, which stays there until the commit."""
        return await connection.row(self._as_it_is, company_id=company_id, entity_id=entity_id)

    async def insert(
        self, connection: Connection, company_id: int, values: Mapping[str, Any], at: datetime.datetime
    ) -> int:
        """The id of the new record; columns without a value are null."""
        row: dict[str, Any] = {**dict.fromkeys(self.columns), **values}
        stamped = {name: at for name in self.stamps if name != "version"}
        entity_id: int = await connection.value(self._insert, company_id=company_id, source="staff", **row, **stamped)
        return entity_id

    async def update(self, connection: Connection, row: Mapping[str, Any], at: datetime.datetime) -> None:
        """row: the whole record as it will be."""
        values = {f"new_{name}": row[name] for name in self.columns}
        if "updated_at" in self.stamps:
            values["new_updated_at"] = at
        await connection.execute(self._update, company_id=row["company_id"], entity_id=row["id"], **values)


# What an audit entry need not say: it names the record itself, and when.
_UNSAID = frozenset({"schema_version", "entity_type", "entity_id", "created_at", "updated_at", "source", "url"})


def no_such(noun: str) -> Refusal:
    """One sentence for a record that does not exist and for one of another company."""
    return Refusal(404, "not_found", f"The company has no {noun} with that id; check the id.")


class Fields:
    """What requests say of a kind of record, checked by the rules of its row in an import."""

    def __init__(self, row: type[msgspec.Struct], *names: str, ids: Sequence[str] = ()) -> None:
        """names: the fields that requests and rows have in common; ids: those of requests that name other records."""
        hints = typing.get_type_hints(row, include_extras=True) | dict.fromkeys(ids, bodies.RecordId)
        fields: list[Any] = [(name, typing.Optional[hints[name]], None) for name in (*ids, *names)]  # noqa: UP045
        self._kind = msgspec.defstruct(row.__name__, fields, kw_only=True)
        self._instants = {name for name in names if hints[name] is datetime.datetime}
        rowed = {field.name for field in msgspec.structs.fields(row) if field.required}
        self._required = {*rowed, "property_id"} - {"external_id"}

    def given(self, request: Message) -> dict[str, Any]:
        """What the request says, by name; what it clears is None. Raises Refusal 400 or 422."""
        known: Any = request.DESCRIPTOR.fields_by_name
        found = commands.fields(request, *(name for name in self._kind.__struct_fields__ if name in known))
        for name, value in found.items():
            if known[name].enum_type is not None and value is not None:
                found[name] = _label(known[name].enum_type, value)
            elif name in self._instants and type(value) is str and len(value) == len("YYYY-MM-DD"):
                found[name] = f"{value}T00:00:00Z"
        checked = bodies.check(self._kind, found)
        values = {name: getattr(checked, name) for name in found}
        for name in self._required & values.keys():
            if values[name] is None:
                raise invalid_request(f"{name} can't be cleared.", name)
        return values


def _label(enum: Any, number: int) -> str:
    """How the public API spells the value; none where it has no such one, for the field's check to refuse."""
    value = enum.values_by_number.get(number)
    return "" if value is None else value.GetOptions().Extensions[options_pb2.label]


def taken(fault: UniqueViolationError, noun: str) -> Exception:
    """The refusal where another record of the kind has the external_id; else the fault itself."""
    if fault.constraint_name != f"{noun}_external_id":
        return fault
    article = "An" if noun[0] in "aeio" else "A"
    return invalid_request(f"{article} {noun} with that external_id exists; use another.", "external_id", status=422)


@dataclass(frozen=True, slots=True)
class Locked:
    """A record that is about to change: its row, and what its GET serves."""

    row: Record
    record: Any
    document: Document


class Desk:
    """The records of one kind."""

    def __init__(
        self,
        noun: str,
        kept: Kept,
        served: Callable[[Connection, int, int], Awaitable[Record | None]],
        shown: Callable[[Record], Any],
        references: ReferenceRows | None = None,
        told: str = "",
    ) -> None:
        """served, shown: as the kind's GET has them. references: what other contexts hear, in which part of
        References."""
        self.noun = noun
        self._kept = kept
        self._served = served
        self._shown = shown
        self._references = references
        self._told = told

    async def find(self, command: commands.Command, entity_id: int) -> Record:
        """The record's row, which stays there until the commit. Raises Refusal 404."""
        row = await self._kept.as_it_is(command.connection, command.company_id, entity_id)
        if row is None:
            raise no_such(self.noun)
        return row

    async def lock(self, command: commands.Command, entity_id: int) -> Locked:
        """The record, for a change. Raises Refusal 404."""
        row = await self._kept.for_update(command.connection, command.company_id, entity_id)
        if row is None:
            raise no_such(self.noun)
        return Locked(row, *await self._rendered(command, entity_id))

    async def add(self, command: commands.Command, values: Mapping[str, Any], action: str = "added") -> Document:
        """A new record. action: what the audit log calls it. Raises Refusal 422 where another has its external_id."""
        try:
            entity_id = await self._kept.insert(command.connection, command.company_id, values, command.now)
        except UniqueViolationError as fault:
            raise taken(fault, self.noun) from None
        record, found = await self._rendered(command, entity_id)
        await command.audit(f"{self.noun}.{action}", self.noun, entity_id, {}, audited(record))
        await self._tell(command, entity_id)
        return found

    async def change(
        self,
        command: commands.Command,
        locked: Locked,
        values: Mapping[str, Any],
        touched: bool = False,
        action: str = "updated",
    ) -> Document:
        """The record with these values; as it was where they change nothing.

        touched: whether it changes by what it names, though not in its own columns. action: what the audit log calls
        it. Raises Refusal 422 where another has its external_id.
        """
        before = locked.row
        if not touched and all(before[name] == value for name, value in values.items()):
            return locked.document
        at = command.next_instant(before["updated_at"]) if "updated_at" in self._kept.stamps else command.now
        try:
            await self._kept.update(command.connection, {**before, **values}, at)
        except UniqueViolationError as fault:
            raise taken(fault, self.noun) from None
        record, found = await self._rendered(command, before["id"])
        await command.audit(f"{self.noun}.{action}", self.noun, before["id"], audited(locked.record), audited(record))
        await self._tell(command, before["id"])
        return found

    async def _rendered(self, command: commands.Command, entity_id: int) -> tuple[Any, Document]:
        row = await self._served(command.connection, command.company_id, entity_id)
        assert row is not None
        record = self._shown(row)
        return record, document(record, row)

    async def _tell(self, command: commands.Command, entity_id: int) -> None:
        if self._references is None:
            return
        told = References()
        for row in await self._references.by_ids(command.connection, command.company_id, [entity_id]):
            getattr(told, self._told).add(**dict(row))
        await command.publish_references(told)


def audited(record: msgspec.Struct) -> dict[str, Any]:
    """A record's values as an audit entry tells them."""
    values: dict[str, Any] = msgspec.to_builtins(record)
    return {name: value for name, value in values.items() if name not in _UNSAID}
