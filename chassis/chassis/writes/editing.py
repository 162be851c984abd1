"""Records that people add and change in the back office: one editor for every kind of record.

A command's request names fields of a record. `EditableFields` checks them by the rules of the record's row in an
import. `RecordEditor` locks the record, saves it, audits what differs, and publishes references to it for other
contexts' replicas. A context writes only what is special about its record.
"""

from __future__ import annotations

import datetime
import functools
import typing
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from asyncpg import Record, UniqueViolationError
from google.protobuf.message import Message
from sqlalchemy import BigInteger, Table, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from chassis.db.database import Connection
from chassis.db.statements import NewValues, Statement, Values, param
from chassis.records import bodies
from chassis.records.shapes import Renderer
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, fields
from makeready.common.v1 import options_pb2
from makeready.common.v1.documents_pb2 import Document
from makeready.events.v1.events_pb2 import References

# An audit entry has columns for the record and the instant.
_NOT_AUDITED = frozenset({"schema_version", "entity_type", "entity_id", "created_at", "updated_at", "source", "url"})

Struct = TypeVar("Struct", bound=msgspec.Struct)
# Reads the references to a record for other contexts' replicas. Arguments: connection, company id, record id.
ReferencesOf = Callable[[Connection, int, int], Awaitable[References]]
# The values of an audit entry, by name. Arguments: the public record, and the columns that people set.
AuditedOf = Callable[[Any, Values], Values]


def no_such(noun: str) -> Refusal:
    """The same sentence for a missing record and for another company's."""
    return Refusal(404, "not_found", f"The company has no {noun} with that id; check the id.")


class EditableFields:
    """The fields of a record that requests may set, checked by the rules of the record's row in an import."""

    def __init__(
        self,
        row: type[msgspec.Struct],
        *names: str,
        ids: Sequence[str] = (),
        clearable: Collection[str] | None = None,
    ) -> None:
        """Requests and rows share the fields `names`; the request fields `ids` name other records by id. Requests may
        clear the fields `clearable`, by default all that the row does not require."""
        self._clearable = clearable
        hints = typing.get_type_hints(row, include_extras=True) | dict.fromkeys(ids, bodies.RecordId)
        definitions: list[Any] = [(name, typing.Optional[hints[name]], None) for name in (*ids, *names)]  # noqa: UP045
        self._kind = msgspec.defstruct(row.__name__, definitions, kw_only=True)
        plain = typing.get_type_hints(row)
        instant = datetime.datetime
        self._instants = {name for name in names if instant in (plain[name], *typing.get_args(plain[name]))}
        needed = {field.name for field in msgspec.structs.fields(row) if field.required}
        # A row names other records by external_id in a field `place`, a request by id in `place_id`.
        self._required = {*needed, *(f"{name}_id" for name in needed)} - {"external_id"}

    def of(self, request: Message) -> NewValues:
        """The values that the request sets, by name; None for a cleared field. Raises Refusal 400 or 422."""
        descriptors: Any = request.DESCRIPTOR.fields_by_name
        sent = fields(request, *(name for name in self._kind.__struct_fields__ if name in descriptors))
        for name, value in sent.items():
            if value is None and self._clearable is not None and name not in self._clearable:
                raise invalid_request(f"clear may name {', '.join(sorted(self._clearable))} only.", "clear")
            if descriptors[name].enum_type is not None and value is not None:
                sent[name] = _label(descriptors[name].enum_type, value)
            elif name in self._instants and type(value) is str and len(value) == len("YYYY-MM-DD"):
                sent[name] = f"{value}T00:00:00Z"
        checked = bodies.check(self._kind, sent)
        values = {name: getattr(checked, name) for name in sent}
        for name in self._required & values.keys():
            if values[name] is None:
                raise invalid_request(f"{name} can't be cleared.", name)
        return values


def _label(enum: Any, number: int) -> str:
    """How the public API spells an enum's value; "" for an unknown one, which the field's check refuses."""
    value = enum.values_by_number.get(number)
    return "" if value is None else value.GetOptions().Extensions[options_pb2.label]


def external_id_taken(fault: UniqueViolationError, noun: str, called: str = "") -> Exception:
    """The refusal if another record of the kind has the external_id; else the fault itself. For `called`
    see `RecordWording`."""
    if fault.constraint_name != f"{noun}_external_id":
        return fault
    name = called or noun
    article = "An" if name[0] in "aeio" else "A"
    return invalid_request(f"{article} {name} with that external_id exists; use another.", "external_id", status=422)


_STAMPS = ("created_at", "updated_at", "version")


class EditableTable:
    """The rows of a table that people edit. Its key is company_id and id; it has external_id, source and created_at.

    People set its `columns`, besides external_id. The rows meet the further conditions `also`. Only changes set the
    columns `later`; a new record has the table's defaults.
    """

    def __init__(
        self, table: Table, *columns: str, also: Sequence[ColumnElement[bool]] = (), later: Sequence[str] = ()
    ) -> None:
        self.columns = ("external_id", *(name for name in columns if name not in _STAMPS))
        self._first = [name for name in self.columns if name not in later]
        self.stamps = tuple(name for name in _STAMPS if name in table.c)
        same = (table.c.company_id == param("company_id", BigInteger), table.c.id == param("entity_id", BigInteger))
        there = (*same, *also)
        self._for_update = Statement(select(table).where(*there).with_for_update(key_share=True))
        self._stored = Statement(select(table).where(*there).with_for_update(read=True, key_share=True))
        fresh = ("company_id", "source", *self._first, *(name for name in self.stamps if name != "version"))
        self._insert = Statement(
            insert(table).values({name: param(name, table.c[name].type) for name in fresh}).returning(table.c.id)
        )
        values: NewValues = {name: param(f"new_{name}", table.c[name].type) for name in self.columns}
        if "updated_at" in self.stamps:
            values["updated_at"] = param("new_updated_at", table.c.updated_at.type)
        if "version" in self.stamps:
            values["version"] = table.c.version + 1
        self._update = Statement(update(table).where(*same).values(values))

    async def for_update(self, connection: Connection, company_id: int, entity_id: int) -> Record | None:
        """The company's record, locked against changes."""
        return await connection.row(self._for_update, company_id=company_id, entity_id=entity_id)

    async def stored(self, connection: Connection, company_id: int, entity_id: int) -> Record | None:
        """The company's row, locked against deletion and key changes until the commit."""
        return await connection.row(self._stored, company_id=company_id, entity_id=entity_id)

    async def insert(self, connection: Connection, company_id: int, values: Values, at: datetime.datetime) -> int:
        """The id of the new record; columns without a value are null."""
        row: NewValues = {**dict.fromkeys(self._first), **values}
        stamped = {name: at for name in self.stamps if name != "version"}
        entity_id: int = await connection.value(self._insert, company_id=company_id, source="staff", **row, **stamped)
        return entity_id

    async def update(self, connection: Connection, row: Values, at: datetime.datetime) -> None:
        """Saves the whole record, as it is after the change."""
        values = {f"new_{name}": row[name] for name in self.columns}
        if "updated_at" in self.stamps:
            values["new_updated_at"] = at
        await connection.execute(self._update, company_id=row["company_id"], entity_id=row["id"], **values)


@dataclass(frozen=True, slots=True)
class LockedRecord(Generic[Struct]):
    """A record that is locked for a change: its row, the public record, and that record as a document.

    The `facts` are the row of the public record's statement; by name, its further columns decide on the change.
    """

    row: Record
    record: Struct
    document: Document
    facts: Record


@dataclass(frozen=True, slots=True)
class SavedRecord(Generic[Struct]):
    """A saved record: the public record, and that record as a document."""

    record: Struct
    document: Document


@dataclass(frozen=True, slots=True)
class RecordWording:
    """How refusals speak of a record: what it is `called`, if not by its noun, and the refusal of a `missing` one."""

    called: str = ""
    missing: Callable[[], Refusal] | None = None


PLAIN = RecordWording()


class RecordEditor(Generic[Struct]):
    """Adds and changes the records of one kind."""

    def __init__(
        self,
        noun: str,
        table: EditableTable,
        record: Statement,
        renderer: Renderer[Struct],
        references: ReferencesOf | None = None,
        *,
        audit: AuditedOf | None = None,
        replicated: Sequence[str] = (),
        wording: RecordWording = PLAIN,
    ) -> None:
        """The audit log names the kind by its `noun`. The statement `record` reads, for company_id and entity_id, the
        columns of the renderer's shape, then further columns that decide on a change. After each change `references`
        are published; if `replicated` names audited values, only after a change of these. `audit` gives the values of
        audit entries: those of the public record by default, see also `audited_columns`.
        """
        self.noun = noun
        self.table = table
        self._record = record
        self._renderer = renderer
        self._references = references
        self._audit: AuditedOf = audit or _audit_record
        self._replicated = replicated
        self._called = wording.called or noun
        self._missing = wording.missing or functools.partial(no_such, noun)

    async def find(self, command: Command, entity_id: int) -> Record:
        """The record's row, locked against deletion until the commit. Raises Refusal 404."""
        row = await self.table.stored(command.connection, command.company_id, entity_id)
        if row is None:
            raise self._missing()
        return row

    async def lock(self, command: Command, entity_id: int) -> LockedRecord[Struct]:
        """The record, locked for a change. Raises Refusal 404."""
        row = await self.table.for_update(command.connection, command.company_id, entity_id)
        if row is None:
            raise self._missing()
        return LockedRecord(row, *await self._read(command, entity_id))

    async def add(self, command: Command, values: Values, action: str = "added") -> Document:
        """As `save_new`; returns only the document."""
        return (await self.save_new(command, values, action)).document

    async def save_new(
        self,
        command: Command,
        values: Values,
        action: str = "added",
        parts: Callable[[int], Awaitable[None]] | None = None,
        at: datetime.datetime | None = None,
    ) -> SavedRecord[Struct]:
        """Inserts a record. The audit log calls that `action`. The record's rows in other tables are saved by `parts`,
        with its id. Its instant is `at`, if not the command's. Raises Refusal 422 for an external_id that is taken."""
        try:
            entity_id = await self.table.insert(command.connection, command.company_id, values, at or command.now)
        except UniqueViolationError as fault:
            raise external_id_taken(fault, self.noun, self._called) from None
        if parts is not None:
            await parts(entity_id)
        saved = SavedRecord(*await self.rendered(command, entity_id))
        after = self._audit(saved.record, {**dict.fromkeys(self.table.columns), **values})
        await command.audit(f"{self.noun}.{action}", self.noun, entity_id, {}, after)
        await self._publish_references(command, entity_id)
        return saved

    async def change(
        self,
        command: Command,
        locked: LockedRecord[Struct],
        values: Values,
        touched: bool = False,
        action: str = "updated",
        at: datetime.datetime | None = None,
        also: Values | None = None,
    ) -> Document:
        """As `save`; returns only the document."""
        return (await self.save(command, locked, values, touched, action, at, also)).document

    async def save(
        self,
        command: Command,
        locked: LockedRecord[Struct],
        values: Values,
        touched: bool = False,
        action: str = "updated",
        at: datetime.datetime | None = None,
        also: Values | None = None,
    ) -> SavedRecord[Struct]:
        """Saves the record with these values; does nothing if they change nothing.

        A record that is `touched` changes in other tables, though not in its own columns. The audit log calls the
        change `action`, with the further values `also`. Its instant is `at`, if already decided; it is later than the
        record's last change. Raises Refusal 422 for an external_id that is taken.
        """
        before = locked.row
        if not touched and all(before[name] == value for name, value in values.items()):
            return SavedRecord(locked.record, locked.document)
        if at is None:
            at = command.next_instant(before["updated_at"]) if "updated_at" in self.table.stamps else command.now
        row = {**before, **values}
        try:
            await self.table.update(command.connection, row, at)
        except UniqueViolationError as fault:
            raise external_id_taken(fault, self.noun, self._called) from None
        saved = SavedRecord(*await self.rendered(command, before["id"]))
        sides = self._audit(locked.record, dict(before)), self._audit(saved.record, row)
        after = {**sides[1], **(also or {})}
        await command.audit(f"{self.noun}.{action}", self.noun, before["id"], sides[0], after)
        if not self._replicated or any(sides[0][name] != sides[1][name] for name in self._replicated):
            await self._publish_references(command, before["id"])
        return saved

    async def rendered(self, command: Command, entity_id: int) -> tuple[Struct, Document]:
        """An existing record, and its document."""
        record, document, _ = await self._read(command, entity_id)
        return record, document

    async def _read(self, command: Command, entity_id: int) -> tuple[Struct, Document, Record]:
        row = await command.connection.row(self._record, company_id=command.company_id, entity_id=entity_id)
        assert row is not None
        columns = tuple(row)[: len(self._renderer.shape.columns)]
        return *self._renderer.record_and_document(columns), row

    async def _publish_references(self, command: Command, entity_id: int) -> None:
        if self._references is not None:
            await command.publish_references(await self._references(command.connection, command.company_id, entity_id))


def audited(record: msgspec.Struct) -> NewValues:
    """The values of a record that an audit entry holds, by name."""
    values: NewValues = msgspec.to_builtins(record)
    return {name: value for name, value in values.items() if name not in _NOT_AUDITED}


def _audit_record(record: msgspec.Struct, _row: Values) -> NewValues:
    return audited(record)


def audited_columns(names: Sequence[str]) -> AuditedOf:
    """For a kind whose audit entries hold these columns instead of the public record's values."""
    return lambda _record, row: {name: row[name] for name in names}
