"""One import from the file's first row to its last: read, shaped, batched, sent, and every bad row told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.cli.failures import printable
from gateway.cli.importing.mapping import REJECT, SKIP_IDENTICAL
from gateway.cli.importing.rejects import Rejects
from gateway.cli.importing.rows import Fault, Faulty, Source, SourceRow
from gateway.cli.importing.seen import Seen
from gateway.cli.importing.sending import BYTES_MAX, ROWS_MAX, Entry, Sender
from gateway.cli.importing.shapes import Shape
from makeready.common.v1 import documents_pb2 as common


@dataclass(slots=True)
class Counts:
    """What became of the rows; read is the sum of the others."""

    read: int = 0
    created: int = 0
    changed: int = 0
    unchanged: int = 0
    rejected: int = 0


class Import:
    """The work of one `makeready import`."""

    def __init__(
        self, file: Path, source: Source, shape: Shape, sender: Sender, rejects: Rejects, say: Callable[[str], None]
    ) -> None:
        """say: tells the operator one line."""
        self._file = file
        self._source = source
        self._shape = shape
        self._sender = sender
        self._rejects = rejects
        self._say = say
        self._seen = Seen()
        self.counts = Counts()

    async def run(self, progress: Callable[[Counts], None]) -> Counts:
        """Imports the whole file. progress: called after every batch."""
        try:
            for batch in self._batches():
                await self._settle(batch)
                self._rejects.flush()
                progress(self.counts)
        finally:
            self._seen.close()
        return self.counts

    def _batches(self) -> Iterator[list[Entry]]:
        batch: list[Entry] = []
        size = 0
        for row in self._source.rows():
            entry = self._entry(row)
            if entry is None:
                continue
            if len(batch) == ROWS_MAX or (batch and size + len(entry.sent) > BYTES_MAX):
                yield batch
                batch, size = [], 0
            batch.append(entry)
            size += len(entry.sent)
        if batch:
            yield batch

    def _entry(self, row: SourceRow) -> Entry | None:
        """The row on its way; None where the mapping leaves it out."""
        if row.fault is not None:
            return Entry(row, fault=row.fault)
        try:
            if not self._shape.takes(row):
                return None
            external_id, sent = self._shape.row(row)
            if self._is_repeated(external_id, row.line, sent):
                return Entry(row)
            return Entry(row, sent)
        except Faulty as faulty:
            return Entry(row, fault=faulty.fault)

    def _is_repeated(self, external_id: Any, line: int, sent: bytes) -> bool:
        """Whether an earlier row stands for this one. Raises Faulty where it may not."""
        if not isinstance(external_id, str) or not external_id:
            return False  # the owner says what is wrong with it
        earlier = self._seen.first(external_id, line, sent)
        if earlier is None:
            return False
        if self._shape.duplicates == REJECT:
            raise Faulty("external_id", f"stands in line {earlier.line} of the file already")
        if self._shape.duplicates == SKIP_IDENTICAL and not earlier.is_identical:
            raise Faulty("external_id", f"stands in line {earlier.line} of the file already, with other values")
        return True

    async def _settle(self, batch: list[Entry]) -> None:
        results = iter(await self._sender.send(batch))
        for entry in batch:
            self.counts.read += 1
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
            self._reject(entry.row, Fault(result.field, result.reason))

    def _reject(self, row: SourceRow, fault: Fault) -> None:
        self.counts.rejected += 1
        self._rejects.add(row, fault)
        field = printable(fault.field) or "the row"
        self._say(f"{printable(self._file.name)}:{row.line}: {field}: {printable(fault.reason)}")
