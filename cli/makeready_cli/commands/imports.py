"""`makeready import`."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from chassis.auth.clients import ServiceUnavailable
from chassis.auth.rpcs import response_to
from chassis.writes.idempotency import KEY_CHARACTERS_MAX
from importing import delimiters, encodings, mapping_file
from importing.errors import ImportFault
from importing.kinds import KINDS, Kind
from importing.passes import ImportStopped, KindOutcome, Outcome, Passes, Progress
from importing.reasons import Example, Reason
from importing.rejects import Rejects
from importing.rows import Reading, Source
from importing.run import Counts, Record
from importing.sending import DEADLINE_SECONDS, Ask, NoAnswer, Sender
from importing.shapes import Mapped, Plain, Shape
from importing.undo import AskService, Kept, Undo, UndoOutcome, why_kept
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, ensure_company, is_transient, unavailable_message
from makeready_cli.errors import CommandError, UsageError, printable, quoted
from makeready_cli.output import Answer
from makeready_cli.parsers import Commands, command

REJECTED = 3
ALL = "all"


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "import",
        "import records from CSV, JSON lines or Excel",
        description="Creates and changes records by their external_id. Valid rows are stored. Invalid rows are "
        "reported by reason, the first ten of each in full, and written to a rejects file that can be corrected and "
        "imported again. Exits with 3 if rows were rejected. docs/imports.md has the columns of each kind and the "
        "format of a mapping.",
    )
    parser.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    parser.add_argument(
        "kind",
        metavar="KIND",
        choices=[*KINDS, ALL],
        help=f"{', '.join(KINDS)}; or {ALL}: every kind that the mapping makes",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help=".csv, .jsonl or .xlsx; .csv.gz and .jsonl.gz too")
    parser.add_argument("--mapping", metavar="FILE.toml", type=Path, help="how the file's columns become fields")
    parser.add_argument("--dry-run", action="store_true", help="check every row, change nothing")
    parser.add_argument("--events", action="store_true", help="let the public events fire")
    parser.add_argument(
        "--rejects", metavar="FILE", type=Path, help="where rejected rows go (default: a new file in this folder)"
    )
    parser.add_argument("--encoding", metavar="NAME", type=_encoding, help="of the text (default: found in the file)")
    parser.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        type=_delimiter,
        help="between the values of a CSV (default: found in the file)",
    )
    parser.add_argument("--sheet", metavar="NAME", help="of an Excel workbook with several")
    parser.add_argument(
        "--import-key", metavar="KEY", type=_import_key, help="what the import can be undone by (default: a new one)"
    )
    parser.set_defaults(run=run)
    undoing = command(
        commands,
        "import-undo",
        "undo an import: makeready import undo",
        description="Undoes an import of the last 30 days. What it created is not served any more, and comes back when "
        "a file brings its external_id again; what it changed goes back. Records that were changed since, or that "
        "others refer to, stay as they are, and are listed. Run it again to go on after an interruption, or with what "
        "stayed.",
    )
    undoing.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    undoing.add_argument("import_key", metavar="KEY", type=_import_key, help="as `makeready import` printed it")
    undoing.add_argument("--dry-run", action="store_true", help="say what would happen, change nothing")
    undoing.set_defaults(run=undo)


def _import_key(text: str) -> str:
    if not text or len(text) > KEY_CHARACTERS_MAX or not (text.isascii() and text.isprintable()):
        raise argparse.ArgumentTypeError(f"must be 1 to {KEY_CHARACTERS_MAX} printable ASCII characters")
    return text


def _encoding(text: str) -> str:
    try:
        return encodings.codec(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _delimiter(text: str) -> str:
    try:
        return delimiters.checked("\t" if text == r"\t" else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


async def run(operator: Operator, arguments: argparse.Namespace) -> Answer:
    try:
        return await _run(operator, arguments)
    except ImportFault as fault:
        raise CommandError(str(fault)) from None


async def _run(operator: Operator, arguments: argparse.Namespace) -> Answer:
    file: Path = arguments.file
    shapes, reading = _shapes(arguments)
    ask = _asking(operator, arguments.company_id)
    key = arguments.import_key or f"file-{secrets.token_hex(6)}"
    records = [
        Record(kind, shape, Sender(ask, kind, arguments.dry_run, arguments.events, import_key=key))
        for kind, shape in shapes
    ]
    # openpyxl warns of parts of a workbook that it leaves out; no row is in them.
    warnings.filterwarnings("ignore", module="openpyxl")

    def rejects(source: Source, kind: str) -> Rejects:
        return Rejects(file, source, arguments.rejects, Path.cwd(), kind)

    passes = Passes(file, reading, records, rejects)
    await ensure_company(operator, arguments.company_id)
    with _telling(file, len(records) > 1) as (say, progress):
        if passes.description:
            say(f"{printable(file.name)}: {passes.description}.")
        gc.freeze()  # the garbage collector need not walk today's objects for every batch
        try:
            outcome = await passes.run(lambda reason, example: say(_line(file, reason, example)), progress)
        except ImportStopped as stopped:
            _summarize(stopped.outcome, say)
            raise CommandError(f"{stopped} {_stored(stopped.outcome, arguments.dry_run)}") from None
        _summarize(outcome, say)
        if not arguments.dry_run and outcome.counts.created + outcome.counts.changed:
            say(f"To undo it: makeready import undo {arguments.company_id} {key}")
    return _answer(outcome, arguments.dry_run)


async def undo(operator: Operator, arguments: argparse.Namespace) -> Answer:
    """`makeready import undo`."""
    await ensure_company(operator, arguments.company_id)
    work = Undo(_asking_services(operator, arguments.company_id), arguments.import_key, dry_run=arguments.dry_run)
    try:
        outcome = await work.run(KINDS, _nobody_watches)
    except ImportFault as fault:
        raise CommandError(str(fault)) from None
    kinds = [of_kind for of_kind in outcome.kinds if of_kind.withdrawn or of_kind.restored or of_kind.kept]
    if not kinds:
        raise CommandError("Nothing is left to undo of an import with this key, or it was more than 30 days ago.")
    would = "would be " if arguments.dry_run else ""
    lines = [
        f"{of_kind.kind}: {of_kind.withdrawn} {would}withdrawn, {of_kind.restored} {would}changed back, "
        f"{of_kind.kept} kept."
        for of_kind in kinds
    ]
    lines += [_kept(reason) for reason in outcome.kept]
    value = {
        "kinds": [dataclasses.asdict(of_kind) for of_kind in kinds],
        "kept": list(map(dataclasses.asdict, outcome.kept)),
    }
    return Answer(value, "\n".join(lines))


def _kept(reason: Kept) -> str:
    """Why records stay, with the first of them."""
    names = ", ".join(map(quoted, reason.examples))
    more = ", …" if reason.records > len(reason.examples) > 0 else ""
    listed = f" ({names}{more})" if names else ""
    return f"{reason.kind} kept, because {why_kept(reason.used_by)}: {reason.records}{listed}"


async def _nobody_watches(_outcome: UndoOutcome) -> None:
    """Shows no progress."""


def _asking(operator: Operator, company_id: int) -> Ask:
    ask_service = _asking_services(operator, company_id)

    async def ask(kind: Kind, request: Any) -> Any:
        return await ask_service(kind.service, request)

    return ask


def _asking_services(operator: Operator, company_id: int) -> AskService:
    async def ask(service: str, request: Any) -> Any:
        response = response_to(type(request))
        try:
            return await operator.ask(
                service, request, response, company_id=company_id, deadline_seconds=DEADLINE_SECONDS
            )
        except ServiceUnavailable as error:
            raise NoAnswer(unavailable_message(service, error), is_transient=is_transient(error)) from None
        except CommandError as error:
            raise ImportFault(str(error)) from None

    return ask


def _shapes(arguments: argparse.Namespace) -> tuple[list[tuple[Kind, Shape]], Reading]:
    """The kinds to import, each with the shape of its rows, and how the file is read."""
    reading = Reading(arguments.encoding or "", arguments.delimiter or "", arguments.sheet or "")
    kind_of_file = KINDS.get(arguments.kind)
    if arguments.mapping:
        mapping = mapping_file.read(arguments.mapping, kind_of_file)
        shapes: list[tuple[Kind, Shape]] = [
            (kind, Mapped(file_mapping, arguments.file.name)) for kind, file_mapping in mapping.records
        ]
        return shapes, reading.or_else(mapping.reading)
    if kind_of_file is None:
        raise UsageError(f"KIND {ALL} needs a --mapping, which names the kinds")
    return [(kind_of_file, Plain(kind_of_file))], reading


def _line(file: Path, reason: Reason, example: Example) -> str:
    """A rejected row in full: file, line, field, reason, the value that was looked up, the columns it came from."""
    values = [] if example.value is None else [_value(example)]
    if reason.columns:
        values.append(f"column {', '.join(map(quoted, reason.columns))}")
    more = f" ({'; '.join(filter(None, values))})" if any(values) else ""
    field = printable(reason.field) or "the row"
    return f"{printable(file.name)}:{example.line}: {field}: {printable(example.reason)}{more}"


def _value(example: Example) -> str:
    if not example.value:
        return "the value is blank"
    printed = quoted(example.value)
    return "" if printed in example.reason else f"the value is {printed}"


def _summarize(outcome: Outcome, say: Callable[[str], None]) -> None:
    """Prints every reason once, with the number of its rows. A reason of one row was printed with that row."""
    for reason in outcome.reasons:
        if reason.rows == 1:
            continue
        kind = f"{reason.kind}: " if len(outcome.kinds) > 1 else ""
        columns = f" (column {', '.join(map(quoted, reason.columns))})" if reason.columns else ""
        field = printable(reason.field) or "the row"
        say(f"Rejected {reason.rows} rows: {kind}{field}: {printable(reason.text)}{columns}")
    for reason in outcome.unusual:
        rows = "1 row that is" if reason.rows == 1 else f"{reason.rows} rows that are"
        lines = [
            *(str(example.line) for example in reason.examples),
            *(["…"] if reason.rows > len(reason.examples) else []),
        ]
        say(f"Look at {rows} accepted: {reason.kind}: {reason.field} {reason.text} (line {', '.join(lines)})")


def _stored(outcome: Outcome, dry_run: bool) -> str:
    """What an import did before it stopped."""
    if dry_run:
        return "This was a dry run: nothing is stored."
    done = [
        f"{kind.counts.stored} rows of {kind.kind}" if len(outcome.kinds) > 1 else f"{kind.counts.stored} rows"
        for kind in outcome.kinds
    ]
    rejected = outcome.counts.rejected
    more = f" and {rejected} rejected" if rejected else ""
    return f"Before that, {', '.join(done) or '0 rows'} were stored{more}; running it again goes on from there."


def _answer(outcome: Outcome, dry_run: bool) -> Answer:
    counts, files = outcome.counts, [kind.rejects_file for kind in outcome.kinds if kind.rejects_file]
    value = _counted(counts, files[0] if files else None)
    lines = [_sentence(counts, dry_run)]
    if len(outcome.kinds) > 1:
        value["kinds"] = [{"kind": kind.kind, **_counted(kind.counts, kind.rejects_file)} for kind in outcome.kinds]
        lines = [f"{kind.kind}: {_sentence(kind.counts, dry_run)}" for kind in outcome.kinds]
    lines += [
        f"The rejected rows{_of(kind, outcome)} are in {kind.rejects_file}."
        for kind in outcome.kinds
        if kind.rejects_file
    ]
    return Answer(value, "\n".join(lines), REJECTED if counts.rejected else 0)


def _of(kind: KindOutcome, outcome: Outcome) -> str:
    return f" of {kind.kind}" if len(outcome.kinds) > 1 else ""


def _counted(counts: Counts, rejects_file: Path | None) -> dict[str, object]:
    value: dict[str, object] = dataclasses.asdict(counts)
    del value["skipped"]
    return {**value, "rejects_file": None if rejects_file is None else str(rejects_file)}


def _sentence(counts: Counts, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    skipped = f" {counts.skipped} rows skipped by the mapping." if counts.skipped else ""
    return (
        f"{counts.read} rows read: {counts.created} {would}created, {counts.changed} {would}changed, "
        f"{counts.unchanged} unchanged, {counts.rejected} rejected.{skipped}"
    )


Say = Callable[[str], None]


@contextmanager
def _telling(file: Path, has_kinds: bool) -> Iterator[tuple[Say, Progress]]:
    """Prints bad rows and the import's progress; on a terminal the progress is a bar, which each kind begins anew."""
    if not sys.stderr.isatty():
        yield lambda line: _to_stderr(f"{line}\n"), _silent
        return
    with tqdm(
        desc=printable(file.name), total=file.stat().st_size, unit="B", unit_scale=True, leave=True, file=sys.stderr
    ) as bar:

        async def progress(outcome: Outcome, position: int) -> None:
            kind, counts = outcome.kinds[-1].kind, outcome.kinds[-1].counts
            rows = f"{counts.settled} rows"
            bar.set_postfix_str(f"{kind}: {rows}" if has_kinds else rows, refresh=False)
            bar.update(position - bar.n)

        yield (lambda line: tqdm.write(line, file=sys.stderr)), progress


async def _silent(_outcome: Outcome, _position: int) -> None:
    """Shows no progress."""


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
