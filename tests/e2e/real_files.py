"""Helpers for the public data files and their example mappings."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testkit.examples import SHARE, is_whole

from .system import Company

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "mappings"


def rows_of(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV, gzipped or not."""
    whole = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return list(csv.DictReader(io.StringIO(whole.decode(), newline="")))


def some_of(
    rows: list[dict[str, str]], file: Path, folder: Path, is_odd: Callable[[dict[str, str]], bool]
) -> tuple[list[dict[str, str]], Path]:
    """The rows that a test tries, and a file of them in the folder: a quarter, and all that are odd; in the profile
    `nightly` all, in the file itself."""
    chosen = [row for number, row in enumerate(rows) if number % SHARE == 0 or is_odd(row)]
    return chosen_or_all(chosen, rows, file, folder)


def chosen_or_all(
    chosen: list[dict[str, str]], rows: list[dict[str, str]], file: Path, folder: Path
) -> tuple[list[dict[str, str]], Path]:
    """As `some_of`, with the chosen rows instead of a quarter."""
    if is_whole():
        return rows, file
    written = folder / file.name.removesuffix(".gz")
    with written.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(chosen)
    return chosen, written


def imported(company: Company, kind: str, file: Path, mapping: str, *, rejected: int = 0) -> Any:
    """Imports a file and returns the report, which must account for every row."""
    words = ("import", str(company.company_id), kind, str(file), "--mapping", str(EXAMPLES / f"{mapping}.toml"))
    report = company.system.makeready(*words, status=3 if rejected else 0)
    assert report["rejected"] == rejected, report
    assert report["read"] == sum(report[name] for name in ("created", "changed", "unchanged", "rejected"))
    return report


def counts(report: Any) -> tuple[int, int, int, int]:
    """The counts created, changed, unchanged, rejected."""
    return report["created"], report["changed"], report["unchanged"], report["rejected"]


def rejects(report: Any) -> list[dict[str, str]]:
    """The rejected rows; their first columns are reject_line, reject_field and reject_reason."""
    return rows_of(Path(report["rejects_file"])) if report["rejects_file"] else []


def collapsed(text: str) -> str:
    return " ".join(text.split())
