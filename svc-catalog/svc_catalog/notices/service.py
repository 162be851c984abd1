"""The RPCs of notices: preview, compose, change, discard, publish once, list, import."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

import msgspec
from asyncpg import Record

from chassis.auth import identity
from chassis.auth.identity import Call
from chassis.db.database import Connection, Database
from chassis.imports.importer import Importer
from chassis.lists.paging import limit_of
from chassis.messaging.outbox import Outbox
from chassis.records import bodies
from chassis.refusals import invalid_request
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import printed
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import EditableTable, RecordEditor, no_such
from makeready.catalog.v1 import notices_pb2 as pb
from svc_catalog.notices import queries as q
from svc_catalog.notices import rules
from svc_catalog.notices.imports import NoticeImport
from svc_catalog.notices.inputs import NOTICE_FIELDS, NoticeDraft, NoticeRow
from svc_catalog.notices.records import NOTICE, Notice, published
from svc_catalog.notices.tables import notice
from svc_catalog.places.lookups import find_property

PAGE, PAGE_MAX = 50, 200
LATELY = datetime.timedelta(days=30)
_AUDITED = (*rules.CONTENT, "external_id", "unit_ids")


class NoticesService:
    """The broadcast composer."""

    def __init__(
        self,
        database: Database,
        importer: Importer,
        commands: CommandRunner,
        outbox: Outbox,
        links_url: str,
        clocks: CompanyClocks,
    ) -> None:
        self.database, self.importer, self.commands, self.outbox = database, importer, commands, outbox
        self._clocks, self._links_url = clocks, links_url
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

            columns = values | {"property_id": property_id}
            saved = await self._notices.save_new(command, columns, "composed", put_units)
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
            rules.check_unchanged(before.updated_at, _as_of(request))
            columns, units = dict(values), before.unit_ids
            if unit_ids or request.whole_property:
                columns["area"], units = None, unit_ids
            elif values.get("area") is not None:
                units = []
            touched = units != before.unit_ids
            if touched:
                await _check_units(command, before.property_id, units)
                await q.put_units(command.connection, command.company_id, [(before.id, before.property_id, units)])
            saved = await self._notices.save(command, locked, columns, touched)
            return pb.UpdateNoticeResponse(notice=_message(saved.record))

        return await self.commands.run(call, request, pb.UpdateNoticeResponse, work)

    async def PublishNotice(self, request: pb.PublishNoticeRequest, call: Call) -> pb.PublishNoticeResponse:
        async def work(command: Command) -> pb.PublishNoticeResponse:
            locked = await self._notices.lock(command, request.notice_id)
            if locked.record.published_at is not None:
                return pb.PublishNoticeResponse(notice=_message(locked.record))
            rules.check_unchanged(locked.record.updated_at, _as_of(request))
            at = command.next_instant(locked.record.updated_at)
            saved = await self._notices.save(command, locked, {"published_at": at}, action="published", at=at)
            await command.publish_event(rules.EVENT, saved.record.id, at, published(saved.record))
            return pb.PublishNoticeResponse(notice=_message(saved.record))

        return await self.commands.run(call, request, pb.PublishNoticeResponse, work)

    async def DiscardNotice(self, request: pb.DiscardNoticeRequest, call: Call) -> pb.DiscardNoticeResponse:
        async def work(command: Command) -> pb.DiscardNoticeResponse:
            locked = await self._notices.lock(command, request.notice_id)
            rules.check_composing(locked.record.published_at)
            await q.delete_notice(command.connection, command.company_id, request.notice_id)
            before = _audited(locked.record, {})
            await command.audit("notice.discarded", "notice", request.notice_id, before, dict.fromkeys(before))
            return pb.DiscardNoticeResponse(notice=_message(locked.record))

        return await self.commands.run(call, request, pb.DiscardNoticeResponse, work)

    async def PreviewNotice(self, request: pb.PreviewNoticeRequest, call: Call) -> pb.PreviewNoticeResponse:
        company_id, now = identity.company_id(call), await self._clocks.now(call)
        values = bodies.check(NoticeDraft, fields(request, *NoticeDraft.__struct_fields__))
        unit_ids = _unit_ids(request.unit_id)
        rules.check_audience(bool(unit_ids), values.area is not None)
        property_name = await q.property_name(self.database, company_id, request.property_id)
        if property_name is None:
            raise no_such("property")
        units = await q.named_units(self.database, company_id, request.property_id, unit_ids) if unit_ids else []
        if len(units) < len(unit_ids):
            raise no_such("unit in that property")
        preview = Notice(
            id=request.notice_id,
            property_id=request.property_id,
            property_name=property_name,
            unit_ids=unit_ids,
            unit=rules.audience(values.area, len(unit_ids), units[0]["name"] if units else None),
            url=f"{self._links_url}/notices/{request.notice_id}",
            created_at=now,
            updated_at=now,
            published_at=now,
            external_id=None,
            source="",
            **msgspec.structs.asdict(values),
        )
        return pb.PreviewNoticeResponse(
            notice=_message(preview), units=map(_unit, units), event_data=published(preview)
        )

    async def ListNotices(self, request: pb.ListNoticesRequest, call: Call) -> pb.ListNoticesResponse:
        limit = limit_of(request, PAGE, PAGE_MAX)
        property_id = request.property_id if request.HasField("property_id") else None
        if request.newest_first:
            return await self._newest(request, identity.company_id(call), limit, property_id)
        for name in ("published", "after"):
            if request.HasField(name):
                raise invalid_request(f"{name} goes with newest_first.", name)
        rows = await q.notices_page(self.database, identity.company_id(call), request.after_id, limit, property_id)
        return pb.ListNoticesResponse(notices=(_message(self._renderer.record(row)) for row in rows))

    async def _newest(
        self, request: pb.ListNoticesRequest, company_id: int, limit: int, property_id: int | None
    ) -> pb.ListNoticesResponse:
        if request.HasField("after_id"):
            raise invalid_request("after_id goes without newest_first.", "after_id")
        published_alone = request.published if request.HasField("published") else None
        after = _place_of(request.after) if request.HasField("after") else None
        places = await q.newest_notices(self.database, company_id, limit, after, property_id, published_alone)
        page = places[:limit]
        rows = await q.notices_by_ids(self.database, company_id, [place.id for place in page])
        by_id = {record.id: record for record in map(self._renderer.record, rows)}
        answer = pb.ListNoticesResponse(notices=(_message(by_id[place.id]) for place in page if place.id in by_id))
        if len(places) > limit:
            answer.next = _text_of(page[-1])
        return answer

    async def GetNotice(self, request: pb.GetNoticeRequest, call: Call) -> pb.GetNoticeResponse:
        company_id = identity.company_id(call)
        row = await self.database.row(q.ONE_NOTICE, company_id=company_id, entity_id=request.notice_id)
        if row is None:
            raise no_such("notice")
        record = self._renderer.record(row)
        units = await q.units_of(self.database, company_id, request.notice_id)
        published_at = record.published_at or await self._clocks.now(call)
        as_published = msgspec.structs.replace(record, published_at=published_at)
        return pb.GetNoticeResponse(
            notice=_message(record),
            units=map(_unit, units),
            event_data=published(as_published),
        )

    async def CountNotices(self, _request: pb.CountNoticesRequest, call: Call) -> pb.CountNoticesResponse:
        company_id, now = identity.company_id(call), await self._clocks.now(call)
        lately = await q.counted_notices(self.database, company_id, now - LATELY, now)
        drafts = await q.counted_notices(self.database, company_id, q.NEVER, q.NEVER)
        return pb.CountNoticesResponse(drafts=drafts, published_lately=lately)

    async def ImportNotices(self, request: pb.ImportNoticesRequest, call: Call) -> pb.ImportNoticesResponse:
        company_id = identity.company_id(call)

        async def announce(connection: Connection, notices: Sequence[Notice]) -> None:
            events = [
                self.outbox.public(
                    rules.EVENT,
                    company_id=company_id,
                    entity_id=record.id,
                    occurred_at=record.published_at,
                    data=published(record),
                    request_id=call.request_id,
                )
                for record in notices
                if record.published_at is not None
            ]
            await self.outbox.add_many(connection, events)

        work = NoticeImport(self._renderer, announce if request.events else None)
        results = await self.importer.run(work.save, NoticeRow, request, call)
        self.outbox.wake()
        return pb.ImportNoticesResponse(results=results)


def _text_of(place: q.Newest) -> str:
    """The `next` of a page that ends with this notice."""
    return f"{'' if place.at == q.NEVER else place.at.isoformat()}.{place.id}"


def _place_of(text: str) -> q.Newest:
    """The place that `next` has spelled. Raises Refusal 400."""
    at, _, number = text.rpartition(".")
    try:
        if len(number) > 18 or not (number.isascii() and number.isdigit()):
            raise ValueError(number)
        instant = datetime.datetime.fromisoformat(at) if at else q.NEVER
        if at and instant.tzinfo is None:
            raise ValueError(at)
    except ValueError:
        raise invalid_request("after is not the `next` of a page of this list.", "after") from None
    return q.Newest(int(number), instant)


def _message(record: Notice) -> pb.Notice:
    message = pb.Notice(
        notice_id=record.id,
        unit_id=record.unit_ids,
        unit=record.unit,
        url=record.url,
        property_name=record.property_name,
        **{name: getattr(record, name) for name in (*rules.CONTENT, "external_id", "source")},
    )
    for name in ("created_at", "updated_at", "published_at"):
        at = getattr(record, name)
        if at is not None:
            getattr(message, name).FromDatetime(at)
    return message


def _audited(record: Notice, _row: Mapping[str, object]) -> dict[str, object]:
    """The values of a notice in an audit entry."""
    published_at = None if record.published_at is None else printed(record.published_at)
    return {name: getattr(record, name) for name in _AUDITED} | {"published_at": published_at}


def _unit(row: Record) -> pb.NoticeUnit:
    return pb.NoticeUnit(unit_id=row["id"], name=row["name"])


def _as_of(request: pb.UpdateNoticeRequest | pb.PublishNoticeRequest) -> datetime.datetime | None:
    """The version of the notice that the request is about; None for any."""
    return request.as_of.ToDatetime(datetime.UTC) if request.HasField("as_of") else None


def _unit_ids(requested: Sequence[int]) -> list[int]:
    """The ids without duplicates, ascending. Raises Refusal 400 if there are too many."""
    if len(requested) > rules.UNITS_MAX:
        raise invalid_request(f"unit_id may name {rules.UNITS_MAX} units at most.", "unit_id")
    return sorted(set(requested))


async def _check_units(command: Command, property_id: int, unit_ids: Sequence[int]) -> None:
    """Raises Refusal 404 if one of them is not in the property."""
    units = await q.units_of_property(command.connection, command.company_id, property_id, unit_ids) if unit_ids else []
    if len(units) < len(unit_ids):
        raise no_such("unit in that property")
