"""Rows in the order of some of their columns, whatever the order of the file, in bounded memory.

Rows are collected, sorted in runs and merged. Runs are in a temporary file, compressed. A file of one run needs none.
Collecting takes as long as sending, and a file that is in order need not be collected. So the file is scanned first:
`Scan` reads the columns of the order alone, and stops at the first row that is out of order.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import marshal
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import msgspec

from chassis.records import bodies
from importing.errors import ImportFault
from importing.kinds import Column
from importing.rows import Fault, SourceRow
from importing.sending import Entry

RUN_ROWS, RUN_BYTES = 50_000, 16 * 1024 * 1024
# Of each run one block is in memory while the runs are merged: 100 runs, of two million rows, take 5 MB.
BLOCK_ROWS = 64

# A scan remembers the last period of so many meters.
GROUPS_MAX = 100_000

# A row's key, its number in the order of `add`, and the fields of its entry.
_Row = tuple[tuple[Any, ...], int, tuple[Any, ...]]


class Order:
    """Takes the entries of a file, and returns them in the order of their values in the columns: texts and instants.

    Entries with equal values stay in the order of the file. An entry that is not sent, or lacks a usable value, which
    the owner reports, comes before all others.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._decode = msgspec.json.Decoder(
            msgspec.defstruct("Values", [(column.name, str) for column in columns])
        ).decode
        self._readers = [(column.name, _READERS[column.type]) for column in columns]
        self._run: list[_Row] = []
        self._run_bytes = 0
        self._runs: list[list[tuple[int, int]]] = []
        """The place and length of each block in the temporary file, by run."""
        self._file: IO[bytes] | None = None
        self.count = 0
        """How many entries it has."""

    def add(self, entry: Entry) -> None:
        """Raises ImportFault if the temporary file can't be written."""
        row, fault = entry.row, entry.fault
        kept = (
            (row.line, row.kept, bool(row.values), row.json is not None, row.has_reject_columns, row.number),
            entry.sent,
            None if fault is None else (fault.field, fault.reason, fault.cause, fault.value, fault.columns),
            entry.external_id,
            entry.part,
        )
        self._run.append((self._key(entry), self.count, kept))
        self._run_bytes += len(row.kept) + len(entry.sent)
        self.count += 1
        if len(self._run) == RUN_ROWS or self._run_bytes > RUN_BYTES:
            self._write_run()

    def entries(self) -> Iterator[Entry]:
        """All entries, in order, once. Raises ImportFault if the temporary file can't be read."""
        self._run.sort()
        runs = [self._stored(blocks) for blocks in self._runs]
        for _, _, (row, sent, fault, external_id, part) in heapq.merge(*runs, self._run):
            line, kept, has_values, is_json, has_reject_columns, number = row
            source = SourceRow(
                line, kept, {"": ""} if has_values else {}, None, "" if is_json else None, has_reject_columns, number
            )
            yield Entry(source, sent, None if fault is None else Fault(*fault), external_id, part)

    def close(self) -> None:
        """Deletes the temporary file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk, which was reported
                self._file.close()

    def _key(self, entry: Entry) -> tuple[Any, ...]:
        if not entry.sent or entry.fault is not None:
            return ()
        try:
            values = self._decode(entry.sent)
            return tuple(read(getattr(values, name)) for name, read in self._readers)
        except (msgspec.MsgspecError, ValueError):
            return ()

    def _write_run(self) -> None:
        self._run.sort()
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
            blocks = []
            for at in range(0, len(self._run), BLOCK_ROWS):
                block = zlib.compress(marshal.dumps(self._run[at : at + BLOCK_ROWS]), 1)
                blocks.append((self._file.tell(), len(block)))
                self._file.write(block)
            self._file.flush()
        except OSError as error:
            raise _unusable(error) from None
        self._runs.append(blocks)
        self._run, self._run_bytes = [], 0

    def _stored(self, blocks: list[tuple[int, int]]) -> Iterator[_Row]:
        assert self._file is not None
        for place, length in blocks:
            try:
                block = os.pread(self._file.fileno(), length, place)
            except OSError as error:
                raise _unusable(error) from None
            yield from marshal.loads(zlib.decompress(block))  # noqa: S302 - this process wrote it


def _unusable(error: OSError) -> ImportFault:
    return ImportFault(f"The temporary file of this import can't be used: {error.strerror or error}.")


class Scan:
    """Looks whether the rows of a file are in order already: those with one value in the first of the columns, as the
    readings of one meter, ascend in the others."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """The columns are two or more."""
        self._group, self._first, *self._others = (column.name for column in columns)
        self._last: dict[Any, tuple[Any, Callable[[str], Any]]] = {}

    def takes(self, value_of: Callable[[str], Any]) -> bool:
        """Whether the file is in order as far as this row. `value_of` gives the row's value of a column. The columns
        behind the first two are read only where the first two are those of the row before."""
        group, value = value_of(self._group), value_of(self._first)
        last = self._last.get(group)
        self._last[group] = value, value_of
        if last is None:
            return len(self._last) <= GROUPS_MAX
        before, before_of = last
        if before != value:
            return _is_before(before, value)
        for name in self._others:
            before, value = before_of(name), value_of(name)
            if before != value:
                return _is_before(before, value)
        return True


def _is_before(earlier: Any, later: Any) -> bool:
    """False also if either is no instant: the owner reports it, and it belongs nowhere."""
    try:
        if len(earlier) == len(later) and earlier[10:11] == later[10:11] and earlier[-1] == later[-1] == "Z":
            return bool(earlier < later)
        return _instant(earlier) < _instant(later)
    except (TypeError, ValueError):
        return False


@functools.lru_cache(maxsize=4096)  # the end of a period is the beginning of the next one
def _instant(text: str) -> float:
    """Seconds since the epoch. Raises ValueError."""
    instant = bodies.date_time(f"{text}T00:00:00Z" if len(text) == 10 else text)  # as `bodies.check_row` reads it
    if instant is None:
        raise ValueError
    return instant.timestamp()


_READERS: dict[str, Callable[[str], Any]] = {"text": str, "date-time": _instant}
