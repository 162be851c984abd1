"""Sends batches of rows to the owner of a kind, and returns each row's outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from chassis.auth.clients import ServiceUnavailable
from makeready.common.v1 import documents_pb2 as common
from makeready_cli.calls import Operator, is_transient, unavailable_message
from makeready_cli.errors import CommandError
from makeready_cli.importing.kinds import Kind
from makeready_cli.importing.rows import Fault, SourceRow

# Under load a batch of 500 light rows waited twice as long as it worked: a batch has some eight waits, whatever its
# size. A batch publishes one event, hardly larger than its rows, which has to stay below NATS' megabyte.
ROWS_MAX = 2000
BYTES_MAX = 512 * 1024
DEADLINE_SECONDS = 60.0
# An import of hours must outlive a restart of a service; these sum to about half a minute.
RETRY_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(slots=True)
class Entry:
    """A row of a batch, in the order of the file. sent: its JSON, empty if the row is not sent. external_id: empty if
    it has no usable one."""

    row: SourceRow
    sent: bytes = b""
    fault: Fault | None = None
    external_id: str = ""


class Sender:
    """Sends batches of one kind for one company."""

    def __init__(self, operator: Operator, kind: Kind, company_id: int, dry_run: bool, events: bool) -> None:
        self._operator = operator
        self._kind = kind
        self._company_id = company_id
        self.is_dry_run = dry_run
        self._events = events

    async def send(self, entries: Sequence[Entry]) -> list[common.ImportResult]:
        """The outcome of each entry that has JSON to send, in their order. Raises CommandError.

        A batch without an answer is sent again. Its rows are upserts: those that were stored the first time are then
        unchanged.
        """
        rows = [common.ImportRow(line=entry.row.line, json=entry.sent) for entry in entries if entry.sent]
        if not rows:
            return []
        request = self._kind.request_of(rows, self.is_dry_run, self._events)
        method = self._operator.method(self._kind.service, self._kind.rpc)
        for pause in (*RETRY_SECONDS, None):
            try:
                answer = await self._operator.ask(
                    self._kind.service,
                    method,
                    request,
                    company_id=self._company_id,
                    deadline_seconds=DEADLINE_SECONDS,
                )
            except ServiceUnavailable as error:
                if pause is None or not is_transient(error):
                    raise CommandError(
                        f"{unavailable_message(self._kind.service, error)} The import of {self._kind.name} ended at "
                        f"line {rows[0].line}."
                    ) from None
                await asyncio.sleep(pause)
                continue
            results = list(answer.results)
            assert [result.line for result in results] == [row.line for row in rows]
            return results
        raise AssertionError("the last attempt returns or raises")
