"""The external_ids seen so far in a file. SQLite spills them to a temporary file, so memory stays bounded."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from makeready_cli.errors import CommandError


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
            "CREATE TABLE seen (external_id TEXT PRIMARY KEY, line INTEGER, digest BLOB) WITHOUT ROWID"
        )
        self._database.execute("BEGIN")

    def repeated(self, rows: Sequence[tuple[str, int, bytes]]) -> dict[int, Earlier]:
        """Takes rows (external_id, line, JSON to send) and remembers new external_ids. Returns, by a row's position,
        the earlier row with the same external_id."""
        offered = [
            (external_id, line, hashlib.blake2b(sent, digest_size=16).digest()) for external_id, line, sent in rows
        ]
        try:
            return self._repeated(offered)
        except sqlite3.Error as error:
            raise CommandError(f"The temporary file of this import can't be used: {error}.") from None

    def _repeated(self, offered: list[tuple[str, int, bytes]]) -> dict[int, Earlier]:
        before = self._database.total_changes
        self._database.executemany("INSERT INTO seen VALUES (?, ?, ?) ON CONFLICT DO NOTHING", offered)
        if self._database.total_changes - before == len(offered):
            return {}
        found = {}
        for place, (external_id, line, digest) in enumerate(offered):
            first = self._database.execute("SELECT line, digest FROM seen WHERE external_id = ?", (external_id,))
            earlier, earlier_digest = first.fetchone()
            if earlier != line:
                found[place] = Earlier(earlier, earlier_digest == digest)
        return found

    def close(self) -> None:
        self._database.close()
