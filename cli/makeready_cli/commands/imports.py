"""`makeready import`."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, ensure_company
from makeready_cli.errors import CommandError, printable
from makeready_cli.importing import mapping_file
from makeready_cli.importing.csv_source import CsvSource
from makeready_cli.importing.json_source import JsonSource
from makeready_cli.importing.kinds import KINDS
from makeready_cli.importing.lines import Lines, lines_of
from makeready_cli.importing.rejects import Rejects
from makeready_cli.importing.rows import Source
from makeready_cli.importing.run import Counts, Import
from makeready_cli.importing.sending import Sender
from makeready_cli.importing.shapes import Mapped, Plain, Shape
from makeready_cli.output import Answer
from makeready_cli.parsers import Commands, command

REJECTED = 3
FORMATS: dict[str, Callable[[Lines], Source]] = {
    ".csv": CsvSource,
    ".jsonl": JsonSource,
    ".ndjson": JsonSource,
}


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "import",
        "import records from CSV or JSON lines",
        description="Creates and changes records by their external_id. Good rows are stored. Bad rows are reported, "
        "one line each, and written to a rejects file that can be corrected and imported again. Exits with 3 if rows "
        "were rejected. docs/imports.md has the columns of each kind and the format of a mapping.",
    )
    parser.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    parser.add_argument("kind", metavar="KIND", choices=list(KINDS), help=", ".join(KINDS))
    parser.add_argument("file", metavar="FILE", type=Path, help=".csv or .jsonl, .gz too")
    parser.add_argument("--mapping", metavar="FILE.toml", type=Path, help="how the file's columns become fields")
    parser.add_argument("--dry-run", action="store_true", help="check every row, change nothing")
    parser.add_argument("--events", action="store_true", help="let the public events fire")
    parser.add_argument(
        "--rejects", metavar="FILE", type=Path, help="where rejected rows go (default: a new file in this folder)"
    )
    parser.set_defaults(run=run)


async def run(operator: Operator, arguments: argparse.Namespace) -> Answer:
    kind = KINDS[arguments.kind]
    file: Path = arguments.file
    shape: Shape = Mapped(mapping_file.load(arguments.mapping, kind), file.name) if arguments.mapping else Plain(kind)
    sender = Sender(operator, kind, arguments.company_id, arguments.dry_run, arguments.events)
    with lines_of(file) as lines:
        source = source_of(file, lines)
        if source.columns is not None:
            shape.check_columns(file.name, source.columns)
        rejects = Rejects(file, source, arguments.rejects, Path.cwd())
        await ensure_company(operator, arguments.company_id)
        with _telling(file, lines) as (say, progress):
            work = Import(file, source, shape, sender, rejects, say)
            gc.freeze()  # the garbage collector need not walk today's objects for every batch
            try:
                counts = await work.run(progress)
            finally:
                rejects.close()
    return _answer(counts, rejects.file, arguments.dry_run)


def source_of(file: Path, lines: Lines) -> Source:
    """The rows of a file, by the ending of its name. Raises CommandError."""
    suffix = Path(file.name.removesuffix(".gz")).suffix.lower()
    if suffix not in FORMATS:
        raise CommandError(f"{file} must be named .csv or .jsonl, or so with .gz behind.")
    return FORMATS[suffix](lines)


def _answer(counts: Counts, rejects_file: Path | None, dry_run: bool) -> Answer:
    value = {**dataclasses.asdict(counts), "rejects_file": None if rejects_file is None else str(rejects_file)}
    would = "would be " if dry_run else ""
    text = (
        f"{counts.read} rows read: {counts.created} {would}created, {counts.changed} {would}changed, "
        f"{counts.unchanged} unchanged, {counts.rejected} rejected."
    )
    if rejects_file is not None:
        text += f"\nThe rejected rows are in {rejects_file}."
    return Answer(value, text, REJECTED if counts.rejected else 0)


Say = Callable[[str], None]


@contextmanager
def _telling(file: Path, lines: Lines) -> Iterator[tuple[Say, Callable[[Counts], None]]]:
    """Prints bad rows and the import's progress; on a terminal the progress is a bar."""
    if not sys.stderr.isatty():
        yield lambda line: _to_stderr(f"{line}\n"), lambda _counts: None
        return
    with tqdm(
        desc=printable(file.name), total=file.stat().st_size, unit="B", unit_scale=True, leave=True, file=sys.stderr
    ) as bar:

        def progress(counts: Counts) -> None:
            bar.set_postfix_str(f"{counts.read} rows", refresh=False)
            bar.update(lines.position - bar.n)

        yield (lambda line: tqdm.write(line, file=sys.stderr)), progress


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
