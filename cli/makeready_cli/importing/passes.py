"""A whole import: every kind of record that a mapping makes of a file, one pass over the file for each.

The kinds are imported one after the other, each after those that it refers to. So a row may name a record that a later
row of the file makes, every pass is an import of one kind, and after an interruption the same command ends as if it had
run once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from makeready_cli.errors import CommandError
from makeready_cli.importing.kinds import Kind
from makeready_cli.importing.opening import is_pipe, opened
from makeready_cli.importing.reasons import Reason, Reasons
from makeready_cli.importing.rejects import Rejects
from makeready_cli.importing.rows import Reading, Source
from makeready_cli.importing.run import Counts, Import, Report
from makeready_cli.importing.seen import Seen
from makeready_cli.importing.sending import Sender
from makeready_cli.importing.shapes import Shape

# Called after every batch with the kind, its counts so far and the bytes of the file that were read.
Progress = Callable[[str, Counts, int], None]


@dataclass(frozen=True, slots=True)
class Record:
    """One kind of record that a file becomes."""

    kind: Kind
    shape: Shape
    sender: Sender


@dataclass(slots=True)
class KindOutcome:
    """The result for one kind."""

    kind: str
    counts: Counts
    rejects_file: Path | None = None


@dataclass(slots=True)
class Outcome:
    """The result of an import, complete or not. reasons: of the rejected rows, the most frequent first."""

    kinds: list[KindOutcome] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        """The sums over the kinds."""
        total = Counts()
        for one in self.kinds:
            for name, value in dataclasses.asdict(one.counts).items():
                setattr(total, name, getattr(total, name) + value)
        return total


class ImportStopped(CommandError):  # noqa: N818 - what was done before it counts
    """The import can't go on. outcome: what was done before."""

    def __init__(self, reason: str, outcome: Outcome) -> None:
        super().__init__(reason)
        self.outcome = outcome


class Passes:
    """The import of a file."""

    def __init__(
        self, file: Path, reading: Reading, records: Sequence[Record], rejects: Path | None, folder: Path
    ) -> None:
        """Reads how the file is written, and compares its columns with those that the records need. rejects: the
        rejects file; None: a new one in the folder. Raises CommandError."""
        self._file = file
        self._records = records
        self._rejects = rejects
        self._folder = folder
        self._stamp = _stamp(file)
        self.reading = reading
        self.description = ""
        """How the file is read, for a person; empty if that needs no word."""
        if is_pipe(file):
            if len(records) == 1:
                return
            raise CommandError(f"{file} can be read once only, but the mapping makes several kinds of record of it.")
        with opened(file, reading) as found:
            self.reading = found.reading
            self.description = found.description
            for number in range(len(records)):
                self._checked(number, found.source)

    def _checked(self, number: int, source: Source) -> Rejects:
        """Compares the columns with those that a record needs; returns its rejects file. Raises CommandError."""
        record = self._records[number]
        if source.columns is not None:
            record.shape.check_columns(self._file.name, source.columns)
        kind = record.kind.name if len(self._records) > 1 else ""
        if earlier := sum(one.kind is record.kind for one in self._records[:number]):
            kind += f"-{earlier + 1}"
        return Rejects(self._file, source, self._rejects, self._folder, kind)

    async def run(self, report: Report, progress: Progress) -> Outcome:
        """Imports every kind. Raises ImportStopped."""
        outcome, reasons = Outcome(), Reasons()
        seen: dict[str, Seen] = {}
        try:
            for number in range(len(self._records)):
                await self._pass(number, outcome, reasons, seen, report, progress)
        except CommandError as error:
            raise ImportStopped(str(error), outcome) from None
        finally:
            outcome.reasons = reasons.found
            for one in seen.values():
                one.close()
        return outcome

    async def _pass(
        self,
        number: int,
        outcome: Outcome,
        reasons: Reasons,
        seen: dict[str, Seen],
        report: Report,
        progress: Progress,
    ) -> None:
        record = self._records[number]
        kind = record.kind.name
        if _stamp(self._file) != self._stamp:
            raise CommandError(f"{self._file} was changed while it was imported; run the import again.")
        if kind not in seen:
            seen[kind] = Seen()
        with opened(self._file, self.reading) as found:
            source = found.source
            rejects = self._checked(number, source)
            work = Import(record.kind, source, record.shape, record.sender, rejects, reasons, seen, report)
            done = KindOutcome(kind, work.counts)
            outcome.kinds.append(done)
            try:
                await work.run(lambda counts: progress(kind, counts, source.position))
            finally:
                rejects.close()
                done.rejects_file = rejects.file


def _stamp(file: Path) -> tuple[int, int] | None:
    """Changes when a file does; None for a pipe."""
    if not file.is_file():
        return None
    found = file.stat()
    return found.st_size, found.st_mtime_ns
