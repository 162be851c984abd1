"""Sends batches of rows to the owner of a kind, and returns each row's outcome."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from importing.errors import ImportFault
from importing.kinds import Kind
from importing.rows import Fault, SourceRow
from makeready.common.v1 import documents_pb2 as common

# Under load a batch of 500 light rows waited twice as long as it worked: a batch has some eight waits, whatever its
# size. A batch publishes one event, hardly larger than its rows, which has to stay below NATS' megabyte.
ROWS_MAX = 2000
BYTES_MAX = 512 * 1024
DEADLINE_SECONDS = 60.0
# An import of hours must outlive a restart of a service; these sum to about half a minute.
RETRY_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class NoAnswer(Exception):  # noqa: N818 - the service is away; that is no error of ours
    """A service did not answer; the text says why, in a sentence. If `is_transient`, it may answer a moment later."""

    def __init__(self, reason: str, *, is_transient: bool) -> None:
        super().__init__(reason)
        self.is_transient = is_transient


# One RPC of a kind's owner, with a request of the kind, within DEADLINE_SECONDS. Returns the response. Raises NoAnswer,
# and ImportFault if the service refuses.
Ask = Callable[[Kind, Any], Awaitable[Any]]


@dataclass(slots=True)
class Entry:
    """A row of a batch. `sent` is its JSON, empty if the row is not sent. The external_id is empty if it has no usable
    one. `part` says which of the imports that share an order it belongs to."""

    row: SourceRow
    sent: bytes = b""
    fault: Fault | None = None
    external_id: str = ""
    part: int = 0


class Sender:
    """Sends batches of one kind."""

    def __init__(self, ask: Ask, kind: Kind, dry_run: bool, events: bool, key: str = "", import_key: str = "") -> None:
        """The key names this import among all of its company, in up to 20 characters; a batch that is sent again then
        gets the outcomes of the first time. Without a key, its rows are then unchanged. An import_key, of all kinds of
        the import, is what it can be undone by."""
        self._import_key = import_key
        self._ask = ask
        self._kind = kind
        self.is_dry_run = dry_run
        self._events = events
        self._key = key

    async def send(self, entries: Sequence[Entry]) -> list[common.ImportResult]:
        """The outcome of each entry that has JSON to send, in their order. Raises ImportFault.

        A batch without an answer is sent again.
        """
        rows = [common.ImportRow(line=entry.row.line, json=entry.sent) for entry in entries if entry.sent]
        if not rows:
            return []
        request = self._kind.request_of(rows, self.is_dry_run, self._events)
        if self._key and not self.is_dry_run:
            content = hashlib.blake2b(request.SerializeToString(deterministic=True), digest_size=16).hexdigest()
            request.idempotency_key = f"{self._key}-{content}"
        request.import_key = self._import_key
        for pause in (*RETRY_SECONDS, None):
            try:
                answer = await self._ask(self._kind, request)
            except NoAnswer as error:
                if pause is None or not error.is_transient:
                    raise ImportFault(
                        f"{error} The import of {self._kind.name} ended at line {rows[0].line}."
                    ) from None
                await asyncio.sleep(pause)
                continue
            results = list(answer.results)
            assert [result.line for result in results] == [row.line for row in rows]
            return results
        raise AssertionError("the last attempt returns or raises")
