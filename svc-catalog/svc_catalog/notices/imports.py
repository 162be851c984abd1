"""The import of notices to the residents of a property."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from asyncpg import Record

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.records.shapes import Renderer
from chassis.refusals import invalid_request
from makeready.events.v1.events_pb2 import References
from svc_catalog.notices import queries as q
from svc_catalog.notices import rules
from svc_catalog.notices.inputs import NoticeRow
from svc_catalog.notices.records import Notice
from svc_catalog.places.lookups import PROPERTIES_NAMED, UNITS_NAMED

NoticeLine = ImportRow[NoticeRow]
Announce = Callable[[Connection, Sequence[Notice]], Awaitable[None]]


class NoticeImport:
    """One request. announce: publishes the events of the notices that it publishes; None if events are off."""

    def __init__(self, renderer: Renderer[Notice], announce: Announce | None) -> None:
        self._renderer = renderer
        self._announce = announce

    async def save(self, connection: Connection, batch: Batch[NoticeRow]) -> References:
        """Saves a batch's rows. No other context stores notices."""
        company_id = batch.company_id
        properties = await PROPERTIES_NAMED.by_external_id(connection, company_id, batch.named("property"))
        batch.resolve("property", properties)
        units = await UNITS_NAMED.by_external_id(connection, company_id, batch.named("unit"))
        await batch.lock_existing(connection, q.NOTICES)
        batch.each(lambda line: _check(line, batch))
        there = [line.stored("id") for line in batch.good.values() if line.before is not None]
        for_units = {record.id: record.unit_ids for record in await self._notices(connection, company_id, there)}
        batch.each(lambda line: _place(line, units, for_units.get(line.stored("id"), [])))
        batch.each(_check_published)
        publishing = {
            external_id
            for external_id, line in batch.good.items()
            if line.stored("published_at") is None and line.after("published_at") is not None
        }
        saved = await batch.save(connection, q.NOTICES, {})
        placed = [(row["id"], row["property_id"], _units(batch.good[row["external_id"]])) for row in saved]
        await q.put_units(connection, company_id, placed)
        if self._announce is not None:
            ids = [row["id"] for row in saved if row["external_id"] in publishing]
            await self._announce(connection, await self._notices(connection, company_id, ids))
        return References()

    async def _notices(self, connection: Connection, company_id: int, ids: Sequence[int]) -> list[Notice]:
        return [self._renderer.record(row) for row in await q.notices_by_ids(connection, company_id, ids)]


def _check(line: NoticeLine, batch: Batch[NoticeRow]) -> None:
    """Raises Refusal with the field."""
    if line.moves("property_id"):
        raise invalid_request("A notice stays with the property that it was first imported for.", "property")
    if line.row.published_at is not None and line.row.published_at > batch.moment:
        raise invalid_request("published_at lies in the future.", "published_at")
    rules.check_audience(line.row.unit is not None, line.row.area is not None)
    if line.stored("published_at") is not None:
        # A published notice stays published: a later file can neither clear nor change published_at.
        line.values["published_at"] = line.stored("published_at")


def _place(line: NoticeLine, units: Mapping[str, Record], before: Sequence[int]) -> None:
    """Sets `unit_ids` to the units that the notice is for. Raises Refusal with the field."""
    after = list(before)
    if line.row.unit is not None:
        unit = units.get(line.row.unit)
        if unit is None:
            raise invalid_request("No unit with that external_id is known.", "unit")
        if unit["property_id"] != line.values["property_id"]:
            raise invalid_request("The unit lies in another property.", "unit")
        after, line.values["area"] = [unit["id"]], None
    elif "unit" in line.given or line.row.area is not None:
        after = []
    line.values["unit_ids"] = after
    line.before_beside["unit_ids"] = list(before)
    line.touched = after != list(before)


def _units(line: NoticeLine) -> Sequence[int]:
    unit_ids: Sequence[int] = line.values["unit_ids"]
    return unit_ids


def _check_published(line: NoticeLine) -> None:
    """Raises Refusal if the row would change the content of a published notice."""
    if line.stored("published_at") is not None and (
        line.touched or any(line.after(name) != line.stored(name) for name in rules.CONTENT)
    ):
        raise rules.published()
