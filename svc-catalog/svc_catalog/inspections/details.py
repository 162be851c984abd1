"""The RPCs by which people find inspections: as a list, and by the days of a calendar."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from chassis.auth import identity
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.schedule.instants import Clock, local_date
from chassis.writes.editing import no_such
from makeready.catalog.v1 import inspection_details_pb2 as pb
from svc_catalog import day_pages
from svc_catalog.companies import timezone_of
from svc_catalog.inspections import rules
from svc_catalog.inspections import search_queries as q

DAYS_MAX, OF_A_DAY, OF_A_DAY_MAX, COUNTED_OF_A_DAY = 62, 4, 20, 50
_ONE_DAY = datetime.timedelta(days=1)
_STATUSES: dict[str, Any] = {status: number for number, status in enumerate(rules.INSPECTION_STATUSES, start=1)}
_RESULTS: Any = {result: number for number, result in enumerate(rules.INSPECTION_RESULTS, start=1)}


class InspectionDetailsService:
    """Finds and counts inspections for people."""

    def __init__(self, database: Database, links_url: str, clock: Clock) -> None:
        self._database, self._links_url, self._clock = database, links_url, clock

    async def SearchInspections(
        self, request: pb.SearchInspectionsRequest, call: identity.Call
    ) -> pb.SearchInspectionsResponse:
        company_id, limit = identity.company_id(call), day_pages.limit_of(request)
        places, (statuses, results) = _places(request), _states(request)
        days = day_pages.days_between(request, "from_date", "to_date")
        after = day_pages.position_of(request.after) if request.HasField("after") else None
        today = await self._today(company_id)
        if request.late:
            statuses = [one for one in rules.OPEN_STATUSES if not statuses or one in statuses]
            days["to_day"] = min(days["to_day"], today - _ONE_DAY)
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
            found = await q.with_external_id(self._database, company_id, request.external_id)
        elif request.late and (request.cancelled or not statuses):
            found = []
        else:
            found = await q.page(
                self._database,
                company_id,
                places,
                limit,
                after,
                newest_first=request.newest_first,
                cancelled=request.cancelled,
                states=rules.search_states(statuses, results),
                **days,
            )
        shown = found[:limit]
        answer = pb.SearchInspectionsResponse(
            inspections=await self._messages(company_id, [one.id for one in shown], today)
        )
        if len(found) > limit:
            answer.next = str(shown[-1])
        return answer

    async def ListInspectionDays(
        self, request: pb.ListInspectionDaysRequest, call: identity.Call
    ) -> pb.ListInspectionDaysResponse:
        company_id = identity.company_id(call)
        limit = day_pages.limit_of(request, OF_A_DAY_MAX, OF_A_DAY)
        first, last = (day_pages.day_of(getattr(request, name), name) for name in ("from_date", "to_date"))
        count = (last - first).days + 1
        if not 1 <= count <= DAYS_MAX:
            raise invalid_request(f"A calendar has from 1 to {DAYS_MAX} days.", "to_date")
        statuses, results = _states(request)
        states = rules.search_states(statuses, results)
        days = [first + number * _ONE_DAY for number in range(count)]
        found = await q.ids_by_day(self._database, company_id, _places(request), states, days, COUNTED_OF_A_DAY)
        shown = {day: ids[:limit] for day, ids in found.items()}
        today = await self._today(company_id)
        rows = await q.inspections_by_ids(self._database, company_id, [one for ids in shown.values() for one in ids])
        answer = pb.ListInspectionDaysResponse()
        for day, ids in found.items():
            answer.days.add(
                date=day.isoformat(),
                inspections=[self._message(rows[one], today) for one in shown[day] if one in rows],
                count=min(len(ids), COUNTED_OF_A_DAY),
            )
        return answer

    async def GetInspectionDetails(
        self, request: pb.GetInspectionDetailsRequest, call: identity.Call
    ) -> pb.GetInspectionDetailsResponse:
        company_id = identity.company_id(call)
        today = await self._today(company_id)
        found = await self._messages(company_id, [request.inspection_id], today)
        if not found:
            raise no_such("inspection")
        return pb.GetInspectionDetailsResponse(inspection=found[0])

    async def CountInspections(
        self, request: pb.CountInspectionsRequest, call: identity.Call
    ) -> pb.CountInspectionsResponse:
        company_id = identity.company_id(call)
        places = _places(request)
        today = await self._today(company_id)
        everything = {"from_day": day_pages.FIRST_DAY, "to_day": day_pages.NO_DAY}
        late = {"from_day": day_pages.FIRST_DAY, "to_day": today - _ONE_DAY}
        week = {"from_day": today, "to_day": today + 6 * _ONE_DAY}
        counts: dict[str, tuple[Sequence[str], dict[str, datetime.date]]] = {
            "scheduled": (("Scheduled",), everything),
            "in_progress": (("In Progress",), everything),
            "late": (rules.OPEN_STATUSES, late),
            "this_week": (rules.OPEN_STATUSES, week),
        }
        answer = pb.CountInspectionsResponse()
        for name, (statuses, days) in counts.items():
            states = rules.search_states(statuses, ())
            setattr(answer, name, await q.counted(self._database, company_id, places, states=states, **days))
        return answer

    async def _today(self, company_id: int) -> datetime.date:
        async with self._database.connection() as connection:
            return local_date(self._clock(), await timezone_of(connection, company_id))

    async def _messages(self, company_id: int, ids: Sequence[int], today: datetime.date) -> list[pb.InspectionDetails]:
        """In the order of the ids."""
        rows = await q.inspections_by_ids(self._database, company_id, ids)
        return [self._message(rows[one], today) for one in ids if one in rows]

    def _message(self, row: q.FoundInspection, today: datetime.date) -> pb.InspectionDetails:
        own = row._asdict()
        status, result = own.pop("published_status"), own.pop("result")
        day = row.scheduled_date or row.completed_date
        message = pb.InspectionDetails(
            inspection_id=own.pop("id"),
            status=_STATUSES[status],
            result=_RESULTS.get(result),
            url=f"{self._links_url}/inspections/{row.id}",
            late=row.cancelled_at is None and status in rules.OPEN_STATUSES and day is not None and day < today,
        )
        for name, value in own.items():
            if isinstance(value, datetime.datetime):
                getattr(message, name).FromDatetime(value)
            elif isinstance(value, datetime.date):
                setattr(message, name, value.isoformat())
            elif value is not None:
                setattr(message, name, value)
        return message


def _places(request: Any) -> dict[str, int]:
    fields = request.DESCRIPTOR.fields_by_name
    names = [name for name in ("property_id", "unit_id", "assignee_id") if name in fields]
    return {name: getattr(request, name) for name in names if request.HasField(name)}


def _states(request: Any) -> tuple[list[str], list[str]]:
    """The statuses and the results that a request names. Raises Refusal 400."""
    statuses = [day_pages.label_of(one, rules.INSPECTION_STATUSES, "status") for one in request.status]
    return statuses, [day_pages.label_of(one, rules.INSPECTION_RESULTS, "result") for one in request.result]
