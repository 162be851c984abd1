"""A whole import: every kind of record that a mapping makes of a file, one pass over the file for each.

Rows of a kind that is stored in an order of its own, as readings are, are sent when all of its passes are read.

The kinds are imported one after the other, each after those that it refers to. So a row may name a record that a later
row of the file makes, every pass is an import of one kind, and after an interruption the same command ends as if it had
run once.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from importing.errors import ImportFault
from importing.opening import is_pipe, opened
from importing.ordering import Order, Scan
from importing.preview import Preview, preview
from importing.reasons import Reason, Reasons
from importing.rejects import RejectsSink
from importing.rows import Faulty, Reading, Source
from importing.run import Counts, Findings, Import, Record, Report
from importing.seen import Seen
from importing.sending import ROWS_MAX

# Called after every batch whose outcome is known, with the kinds so far and the bytes of the file that were read in the
# pass of the last one.
Progress = Callable[["Outcome", int], Awaitable[None]]
# Makes the place for the rejected rows of one kind. The text is the kind's name if an import makes several of them, and
# empty otherwise. Raises ImportFault if they can't be stored.
MakeRejects = Callable[[Source, str], RejectsSink]


@dataclass(slots=True)
class KindOutcome:
    """The result for one kind."""

    kind: str
    counts: Counts
    rejects_file: Path | None = None


@dataclass(slots=True)
class Outcome:
    """The result of an import, complete or not. `reasons` are those of the rejected rows, the most frequent first;
    `unusual` says why a person should look at rows that were accepted."""

    kinds: list[KindOutcome] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    unusual: list[Reason] = field(default_factory=list)
    previews: list[Preview] = field(default_factory=list)
    """What the first rows become, if somebody asked for it; one for each record of the mapping."""

    @property
    def counts(self) -> Counts:
        """The sums over the kinds."""
        total = Counts()
        for outcome in self.kinds:
            for name, value in dataclasses.asdict(outcome.counts).items():
                setattr(total, name, getattr(total, name) + value)
        return total


class ImportStopped(ImportFault):
    """The import can't go on. `outcome` has what was done before."""

    def __init__(self, reason: str, outcome: Outcome) -> None:
        super().__init__(reason)
        self.outcome = outcome


class Passes:
    """The import of a file."""

    def __init__(self, file: Path, reading: Reading, records: Sequence[Record], rejects: MakeRejects) -> None:
        """Reads how the file is written, and compares its columns with those that the records need. Raises
        ImportFault."""
        self._file = file
        self._records = records
        self._rejects = rejects
        self._stamp = _stamp(file)
        self.reading = reading
        self.description = ""
        """How the file is read, for a person; empty if that needs no word."""
        if is_pipe(file):
            if len(records) == 1:
                return
            raise ImportFault(f"{file} can be read once only, but the mapping makes several kinds of record of it.")
        with opened(file, reading) as open_file:
            self.reading = open_file.reading
            self.description = open_file.description
            for number in range(len(records)):
                self._checked(number, open_file.source)

    def _checked(self, number: int, source: Source) -> RejectsSink:
        """Compares the columns with those that a record needs; returns the place of its rejects. Raises ImportFault."""
        record = self._records[number]
        if source.columns is not None:
            record.shape.check_columns(self._file.name, source.columns)
        kind = record.kind.name if len(self._records) > 1 else ""
        if earlier := sum(earlier_record.kind is record.kind for earlier_record in self._records[:number]):
            kind += f"-{earlier + 1}"
        return self._rejects(source, kind)

    def previews(self) -> list[Preview]:
        """What the first rows of the file become. Raises ImportFault."""
        previews = []
        for record in self._records:
            with opened(self._file, self.reading) as open_file:
                previews.append(preview(record.kind, record.shape, open_file.source))
        return previews

    async def run(self, report: Report, progress: Progress, before: Outcome | None = None) -> Outcome:
        """Imports every kind. If an import of the same file with the same records was interrupted, `before` says how
        far it came, and this one goes on from there. Raises ImportStopped."""
        before = before or Outcome()
        outcome, findings = Outcome(), Findings(Reasons(before.reasons), Reasons(before.unusual))
        seen: dict[str, Seen] = {}
        try:
            for numbers in self._together():
                await self._pass(numbers, outcome, findings, seen, report, progress, before)
        except ImportFault as error:
            raise ImportStopped(str(error), outcome) from None
        finally:
            outcome.reasons, outcome.unusual = findings.rejected.found, findings.unusual.found
            for seen_of_kind in seen.values():
                seen_of_kind.close()
        return outcome

    def _together(self) -> Iterator[range]:
        """The numbers of the records that are imported together: those of a kind that is stored in its own order."""
        begin = 0
        for number, record in enumerate(self._records, 1):
            if number < len(self._records) and record.kind.order and self._records[number].kind is record.kind:
                continue
            yield range(begin, number)
            begin = number

    async def _is_in_order(self, numbers: range, earlier: Sequence[Counts]) -> bool:
        """Whether rows of a kind with an order of its own can be sent as they are read."""
        if any(counts.read for counts in earlier):
            return True  # they were until this import was interrupted, or the release before sent them so
        if len(numbers) > 1 or is_pipe(self._file):
            return False
        record = self._records[numbers.start]
        scan = Scan(record.kind.order)
        with opened(self._file, self.reading) as open_file, contextlib.suppress(ImportFault):  # the import reports it
            for number, row in enumerate(open_file.source.rows(), 1):
                if number % ROWS_MAX == 0:
                    await asyncio.sleep(0)
                try:
                    is_sent = row.fault is None and record.shape.takes(row)
                    if is_sent and not scan.takes(record.shape.value_of(row)):
                        return False
                except Faulty:
                    continue
        return True

    async def _pass(
        self,
        numbers: range,
        outcome: Outcome,
        findings: Findings,
        seen: dict[str, Seen],
        report: Report,
        progress: Progress,
        before: Outcome,
    ) -> None:
        kind = self._records[numbers.start].kind
        if kind.name not in seen:
            seen[kind.name] = Seen()
        earlier = [outcome_of_kind.counts for outcome_of_kind in before.kinds[numbers.start : numbers.stop]]
        order = Order(kind.order) if kind.order and not await self._is_in_order(numbers, earlier) else None
        parts: list[Import] = []
        done: list[KindOutcome] = []
        fault: ImportFault | None = None

        async def acknowledged(_counts: Counts) -> None:
            outcome.reasons, outcome.unusual = findings.rejected.found, findings.unusual.found
            await progress(outcome, parts[-1].position)

        try:
            for number in numbers:
                if _stamp(self._file) != self._stamp:
                    raise ImportFault(f"{self._file} was changed while it was imported; run the import again.")
                record, counts = self._records[number], earlier[len(parts)] if len(parts) < len(earlier) else None
                with opened(self._file, self.reading) as open_file:
                    source = open_file.source
                    rejects = self._checked(number, source)
                    work = Import(record, source, rejects, findings, seen, report, counts)
                    parts.append(work)
                    done.append(KindOutcome(kind.name, work.counts))
                    outcome.kinds.append(done[-1])
                    if order is None:
                        await work.run(acknowledged)
                        continue
                    try:
                        await work.collect(order, len(parts) - 1)
                    except ImportFault as error:  # what was read before is stored all the same
                        fault = error
                        break
            if order is not None:
                await parts[-1].run_in_order(order, parts, acknowledged)
            if fault is not None:
                raise fault
        finally:
            if order is not None:
                order.close()
            for outcome_of_kind, part in zip(done, parts, strict=True):
                part.rejects.close()
                outcome_of_kind.rejects_file = part.rejects.file


def _stamp(file: Path) -> tuple[int, int] | None:
    """Changes when a file does; None for a pipe."""
    if not file.is_file():
        return None
    status = file.stat()
    return status.st_size, status.st_mtime_ns
