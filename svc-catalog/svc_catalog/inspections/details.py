"""The RPCs by which people find inspections: as a list, and by the days of a calendar."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from google.protobuf.message import Message

from chassis.auth import identity
from chassis.db.database import Database
from chassis.lists.paging import limit_of
from chassis.refusals import invalid_request
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import local_date
from chassis.writes.editing import no_such
from makeready.catalog.v1 import inspection_details_pb2 as pb
from makeready.catalog.v1 import inspections_pb2
from svc_catalog import day_pages
from svc_catalog.companies import timezone_of
from svc_catalog.inspections import rules
from svc_catalog.inspections import search_queries as q

DAYS_MAX, OF_A_DAY, OF_A_DAY_MAX, COUNTED_OF_A_DAY = 62, 4, 20, 50
_ONE_DAY = datetime.timedelta(days=1)
_STATUSES = dict(zip(rules.INSPECTION_STATUSES, inspections_pb2.InspectionStatus.values()[1:], strict=True))
_RESULTS = dict(zip(rules.INSPECTION_RESULTS, pb.InspectionResult.values()[1:], strict=True))


class InspectionDetailsService:
    """Finds and counts inspections for people."""

    def __init__(self, database: Database, links_url: str, clocks: CompanyClocks) -> None:
        self._database, self._links_url, self._clocks = database, links_url, clocks

    async def SearchInspections(
        self, request: pb.SearchInspectionsRequest, call: identity.Call
    ) -> pb.SearchInspectionsResponse:
        company_id, limit = identity.company_id(call), limit_of(request, day_pages.PAGE, day_pages.PAGE_MAX)
        places, (statuses, results) = _places(request), _states(request)
        days = day_pages.days_between(request, "from_date", "to_date")
        after = day_pages.position_of(request.after) if request.HasField("after") else None
        today = await self._today(call)
        if request.late:
            statuses = [status for status in rules.OPEN_STATUSES if not statuses or status in statuses]
            days = days._replace(last=min(days.last, today - _ONE_DAY))
        if request.HasField("external_id"):
            if "\0" in request.external_id:
                raise invalid_request("external_id must not hold the character NUL.", "external_id")
            if (
                places
                or statuses
                or results
                or request.HasField("from_date")
                or request.HasField("to_date")
                or after is not None
            ):
                raise invalid_request("external_id goes with no other filter.", "external_id")
            positions = await q.with_external_id(self._database, company_id, request.external_id)
        elif request.late and (request.cancelled or not statuses):
            positions = []
        else:
            positions = await q.page(
                self._database,
                company_id,
                day_pages.DaySearch(rules.search_states(statuses, results), days, places),
                limit,
                after,
                newest_first=request.newest_first,
                cancelled=request.cancelled,
            )
        page = positions[:limit]
        answer = pb.SearchInspectionsResponse(
            inspections=await self._messages(company_id, [position.id for position in page], today)
        )
        if len(positions) > limit:
            answer.next = str(page[-1])
        return answer

    async def ListInspectionDays(
        self, request: pb.ListInspectionDaysRequest, call: identity.Call
    ) -> pb.ListInspectionDaysResponse:
        company_id = identity.company_id(call)
        limit = limit_of(request, OF_A_DAY, OF_A_DAY_MAX)
        first, last = (day_pages.day_of(getattr(request, name), name) for name in ("from_date", "to_date"))
        count = (last - first).days + 1
        if not 1 <= count <= DAYS_MAX:
            raise invalid_request(f"A calendar has from 1 to {DAYS_MAX} days.", "to_date")
        statuses, results = _states(request)
        states = rules.search_states(statuses, results)
        days = [first + number * _ONE_DAY for number in range(count)]
        ids_by_day = await q.ids_by_day(self._database, company_id, _places(request), states, days, COUNTED_OF_A_DAY)
        listed = {day: ids[:limit] for day, ids in ids_by_day.items()}
        today = await self._today(call)
        rows = await q.inspections_by_ids(
            self._database, company_id, [inspection_id for ids in listed.values() for inspection_id in ids]
        )
        answer = pb.ListInspectionDaysResponse()
        for day, ids in ids_by_day.items():
            answer.days.add(
                date=day.isoformat(),
                inspections=[
                    self._message(rows[inspection_id], today) for inspection_id in listed[day] if inspection_id in rows
                ],
                count=min(len(ids), COUNTED_OF_A_DAY),
            )
        return answer

    async def GetInspectionDetails(
        self, request: pb.GetInspectionDetailsRequest, call: identity.Call
    ) -> pb.GetInspectionDetailsResponse:
        company_id = identity.company_id(call)
        today = await self._today(call)
        messages = await self._messages(company_id, [request.inspection_id], today)
        if not messages:
            raise no_such("inspection")
        return pb.GetInspectionDetailsResponse(inspection=messages[0])

    async def CountInspections(
        self, request: pb.CountInspectionsRequest, call: identity.Call
    ) -> pb.CountInspectionsResponse:
        company_id = identity.company_id(call)
        places = _places(request)
        today = await self._today(call)
        late = day_pages.Days(day_pages.FIRST_DAY, today - _ONE_DAY)
        week = day_pages.Days(today, today + 6 * _ONE_DAY)
        searches: dict[str, tuple[Sequence[str], day_pages.Days]] = {
            "scheduled": (("Scheduled",), day_pages.EVERY_DAY),
            "in_progress": (("In Progress",), day_pages.EVERY_DAY),
            "late": (rules.OPEN_STATUSES, late),
            "this_week": (rules.OPEN_STATUSES, week),
        }
        answer = pb.CountInspectionsResponse()
        for name, (statuses, days) in searches.items():
            search = day_pages.DaySearch(rules.search_states(statuses, ()), days, places)
            setattr(answer, name, await q.counted(self._database, company_id, search))
        return answer

    async def _today(self, call: identity.Call) -> datetime.date:
        now = await self._clocks.now(call)
        async with self._database.connection() as connection:
            return local_date(now, await timezone_of(connection, identity.company_id(call)))

    async def _messages(self, company_id: int, ids: Sequence[int], today: datetime.date) -> list[pb.InspectionDetails]:
        """In the order of the ids."""
        rows = await q.inspections_by_ids(self._database, company_id, ids)
        return [self._message(rows[inspection_id], today) for inspection_id in ids if inspection_id in rows]

    def _message(self, row: q.FoundInspection, today: datetime.date) -> pb.InspectionDetails:
        fields = row._asdict()
        status, result = fields.pop("published_status"), fields.pop("result")
        day = row.scheduled_date or row.completed_date
        message = pb.InspectionDetails(
            inspection_id=fields.pop("id"),
            status=_STATUSES[status],
            url=f"{self._links_url}/inspections/{row.id}",
            late=row.cancelled_at is None and status in rules.OPEN_STATUSES and day is not None and day < today,
        )
        if result is not None:
            message.result = _RESULTS[result]
        for name, value in fields.items():
            if isinstance(value, datetime.datetime):
                getattr(message, name).FromDatetime(value)
            elif isinstance(value, datetime.date):
                setattr(message, name, value.isoformat())
            elif value is not None:
                setattr(message, name, value)
        return message


def _places(request: Message) -> dict[str, int]:
    fields = request.DESCRIPTOR.fields_by_name
    names = [name for name in ("property_id", "unit_id", "assignee_id") if name in fields]
    return {name: getattr(request, name) for name in names if request.HasField(name)}


def _states(
    request: pb.SearchInspectionsRequest | pb.ListInspectionDaysRequest,
) -> tuple[list[str], list[str]]:
    """The statuses and the results that a request names. Raises Refusal 400."""
    statuses = [day_pages.label_of(number, rules.INSPECTION_STATUSES, "status") for number in request.status]
    return statuses, [day_pages.label_of(number, rules.INSPECTION_RESULTS, "result") for number in request.result]
