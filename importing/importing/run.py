"""One kind of record, from the file's first row to its last: reads, shapes, batches, sends rows, reports bad ones."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from importing.errors import ImportFault
from importing.kinds import REFERENCES, Kind
from importing.mapping import REJECT, SKIP_IDENTICAL
from importing.ordering import Order
from importing.reasons import Example, Reason, Reasons
from importing.rejects import RejectsSink
from importing.rows import Fault, Faulty, Source, SourceRow
from importing.seen import Seen
from importing.sending import BYTES_MAX, ROWS_MAX, Entry, Sender
from importing.shapes import Shape
from importing.unusual import unusual
from makeready.common.v1 import documents_pb2 as common

# After a call begins, the event loop must run this often until gRPC has the call and sends it while we read on.
STEPS_TO_LEAVE = 8

Report = Callable[[Reason, Example], None]


@dataclass(slots=True)
class Counts:
    """The number of rows by outcome; `read` is the sum of the next four. The mapping leaves `skipped` rows out.

    While rows are sent in another order than the file's, `read` is 0: whoever goes on with such an import by the number
    of rows that were read, as the release before does, begins the file anew and loses none.
    """

    read: int = 0
    created: int = 0
    changed: int = 0
    unchanged: int = 0
    rejected: int = 0
    skipped: int = 0

    @property
    def stored(self) -> int:
        return self.created + self.changed + self.unchanged

    @property
    def settled(self) -> int:
        """The number of rows whose outcome is known."""
        return self.stored + self.rejected


class Findings(NamedTuple):
    """Why rows were rejected, and why a person should look at others that were accepted."""

    rejected: Reasons
    unusual: Reasons


@dataclass(frozen=True, slots=True)
class Record:
    """One kind of record that a file becomes."""

    kind: Kind
    shape: Shape
    sender: Sender


class Import:
    """The import of one kind of record."""

    def __init__(
        self,
        record: Record,
        source: Source,
        rejects: RejectsSink,
        findings: Findings,
        seen: dict[str, Seen],
        report: Report,
        before: Counts | None = None,
    ) -> None:
        """`seen` has this kind and those that were imported before it. `report` is called with the first rejected rows
        of each reason. `before` has the counts of an import of the same file that was interrupted; its rows are read
        and not sent again, and this import goes on from them."""
        self._kind, self._shape, self._sender = record.kind, record.shape, record.sender
        self._source = source
        self.rejects = rejects
        self._findings = findings
        self._all_seen = seen
        self._seen = seen[record.kind.name]
        self._report = report
        self._away: tuple[list[Entry], asyncio.Task[list[common.ImportResult]]] | None = None
        # Rows that the mapping leaves out are counted anew, as they are read ahead of what is acknowledged.
        self.counts = replace(before, skipped=0) if before else Counts()
        self._settled = self.counts.settled
        self._order: Order | None = None
        self._file_bytes = 0
        self._parts: Sequence[Import] = (self,)

    @property
    def position(self) -> int:
        """How far the import is, in bytes of the file."""
        if self._order is None:
            return self._source.position
        settled = sum(part.counts.settled for part in self._parts)
        return self._file_bytes * settled // max(1, self._order.count)

    async def run(self, progress: Callable[[Counts], Awaitable[None]]) -> Counts:
        """Imports the whole file. Calls `progress` after every batch whose outcome is known.

        The next batch is read while one is with the owner. Only one is sent at a time, so that the owner handles the
        rows, and the command reports them, in the order of the file.
        """
        await self._send(self._batches(), progress)
        return self.counts

    async def collect(self, order: Order, part: int) -> None:
        """Puts all rows of the file in an order that several imports may share; `run_in_order` then sends them. part:
        the number of this import among them. Raises ImportFault if the file can't be read further."""
        batch: list[Entry] = []
        try:
            for number, row in enumerate(self._source.rows(), 1):
                entry = self._entry(row)
                if entry is None:
                    self.counts.skipped += 1
                else:
                    entry.part = part
                    batch.append(entry)
                if number % ROWS_MAX == 0:
                    self._put(batch, order)
                    batch = []
                    await asyncio.sleep(0)
        finally:
            self._put(batch, order)
            self._file_bytes = self._source.position

    def _put(self, batch: list[Entry], order: Order) -> None:
        self._find_repeated(batch)
        for entry in batch:
            order.add(entry)

    async def run_in_order(
        self, order: Order, parts: Sequence[Import], progress: Callable[[Counts], Awaitable[None]]
    ) -> None:
        """Sends the rows that `parts` have collected. An import that was interrupted goes on behind the rows that it
        has settled: the order is the same each time."""
        self._order, self._parts = order, parts
        entries = itertools.islice(order.entries(), sum(part.counts.settled for part in parts), None)
        await self._send(_in_batches(entries), progress)
        for part in parts:
            part.counts.read = part.counts.settled

    async def _send(self, batches: Iterator[list[Entry]], progress: Callable[[Counts], Awaitable[None]]) -> None:
        try:
            for batch in batches:
                if not batch:
                    await asyncio.sleep(0)
                    continue
                await self._settle_away(progress)
                self._away = batch, asyncio.create_task(self._sender.send(batch))
                for _ in range(STEPS_TO_LEAVE):
                    await asyncio.sleep(0)
            await self._settle_away(progress)
        except ImportFault:
            # The file can't be read further; the outcome of the batch under way is still reported. If sending failed,
            # none is under way.
            await self._settle_away(progress)
            raise
        finally:
            if self._away is not None:
                self._away[1].cancel()

    async def _settle_away(self, progress: Callable[[Counts], Awaitable[None]]) -> None:
        if self._away is not None:
            (batch, answers), self._away = self._away, None
            self._settle(batch, await answers)
            await progress(self.counts)

    def _batches(self) -> Iterator[list[Entry]]:
        """The batches to send. An empty one after every ROWS_MAX rows: rows that are not sent may be many, and other
        tasks of the event loop must run meanwhile."""
        batch: list[Entry] = []
        size = read = 0
        for number, row in enumerate(self._source.rows(), 1):
            if number % ROWS_MAX == 0:
                yield []
            entry = self._entry(row)
            if entry is None:
                self.counts.skipped += 1
                continue
            read += 1
            if read <= self._settled:
                batch.append(entry)
                if len(batch) == ROWS_MAX or read == self._settled:
                    self._find_repeated(batch)  # so that later rows find them; they are not sent again
                    batch = []
                continue
            if len(batch) == ROWS_MAX or (batch and size + len(entry.sent) > BYTES_MAX):
                self._find_repeated(batch)
                yield batch
                batch, size = [], 0
            batch.append(entry)
            size += len(entry.sent)
        if batch:
            self._find_repeated(batch)
            yield batch

    def _entry(self, row: SourceRow) -> Entry | None:
        """The row as a batch entry; None if the mapping leaves it out."""
        if row.fault is not None:
            return Entry(row, fault=row.fault)
        try:
            if not self._shape.takes(row):
                return None
            external_id, sent = self._shape.row(row)
        except Faulty as faulty:
            return Entry(row, fault=faulty.fault)
        # The owner reports an external_id that is no text.
        return Entry(row, sent, None, external_id if isinstance(external_id, str) else "")

    def _find_repeated(self, batch: list[Entry]) -> None:
        """Does not send rows whose external_id an earlier row had; marks those as faulty that may not repeat it."""
        named = [entry for entry in batch if entry.external_id]
        repeated = self._seen.repeated([(entry.external_id, entry.row.line, entry.sent) for entry in named])
        for place, earlier in repeated.items():
            entry = named[place]
            entry.sent = b""
            if self._shape.duplicates == REJECT:
                entry.fault = self._repeats(entry, earlier.line, "")
            elif self._shape.duplicates == SKIP_IDENTICAL and not earlier.is_identical:
                entry.fault = self._repeats(entry, earlier.line, ", with other values")

    def _repeats(self, entry: Entry, line: int, difference: str) -> Fault:
        return Fault(
            "external_id",
            f"stands in line {line} of the file already{difference}",
            f"stands in an earlier line of the file already{difference}",
            entry.external_id,
            self._shape.origin("external_id"),
        )

    def _settle(self, batch: list[Entry], answers: list[common.ImportResult]) -> None:
        results = iter(answers)
        for entry in batch:
            self._parts[entry.part].settle(entry, results)
        if self._order is None:
            self.counts.read += len(batch)
        for part in self._parts:
            part.rejects.flush()

    def settle(self, entry: Entry, results: Iterator[common.ImportResult]) -> None:
        """Counts the outcome of a row, the next of the results if it was sent, and reports it if it is bad."""
        if entry.fault is not None:
            self._reject(entry.row, entry.fault)
        elif not entry.sent:
            self.counts.unchanged += 1
        else:
            self._count(entry, next(results))

    def _count(self, entry: Entry, result: common.ImportResult) -> None:
        if result.outcome == common.IMPORT_OUTCOME_CREATED:
            self.counts.created += 1
        elif result.outcome == common.IMPORT_OUTCOME_CHANGED:
            self.counts.changed += 1
        elif result.outcome == common.IMPORT_OUTCOME_UNCHANGED:
            self.counts.unchanged += 1
        else:
            refused = self._of_a_dry_run(entry, result) if self._sender.is_dry_run else result
            if refused is None:
                self.counts.created += 1
                self._look_at(entry)
                return
            value, columns = _value(entry.sent, refused.field), self._shape.origin(refused.field)
            self._reject(entry.row, Fault(refused.field, refused.reason, "", value, columns))
            return
        self._look_at(entry)

    def _look_at(self, entry: Entry) -> None:
        """Notes what is unusual about a row that is accepted."""
        if odd := unusual(self._kind.name, entry.sent):
            odd = replace(odd, columns=self._shape.origin(odd.field))
            self._findings.unusual.add(self._kind.name, entry.row.line, odd)

    def _of_a_dry_run(self, entry: Entry, result: common.ImportResult) -> common.ImportResult | None:
        """A dry run's refusal; None if the row lacks nothing but records that the same import makes before it."""
        is_unknown = "with that external_id is known" in result.reason
        if is_unknown and REFERENCES.get(result.field) in self._all_seen:
            for field, kind in REFERENCES.items():
                if field == "location" != result.field:
                    continue  # it may be the name of a place
                name = _value(entry.sent, field) if kind in self._all_seen else None
                if name and not self._all_seen[kind].has_record(name):
                    reason = f"No {field} with that external_id is known."
                    result = common.ImportResult(line=result.line, field=field, reason=reason)
                    break
            else:
                return None
        if entry.external_id:
            self._seen.forget(entry.external_id)
        return result

    def _reject(self, row: SourceRow, fault: Fault) -> None:
        self.counts.rejected += 1
        self.rejects.add(row, fault)
        if first := self._findings.rejected.add(self._kind.name, row.line, fault):
            self._report(*first)


def _in_batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        if len(batch) == ROWS_MAX or (batch and size + len(entry.sent) > BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += len(entry.sent)
    if batch:
        yield batch


def _value(sent: bytes, field: str) -> str | None:
    """The value of a field that was sent, as a text; None if there is none."""
    value = msgspec.json.decode(sent).get(field)
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
