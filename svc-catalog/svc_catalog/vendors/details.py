"""The RPCs by which people find vendors, with their holds and their insurance."""

from __future__ import annotations

import datetime

from chassis.auth import identity
from chassis.db.database import Database
from chassis.lists.paging import limit_of
from chassis.refusals import invalid_request
from chassis.schedule.clocks import CompanyClocks
from chassis.schedule.instants import local_date
from chassis.writes.editing import no_such
from makeready.catalog.v1 import vendor_details_pb2 as pb
from svc_catalog import day_pages
from svc_catalog.companies import timezone_of
from svc_catalog.vendors import rules
from svc_catalog.vendors import search_queries as q

WORDS_POINTS_MAX = 200
DAYS, DAYS_MAX = 30, 3660
_STATES = dict(zip(rules.COMPLIANCE_STATES, pb.ComplianceState.values()[1:], strict=True))


class VendorDetailsService:
    """Finds and counts vendors for people."""

    def __init__(self, database: Database, links_url: str, clocks: CompanyClocks) -> None:
        self._database, self._links_url, self._clocks = database, links_url, clocks

    async def SearchVendors(self, request: pb.SearchVendorsRequest, call: identity.Call) -> pb.SearchVendorsResponse:
        company_id, limit = identity.company_id(call), limit_of(request, day_pages.PAGE, day_pages.PAGE_MAX)
        search = _search(request)
        after = day_pages.position_of(request.after) if request.HasField("after") else None
        if request.HasField("external_id"):
            if search.words is not None or search.by_insurance or after is not None:
                raise invalid_request("external_id goes with state, on_hold and is_active alone.", "external_id")
            external_id = _text(request.external_id, "external_id")
            positions = await q.with_external_id(self._database, company_id, external_id, search.states)
        else:
            positions = await q.page(self._database, company_id, search, limit, after)
        page = positions[:limit]
        rows = await q.vendors_by_ids(self._database, company_id, [position.id for position in page])
        answer = pb.SearchVendorsResponse(vendors=map(self._message, rows))
        if len(positions) > limit:
            answer.next = str(page[-1])
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
            # The audit log has the real clock's instants.
            held_since = await self._clocks.real_before(call, row.held_at)
            held_by = await q.held_by(self._database, company_id, row.id, held_since)
            if held_by is not None:
                answer.held_by = held_by
        return answer

    async def CountVendors(self, request: pb.CountVendorsRequest, call: identity.Call) -> pb.CountVendorsResponse:
        company_id = identity.company_id(call)
        days = request.days if request.HasField("days") else DAYS
        if not 0 <= days <= DAYS_MAX:
            raise invalid_request(f"days must be from 0 to {DAYS_MAX}.", "days")
        now = await self._clocks.now(call)
        async with self._database.connection() as connection:
            today = local_date(now, await timezone_of(connection, company_id))
        one_day = datetime.timedelta(days=1)
        lapsed = day_pages.Days(day_pages.FIRST_DAY, today - one_day)
        ending = day_pages.Days(today, today + one_day * days)
        searches = {
            "active": (rules.search_states((), None, True), day_pages.EVERY_DAY),
            "on_hold": (rules.search_states((), True, True), day_pages.EVERY_DAY),
            "lapsed": (rules.search_states((), None, True), lapsed),
            "ending": (rules.search_states((), None, True), ending),
            "missing": (rules.search_states(("missing",), None, True), day_pages.EVERY_DAY),
        }
        counts = {
            name: await q.counted(self._database, company_id, states, days) for name, (states, days) in searches.items()
        }
        return pb.CountVendorsResponse(**counts)

    def _message(self, row: q.FoundVendor) -> pb.VendorDetails:
        fields = row._asdict()
        message = pb.VendorDetails(
            vendor_id=fields.pop("id"),
            compliance_state=_STATES[rules.published_compliance(fields.pop("last_compliance_state"))],
            url=f"{self._links_url}/vendors/{row.id}",
        )
        if not row.on_hold:
            fields["held_at"] = None
        for name, value in fields.items():
            if isinstance(value, datetime.datetime):
                getattr(message, name).FromDatetime(value)
            elif isinstance(value, datetime.date):
                setattr(message, name, value.isoformat())
            elif value is not None:
                setattr(message, name, value)
        return message


def _search(request: pb.SearchVendorsRequest) -> q.VendorSearch:
    """Raises Refusal 400."""
    words = _text(request.words, "words")
    if len(words) > WORDS_POINTS_MAX:
        raise invalid_request(f"words may have {WORDS_POINTS_MAX} characters at most.", "words")
    states = {day_pages.label_of(number, rules.COMPLIANCE_STATES, "state") for number in request.state}
    is_by_day = request.HasField("insured_from") or request.HasField("insured_until")
    order = day_pages.label_of(request.order, ("newest", "insurance"), "order") if request.order else "newest"
    return q.VendorSearch(
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
