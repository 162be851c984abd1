"""Which external_ids a file has shown so far, in a temporary file that SQLite spills to, not in our memory."""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass

from gateway.cli.failures import Failed


@dataclass(frozen=True, slots=True)
class Earlier:
    """The row that showed the external_id first."""

    line: int
    is_identical: bool


class Seen:
    """Remembers each external_id's first line."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)  # no name: a temporary file, gone at the end
        self._database.execute("PRAGMA journal_mode = off")
        self._database.execute("PRAGMA synchronous = off")
        # With 2 MB, the default, a million ids took 20 s; with 32 MB 8 s.
        self._database.execute("PRAGMA cache_size = -32768")
        self._database.execute(
            "CREATE TABLE seen (external_id TEXT PRIMARY KEY, line INTEGER, digest BLOB) WITHOUT ROWID"
        )
        self._database.execute("BEGIN")

    def first(self, external_id: str, line: int, row: bytes) -> Earlier | None:
        """The earlier row with this external_id; None where this one is the first, which is then remembered."""
        try:
            return self._first(external_id, line, row)
        except sqlite3.Error as error:
            raise Failed(f"The temporary file of this import can't be used: {error}.") from None

    def _first(self, external_id: str, line: int, row: bytes) -> Earlier | None:
        digest = hashlib.blake2b(row, digest_size=16).digest()
        added = self._database.execute(
            "INSERT INTO seen VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (external_id, line, digest)
        )
        if added.rowcount == 1:
            return None
        found = self._database.execute("SELECT line, digest FROM seen WHERE external_id = ?", (external_id,))
        earlier, earlier_digest = found.fetchone()
        return Earlier(earlier, earlier_digest == digest)

    def close(self) -> None:
        self._database.close()
