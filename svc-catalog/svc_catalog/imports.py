"""Batches of an import: checked, resolved, compared with what is there, and saved together.

A column that the file has and that is blank in a row clears the field; a column that the file lacks leaves it.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from asyncpg import Record

from chassis import bodies, identity
from chassis.database import Connection, Database
from chassis.outbox import Outbox
from chassis.refusals import Refusal, invalid_request
from makeready.common.v1 import documents_pb2 as common
from makeready.events.v1.events_pb2 import References
from svc_catalog import queries_import as q
from svc_catalog import records_import as records

CREATED, CHANGED = common.IMPORT_OUTCOME_CREATED, common.IMPORT_OUTCOME_CHANGED
UNCHANGED, REJECTED = common.IMPORT_OUTCOME_UNCHANGED, common.IMPORT_OUTCOME_REJECTED
ROWS_MAX = 500
_TICK = datetime.timedelta(microseconds=1)

Row = TypeVar("Row", records.PropertyRow, records.UnitRow, records.AssetRow)
Clock = Callable[[], datetime.datetime]


class Line(Generic[Row]):
    """A row of the file on its way into the table."""

    __slots__ = ("before", "given", "result", "row", "touched", "values")

    def __init__(self, row: Row, given: Iterable[str], result: common.ImportResult) -> None:
        self.row: Row = row
        self.given = frozenset(given)
        self.result = result
        # The record as it is, where it exists.
        self.before: Record | None = None
        # Columns as the row has them.
        self.values: dict[str, Any] = {name: getattr(row, name) for name in self.given}
        # Whether the record changes by what it names, though not in its own columns.
        self.touched = False

    def stored(self, column: str) -> Any:
        return None if self.before is None else self.before[column]


class Batch(Generic[Row]):
    """The rows of one request. `good` shrinks as rows are rejected; `results` reports on all of them."""

    def __init__(self, kind: type[Row], company_id: int, sent: Sequence[common.ImportRow]) -> None:
        if len(sent) > ROWS_MAX:
            raise invalid_request(f"A batch holds at most {ROWS_MAX} rows.")
        self.company_id = company_id
        self.moment = datetime.datetime.min
        self.results = [common.ImportResult(line=row.line, outcome=UNCHANGED) for row in sent]
        self.good: dict[str, Line[Row]] = {}
        for row, result in zip(sent, self.results, strict=True):
            try:
                line: Line[Row] = Line(*_read(kind, row.json), result)
                if line.row.external_id in self.good:
                    raise invalid_request("external_id stands in the file twice.", "external_id")
                self.good[line.row.external_id] = line
            except Refusal as refusal:
                _reject(result, refusal)

    def each(self, examine: Callable[[Line[Row]], None]) -> None:
        """Does this to every good row; one that it refuses is rejected."""
        for external_id, line in list(self.good.items()):
            try:
                examine(line)
            except Refusal as refusal:
                del self.good[external_id]
                _reject(line.result, refusal)

    def named(self, field: str) -> list[str]:
        """The external ids that the good rows give in this field."""
        return sorted({name for line in self.good.values() if (name := getattr(line.row, field)) is not None})

    async def meet(self, connection: Connection, stored: q.Stored) -> None:
        """Finds the records that exist already, and locks them."""
        for external_id, row in (await stored.for_update(connection, self.company_id, list(self.good))).items():
            self.good[external_id].before = row

    async def save(self, connection: Connection, stored: q.Stored, defaults: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Inserts and updates what differs; returns the rows that did, with their ids and versions."""
        fresh, changed = [], []
        for line in self.good.values():
            after = self._after(line, stored, defaults)
            if line.before is None:
                line.result.outcome = CREATED
                fresh.append(after)
            elif line.touched or any(after[name] != line.before[name] for name in stored.changeable):
                line.result.outcome = CHANGED
                changed.append(after)
        await stored.insert(connection, fresh)
        await stored.update(connection, changed)
        return fresh + changed

    def _after(self, line: Line[Row], stored: q.Stored, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """The whole record as it will be."""
        before = line.before
        values = {name: line.values[name] for name in stored.changeable if name in line.values}
        after: dict[str, Any] = dict.fromkeys(stored.changeable) if before is None else dict(before)
        after |= values
        for name, default in defaults.items():
            if after[name] is None:
                after[name] = default
        if after["created_at"] is None:
            after["created_at"] = self.moment if before is None else before["created_at"]
        after |= {"company_id": self.company_id, "external_id": line.row.external_id, "source": "import"}
        after["version"] = 1 if before is None else before["version"] + 1
        updated_at = max(self.moment, after["created_at"])
        if before is not None and "updated_at" in before:
            updated_at = max(updated_at, before["updated_at"] + _TICK)
        after["updated_at"] = updated_at
        return after


def _read(kind: type[Row], json: bytes) -> tuple[Row, Iterable[str]]:
    """The checked row and the fields that it gives. Raises Refusal."""
    try:
        found = bodies.parse(json)
    except Refusal:
        raise invalid_request("The row must be one JSON object of Unicode text, without NUL.") from None
    for name in found.keys() - set(kind.__struct_fields__):
        allowed = ", ".join(kind.__struct_fields__)
        raise invalid_request(f"A row may hold these fields only: {allowed}.", name)
    return bodies.check_row(kind, found), found.keys()


def _reject(result: common.ImportResult, refusal: Refusal) -> None:
    result.outcome, result.field, result.reason = REJECTED, refusal.field, refusal.message


async def find_properties(connection: Connection, batch: Batch[records.UnitRow] | Batch[records.AssetRow]) -> None:
    """Gives every good row the property_id of the property that it names."""
    ids = await q.property_ids(connection, batch.company_id, batch.named("property"))

    def find(line: Any) -> None:
        if line.row.property not in ids:
            raise invalid_request("No property with that external_id is known.", "property")
        line.values["property_id"] = ids[line.row.property]

    batch.each(find)


class _DryRunDone(Exception):  # noqa: N818 - not an error
    """Rolls back what a dry run has tried."""


class Importer:
    """Runs batches: each is one transaction, under a lock of the company's."""

    def __init__(self, database: Database, outbox: Outbox, clock: Clock) -> None:
        self._database = database
        self._outbox = outbox
        self._clock = clock

    async def run(
        self,
        save: Callable[[Connection, Batch[Row]], Awaitable[References]],
        kind: type[Row],
        request: Any,
        call: identity.Call,
    ) -> list[common.ImportResult]:
        """What became of each row of an import request. A dry run does all of it and then undoes it."""
        company_id = identity.company_id(call)
        batch = Batch(kind, company_id, request.rows)
        if not batch.good:
            return batch.results
        try:
            async with self._database.transaction() as connection:
                await q.lock_company(connection, company_id)
                batch.moment = self._clock()
                told = await save(connection, batch)
                if request.dry_run:
                    raise _DryRunDone
                if told.ListFields():
                    event = self._outbox.references(
                        told, company_id=company_id, occurred_at=batch.moment, request_id=call.request_id
                    )
                    await self._outbox.add(connection, event)
        except _DryRunDone:
            return batch.results
        self._outbox.wake()
        return batch.results
