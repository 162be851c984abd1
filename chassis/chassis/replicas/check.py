"""Compares replicas with their owners, so that no event is believed blindly and a wrong row does not stay.

An event's row is checked with its owner before it is stored if it changes the stored row's company, skips a version, or
contradicts a stored row of the same or a higher version. Once an hour every stored row is compared, which also corrects
rows about which no further event comes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from google.protobuf.message import Message
from prometheus_client import Counter

from chassis.auth.clients import ServiceClient
from chassis.db.database import Connection, Database
from chassis.messaging.consumer import Produced
from chassis.refusals import Refusal, Unavailable
from chassis.replicas.tables import ONLY_GROWS, Fields, Key, Reference, Replicas, value_of
from makeready.events.v1 import events_pb2, replicas_pb2

PAGE_ROWS = 1000
PAUSE_SECONDS = 1.0  # between two pages, so that the comparison of a large replica takes little of a service's time

log = structlog.stdlib.get_logger(__name__)
CHECKED = Counter("makeready_replica_rows_checked_total", "Replica rows compared with their owners", ["kind"])
CORRECTED = Counter("makeready_replica_rows_corrected_total", "Replica rows that differed from their owners'", ["kind"])
REFUSED = Counter("makeready_references_refused_total", "Rows of events that their producer does not own", ["producer"])


class ReplicaCheck:
    """Compares the replicas of one context. The clients of their `owners` are by kind."""

    def __init__(
        self, database: Database, replicas: Replicas, owners: Mapping[str, ServiceClient], period_seconds: int
    ) -> None:
        """From the end of one comparison of all rows to the start of the next pass `period_seconds`."""
        self._database, self._replicas, self._owners = database, replicas, owners
        self._period_seconds = period_seconds
        # From the start, so that the first one counts as an increase.
        for kind, producer in replicas.owners.items():
            CORRECTED.labels(kind)
            REFUSED.labels(producer)

    async def examine(self, events: Sequence[Produced]) -> set[str]:
        """Removes from the events' references the rows that their producer does not own, and those that are checked
        with their owner, whose row is then stored already. Returns the ids of events that wait for an owner."""
        carried = [(produced, references) for produced in events for references in references_in(produced.event)]
        for produced, references in carried:
            self._remove_foreign(produced.producer, references)
        waiting: set[str] = set()
        for kind, replica in self._replicas.kinds.items():
            offered = [(produced, references, getattr(references, kind)) for produced, references in carried]
            keys = sorted({_key(row) for _, _, rows in offered for row in rows})
            if not keys:
                continue
            async with self._database.connection() as connection:
                stored = await replica.stored(connection, keys)
            doubtful = _doubtful([row for _, _, rows in offered for row in rows], stored)
            if not doubtful:
                continue
            about = {key for key in keys if key[1] in doubtful}
            try:
                await self._compare(
                    kind, sorted(about | {_stored_key(stored[row_id]) for row_id in doubtful & stored.keys()})
                )
            except (Unavailable, Refusal) as error:
                log.warning("references_wait", kind=kind, rows=len(doubtful), reason=str(error))
                waiting |= {
                    produced.event.event_id for produced, _, rows in offered if any(row.id in doubtful for row in rows)
                }
                continue
            for _, references, rows in offered:
                sure = [row for row in rows if row.id not in doubtful]
                references.ClearField(kind)
                getattr(references, kind).extend(sure)
        return waiting

    def _remove_foreign(self, producer: str, references: Any) -> None:
        for row in [row for row in references.withdrawn if self._replicas.owners.get(row.kind, producer) != producer]:
            REFUSED.labels(producer).inc()
            log.error("references_refused", producer=producer, kind=row.kind, rows=1)
            references.withdrawn.remove(row)
        for kind, owner in self._replicas.owners.items():
            rows = getattr(references, kind)
            if rows and owner != producer:
                REFUSED.labels(producer).inc(len(rows))
                log.error("references_refused", producer=producer, kind=kind, rows=len(rows))
                references.ClearField(kind)

    async def _compare(self, kind: str, keys: Sequence[Key], *, forget: bool = False) -> int:
        """Stores the owner's rows of these keys; returns how many differed. With `forget` it hides rows that the owner
        lacks.

        A stored row is older than the owner's answer, because it is read first. So a higher version is no later one.
        """
        replica = self._replicas.kinds[kind]
        async with self._database.connection() as connection:
            before = await replica.stored(connection, keys)
        owned = {row.id: row for row in await self._ask(kind, keys)}
        lacking = [key for key in keys if key[1] not in owned]
        if lacking:  # under another company, perhaps
            owned |= {row.id: row for row in await self._ask(kind, [(0, row_id) for _, row_id in lacking])}
        CHECKED.labels(kind).inc(len(keys))
        wrong = [row for row_id, row in owned.items() if not _same(row, before.get(row_id))]
        gone = [key for key in keys if key[1] not in owned and before.get(key[1], {}).get("version")]
        # An owner that knows none of the rows has lost its database: its answer hides nothing.
        gone = gone if forget and owned else []
        if not wrong and not gone:
            return 0
        async with self._database.transaction() as connection:
            now = await replica.stored(connection, keys, lock=True)
            unchanged = {row_id for _, row_id in keys if now.get(row_id) == before.get(row_id)}
            replaced = [row for row in wrong if row.id in unchanged]
            await self._store(connection, kind, replaced, overwrite=True)
            await self._store(connection, kind, [row for row in wrong if row.id not in unchanged], overwrite=False)
            if hidden := [key for key in gone if key[1] in unchanged]:
                await replica.forget(connection, hidden)
        # A row that had not arrived, or that the owner has changed since, was not wrong.
        corrected = [row.id for row in replaced if before.get(row.id, {}).get("version", 0) >= row.version]
        if corrected or hidden:
            CORRECTED.labels(kind).inc(len(corrected) + len(hidden))
            log.error("replica_corrected", kind=kind, rows=corrected, unknown_to_owner=[row_id for _, row_id in hidden])
        return len(corrected) + len(hidden)

    async def _store(self, connection: Connection, kind: str, rows: Sequence[Reference], *, overwrite: bool) -> None:
        references: Any = {kind: rows}
        await self._replicas.put(connection, [events_pb2.References(**references)], overwrite)

    async def _ask(self, kind: str, keys: Sequence[Key]) -> list[Reference]:
        owner = self._owners[kind]
        owned: list[Reference] = []
        for start in range(0, len(keys), PAGE_ROWS):
            places = [replicas_pb2.Place(company_id=key[0], id=key[1]) for key in keys[start : start + PAGE_ROWS]]
            request = replicas_pb2.ListReferencesRequest(kind=kind, places=places)
            answer = await owner.call(request, replicas_pb2.ListReferencesResponse)
            owned += getattr(answer.references, kind)
        return owned

    async def run(self) -> None:
        """Compares all rows again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._period_seconds)
            await self.compare_all()

    async def compare_all(self) -> int:
        """Compares every stored row with its owner; returns how many were wrong. Skips kinds whose owner is away."""
        wrong = 0
        for kind, replica in self._replicas.kinds.items():
            after: Key = (0, 0)
            try:
                while True:
                    async with self._database.connection() as connection:
                        keys = await replica.page(connection, after, PAGE_ROWS)
                    if keys:
                        wrong += await self._compare(kind, keys, forget=True)
                    if len(keys) < PAGE_ROWS:
                        break
                    after = keys[-1]
                    await asyncio.sleep(PAUSE_SECONDS)
            except (Unavailable, Refusal) as error:
                log.info("owner_away", kind=kind, reason=str(error))
        return wrong


def references_in(event: events_pb2.Event) -> list[Message]:
    """The references that the event carries."""
    if event.HasField("references"):
        return [event.references]
    return [event.inspection_row_failed.places] if event.HasField("inspection_row_failed") else []


def _key(row: Reference) -> Key:
    return getattr(row, "company_id", row.id), row.id


def _stored_key(row: Fields) -> Key:
    company_id: int = row["company_id"] if "company_id" in row else row["id"]
    return company_id, row["id"]


def _same(row: Reference, stored: Fields | None) -> bool:
    """Whether the stored row says what its owner's does. A value that only grows may be further than the owner's."""
    if stored is None:
        return False
    return all(
        value_of(row, name) == value or (name == ONLY_GROWS and value_of(row, name) < value)
        for name, value in stored.items()
    )


def _doubtful(rows: Sequence[Reference], stored: Mapping[int, Fields]) -> set[int]:
    """The ids of rows that must be checked with their owner."""
    offered: dict[int, list[Reference]] = defaultdict(list)
    for row in rows:
        offered[row.id].append(row)
    doubtful = set()
    for row_id, offered_rows in offered.items():
        before = stored.get(row_id)
        company_id, version = (None, 0) if before is None else (before.get("company_id"), before["version"])
        companies = {_key(offered_row)[0] for offered_row in offered_rows} if company_id is not None else set()
        versions = {offered_row.version for offered_row in offered_rows}
        newest = max(versions)
        # Versions up to the newest that neither the replica nor these events have seen.
        skipped = newest > version and newest - version > sum(offered_version > version for offered_version in versions)
        contradicted = newest < version or any(
            offered_row.version == version and not _same(offered_row, before) for offered_row in offered_rows
        )
        if companies - {company_id} or skipped or contradicted:
            doubtful.add(row_id)
    return doubtful
