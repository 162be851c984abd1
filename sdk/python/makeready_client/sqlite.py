"""A copy in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from makeready_client.mirror import Batch
from makeready_client.models import KINDS


class SqliteStore:
    """A table for each kind, `entity_id` and `record`, which is JSON: `SELECT record ->> 'title' FROM tickets`.

    A batch and its cursor are one transaction, so a program may be killed at any moment and go on.
    """

    def __init__(self, file: str | Path) -> None:
        self._connection = sqlite3.connect(file, timeout=60, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self._connection as connection:
            for kind in KINDS:
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {kind} (entity_id INTEGER PRIMARY KEY, record TEXT NOT NULL)"
                )
            connection.execute("CREATE TABLE IF NOT EXISTS position (kind TEXT PRIMARY KEY, cursor TEXT NOT NULL)")
            connection.execute("CREATE TABLE IF NOT EXISTS origin (company_id INTEGER NOT NULL)")

    def belongs_to(self, company_id: int) -> bool:
        """Whether the copy is of this company; the first one asked about has it."""
        with self._connection as connection:
            row = connection.execute("SELECT company_id FROM origin").fetchone()
            if row is None:
                connection.execute("INSERT INTO origin VALUES (?)", [company_id])
            return row is None or row[0] == company_id

    def cursors(self) -> dict[str, str]:
        """Where the copy of each kind stands."""
        return dict(self._connection.execute("SELECT kind, cursor FROM position"))

    def __call__(self, batch: Batch) -> None:
        kind = batch.kind
        assert kind in KINDS  # it becomes part of statements
        with self._connection as connection:
            if batch.is_whole:
                connection.execute(f"DELETE FROM {kind}")  # noqa: S608
            for change in batch.changes:
                if change.record is None:
                    connection.execute(f"DELETE FROM {kind} WHERE entity_id = ?", [change.entity_id])  # noqa: S608
                else:
                    connection.execute(
                        f"REPLACE INTO {kind} VALUES (?, ?)",  # noqa: S608
                        [change.entity_id, change.record.decode()],
                    )
            connection.execute("REPLACE INTO position VALUES (?, ?)", [kind, batch.cursor])

    def count(self, kind: str) -> int:
        """How many records of the kind the copy has."""
        records: int = self._connection.execute(f"SELECT count(*) FROM {kind}").fetchone()[0]  # noqa: S608
        return records

    def write_lines(self, kind: str, file: Path) -> None:
        """Writes the kind's records to a file, a line each, ascending by id. The file is there whole or not at all."""
        part = file.with_name(f"{file.name}.part")
        with part.open("wb") as lines:
            for (record,) in self._connection.execute(f"SELECT record FROM {kind} ORDER BY entity_id"):  # noqa: S608
                lines.write(record.encode() + b"\n")
            lines.flush()
            os.fsync(lines.fileno())
        part.replace(file)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()
