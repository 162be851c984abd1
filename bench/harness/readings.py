"""Readings imported a second: with the command line, as an operator imports them, on an otherwise idle system."""

from __future__ import annotations

import csv
import datetime
import random
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cpu import Machine, Used, spent, used
from harness.sides import Ours
from makeready_local.children import LocalError

GOAL_A_SECOND = 25_000
METERS = 16
ROWS = METERS * 8760  # a year of hourly readings
# An export as other systems write it: with its own form of times and its own column names.
MAPPING = """
kind = "readings"

[fields]
external_id = { template = "{Meter} {Time}" }
meter = "Meter"
consumption = "Load [kWh]"

[fields.period_start]
column = "Time"
date = "%Y-%m-%d %H:%M:%S"
timezone = "UTC"

[fields.period_end]
column = "Time"
date = "%Y-%m-%d %H:%M:%S"
timezone = "UTC"
plus_minutes = 60
"""


@dataclass(frozen=True)
class Imported:
    """One import of all rows. cpu: seconds by process, including the command line's. busy: the share of the processors
    that other programs used in that time, from 0 to 1."""

    name: str
    rows: int
    seconds: float
    cpu: Used
    busy: float

    @property
    def rows_a_second(self) -> float:
        return self.rows / self.seconds


async def measure(ours: Ours, roots: Mapping[str, int], folder: Path, rows: int = ROWS) -> list[Imported]:
    """Imports the same file twice: the first time all rows are new, the second time none is. Raises LocalError."""
    company_id = str((await ours.command("company", "create", "Metered"))["company_id"])
    files = _write(folder, rows)
    for kind in ("properties", "meters"):
        await ours.command("import", company_id, kind, str(files[kind]))
    words = ("import", company_id, "readings", str(files["readings"]), "--mapping", str(files["mapping"]))
    imports = []
    for name, outcome in (("all new", "created"), ("again, nothing changed", "unchanged")):
        machine, before, ours_before = Machine(roots.values()), used(roots), _children()
        started = time.perf_counter()
        report = await ours.command(*words)
        seconds = time.perf_counter() - started
        if report[outcome] != rows:
            raise LocalError(f"the import of {rows} readings reported {report}")
        cpu = spent(before, used(roots)) | {"command line": _children() - ours_before}
        imports.append(Imported(name, rows, seconds, cpu, machine.share_of_others()))
    return imports


def _children() -> float:
    """CPU seconds of the child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _write(folder: Path, rows: int) -> dict[str, Path]:
    """Writes the files: a property, its meters, their hourly readings, and the mapping for the readings."""
    chance = random.Random(11)  # noqa: S311 - the same rows at every run
    meters = [f"M{number:02}" for number in range(METERS)]
    start = datetime.datetime(2018, 1, 1)
    hours = [str(start + datetime.timedelta(hours=number)) for number in range(-(-rows // METERS))]
    readings = [(meter, hour, f"{chance.random() * 400:.1f}") for meter in meters for hour in hours]
    tables: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {
        "properties": (("external_id", "name", "address"), [("B", "Building", "1 Main St")]),
        "meters": (("external_id", "property", "name", "utility_type"), [(m, "B", m, "electric") for m in meters]),
        "readings": (("Meter", "Time", "Load [kWh]"), readings[:rows]),
    }
    files = {"mapping": folder / "readings.toml"}
    files["mapping"].write_text(MAPPING)
    for kind, (header, values) in tables.items():
        files[kind] = folder / f"{kind}-metered.csv"
        with files[kind].open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(header)
            writer.writerows(values)
    return files


def table(imports: Sequence[Imported]) -> str:
    """Markdown: one row for each import."""
    servers = ("svc-catalog", "postgres", "command line")
    lines = [
        "| readings | rows | rows a second | goal | "
        + " | ".join(f"{name}, µs CPU a row" for name in servers)
        + " | others used of the processors |",
        "|---|---:|---:|---:|" + "---:|" * len(servers) + "---:|",
    ]
    for imported in imports:
        reached = "reached" if imported.rows_a_second >= GOAL_A_SECOND else "not reached"
        cells = " | ".join(f"{1e6 * imported.cpu[name] / imported.rows:.1f}" for name in servers)
        lines.append(
            f"| {imported.name} | {imported.rows} | **{imported.rows_a_second:.0f}** | {GOAL_A_SECOND} {reached} "
            f"| {cells} | {100 * imported.busy:.0f} % |"
        )
    return "\n".join(lines)
