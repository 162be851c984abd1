"""The RPCs of notices: compose, change, publish once, list, import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chassis.auth import identity
from chassis.auth.identity import Call
from chassis.db.database import Connection, Database
from chassis.imports.importer import Importer
from chassis.messaging.outbox import Outbox
from chassis.refusals import invalid_request
from chassis.schedule.instants import printed
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import EditableTable, RecordEditor, no_such
from makeready.catalog.v1 import notices_pb2 as pb
from svc_catalog.notices import queries as q
from svc_catalog.notices import rules
from svc_catalog.notices.imports import NoticeImport
from svc_catalog.notices.inputs import NOTICE_FIELDS, NoticeRow
from svc_catalog.notices.records import NOTICE, Notice, published
from svc_catalog.notices.tables import notice
from svc_catalog.places.lookups import find_property

PAGE, PAGE_MAX = 50, 200
_AUDITED = (*rules.CONTENT, "external_id", "unit_ids")


class NoticesService:
    """The broadcast composer."""

    def __init__(
        self, database: Database, importer: Importer, commands: CommandRunner, outbox: Outbox, links_url: str
    ) -> None:
        self.database, self.importer, self.commands, self.outbox = database, importer, commands, outbox
        self._renderer = NOTICE.renderer(links_url)
        self._notices = RecordEditor(
            "notice",
            EditableTable(notice, *q.NOTICES.changeable),
            q.ONE_NOTICE,
            self._renderer,
            audit=_audited,
        )

    async def ComposeNotice(self, request: pb.ComposeNoticeRequest, call: Call) -> pb.ComposeNoticeResponse:
        values = NOTICE_FIELDS.of(request)
        unit_ids = _unit_ids(request.unit_id)
        rules.check_audience(bool(unit_ids), values.get("area") is not None)

        async def work(command: Command) -> pb.ComposeNoticeResponse:
            property_id = request.property_id
            await find_property(command, property_id)
            await _check_units(command, property_id, unit_ids)

            async def put_units(notice_id: int) -> None:
                await q.put_units(command.connection, command.company_id, [(notice_id, property_id, unit_ids)])

            own = values | {"property_id": property_id}
            saved = await self._notices.save_new(command, own, "composed", put_units)
            return pb.ComposeNoticeResponse(notice=_message(saved.record))

        return await self.commands.run(call, request, pb.ComposeNoticeResponse, work)

    async def UpdateNotice(self, request: pb.UpdateNoticeRequest, call: Call) -> pb.UpdateNoticeResponse:
        values = NOTICE_FIELDS.of(request)
        unit_ids = _unit_ids(request.unit_id)
        rules.check_audience(bool(unit_ids), values.get("area") is not None, request.whole_property)

        async def work(command: Command) -> pb.UpdateNoticeResponse:
            locked = await self._notices.lock(command, request.notice_id)
            before = locked.record
            rules.check_composing(before.published_at)
            own, units = dict(values), before.unit_ids
            if unit_ids or request.whole_property:
                own["area"], units = None, unit_ids
            elif values.get("area") is not None:
                units = []
            touched = units != before.unit_ids
            if touched:
                await _check_units(command, before.property_id, units)
                await q.put_units(command.connection, command.company_id, [(before.id, before.property_id, units)])
            saved = await self._notices.save(command, locked, own, touched)
            return pb.UpdateNoticeResponse(notice=_message(saved.record))

        return await self.commands.run(call, request, pb.UpdateNoticeResponse, work)

    async def PublishNotice(self, request: pb.PublishNoticeRequest, call: Call) -> pb.PublishNoticeResponse:
        async def work(command: Command) -> pb.PublishNoticeResponse:
            locked = await self._notices.lock(command, request.notice_id)
            if locked.record.published_at is not None:
                return pb.PublishNoticeResponse(notice=_message(locked.record))
            at = command.next_instant(locked.record.updated_at)
            saved = await self._notices.save(command, locked, {"published_at": at}, action="published", at=at)
            await command.publish_event(rules.EVENT, saved.record.id, at, published(saved.record))
            return pb.PublishNoticeResponse(notice=_message(saved.record))

        return await self.commands.run(call, request, pb.PublishNoticeResponse, work)

    async def ListNotices(self, request: pb.ListNoticesRequest, call: Call) -> pb.ListNoticesResponse:
        limit = request.limit if request.HasField("limit") else PAGE
        if not 1 <= limit <= PAGE_MAX:
            raise invalid_request(f"limit must be from 1 to {PAGE_MAX}.", "limit")
        property_id = request.property_id if request.HasField("property_id") else None
        rows = await q.notices_page(self.database, identity.company_id(call), request.after_id, limit, property_id)
        return pb.ListNoticesResponse(notices=(_message(self._renderer.record(row)) for row in rows))

    async def ImportNotices(self, request: pb.ImportNoticesRequest, call: Call) -> pb.ImportNoticesResponse:
        company_id = identity.company_id(call)

        async def announce(connection: Connection, notices: Sequence[Notice]) -> None:
            events = [
                self.outbox.public(
                    rules.EVENT,
                    company_id=company_id,
                    entity_id=one.id,
                    occurred_at=one.published_at,
                    data=published(one),
                    request_id=call.request_id,
                )
                for one in notices
                if one.published_at is not None
            ]
            await self.outbox.add_many(connection, events)

        work = NoticeImport(self._renderer, announce if request.events else None)
        results = await self.importer.run(work.save, NoticeRow, request, call)
        self.outbox.wake()
        return pb.ImportNoticesResponse(results=results)


def _message(one: Notice) -> pb.Notice:
    message = pb.Notice(
        notice_id=one.id,
        unit_id=one.unit_ids,
        unit=one.unit,
        url=one.url,
        **{name: getattr(one, name) for name in (*rules.CONTENT, "external_id", "source")},
    )
    for name in ("created_at", "updated_at", "published_at"):
        at = getattr(one, name)
        if at is not None:
            getattr(message, name).FromDatetime(at)
    return message


def _audited(one: Notice, _row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a notice in an audit entry."""
    published_at = None if one.published_at is None else printed(one.published_at)
    return {name: getattr(one, name) for name in _AUDITED} | {"published_at": published_at}


def _unit_ids(given: Sequence[int]) -> list[int]:
    """The ids without duplicates, ascending. Raises Refusal 400 if there are too many."""
    if len(given) > rules.UNITS_MAX:
        raise invalid_request(f"unit_id may name {rules.UNITS_MAX} units at most.", "unit_id")
    return sorted(set(given))


async def _check_units(command: Command, property_id: int, unit_ids: Sequence[int]) -> None:
    """Raises Refusal 404 if one of them is not in the property."""
    found = await q.units_of_property(command.connection, command.company_id, property_id, unit_ids) if unit_ids else []
    if len(found) < len(unit_ids):
        raise no_such("unit in that property")
