"""The external_ids seen so far in a file. SQLite spills them to a temporary file, so memory stays bounded."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from importing.errors import ImportFault


@dataclass(frozen=True, slots=True)
class Earlier:
    """The first row that had the external_id."""

    line: int
    is_identical: bool


class Seen:
    """Remembers the first line of each external_id."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)  # no name: a temporary file, deleted at the end
        self._database.execute("PRAGMA journal_mode = off")
        self._database.execute("PRAGMA synchronous = off")
        # With 2 MB, the default, a million ids took 20 s; with 32 MB 8 s.
        self._database.execute("PRAGMA cache_size = -32768")
        self._database.execute(
            "CREATE TABLE seen (external_id TEXT PRIMARY KEY, line INTEGER, digest BLOB, place INTEGER) WITHOUT ROWID"
        )
        self._database.execute("BEGIN")
        self._places = 0

    def repeated(self, rows: Sequence[tuple[str, int, bytes]]) -> dict[int, Earlier]:
        """Takes rows (external_id, line, JSON to send) and remembers new external_ids. Returns, by a row's position,
        the earlier row with the same external_id."""
        # Two rows may have one line: a mapping may make two records of a kind from it.
        offered = [
            (external_id, line, hashlib.blake2b(sent, digest_size=16).digest(), place)
            for place, (external_id, line, sent) in enumerate(rows, self._places)
        ]
        self._places += len(offered)
        try:
            return self._repeated(offered)
        except sqlite3.Error as error:
            raise ImportFault(f"The temporary file of this import can't be used: {error}.") from None

    def _repeated(self, offered: list[tuple[str, int, bytes, int]]) -> dict[int, Earlier]:
        before = self._database.total_changes
        self._database.executemany("INSERT INTO seen VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", offered)
        if self._database.total_changes - before == len(offered):
            return {}
        repeated = {}
        for number, (external_id, _, digest, place) in enumerate(offered):
            first = self._database.execute("SELECT line, digest, place FROM seen WHERE external_id = ?", (external_id,))
            earlier, earlier_digest, earlier_place = first.fetchone()
            if earlier_place != place:
                repeated[number] = Earlier(earlier, earlier_digest == digest)
        return repeated

    def forget(self, external_id: str) -> None:
        """Takes back what a row said: it was rejected."""
        self._database.execute("UPDATE seen SET digest = NULL WHERE external_id = ?", (external_id,))

    def has_record(self, external_id: str) -> bool:
        """Whether a row that was not rejected had the external_id."""
        rows = self._database.execute("SELECT 1 FROM seen WHERE external_id = ? AND digest IS NOT NULL", (external_id,))
        return rows.fetchone() is not None

    def close(self) -> None:
        self._database.close()
