"""The RPCs of notices: composed, changed, published once, listed, imported."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec
from asyncpg import Record, UniqueViolationError

from chassis.auth import identity
from chassis.auth.identity import Call
from chassis.db.database import Connection, Database
from chassis.imports.importer import Importer
from chassis.messaging.outbox import Outbox
from chassis.refusals import invalid_request
from chassis.schedule.instants import printed
from chassis.writes.commands import Command, CommandRunner
from makeready.catalog.v1 import notices_pb2 as pb
from svc_catalog.editing import Fields, no_such, taken
from svc_catalog.notices import queries as q
from svc_catalog.notices import rules
from svc_catalog.notices.imports import NoticeImport
from svc_catalog.notices.inputs import NoticeRow
from svc_catalog.notices.records import PublishedNotice

PAGE, PAGE_MAX = 50, 200
NOTICE = Fields(NoticeRow, "subject", "body", "when", "area", "external_id")
_AUDITED = (*q.CONTENT, "external_id", "unit_ids", "published_at")


class NoticesService:
    """The broadcast composer."""

    def __init__(
        self, database: Database, importer: Importer, commands: CommandRunner, outbox: Outbox, links_url: str
    ) -> None:
        self.database, self.importer, self.commands, self.outbox = database, importer, commands, outbox
        self._links_url = links_url

    async def ComposeNotice(self, request: pb.ComposeNoticeRequest, call: Call) -> pb.ComposeNoticeResponse:
        values = NOTICE.given(request)
        unit_ids = _unit_ids(request.unit_id)
        rules.check_audience(bool(unit_ids), values.get("area") is not None)

        async def work(command: Command) -> pb.ComposeNoticeResponse:
            if await q.PROPERTY.as_it_is(command.connection, command.company_id, request.property_id) is None:
                raise no_such("property")
            await _check_units(command, request.property_id, unit_ids)
            row = values | {"property_id": request.property_id}
            try:
                notice_id = await q.KEPT.insert(command.connection, command.company_id, row, command.now)
            except UniqueViolationError as fault:
                raise taken(fault, "notice") from None
            await q.put_units(command.connection, command.company_id, [(notice_id, request.property_id, unit_ids)])
            after = await self._notice(command, notice_id)
            await command.audit("notice.composed", "notice", notice_id, {}, _audited(after))
            return pb.ComposeNoticeResponse(notice=self._told(after))

        return await self.commands.run(call, request, pb.ComposeNoticeResponse, work)

    async def UpdateNotice(self, request: pb.UpdateNoticeRequest, call: Call) -> pb.UpdateNoticeResponse:
        values = NOTICE.given(request)
        unit_ids = _unit_ids(request.unit_id)
        rules.check_audience(bool(unit_ids), values.get("area") is not None, request.whole_property)

        async def work(command: Command) -> pb.UpdateNoticeResponse:
            before = await self._locked(command, request.notice_id)
            rules.check_composing(before["published_at"])
            own, units = dict(values), before["unit_ids"]
            if unit_ids or request.whole_property:
                own["area"], units = None, unit_ids
            elif values.get("area") is not None:
                units = []
            if units == before["unit_ids"] and all(before[name] == value for name, value in own.items()):
                return pb.UpdateNoticeResponse(notice=self._told(before))
            await _check_units(command, before["property_id"], units)
            try:
                await q.KEPT.update(command.connection, {**before, **own}, command.next_instant(before["updated_at"]))
            except UniqueViolationError as fault:
                raise taken(fault, "notice") from None
            await q.put_units(command.connection, command.company_id, [(before["id"], before["property_id"], units)])
            after = await self._notice(command, before["id"])
            await command.audit("notice.updated", "notice", before["id"], _audited(before), _audited(after))
            return pb.UpdateNoticeResponse(notice=self._told(after))

        return await self.commands.run(call, request, pb.UpdateNoticeResponse, work)

    async def PublishNotice(self, request: pb.PublishNoticeRequest, call: Call) -> pb.PublishNoticeResponse:
        async def work(command: Command) -> pb.PublishNoticeResponse:
            before = await self._locked(command, request.notice_id)
            if before["published_at"] is not None:
                return pb.PublishNoticeResponse(notice=self._told(before))
            at = command.next_instant(before["updated_at"])
            await q.publish(command.connection, command.company_id, before["id"], at)
            after = await self._notice(command, before["id"])
            await command.audit("notice.published", "notice", before["id"], _audited(before), _audited(after))
            await command.publish_event(rules.EVENT, after["id"], at, self._published(after))
            return pb.PublishNoticeResponse(notice=self._told(after))

        return await self.commands.run(call, request, pb.PublishNoticeResponse, work)

    async def ListNotices(self, request: pb.ListNoticesRequest, call: Call) -> pb.ListNoticesResponse:
        limit = request.limit if request.HasField("limit") else PAGE
        if not 1 <= limit <= PAGE_MAX:
            raise invalid_request(f"limit must be from 1 to {PAGE_MAX}.", "limit")
        property_id = request.property_id if request.HasField("property_id") else None
        rows = await q.notices_page(self.database, identity.company_id(call), request.after_id, limit, property_id)
        return pb.ListNoticesResponse(notices=map(self._told, rows))

    async def ImportNotices(self, request: pb.ImportNoticesRequest, call: Call) -> pb.ImportNoticesResponse:
        async def announce(connection: Connection, rows: Sequence[Record]) -> None:
            events = [
                self.outbox.public(
                    rules.EVENT,
                    company_id=row["company_id"],
                    entity_id=row["id"],
                    occurred_at=row["published_at"],
                    data=self._published(row),
                    request_id=call.request_id,
                )
                for row in rows
            ]
            await q.INSERT_EVENTS.run(connection, events)

        work = NoticeImport(announce if request.events else None)
        results = await self.importer.run(work.save, NoticeRow, request, call)
        self.outbox.wake()
        return pb.ImportNoticesResponse(results=results)

    async def _locked(self, command: Command, notice_id: int) -> Record:
        if await q.KEPT.for_update(command.connection, command.company_id, notice_id) is None:
            raise no_such("notice")
        return await self._notice(command, notice_id)

    async def _notice(self, command: Command, notice_id: int) -> Record:
        (row,) = await q.notices_by_ids(command.connection, command.company_id, [notice_id])
        return row

    def _published(self, row: Record) -> bytes:
        published_at: datetime.datetime = row["published_at"]
        told = PublishedNotice(
            row["subject"], row["property_name"], _audience(row), self._url(row), printed(published_at), row["when"]
        )
        return msgspec.json.encode(told)

    def _url(self, row: Record) -> str:
        return f"{self._links_url}/notices/{row['id']}"

    def _told(self, row: Record) -> pb.Notice:
        told = pb.Notice(
            notice_id=row["id"],
            unit_id=row["unit_ids"],
            unit=_audience(row),
            url=self._url(row),
            **{name: row[name] for name in (*q.CONTENT, "external_id", "source")},
        )
        for name in ("created_at", "updated_at", "published_at"):
            if row[name] is not None:
                getattr(told, name).FromDatetime(row[name])
        return told


def _audience(row: Record) -> str:
    return rules.audience(row["area"], len(row["unit_ids"]), row["unit_name"])


def _audited(row: Record) -> dict[str, Any]:
    return {name: printed(row[name]) if name == "published_at" else row[name] for name in _AUDITED}


def _unit_ids(given: Sequence[int]) -> list[int]:
    """Each once, ascending. Raises Refusal 400 where they are too many."""
    if len(given) > rules.UNITS_MAX:
        raise invalid_request(f"unit_id may name {rules.UNITS_MAX} units at most.", "unit_id")
    return sorted(set(given))


async def _check_units(command: Command, property_id: int, unit_ids: Sequence[int]) -> None:
    """Raises Refusal 404 where one of them does not lie in the property."""
    found = await q.units_of_property(command.connection, command.company_id, property_id, unit_ids) if unit_ids else []
    if len(found) < len(unit_ids):
        raise no_such("unit in that property")
