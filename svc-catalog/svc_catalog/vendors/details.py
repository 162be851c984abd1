"""The RPCs by which people find vendors, with their holds and their insurance."""

from __future__ import annotations

import datetime
from typing import Any

from chassis.auth import identity
from chassis.db.database import Database
from chassis.refusals import invalid_request
from chassis.schedule.instants import Clock, local_date
from chassis.writes.editing import no_such
from makeready.catalog.v1 import vendor_details_pb2 as pb
from svc_catalog import day_pages
from svc_catalog.companies import timezone_of
from svc_catalog.vendors import rules
from svc_catalog.vendors import search_queries as q

WORDS_POINTS_MAX = 200
DAYS, DAYS_MAX = 30, 3660
_STATES: dict[str, Any] = {state: number for number, state in enumerate(rules.COMPLIANCE_STATES, start=1)}


class VendorDetailsService:
    """Finds and counts vendors for people."""

    def __init__(self, database: Database, links_url: str, clock: Clock) -> None:
        self._database, self._links_url, self._clock = database, links_url, clock

    async def SearchVendors(self, request: pb.SearchVendorsRequest, call: identity.Call) -> pb.SearchVendorsResponse:
        company_id, limit = identity.company_id(call), day_pages.limit_of(request)
        wanted = _wanted(request)
        after = day_pages.position_of(request.after) if request.HasField("after") else None
        if request.HasField("external_id"):
            if wanted.words is not None or wanted.by_insurance or after is not None:
                raise invalid_request("external_id goes with state, on_hold and is_active alone.", "external_id")
            external_id = _text(request.external_id, "external_id")
            found = await q.with_external_id(self._database, company_id, external_id, wanted.states)
        else:
            found = await q.page(self._database, company_id, wanted, limit, after)
        shown = found[:limit]
        rows = await q.vendors_by_ids(self._database, company_id, [one.id for one in shown])
        answer = pb.SearchVendorsResponse(vendors=map(self._message, rows))
        if len(found) > limit:
            answer.next = str(shown[-1])
        return answer

    async def GetVendorDetails(
        self, request: pb.GetVendorDetailsRequest, call: identity.Call
    ) -> pb.GetVendorDetailsResponse:
        company_id = identity.company_id(call)
        row = await q.vendor_by_id(self._database, company_id, request.vendor_id)
        if row is None:
            raise no_such("vendor")
        answer = pb.GetVendorDetailsResponse(vendor=self._message(row))
        if row.on_hold and row.held_at is not None:
            held_by = await q.held_by(self._database, company_id, row.id, row.held_at)
            if held_by is not None:
                answer.held_by = held_by
        return answer

    async def CountVendors(self, request: pb.CountVendorsRequest, call: identity.Call) -> pb.CountVendorsResponse:
        company_id = identity.company_id(call)
        days = request.days if request.HasField("days") else DAYS
        if not 0 <= days <= DAYS_MAX:
            raise invalid_request(f"days must be from 0 to {DAYS_MAX}.", "days")
        async with self._database.connection() as connection:
            today = local_date(self._clock(), await timezone_of(connection, company_id))
        one_day = datetime.timedelta(days=1)
        everything = {"from_day": day_pages.FIRST_DAY, "to_day": day_pages.NO_DAY}
        lapsed = {"from_day": day_pages.FIRST_DAY, "to_day": today - one_day}
        ending = {"from_day": today, "to_day": today + one_day * days}
        counts = {
            "active": (rules.search_states((), None, True), everything),
            "on_hold": (rules.search_states((), True, True), everything),
            "lapsed": (rules.search_states((), None, True), lapsed),
            "ending": (rules.search_states((), None, True), ending),
            "missing": (rules.search_states(("missing",), None, True), everything),
        }
        found = {name: await q.counted(self._database, company_id, *what) for name, what in counts.items()}
        return pb.CountVendorsResponse(**found)

    def _message(self, row: q.FoundVendor) -> pb.VendorDetails:
        own = row._asdict()
        message = pb.VendorDetails(
            vendor_id=own.pop("id"),
            compliance_state=_STATES[rules.published_compliance(own.pop("last_compliance_state"))],
            url=f"{self._links_url}/vendors/{row.id}",
        )
        if not row.on_hold:
            own["held_at"] = None
        for name, value in own.items():
            if isinstance(value, datetime.datetime):
                getattr(message, name).FromDatetime(value)
            elif isinstance(value, datetime.date):
                setattr(message, name, value.isoformat())
            elif value is not None:
                setattr(message, name, value)
        return message


def _wanted(request: pb.SearchVendorsRequest) -> q.Wanted:
    """Raises Refusal 400."""
    words = _text(request.words, "words")
    if len(words) > WORDS_POINTS_MAX:
        raise invalid_request(f"words may have {WORDS_POINTS_MAX} characters at most.", "words")
    states = {day_pages.label_of(one, rules.COMPLIANCE_STATES, "state") for one in request.state}
    is_by_day = request.HasField("insured_from") or request.HasField("insured_until")
    order = day_pages.label_of(request.order, ("newest", "insurance"), "order") if request.order else "newest"
    return q.Wanted(
        words if words.strip() else None,
        rules.search_states(
            states,
            request.on_hold if request.HasField("on_hold") else None,
            request.is_active if request.HasField("is_active") else None,
        ),
        day_pages.days_between(request, "insured_from", "insured_until"),
        order == "insurance" or is_by_day,
    )


def _text(text: str, field: str) -> str:
    if "\0" in text:
        raise invalid_request(f"{field} must not hold the character NUL.", field)
    return text
