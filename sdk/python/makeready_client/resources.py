"""The operations of the API, by resource; each class twice, the second time with coroutines.

Made by `make openapi` from the tables of the API: change openapi/reference instead.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from makeready_client import models
from makeready_client.core import AsyncCore, AsyncResource, Core, Resource
from makeready_client.following import AsyncFollowing, Following
from makeready_client.paging import (
    AsyncEventFeed,
    AsyncFeed,
    AsyncPages,
    AsyncWalk,
    EventFeed,
    Feed,
    FeedPage,
    Page,
    Pages,
    Walk,
)
from makeready_client.requests import Request, path
from makeready_client.snapshots import AsyncSnapshot, Snapshot


class Tickets(Resource):
    """Tickets: `client.tickets`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.TicketStatus | None = None,
        updated_since: datetime.datetime | None = None,
        ticket_number: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Ticket]:
        """List tickets.

        A page of tickets, ascending by id. Tickets without a property are not included.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        ticket_number: Only the ticket with this number. Needs `property_id` beside it; alone it is refused with
        400.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/tickets",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "status": status,
                "updated_since": updated_since,
                "ticket_number": ticket_number,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return Walk(self.client, request, Page[models.Ticket])

    def create(
        self,
        *,
        unit_id: int,
        title: str,
        category: models.TicketCategory,
        asset_id: int | None = None,
        description: str | None = None,
        priority: models.TicketPriority | None = None,
        idempotency_key: str | None = None,
    ) -> models.Ticket:
        """Create a ticket.

        Opens a ticket on a unit. Fires `ticket.created`.

        unit_id: The unit that the ticket is for; it must be visible to the key.
        title: The problem, in one line.
        category: The trade that the ticket is for.
        asset_id: The asset that the ticket is about; it must be on the unit's property.
        description: The full report; empty if left out.
        priority: How urgent it is; Medium if left out.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/tickets",
            body={
                "unit_id": unit_id,
                "title": title,
                "category": category,
                "asset_id": asset_id,
                "description": description,
                "priority": priority,
            },
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.Ticket)

    def get(self, ticket_id: int) -> models.Ticket:
        """Fetch a ticket.

        One ticket by its id. Tickets without a property are not included.

        ticket_id: The ticket's `entity_id`.
        """
        request = Request("GET", path("/tickets/{ticket_id}", ticket_id))
        return self.client.call(request, models.Ticket)

    def change_status(
        self,
        ticket_id: int,
        *,
        status: models.TicketStatus,
        note: str | None = None,
        cancellation_reason_code: models.TicketCancellationReasonCode | None = None,
        cancellation_notes: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Ticket:
        """Change a ticket's status.

        Every status can follow every other one, Completed and Cancelled included: `completed_at` is null again
        when the ticket is no longer Completed, `cancelled_at` and `cancellation_reason_code` when it is no longer
        Cancelled. The status that the ticket already has is accepted, too. Completed again is another closing:
        its note is stored, and `completed_at` is the time of the last one. So is Cancelled again, with
        `cancelled_at`, unless reason and notes are those that are stored. Fires `ticket.status_changed` for each
        change, with `from` equal to `to` if a ticket is closed again. Cancelled with the stored reason and notes,
        and Open, In Progress or On Hold again, are answered with 200, change nothing and fire nothing. Notes
        become comments of the ticket. Words of a note are separated by blanks, and each contains a letter or a
        digit. In scripts without blanks between words, each Chinese or Japanese character counts as a word, and
        in Thai, Lao, Khmer, Burmese and similar scripts every three letters do.

        ticket_id: The ticket's `entity_id`.
        status: The ticket's new status; every status can follow every other one.
        note: The work done, in 5 or more words. Required with status Completed, refused with any other.
        cancellation_reason_code: Why the ticket is cancelled. Required with status Cancelled, refused with any
        other.
        cancellation_notes: The reason in 5 or more words. Required with cancellation_reason_code see_notes,
        refused with any other.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "PATCH",
            path("/tickets/{ticket_id}", ticket_id),
            body={
                "status": status,
                "note": note,
                "cancellation_reason_code": cancellation_reason_code,
                "cancellation_notes": cancellation_notes,
            },
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.Ticket)

    def create_photo(self, ticket_id: int, *, photo_url: str, idempotency_key: str | None = None) -> models.Ticket:
        """Add a photo to a ticket.

        Adds the address of a photo. The ticket's `photo_url` is then this one, and the ticket can be completed
        where the company requires a photo. Earlier photos stay with the ticket in the administrator interface.
        The address that `photo_url` has already is accepted, too, and changes nothing. Fires no event.

        ticket_id: The ticket's `entity_id`.
        photo_url: The photo's address: an absolute http or https URL of at most 2,000 characters. The photo is
        not fetched, so it must stay there for as long as the ticket is to show it.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/tickets/{ticket_id}/photos", ticket_id),
            body={"photo_url": photo_url},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.Ticket)

    def assign(
        self,
        ticket_id: int,
        *,
        assignee_id: int | None = None,
        vendor_id: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.Ticket:
        """Assign a ticket.

        Sets who has the work: a member of staff, a vendor, both, or with an object without keys nobody. It
        replaces the assignment: whom the body does not name has the ticket no more. `GET /staff` and `GET
        /vendors` have the ids. The assignment that the ticket has already changes nothing. Fires no event.

        ticket_id: The ticket's `entity_id`.
        assignee_id: The member of staff; nobody if left out.
        vendor_id: The vendor; none if left out. A vendor on hold gets no new work.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "PUT",
            path("/tickets/{ticket_id}/assignment", ticket_id),
            body={"assignee_id": assignee_id, "vendor_id": vendor_id},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.Ticket)

    def comment(
        self,
        ticket_id: int,
        *,
        text: str,
        author: models.CommentAuthor | None = None,
        idempotency_key: str | None = None,
    ) -> models.TicketComment:
        """Comment on a ticket.

        Adds a comment, which people see with the ticket in the console. The ticket's record and its `updated_at`
        stay as they are. A comment of staff or of a vendor counts as work: a ticket that a resident filed is
        quiet anew from then on (`ticket.stale`). Comments cannot be listed: staff write there for one another.
        Fires no event.

        ticket_id: The ticket's `entity_id`.
        text: What is said.
        author: Whose words they are; those of staff if left out.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/tickets/{ticket_id}/comments", ticket_id),
            body={"text": text, "author": author},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.TicketComment)


class Properties(Resource):
    """Properties: `client.properties`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[models.Property]:
        """List properties.

        A page of properties, ascending by id.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/properties", query={"limit": limit, "cursor": cursor})
        return Walk(self.client, request, Page[models.Property])

    def get(self, property_id: int) -> models.Property:
        """Fetch a property.

        One property by its id.

        property_id: The property's `entity_id`.
        """
        request = Request("GET", path("/properties/{property_id}", property_id))
        return self.client.call(request, models.Property)


class Units(Resource):
    """Units: `client.units`."""

    def list(
        self, *, property_id: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Pages[models.Unit]:
        """List units.

        A page of units, ascending by id. `unit_status` and `projected_ready_on` are those of the unit's current
        turn. They show a notice or a move-in over the API from its 201 on, here and in `GET /units/{unit_id}`;
        other changes, and these under heavy load, within a second.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/units", query={"property_id": property_id, "limit": limit, "cursor": cursor})
        return Walk(self.client, request, Page[models.Unit])

    def get(self, unit_id: int) -> models.Unit:
        """Fetch a unit.

        One unit by its id. `unit_status` and `projected_ready_on` are those of the unit's current turn. They show
        a notice or a move-in over the API from its 201 on, here and in `GET /units/{unit_id}`; other changes, and
        these under heavy load, within a second.

        unit_id: The unit's `entity_id`.
        """
        request = Request("GET", path("/units/{unit_id}", unit_id))
        return self.client.call(request, models.Unit)

    def record_notice(
        self,
        unit_id: int,
        *,
        move_out_date: datetime.date,
        provider: str,
        ntv_reason_code: str | None = None,
        departure_destination_code: str | None = None,
        notes: str | None = None,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.OccupancyRecord:
        """Record a notice to vacate.

        Records when the unit's current resident leaves. The unit becomes `Notice`, which fires
        `turn.status_changed` if it was not. Another notice replaces all values of the notice before it; one with
        the same date changes no status. A resident who has left can leave no more: the same date again, or an
        earlier one, is refused, and a later one says that the resident stayed on, or, from a planned move-in's
        day on, that it is the next resident's.

        unit_id: The unit's `entity_id`.
        move_out_date: The day on which the resident leaves or has left.
        provider: Short name of the system that sends this. Surrounding blanks are removed, and it is stored in
        lower case.
        ntv_reason_code: Why the resident leaves, as a code of the provider.
        departure_destination_code: Where the resident goes, as a code of the provider.
        notes: Any other notes about the departure.
        external_id: Your own identifier of the notice. It does not change the turn's `external_id`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/units/{unit_id}/notice", unit_id),
            body={
                "move_out_date": move_out_date,
                "provider": provider,
                "ntv_reason_code": ntv_reason_code,
                "departure_destination_code": departure_destination_code,
                "notes": notes,
                "external_id": external_id,
            },
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.OccupancyRecord)

    def record_move_in(
        self,
        unit_id: int,
        *,
        move_in_date: datetime.date,
        lease_start_date: datetime.date,
        provider: str,
        parties: Sequence[models.PartyCreate],
        lease_end_date: datetime.date | None = None,
        predecessor_transition_id: int | None = None,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.OccupancyRecord:
        """Record a move-in.

        Records a new resident of the unit, with the lease and its parties. On its `move_in_date`, in the
        company's timezone, the unit becomes `Occupied`, which fires `turn.status_changed` if it was not: at once
        if that is today or before, else just after midnight of that day, and not before the resident before
        leaves. Until then nothing about the unit changes. If the unit still has a resident whose move_out_date
        has not passed, `predecessor_transition_id` names the turn that ends: the last of the unit's active turns.
        The date of a planned move-in is changed in the administrator interface alone.

        unit_id: The unit's `entity_id`.
        move_in_date: The day on which the resident moves in. A later day than today plans the move-in: it changes
        nothing about the unit until then.
        lease_start_date: The lease's first day.
        provider: Short name of the system that sends this. Surrounding blanks are removed, and it is stored in
        lower case.
        parties: The parties of the lease; at least one is a leaseholder with first and last name.
        lease_end_date: The lease's last day, not before its first. Without it, the lease runs from month to
        month.
        predecessor_transition_id: The `entity_id` of the turn that this move-in ends: the last of the unit's
        active turns, for which a notice was recorded. It is not needed if that turn's resident has left.
        external_id: Your own identifier of the residency: the turn's `external_id`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/units/{unit_id}/move-in", unit_id),
            body={
                "move_in_date": move_in_date,
                "lease_start_date": lease_start_date,
                "lease_end_date": lease_end_date,
                "predecessor_transition_id": predecessor_transition_id,
                "provider": provider,
                "external_id": external_id,
                "parties": parties,
            },
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.OccupancyRecord)


class Assets(Resource):
    """Assets: `client.assets`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.AssetStatus | None = None,
        updated_since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Asset]:
        """List assets.

        A page of assets, ascending by id. Retired assets are included.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/assets",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "status": status,
                "updated_since": updated_since,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return Walk(self.client, request, Page[models.Asset])

    def get(self, asset_id: int) -> models.Asset:
        """Fetch an asset.

        One asset by its id. Retired assets are included.

        asset_id: The asset's `entity_id`.
        """
        request = Request("GET", path("/assets/{asset_id}", asset_id))
        return self.client.call(request, models.Asset)


class Vendors(Resource):
    """Vendors: `client.vendors`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[models.Vendor]:
        """List vendors.

        A page of vendors, ascending by id. Inactive relationships are included.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/vendors", query={"limit": limit, "cursor": cursor})
        return Walk(self.client, request, Page[models.Vendor])

    def get(self, vendor_id: int) -> models.Vendor:
        """Fetch a vendor.

        One vendor by its id. Inactive relationships are included.

        vendor_id: The vendor's `entity_id`.
        """
        request = Request("GET", path("/vendors/{vendor_id}", vendor_id))
        return self.client.call(request, models.Vendor)


class Inspections(Resource):
    """Inspections: `client.inspections`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.InspectionStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Inspection]:
        """List inspections.

        A page of inspections, ascending by id. Inspections of operations only: walks of a consulting engagement
        are not included; a unit's acceptance walk without an engagement is.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/inspections",
            query={"property_id": property_id, "unit_id": unit_id, "status": status, "limit": limit, "cursor": cursor},
        )
        return Walk(self.client, request, Page[models.Inspection])

    def get(self, inspection_id: int) -> models.Inspection:
        """Fetch an inspection.

        One inspection by its id. Inspections of operations only: walks of a consulting engagement are not
        included; a unit's acceptance walk without an engagement is.

        inspection_id: The inspection's `entity_id`.
        """
        request = Request("GET", path("/inspections/{inspection_id}", inspection_id))
        return self.client.call(request, models.Inspection)


class Turns(Resource):
    """Turns: `client.turns`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.TurnStatus | None = None,
        updated_since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Turn]:
        """List turns.

        A page of turns, ascending by id. Every transition is a turn, a first move-in without a departure too. One
        of a later date is `Active` from the moment it is recorded.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/turns",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "status": status,
                "updated_since": updated_since,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return Walk(self.client, request, Page[models.Turn])

    def get(self, turn_id: int) -> models.Turn:
        """Fetch a turn.

        One turn by its id. Every transition is a turn, a first move-in without a departure too. One of a later
        date is `Active` from the moment it is recorded.

        turn_id: The turn's `entity_id`.
        """
        request = Request("GET", path("/turns/{turn_id}", turn_id))
        return self.client.call(request, models.Turn)


class Meters(Resource):
    """Meters: `client.meters`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        updated_since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Meter]:
        """List utility meters.

        A page of utility meters, ascending by id. Inactive meters are included.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/meters",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "updated_since": updated_since,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return Walk(self.client, request, Page[models.Meter])

    def get(self, meter_id: int) -> models.Meter:
        """Fetch a utility meter.

        One utility meter by its id. Inactive meters are included.

        meter_id: The meter's `entity_id`.
        """
        request = Request("GET", path("/meters/{meter_id}", meter_id))
        return self.client.call(request, models.Meter)

    def list_readings(
        self, meter_id: int, *, limit: int | None = None, cursor: str | None = None
    ) -> Pages[models.Reading]:
        """List readings of a meter.

        A page of readings of a meter, ascending by id. They are in the order in which they were stored. Those of
        one file of the operator are stored in the order of their periods, the oldest first, whatever the order of
        the file. As long as nobody adds readings of earlier periods later, the last page holds the latest
        periods. Readings that are added later, such as a back-fill of last year, come at the end: sort by
        `period_start`, and follow `GET /changes/readings` for what is new.

        meter_id: The meter's `entity_id`.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET", path("/meters/{meter_id}/readings", meter_id), query={"limit": limit, "cursor": cursor}
        )
        return Walk(self.client, request, Page[models.Reading])

    def add_readings(
        self, meter_id: int, *, readings: Sequence[models.ReadingCreate], idempotency_key: str | None = None
    ) -> models.ReadingResults:
        """Add readings to a meter.

        Stores 1 to 500 readings of a meter, by their periods: one of a period that the meter has no reading of is
        created, one with other values changes the reading that is there, one with the same values changes
        nothing. So readings may be sent again and corrected. What a reading leaves out stays as it is. Each gets
        its outcome. All are stored, or none: the refusal of one that cannot be stored names its index, from 0.
        Fires no event.

        meter_id: The meter's `entity_id`.
        readings: The readings, each of another period. All are stored, or none.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/meters/{meter_id}/readings", meter_id),
            body={"readings": readings},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.ReadingResults)


class Staff(Resource):
    """Staff: `client.staff`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[models.StaffMember]:
        """List staff.

        A page of staff, ascending by id. Members of the company's staff, to whom tickets can be assigned. Those
        who have left are included. E-mail addresses are not.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/staff", query={"limit": limit, "cursor": cursor})
        return Walk(self.client, request, Page[models.StaffMember])


class Reports(Resource):
    """Reports: `client.reports`."""

    def tickets(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.TicketReportGroupBy | None = None,
    ) -> models.Report:
        """Report on tickets.

        How many tickets were opened, completed, cancelled and reopened in some months, how long the first
        response and the completion took, and the backlog: in all, by month or day, and by group. Figures are kept
        beside the records, so a report costs the same for any number of tickets; they lack what changed in the
        last seconds. A later correction of a ticket changes the figures of the day that it is about. `measures`
        says what each is.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the records of a group have in common. Left out: no groups. Any other value is refused with
        422.
        """
        request = Request(
            "GET",
            "/reports/tickets",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return self.client.call(request, models.Report)

    def vendors(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.VendorReportGroupBy | None = None,
    ) -> models.Report:
        """Report on vendors.

        How many tickets vendors got in some months, how soon they responded and completed them, and how long
        these were on hold: in all, by month or day, and by group. See `GET /reports/tickets`.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the tickets of a group have in common, such as their vendor. Left out: no groups. Any other
        value is refused with 422.
        """
        request = Request(
            "GET",
            "/reports/vendors",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return self.client.call(request, models.Report)

    def turns(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.TurnReportGroupBy | None = None,
    ) -> models.Report:
        """Report on turns.

        How many residents moved out in some months, how long units took from the move-out to ready and to the
        next move-in, and where the days went: in all, by month or day, and by group. See `GET /reports/tickets`.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the turns of a group have in common, or their tasks: `task_type` has figures of
        `task_completed` alone. Left out: no groups. Any other value is refused with 422.
        """
        request = Request(
            "GET",
            "/reports/turns",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return self.client.call(request, models.Report)

    def inspections(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.InspectionReportGroupBy | None = None,
    ) -> models.Report:
        """Report on inspections.

        How many inspections were completed in some months, how many of them passed and failed, and how many items
        of their checklists failed: in all, by month or day, and by group. Grouped by `item`, the checklist items
        that failed most come first. See `GET /reports/tickets`.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the inspections of a group have in common, or the item of their checklists. Left out: no
        groups. Any other value is refused with 422.
        """
        request = Request(
            "GET",
            "/reports/inspections",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return self.client.call(request, models.Report)


class Changes(Resource):
    """Changes: `client.changes`."""

    def tickets(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.TicketChange]:
        """Follow tickets.

        Each record once, at its latest state, in the order of last change: without `cursor` all tickets, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/tickets", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.TicketChange])

    def properties(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.PropertyChange]:
        """Follow properties.

        Each record once, at its latest state, in the order of last change: without `cursor` all properties, with
        the `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/properties", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.PropertyChange])

    def units(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.UnitChange]:
        """Follow units.

        Each record once, at its latest state, in the order of last change: without `cursor` all units, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/units", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.UnitChange])

    def assets(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.AssetChange]:
        """Follow assets.

        Each record once, at its latest state, in the order of last change: without `cursor` all assets, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/assets", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.AssetChange])

    def vendors(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.VendorChange]:
        """Follow vendors.

        Each record once, at its latest state, in the order of last change: without `cursor` all vendors, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/vendors", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.VendorChange])

    def inspections(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.InspectionChange]:
        """Follow inspections.

        Each record once, at its latest state, in the order of last change: without `cursor` all inspections, with
        the `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/inspections", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.InspectionChange])

    def turns(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.TurnChange]:
        """Follow turns.

        Each record once, at its latest state, in the order of last change: without `cursor` all turns, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/turns", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.TurnChange])

    def meters(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.MeterChange]:
        """Follow utility meters.

        Each record once, at its latest state, in the order of last change: without `cursor` all utility meters,
        with the `resume_cursor` of the page before those alone that have changed since. None is left out,
        whatever is written meanwhile, and a change of anything that the record shows counts, such as a new name
        of its property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/meters", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.MeterChange])

    def readings(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> Feed[models.ReadingChange]:
        """Follow readings of all meters.

        Each record once, at its latest state, in the order of last change: without `cursor` all readings of all
        meters, with the `resume_cursor` of the page before those alone that have changed since. None is left out,
        whatever is written meanwhile, and a change of anything that the record shows counts, such as a new name
        of its property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/readings", query={"limit": limit, "cursor": cursor, "wait": wait})
        return Walk(self.client, request, FeedPage[models.ReadingChange])


class Snapshots(Resource):
    """Snapshots: `client.snapshots`."""

    def tickets(self, *, after_id: int | None = None) -> Snapshot[models.Ticket]:
        """Take a snapshot of tickets.

        All tickets, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/tickets` goes on:
        what changes while the snapshot runs comes there. An answer that ends without its last chunk has broken
        off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot
        of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/tickets", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Ticket)

    def properties(self, *, after_id: int | None = None) -> Snapshot[models.Property]:
        """Take a snapshot of properties.

        All properties, ascending by id, one JSON object on each line, in one answer of any length. It counts as
        one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/properties` goes
        on: what changes while the snapshot runs comes there. An answer that ends without its last chunk has
        broken off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one
        snapshot of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/properties", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Property)

    def units(self, *, after_id: int | None = None) -> Snapshot[models.Unit]:
        """Take a snapshot of units.

        All units, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/units` goes on: what
        changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off:
        ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of
        these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/units", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Unit)

    def assets(self, *, after_id: int | None = None) -> Snapshot[models.Asset]:
        """Take a snapshot of assets.

        All assets, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/assets` goes on: what
        changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off:
        ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of
        these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/assets", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Asset)

    def vendors(self, *, after_id: int | None = None) -> Snapshot[models.Vendor]:
        """Take a snapshot of vendors.

        All vendors, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/vendors` goes on:
        what changes while the snapshot runs comes there. An answer that ends without its last chunk has broken
        off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot
        of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/vendors", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Vendor)

    def inspections(self, *, after_id: int | None = None) -> Snapshot[models.Inspection]:
        """Take a snapshot of inspections.

        All inspections, ascending by id, one JSON object on each line, in one answer of any length. It counts as
        one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/inspections` goes
        on: what changes while the snapshot runs comes there. An answer that ends without its last chunk has
        broken off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one
        snapshot of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/inspections", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Inspection)

    def turns(self, *, after_id: int | None = None) -> Snapshot[models.Turn]:
        """Take a snapshot of turns.

        All turns, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/turns` goes on: what
        changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off:
        ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of
        these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/turns", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Turn)

    def meters(self, *, after_id: int | None = None) -> Snapshot[models.Meter]:
        """Take a snapshot of utility meters.

        All utility meters, ascending by id, one JSON object on each line, in one answer of any length. It counts
        as one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/meters` goes
        on: what changes while the snapshot runs comes there. An answer that ends without its last chunk has
        broken off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one
        snapshot of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/meters", query={"after_id": after_id})
        return Snapshot(self.client, request, models.Meter)

    def readings(self, *, after_meter_id: int | None = None, after_id: int | None = None) -> Snapshot[models.Reading]:
        """Take a snapshot of readings of all meters.

        All readings of all meters, ascending by meter and id, one JSON object on each line, in one answer of any
        length. It counts as one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET
        /changes/readings` goes on: what changes while the snapshot runs comes there. An answer that ends without
        its last chunk has broken off: ask again with `after_meter_id` and `after_id`, and go on with the cursor
        of the first answer. A company has one snapshot of these records at a time.

        after_meter_id: The `meter_id` of the last reading that you have, beside `after_id`. Left out: the
        beginning.
        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/readings", query={"after_meter_id": after_meter_id, "after_id": after_id})
        return Snapshot(self.client, request, models.Reading)


class Webhooks(Resource):
    """Webhooks: `client.webhooks`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> Pages[models.Subscription]:
        """List webhook subscriptions.

        A page of webhook subscriptions, ascending by id. The signing secret is not included.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/webhooks", query={"limit": limit, "cursor": cursor})
        return Walk(self.client, request, Page[models.Subscription])

    def create(
        self, *, destination_url: str, events: Sequence[models.EventKey], idempotency_key: str | None = None
    ) -> models.NewSubscription:
        """Create a webhook subscription.

        Subscribes a URL to events. The response contains the signing secret; no later response does. For its
        `Idempotency-Key`, a request is the same if its destination and its set of events are the same.

        destination_url: The URL that receives deliveries: https on port 443, with a public host. Other schemes
        and ports, private or loopback addresses, and more than 2,048 characters are refused. It is stored as it
        was sent.
        events: The events to deliver. They are stored sorted, each once.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/webhooks",
            body={"destination_url": destination_url, "events": events},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.NewSubscription)

    def delete(self, sub_id: int) -> None:
        """Delete a webhook subscription.

        Deletes the subscription and the history of its deliveries. Events that wait for delivery to it are not
        delivered any more.

        sub_id: The subscription's `entity_id`.
        """
        request = Request("DELETE", path("/webhooks/{sub_id}", sub_id))
        self.client.respond(request)

    def get_filter(self, sub_id: int) -> models.WebhookFilter:
        """Fetch a webhook subscription's filter.

        Of which properties, categories and priorities the subscription hears; all null: of all.

        sub_id: The subscription's `entity_id`.
        """
        request = Request("GET", path("/webhooks/{sub_id}/filter", sub_id))
        return self.client.call(request, models.WebhookFilter)

    def set_filter(
        self,
        sub_id: int,
        *,
        property_ids: Sequence[int] | None = None,
        categories: Sequence[models.TicketCategory] | None = None,
        priorities: Sequence[models.TicketPriority] | None = None,
        idempotency_key: str | None = None,
    ) -> models.WebhookFilter:
        """Set a webhook subscription's filter.

        Replaces the filter. The subscription then hears of an event that it names if the event's property is
        among `property_ids`, and a ticket's category and priority among `categories` and `priorities`. Events
        whose data have no property's id pass `property_ids`: `vendor.hold`, `property.notice.published`,
        `turn.task.stale` and `pm.stale`. It decides when an event is stored, so deliveries that wait are not
        touched; a replay leaves out what does not pass. An object without keys takes the filter away.

        sub_id: The subscription's `entity_id`.
        property_ids: Only events of these properties, 1,000 at most; null or left out: of all. Whether there is a
        property with an id is not checked. An event whose record names no property's id passes.
        categories: Only tickets with these categories; null or left out: with any. Events of other records pass.
        priorities: Only tickets with these priorities; null or left out: with any. Events of other records pass.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "PUT",
            path("/webhooks/{sub_id}/filter", sub_id),
            body={"property_ids": property_ids, "categories": categories, "priorities": priorities},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.WebhookFilter)

    def test(self, sub_id: int, *, idempotency_key: str | None = None) -> models.WebhookDeliveryAnswers:
        """Test a webhook subscription.

        Sends one signed `webhook.test` event to the subscription's URL, now, and returns its delivery with what
        the receiver answered. Its `data` is an empty object, and no subscription can name it. It changes no
        health, is never retried and is not among the events of `GET /events`. A paused subscription gets it too.
        A subscription gets 10 tests a minute. The body is an object without keys.

        sub_id: The subscription's `entity_id`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request("POST", path("/webhooks/{sub_id}/test", sub_id), body={}, idempotency_key=idempotency_key)
        return self.client.call(request, models.WebhookDeliveryAnswers)

    def list_deliveries(
        self,
        sub_id: int,
        *,
        state: models.WebhookDeliveryState | None = None,
        since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.WebhookDelivery]:
        """List deliveries of a webhook subscription.

        A page of deliveries of a webhook subscription, ascending by id. They are in the order of their events'
        ids, the oldest first, for 30 days. The events themselves are not included: see `GET /events`. With
        `state`, a page can have fewer deliveries than its limit, or none, although `next_cursor` is not null.

        sub_id: The subscription's `entity_id`.
        state: Only deliveries in this state. Any other value is refused with 422.
        since: Only deliveries of events that were made at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            path("/webhooks/{sub_id}/deliveries", sub_id),
            query={"state": state, "since": since, "limit": limit, "cursor": cursor},
        )
        return Walk(self.client, request, Page[models.WebhookDelivery])

    def get_delivery(self, sub_id: int, event_id: str) -> models.WebhookDeliveryAnswers:
        """Fetch a delivery.

        One delivery with its attempts and the beginning of each response, without the event's body.

        sub_id: The subscription's `entity_id`.
        event_id: The event's `event_id`.
        """
        request = Request("GET", path("/webhooks/{sub_id}/deliveries/{event_id}", sub_id, event_id))
        return self.client.call(request, models.WebhookDeliveryAnswers)

    def create_replay(
        self,
        sub_id: int,
        *,
        since: datetime.datetime,
        until: datetime.datetime | None = None,
        events: Sequence[models.EventKey] | None = None,
        state: models.ReplayState | None = None,
        idempotency_key: str | None = None,
    ) -> models.WebhookReplay:
        """Replay events to a webhook subscription.

        Sends the events of a period to the subscription once more, also those from before it existed or that it
        did not name then. Each attempt has the event's own `event_id`, and the header `Service-Replay` with the
        replay's id. Attempts start at once and take turns with all others. A delivery that fails is parked; one
        that was waiting for a retry goes on waiting for it. The answer comes before the attempts: `GET
        /webhooks/{sub_id}/replays/{replay_id}` says how far they are. A replay is about 100,000 events at most,
        and a subscription has one under way at a time.

        sub_id: The subscription's `entity_id`.
        since: Only events that were stored at this instant or later. It must carry a UTC offset.
        until: Only events that were stored before this instant; left out: until now.
        events: Only events with these keys, which the subscription must name; left out: all that it names.
        state: `all`: every event, whether it arrived, failed or was never sent to this subscription. `parked`:
        those whose delivery is parked. `failed`: those whose delivery is parked or waits after a failed attempt.
        Left out: `all`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/webhooks/{sub_id}/replay", sub_id),
            body={"since": since, "until": until, "events": events, "state": state},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.WebhookReplay)

    def get_replay(self, sub_id: int, replay_id: int) -> models.WebhookReplay:
        """Fetch a replay.

        How far a replay is. It is kept for 30 days after it has finished.

        sub_id: The subscription's `entity_id`.
        replay_id: The replay's `entity_id`.
        """
        request = Request("GET", path("/webhooks/{sub_id}/replays/{replay_id}", sub_id, replay_id))
        return self.client.call(request, models.WebhookReplay)


class Events(Following):
    """Events: `client.events`."""

    def list(
        self,
        *,
        event: models.EventKey | None = None,
        entity_type: models.EventEntityType | None = None,
        entity_id: int | None = None,
        since: datetime.datetime | None = None,
        until: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> EventFeed:
        """Follow events.

        The company's events of 30 days in the order in which they were stored: the envelopes that deliveries
        carry, byte for byte, whether a subscription names them or not. `positions` numbers them: a company's
        events have the numbers 1, 2, 3 and so on, so without filters each number follows the one before, and a
        gap would be a lost event. What an installation stored before it had this list is not in it.

        event: Only events with this key. Any other value is refused with 422.
        entity_type: Only events about a record of this kind. Any other value is refused with 422. Needs
        `entity_id` beside it; alone it is refused with 400.
        entity_id: Only events about the record with this id. Needs `entity_type` beside it; alone it is refused
        with 400.
        since: Only events that were stored at this instant or later, which is seconds after `occurred_at` as a
        rule. It must carry a UTC offset.
        until: Only events that were stored before this instant. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/events",
            query={
                "event": event,
                "entity_type": entity_type,
                "entity_id": entity_id,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
                "wait": wait,
            },
        )
        return EventFeed(self.client, request)


class Requests(Resource):
    """Requests: `client.requests`."""

    def follow(
        self,
        *,
        key_id: int | None = None,
        status: str | None = None,
        code: str | None = None,
        route: str | None = None,
        request_id: str | None = None,
        since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> Feed[models.LoggedRequest]:
        """Follow requests.

        The requests of 30 days with the company's keys, in the order in which they were stored, a second or two
        after the answer; with `wait`, as they come. A key with the scope `read` gets those with itself alone.
        Those of `GET /requests` itself come with `route` alone. An operator may log fewer requests than all.

        key_id: Only requests with the key with this id.
        status: Only answers with this status, such as 404, or of this class, such as 4xx. Anything else is
        refused with 422.
        code: Only refusals with this code.
        route: Only requests of this route: its path with the names of ids.
        request_id: Only the request whose answer had this id in `X-Request-Id`.
        since: Only requests at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/requests",
            query={
                "key_id": key_id,
                "status": status,
                "code": code,
                "route": route,
                "request_id": request_id,
                "since": since,
                "limit": limit,
                "cursor": cursor,
                "wait": wait,
            },
        )
        return Walk(self.client, request, FeedPage[models.LoggedRequest])

    def fetch(self, request_id: str) -> models.LoggedRequestBodies:
        """Fetch a request.

        One request with the bodies that are kept of it, which they are in sandboxes alone: see `request_body`. A
        key with the scope `read` gets those with itself alone.

        request_id: The id that the request's answer had in `X-Request-Id`.
        """
        request = Request("GET", path("/requests/{request_id}", request_id))
        return self.client.call(request, models.LoggedRequestBodies)


class Sandbox(Resource):
    """Sandbox: `client.sandbox`."""

    def get_clock(self) -> models.SandboxClock:
        """Fetch the sandbox's clock.

        The clock, what falls due next by time alone, and what the last advance has done so far.
        """
        request = Request("GET", "/sandbox/clock")
        return self.client.call(request, models.SandboxClock)

    def advance_clock(
        self,
        *,
        advance_to: datetime.datetime | None = None,
        advance_by: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.SandboxClock:
        """Advance the sandbox's clock.

        Moves the clock forward, to `advance_to` or by `advance_by`, and does everything that would have happened
        meanwhile, in the order of time: residencies begin and end, records become stale, events fire, and
        deliveries are attempted. What falls due at the target itself is done, too; an advance by `PT0S` does what
        is due already. The answer comes before all that: `GET /sandbox/clock` says `ready` when it is done.
        Writes that come meanwhile have the instant that the clock then says. Rate limits, the ends of keys, the
        log of requests and the `t` of signatures keep to the real clock.

        advance_to: The instant to advance to, by the sandbox's clock. It must carry a UTC offset.
        advance_by: How far, as an ISO 8601 duration of weeks, days, hours, minutes and seconds, for example
        P1DT2H.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/sandbox/clock",
            body={"advance_to": advance_to, "advance_by": advance_by},
            idempotency_key=idempotency_key,
        )
        return self.client.call(request, models.SandboxClock)

    def create_trigger(
        self,
        *,
        event: models.EventKey,
        ticket_id: int | None = None,
        turn_id: int | None = None,
        vendor_id: int | None = None,
        inspection_id: int | None = None,
        property_id: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.Event:
        """Trigger an event.

        Makes an event happen in a sandbox by its real cause: the commands that people give in the administrator
        interface, and the sweep that the clock would start. Deliveries, feeds and records show it as they show
        any other. The answer is the event as `GET /events` has it, once it is there. A record may be named that
        it is to happen to: see the fields. Where none is named, a new one is made, in the property `Sandbox
        triggers`, which is made once; what that takes, such as a move-in before a turn can change, may fire
        events of its own first. `inspection.stale` moves the date of an inspection whose day is not over. The
        commands are those of the administrator who minted the key.

        event: The event's key.
        ticket_id: The ticket of `ticket.status_changed` or `ticket.stale`.
        turn_id: The turn of `turn.status_changed` or `turn.schedule_changed`; that of the new task of
        `turn.task.stale`.
        vendor_id: The vendor of `vendor.hold`.
        inspection_id: The inspection of `inspection.stale`.
        property_id: The property of the new ticket of `ticket.created`, of the notice of
        `property.notice.published`, or of the new task of `pm.stale`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/sandbox/triggers",
            body={
                "event": event,
                "ticket_id": ticket_id,
                "turn_id": turn_id,
                "vendor_id": vendor_id,
                "inspection_id": inspection_id,
                "property_id": property_id,
            },
            idempotency_key=idempotency_key,
        )
        return self.client.event(request)


class Api(Core):
    """All operations of the API."""

    @property
    def tickets(self) -> Tickets:
        return Tickets(self)

    @property
    def properties(self) -> Properties:
        return Properties(self)

    @property
    def units(self) -> Units:
        return Units(self)

    @property
    def assets(self) -> Assets:
        return Assets(self)

    @property
    def vendors(self) -> Vendors:
        return Vendors(self)

    @property
    def inspections(self) -> Inspections:
        return Inspections(self)

    @property
    def turns(self) -> Turns:
        return Turns(self)

    @property
    def meters(self) -> Meters:
        return Meters(self)

    @property
    def staff(self) -> Staff:
        return Staff(self)

    @property
    def reports(self) -> Reports:
        return Reports(self)

    @property
    def changes(self) -> Changes:
        return Changes(self)

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self)

    @property
    def webhooks(self) -> Webhooks:
        return Webhooks(self)

    @property
    def events(self) -> Events:
        return Events(self)

    @property
    def requests(self) -> Requests:
        return Requests(self)

    @property
    def sandbox(self) -> Sandbox:
        return Sandbox(self)

    def whoami(self) -> models.Whoami:
        """Identify the key.

        The key's company and scope. Every active key may call it: a good first request.
        """
        request = Request("GET", "/whoami")
        return self.call(request, models.Whoami)

    def openapi(self) -> dict[str, Any]:
        """Fetch this document.

        The OpenAPI document of this API. It is public: no key is needed, and a key that is sent is ignored.
        """
        request = Request("GET", "/openapi.json")
        return self.call(request, dict[str, Any])

    def search(self, *, external_id: str, kind: models.RecordKind | None = None) -> models.SearchResults:
        """Find records by your own identifier.

        The records of the company that have this `external_id`, of the kind if one is given. It finds a property,
        unit, asset, vendor, inspection, meter, reading, ticket, turn or member of staff that was synced from your
        system, without reading its list. The identifier is compared whole, upper and lower case differ. A turn is
        found by the `external_id` of its move-in, not of its notice.

        external_id: Your own identifier of the record.
        kind: Only records of this kind. Any other value is refused with 422.
        """
        request = Request("GET", "/search", query={"external_id": external_id, "kind": kind})
        return self.call(request, models.SearchResults)


class AsyncTickets(AsyncResource):
    """Tickets: `client.tickets`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.TicketStatus | None = None,
        updated_since: datetime.datetime | None = None,
        ticket_number: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Ticket]:
        """List tickets.

        A page of tickets, ascending by id. Tickets without a property are not included.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        ticket_number: Only the ticket with this number. Needs `property_id` beside it; alone it is refused with
        400.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/tickets",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "status": status,
                "updated_since": updated_since,
                "ticket_number": ticket_number,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return AsyncWalk(self.client, request, Page[models.Ticket])

    async def create(
        self,
        *,
        unit_id: int,
        title: str,
        category: models.TicketCategory,
        asset_id: int | None = None,
        description: str | None = None,
        priority: models.TicketPriority | None = None,
        idempotency_key: str | None = None,
    ) -> models.Ticket:
        """Create a ticket.

        Opens a ticket on a unit. Fires `ticket.created`.

        unit_id: The unit that the ticket is for; it must be visible to the key.
        title: The problem, in one line.
        category: The trade that the ticket is for.
        asset_id: The asset that the ticket is about; it must be on the unit's property.
        description: The full report; empty if left out.
        priority: How urgent it is; Medium if left out.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/tickets",
            body={
                "unit_id": unit_id,
                "title": title,
                "category": category,
                "asset_id": asset_id,
                "description": description,
                "priority": priority,
            },
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.Ticket)

    async def get(self, ticket_id: int) -> models.Ticket:
        """Fetch a ticket.

        One ticket by its id. Tickets without a property are not included.

        ticket_id: The ticket's `entity_id`.
        """
        request = Request("GET", path("/tickets/{ticket_id}", ticket_id))
        return await self.client.call(request, models.Ticket)

    async def change_status(
        self,
        ticket_id: int,
        *,
        status: models.TicketStatus,
        note: str | None = None,
        cancellation_reason_code: models.TicketCancellationReasonCode | None = None,
        cancellation_notes: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Ticket:
        """Change a ticket's status.

        Every status can follow every other one, Completed and Cancelled included: `completed_at` is null again
        when the ticket is no longer Completed, `cancelled_at` and `cancellation_reason_code` when it is no longer
        Cancelled. The status that the ticket already has is accepted, too. Completed again is another closing:
        its note is stored, and `completed_at` is the time of the last one. So is Cancelled again, with
        `cancelled_at`, unless reason and notes are those that are stored. Fires `ticket.status_changed` for each
        change, with `from` equal to `to` if a ticket is closed again. Cancelled with the stored reason and notes,
        and Open, In Progress or On Hold again, are answered with 200, change nothing and fire nothing. Notes
        become comments of the ticket. Words of a note are separated by blanks, and each contains a letter or a
        digit. In scripts without blanks between words, each Chinese or Japanese character counts as a word, and
        in Thai, Lao, Khmer, Burmese and similar scripts every three letters do.

        ticket_id: The ticket's `entity_id`.
        status: The ticket's new status; every status can follow every other one.
        note: The work done, in 5 or more words. Required with status Completed, refused with any other.
        cancellation_reason_code: Why the ticket is cancelled. Required with status Cancelled, refused with any
        other.
        cancellation_notes: The reason in 5 or more words. Required with cancellation_reason_code see_notes,
        refused with any other.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "PATCH",
            path("/tickets/{ticket_id}", ticket_id),
            body={
                "status": status,
                "note": note,
                "cancellation_reason_code": cancellation_reason_code,
                "cancellation_notes": cancellation_notes,
            },
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.Ticket)

    async def create_photo(
        self, ticket_id: int, *, photo_url: str, idempotency_key: str | None = None
    ) -> models.Ticket:
        """Add a photo to a ticket.

        Adds the address of a photo. The ticket's `photo_url` is then this one, and the ticket can be completed
        where the company requires a photo. Earlier photos stay with the ticket in the administrator interface.
        The address that `photo_url` has already is accepted, too, and changes nothing. Fires no event.

        ticket_id: The ticket's `entity_id`.
        photo_url: The photo's address: an absolute http or https URL of at most 2,000 characters. The photo is
        not fetched, so it must stay there for as long as the ticket is to show it.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/tickets/{ticket_id}/photos", ticket_id),
            body={"photo_url": photo_url},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.Ticket)

    async def assign(
        self,
        ticket_id: int,
        *,
        assignee_id: int | None = None,
        vendor_id: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.Ticket:
        """Assign a ticket.

        Sets who has the work: a member of staff, a vendor, both, or with an object without keys nobody. It
        replaces the assignment: whom the body does not name has the ticket no more. `GET /staff` and `GET
        /vendors` have the ids. The assignment that the ticket has already changes nothing. Fires no event.

        ticket_id: The ticket's `entity_id`.
        assignee_id: The member of staff; nobody if left out.
        vendor_id: The vendor; none if left out. A vendor on hold gets no new work.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "PUT",
            path("/tickets/{ticket_id}/assignment", ticket_id),
            body={"assignee_id": assignee_id, "vendor_id": vendor_id},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.Ticket)

    async def comment(
        self,
        ticket_id: int,
        *,
        text: str,
        author: models.CommentAuthor | None = None,
        idempotency_key: str | None = None,
    ) -> models.TicketComment:
        """Comment on a ticket.

        Adds a comment, which people see with the ticket in the console. The ticket's record and its `updated_at`
        stay as they are. A comment of staff or of a vendor counts as work: a ticket that a resident filed is
        quiet anew from then on (`ticket.stale`). Comments cannot be listed: staff write there for one another.
        Fires no event.

        ticket_id: The ticket's `entity_id`.
        text: What is said.
        author: Whose words they are; those of staff if left out.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/tickets/{ticket_id}/comments", ticket_id),
            body={"text": text, "author": author},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.TicketComment)


class AsyncProperties(AsyncResource):
    """Properties: `client.properties`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Property]:
        """List properties.

        A page of properties, ascending by id.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/properties", query={"limit": limit, "cursor": cursor})
        return AsyncWalk(self.client, request, Page[models.Property])

    async def get(self, property_id: int) -> models.Property:
        """Fetch a property.

        One property by its id.

        property_id: The property's `entity_id`.
        """
        request = Request("GET", path("/properties/{property_id}", property_id))
        return await self.client.call(request, models.Property)


class AsyncUnits(AsyncResource):
    """Units: `client.units`."""

    def list(
        self, *, property_id: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Unit]:
        """List units.

        A page of units, ascending by id. `unit_status` and `projected_ready_on` are those of the unit's current
        turn. They show a notice or a move-in over the API from its 201 on, here and in `GET /units/{unit_id}`;
        other changes, and these under heavy load, within a second.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/units", query={"property_id": property_id, "limit": limit, "cursor": cursor})
        return AsyncWalk(self.client, request, Page[models.Unit])

    async def get(self, unit_id: int) -> models.Unit:
        """Fetch a unit.

        One unit by its id. `unit_status` and `projected_ready_on` are those of the unit's current turn. They show
        a notice or a move-in over the API from its 201 on, here and in `GET /units/{unit_id}`; other changes, and
        these under heavy load, within a second.

        unit_id: The unit's `entity_id`.
        """
        request = Request("GET", path("/units/{unit_id}", unit_id))
        return await self.client.call(request, models.Unit)

    async def record_notice(
        self,
        unit_id: int,
        *,
        move_out_date: datetime.date,
        provider: str,
        ntv_reason_code: str | None = None,
        departure_destination_code: str | None = None,
        notes: str | None = None,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.OccupancyRecord:
        """Record a notice to vacate.

        Records when the unit's current resident leaves. The unit becomes `Notice`, which fires
        `turn.status_changed` if it was not. Another notice replaces all values of the notice before it; one with
        the same date changes no status. A resident who has left can leave no more: the same date again, or an
        earlier one, is refused, and a later one says that the resident stayed on, or, from a planned move-in's
        day on, that it is the next resident's.

        unit_id: The unit's `entity_id`.
        move_out_date: The day on which the resident leaves or has left.
        provider: Short name of the system that sends this. Surrounding blanks are removed, and it is stored in
        lower case.
        ntv_reason_code: Why the resident leaves, as a code of the provider.
        departure_destination_code: Where the resident goes, as a code of the provider.
        notes: Any other notes about the departure.
        external_id: Your own identifier of the notice. It does not change the turn's `external_id`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/units/{unit_id}/notice", unit_id),
            body={
                "move_out_date": move_out_date,
                "provider": provider,
                "ntv_reason_code": ntv_reason_code,
                "departure_destination_code": departure_destination_code,
                "notes": notes,
                "external_id": external_id,
            },
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.OccupancyRecord)

    async def record_move_in(
        self,
        unit_id: int,
        *,
        move_in_date: datetime.date,
        lease_start_date: datetime.date,
        provider: str,
        parties: Sequence[models.PartyCreate],
        lease_end_date: datetime.date | None = None,
        predecessor_transition_id: int | None = None,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.OccupancyRecord:
        """Record a move-in.

        Records a new resident of the unit, with the lease and its parties. On its `move_in_date`, in the
        company's timezone, the unit becomes `Occupied`, which fires `turn.status_changed` if it was not: at once
        if that is today or before, else just after midnight of that day, and not before the resident before
        leaves. Until then nothing about the unit changes. If the unit still has a resident whose move_out_date
        has not passed, `predecessor_transition_id` names the turn that ends: the last of the unit's active turns.
        The date of a planned move-in is changed in the administrator interface alone.

        unit_id: The unit's `entity_id`.
        move_in_date: The day on which the resident moves in. A later day than today plans the move-in: it changes
        nothing about the unit until then.
        lease_start_date: The lease's first day.
        provider: Short name of the system that sends this. Surrounding blanks are removed, and it is stored in
        lower case.
        parties: The parties of the lease; at least one is a leaseholder with first and last name.
        lease_end_date: The lease's last day, not before its first. Without it, the lease runs from month to
        month.
        predecessor_transition_id: The `entity_id` of the turn that this move-in ends: the last of the unit's
        active turns, for which a notice was recorded. It is not needed if that turn's resident has left.
        external_id: Your own identifier of the residency: the turn's `external_id`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/units/{unit_id}/move-in", unit_id),
            body={
                "move_in_date": move_in_date,
                "lease_start_date": lease_start_date,
                "lease_end_date": lease_end_date,
                "predecessor_transition_id": predecessor_transition_id,
                "provider": provider,
                "external_id": external_id,
                "parties": parties,
            },
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.OccupancyRecord)


class AsyncAssets(AsyncResource):
    """Assets: `client.assets`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.AssetStatus | None = None,
        updated_since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Asset]:
        """List assets.

        A page of assets, ascending by id. Retired assets are included.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/assets",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "status": status,
                "updated_since": updated_since,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return AsyncWalk(self.client, request, Page[models.Asset])

    async def get(self, asset_id: int) -> models.Asset:
        """Fetch an asset.

        One asset by its id. Retired assets are included.

        asset_id: The asset's `entity_id`.
        """
        request = Request("GET", path("/assets/{asset_id}", asset_id))
        return await self.client.call(request, models.Asset)


class AsyncVendors(AsyncResource):
    """Vendors: `client.vendors`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Vendor]:
        """List vendors.

        A page of vendors, ascending by id. Inactive relationships are included.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/vendors", query={"limit": limit, "cursor": cursor})
        return AsyncWalk(self.client, request, Page[models.Vendor])

    async def get(self, vendor_id: int) -> models.Vendor:
        """Fetch a vendor.

        One vendor by its id. Inactive relationships are included.

        vendor_id: The vendor's `entity_id`.
        """
        request = Request("GET", path("/vendors/{vendor_id}", vendor_id))
        return await self.client.call(request, models.Vendor)


class AsyncInspections(AsyncResource):
    """Inspections: `client.inspections`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.InspectionStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Inspection]:
        """List inspections.

        A page of inspections, ascending by id. Inspections of operations only: walks of a consulting engagement
        are not included; a unit's acceptance walk without an engagement is.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/inspections",
            query={"property_id": property_id, "unit_id": unit_id, "status": status, "limit": limit, "cursor": cursor},
        )
        return AsyncWalk(self.client, request, Page[models.Inspection])

    async def get(self, inspection_id: int) -> models.Inspection:
        """Fetch an inspection.

        One inspection by its id. Inspections of operations only: walks of a consulting engagement are not
        included; a unit's acceptance walk without an engagement is.

        inspection_id: The inspection's `entity_id`.
        """
        request = Request("GET", path("/inspections/{inspection_id}", inspection_id))
        return await self.client.call(request, models.Inspection)


class AsyncTurns(AsyncResource):
    """Turns: `client.turns`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        status: models.TurnStatus | None = None,
        updated_since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Turn]:
        """List turns.

        A page of turns, ascending by id. Every transition is a turn, a first move-in without a departure too. One
        of a later date is `Active` from the moment it is recorded.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        status: Only records with this status. Any other value is refused with 422.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/turns",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "status": status,
                "updated_since": updated_since,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return AsyncWalk(self.client, request, Page[models.Turn])

    async def get(self, turn_id: int) -> models.Turn:
        """Fetch a turn.

        One turn by its id. Every transition is a turn, a first move-in without a departure too. One of a later
        date is `Active` from the moment it is recorded.

        turn_id: The turn's `entity_id`.
        """
        request = Request("GET", path("/turns/{turn_id}", turn_id))
        return await self.client.call(request, models.Turn)


class AsyncMeters(AsyncResource):
    """Meters: `client.meters`."""

    def list(
        self,
        *,
        property_id: int | None = None,
        unit_id: int | None = None,
        updated_since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Meter]:
        """List utility meters.

        A page of utility meters, ascending by id. Inactive meters are included.

        property_id: Only records of the property with this id. An unknown id gives an empty page.
        unit_id: Only records of the unit with this id. An unknown id gives an empty page.
        updated_since: Only records that changed at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/meters",
            query={
                "property_id": property_id,
                "unit_id": unit_id,
                "updated_since": updated_since,
                "limit": limit,
                "cursor": cursor,
            },
        )
        return AsyncWalk(self.client, request, Page[models.Meter])

    async def get(self, meter_id: int) -> models.Meter:
        """Fetch a utility meter.

        One utility meter by its id. Inactive meters are included.

        meter_id: The meter's `entity_id`.
        """
        request = Request("GET", path("/meters/{meter_id}", meter_id))
        return await self.client.call(request, models.Meter)

    def list_readings(
        self, meter_id: int, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Reading]:
        """List readings of a meter.

        A page of readings of a meter, ascending by id. They are in the order in which they were stored. Those of
        one file of the operator are stored in the order of their periods, the oldest first, whatever the order of
        the file. As long as nobody adds readings of earlier periods later, the last page holds the latest
        periods. Readings that are added later, such as a back-fill of last year, come at the end: sort by
        `period_start`, and follow `GET /changes/readings` for what is new.

        meter_id: The meter's `entity_id`.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET", path("/meters/{meter_id}/readings", meter_id), query={"limit": limit, "cursor": cursor}
        )
        return AsyncWalk(self.client, request, Page[models.Reading])

    async def add_readings(
        self, meter_id: int, *, readings: Sequence[models.ReadingCreate], idempotency_key: str | None = None
    ) -> models.ReadingResults:
        """Add readings to a meter.

        Stores 1 to 500 readings of a meter, by their periods: one of a period that the meter has no reading of is
        created, one with other values changes the reading that is there, one with the same values changes
        nothing. So readings may be sent again and corrected. What a reading leaves out stays as it is. Each gets
        its outcome. All are stored, or none: the refusal of one that cannot be stored names its index, from 0.
        Fires no event.

        meter_id: The meter's `entity_id`.
        readings: The readings, each of another period. All are stored, or none.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/meters/{meter_id}/readings", meter_id),
            body={"readings": readings},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.ReadingResults)


class AsyncStaff(AsyncResource):
    """Staff: `client.staff`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.StaffMember]:
        """List staff.

        A page of staff, ascending by id. Members of the company's staff, to whom tickets can be assigned. Those
        who have left are included. E-mail addresses are not.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/staff", query={"limit": limit, "cursor": cursor})
        return AsyncWalk(self.client, request, Page[models.StaffMember])


class AsyncReports(AsyncResource):
    """Reports: `client.reports`."""

    async def tickets(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.TicketReportGroupBy | None = None,
    ) -> models.Report:
        """Report on tickets.

        How many tickets were opened, completed, cancelled and reopened in some months, how long the first
        response and the completion took, and the backlog: in all, by month or day, and by group. Figures are kept
        beside the records, so a report costs the same for any number of tickets; they lack what changed in the
        last seconds. A later correction of a ticket changes the figures of the day that it is about. `measures`
        says what each is.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the records of a group have in common. Left out: no groups. Any other value is refused with
        422.
        """
        request = Request(
            "GET",
            "/reports/tickets",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return await self.client.call(request, models.Report)

    async def vendors(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.VendorReportGroupBy | None = None,
    ) -> models.Report:
        """Report on vendors.

        How many tickets vendors got in some months, how soon they responded and completed them, and how long
        these were on hold: in all, by month or day, and by group. See `GET /reports/tickets`.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the tickets of a group have in common, such as their vendor. Left out: no groups. Any other
        value is refused with 422.
        """
        request = Request(
            "GET",
            "/reports/vendors",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return await self.client.call(request, models.Report)

    async def turns(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.TurnReportGroupBy | None = None,
    ) -> models.Report:
        """Report on turns.

        How many residents moved out in some months, how long units took from the move-out to ready and to the
        next move-in, and where the days went: in all, by month or day, and by group. See `GET /reports/tickets`.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the turns of a group have in common, or their tasks: `task_type` has figures of
        `task_completed` alone. Left out: no groups. Any other value is refused with 422.
        """
        request = Request(
            "GET",
            "/reports/turns",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return await self.client.call(request, models.Report)

    async def inspections(
        self,
        *,
        from_month: str | None = None,
        to_month: str | None = None,
        property_id: int | None = None,
        bucket: models.ReportBucket | None = None,
        group_by: models.InspectionReportGroupBy | None = None,
    ) -> models.Report:
        """Report on inspections.

        How many inspections were completed in some months, how many of them passed and failed, and how many items
        of their checklists failed: in all, by month or day, and by group. Grouped by `item`, the checklist items
        that failed most come first. See `GET /reports/tickets`.

        from_month: The first month, as 2026-01; a report by month covers 36 months at most, by day 3. Left out:
        12 months that end with the last one, or by day that month alone.
        to_month: The last month, as 2026-03. Left out: the present one.
        property_id: Only records of the property with this id. An unknown id answers 404.
        bucket: The length of `buckets`, `month` if left out. Any other value is refused with 422.
        group_by: What the inspections of a group have in common, or the item of their checklists. Left out: no
        groups. Any other value is refused with 422.
        """
        request = Request(
            "GET",
            "/reports/inspections",
            query={
                "from_month": from_month,
                "to_month": to_month,
                "property_id": property_id,
                "bucket": bucket,
                "group_by": group_by,
            },
        )
        return await self.client.call(request, models.Report)


class AsyncChanges(AsyncResource):
    """Changes: `client.changes`."""

    def tickets(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.TicketChange]:
        """Follow tickets.

        Each record once, at its latest state, in the order of last change: without `cursor` all tickets, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/tickets", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.TicketChange])

    def properties(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.PropertyChange]:
        """Follow properties.

        Each record once, at its latest state, in the order of last change: without `cursor` all properties, with
        the `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/properties", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.PropertyChange])

    def units(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.UnitChange]:
        """Follow units.

        Each record once, at its latest state, in the order of last change: without `cursor` all units, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/units", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.UnitChange])

    def assets(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.AssetChange]:
        """Follow assets.

        Each record once, at its latest state, in the order of last change: without `cursor` all assets, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/assets", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.AssetChange])

    def vendors(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.VendorChange]:
        """Follow vendors.

        Each record once, at its latest state, in the order of last change: without `cursor` all vendors, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/vendors", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.VendorChange])

    def inspections(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.InspectionChange]:
        """Follow inspections.

        Each record once, at its latest state, in the order of last change: without `cursor` all inspections, with
        the `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/inspections", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.InspectionChange])

    def turns(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.TurnChange]:
        """Follow turns.

        Each record once, at its latest state, in the order of last change: without `cursor` all turns, with the
        `resume_cursor` of the page before those alone that have changed since. None is left out, whatever is
        written meanwhile, and a change of anything that the record shows counts, such as a new name of its
        property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/turns", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.TurnChange])

    def meters(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.MeterChange]:
        """Follow utility meters.

        Each record once, at its latest state, in the order of last change: without `cursor` all utility meters,
        with the `resume_cursor` of the page before those alone that have changed since. None is left out,
        whatever is written meanwhile, and a change of anything that the record shows counts, such as a new name
        of its property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/meters", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.MeterChange])

    def readings(
        self, *, limit: int | None = None, cursor: str | None = None, wait: int | None = None
    ) -> AsyncFeed[models.ReadingChange]:
        """Follow readings of all meters.

        Each record once, at its latest state, in the order of last change: without `cursor` all readings of all
        meters, with the `resume_cursor` of the page before those alone that have changed since. None is left out,
        whatever is written meanwhile, and a change of anything that the record shows counts, such as a new name
        of its property. A record that can no longer be seen comes as `gone`.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/changes/readings", query={"limit": limit, "cursor": cursor, "wait": wait})
        return AsyncWalk(self.client, request, FeedPage[models.ReadingChange])


class AsyncSnapshots(AsyncResource):
    """Snapshots: `client.snapshots`."""

    def tickets(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Ticket]:
        """Take a snapshot of tickets.

        All tickets, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/tickets` goes on:
        what changes while the snapshot runs comes there. An answer that ends without its last chunk has broken
        off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot
        of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/tickets", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Ticket)

    def properties(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Property]:
        """Take a snapshot of properties.

        All properties, ascending by id, one JSON object on each line, in one answer of any length. It counts as
        one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/properties` goes
        on: what changes while the snapshot runs comes there. An answer that ends without its last chunk has
        broken off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one
        snapshot of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/properties", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Property)

    def units(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Unit]:
        """Take a snapshot of units.

        All units, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/units` goes on: what
        changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off:
        ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of
        these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/units", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Unit)

    def assets(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Asset]:
        """Take a snapshot of assets.

        All assets, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/assets` goes on: what
        changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off:
        ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of
        these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/assets", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Asset)

    def vendors(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Vendor]:
        """Take a snapshot of vendors.

        All vendors, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/vendors` goes on:
        what changes while the snapshot runs comes there. An answer that ends without its last chunk has broken
        off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot
        of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/vendors", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Vendor)

    def inspections(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Inspection]:
        """Take a snapshot of inspections.

        All inspections, ascending by id, one JSON object on each line, in one answer of any length. It counts as
        one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/inspections` goes
        on: what changes while the snapshot runs comes there. An answer that ends without its last chunk has
        broken off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one
        snapshot of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/inspections", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Inspection)

    def turns(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Turn]:
        """Take a snapshot of turns.

        All turns, ascending by id, one JSON object on each line, in one answer of any length. It counts as one
        request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/turns` goes on: what
        changes while the snapshot runs comes there. An answer that ends without its last chunk has broken off:
        ask again with `after_id`, and go on with the cursor of the first answer. A company has one snapshot of
        these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/turns", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Turn)

    def meters(self, *, after_id: int | None = None) -> AsyncSnapshot[models.Meter]:
        """Take a snapshot of utility meters.

        All utility meters, ascending by id, one JSON object on each line, in one answer of any length. It counts
        as one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET /changes/meters` goes
        on: what changes while the snapshot runs comes there. An answer that ends without its last chunk has
        broken off: ask again with `after_id`, and go on with the cursor of the first answer. A company has one
        snapshot of these records at a time.

        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/meters", query={"after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Meter)

    def readings(
        self, *, after_meter_id: int | None = None, after_id: int | None = None
    ) -> AsyncSnapshot[models.Reading]:
        """Take a snapshot of readings of all meters.

        All readings of all meters, ascending by meter and id, one JSON object on each line, in one answer of any
        length. It counts as one request. The header `Service-Resume-Cursor` is the `cursor` with which `GET
        /changes/readings` goes on: what changes while the snapshot runs comes there. An answer that ends without
        its last chunk has broken off: ask again with `after_meter_id` and `after_id`, and go on with the cursor
        of the first answer. A company has one snapshot of these records at a time.

        after_meter_id: The `meter_id` of the last reading that you have, beside `after_id`. Left out: the
        beginning.
        after_id: The `entity_id` of the last record that you have: goes on after it. Left out: the beginning.
        """
        request = Request("GET", "/snapshots/readings", query={"after_meter_id": after_meter_id, "after_id": after_id})
        return AsyncSnapshot(self.client, request, models.Reading)


class AsyncWebhooks(AsyncResource):
    """Webhooks: `client.webhooks`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Subscription]:
        """List webhook subscriptions.

        A page of webhook subscriptions, ascending by id. The signing secret is not included.

        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request("GET", "/webhooks", query={"limit": limit, "cursor": cursor})
        return AsyncWalk(self.client, request, Page[models.Subscription])

    async def create(
        self, *, destination_url: str, events: Sequence[models.EventKey], idempotency_key: str | None = None
    ) -> models.NewSubscription:
        """Create a webhook subscription.

        Subscribes a URL to events. The response contains the signing secret; no later response does. For its
        `Idempotency-Key`, a request is the same if its destination and its set of events are the same.

        destination_url: The URL that receives deliveries: https on port 443, with a public host. Other schemes
        and ports, private or loopback addresses, and more than 2,048 characters are refused. It is stored as it
        was sent.
        events: The events to deliver. They are stored sorted, each once.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/webhooks",
            body={"destination_url": destination_url, "events": events},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.NewSubscription)

    async def delete(self, sub_id: int) -> None:
        """Delete a webhook subscription.

        Deletes the subscription and the history of its deliveries. Events that wait for delivery to it are not
        delivered any more.

        sub_id: The subscription's `entity_id`.
        """
        request = Request("DELETE", path("/webhooks/{sub_id}", sub_id))
        await self.client.respond(request)

    async def get_filter(self, sub_id: int) -> models.WebhookFilter:
        """Fetch a webhook subscription's filter.

        Of which properties, categories and priorities the subscription hears; all null: of all.

        sub_id: The subscription's `entity_id`.
        """
        request = Request("GET", path("/webhooks/{sub_id}/filter", sub_id))
        return await self.client.call(request, models.WebhookFilter)

    async def set_filter(
        self,
        sub_id: int,
        *,
        property_ids: Sequence[int] | None = None,
        categories: Sequence[models.TicketCategory] | None = None,
        priorities: Sequence[models.TicketPriority] | None = None,
        idempotency_key: str | None = None,
    ) -> models.WebhookFilter:
        """Set a webhook subscription's filter.

        Replaces the filter. The subscription then hears of an event that it names if the event's property is
        among `property_ids`, and a ticket's category and priority among `categories` and `priorities`. Events
        whose data have no property's id pass `property_ids`: `vendor.hold`, `property.notice.published`,
        `turn.task.stale` and `pm.stale`. It decides when an event is stored, so deliveries that wait are not
        touched; a replay leaves out what does not pass. An object without keys takes the filter away.

        sub_id: The subscription's `entity_id`.
        property_ids: Only events of these properties, 1,000 at most; null or left out: of all. Whether there is a
        property with an id is not checked. An event whose record names no property's id passes.
        categories: Only tickets with these categories; null or left out: with any. Events of other records pass.
        priorities: Only tickets with these priorities; null or left out: with any. Events of other records pass.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "PUT",
            path("/webhooks/{sub_id}/filter", sub_id),
            body={"property_ids": property_ids, "categories": categories, "priorities": priorities},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.WebhookFilter)

    async def test(self, sub_id: int, *, idempotency_key: str | None = None) -> models.WebhookDeliveryAnswers:
        """Test a webhook subscription.

        Sends one signed `webhook.test` event to the subscription's URL, now, and returns its delivery with what
        the receiver answered. Its `data` is an empty object, and no subscription can name it. It changes no
        health, is never retried and is not among the events of `GET /events`. A paused subscription gets it too.
        A subscription gets 10 tests a minute. The body is an object without keys.

        sub_id: The subscription's `entity_id`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request("POST", path("/webhooks/{sub_id}/test", sub_id), body={}, idempotency_key=idempotency_key)
        return await self.client.call(request, models.WebhookDeliveryAnswers)

    def list_deliveries(
        self,
        sub_id: int,
        *,
        state: models.WebhookDeliveryState | None = None,
        since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.WebhookDelivery]:
        """List deliveries of a webhook subscription.

        A page of deliveries of a webhook subscription, ascending by id. They are in the order of their events'
        ids, the oldest first, for 30 days. The events themselves are not included: see `GET /events`. With
        `state`, a page can have fewer deliveries than its limit, or none, although `next_cursor` is not null.

        sub_id: The subscription's `entity_id`.
        state: Only deliveries in this state. Any other value is refused with 422.
        since: Only deliveries of events that were made at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            path("/webhooks/{sub_id}/deliveries", sub_id),
            query={"state": state, "since": since, "limit": limit, "cursor": cursor},
        )
        return AsyncWalk(self.client, request, Page[models.WebhookDelivery])

    async def get_delivery(self, sub_id: int, event_id: str) -> models.WebhookDeliveryAnswers:
        """Fetch a delivery.

        One delivery with its attempts and the beginning of each response, without the event's body.

        sub_id: The subscription's `entity_id`.
        event_id: The event's `event_id`.
        """
        request = Request("GET", path("/webhooks/{sub_id}/deliveries/{event_id}", sub_id, event_id))
        return await self.client.call(request, models.WebhookDeliveryAnswers)

    async def create_replay(
        self,
        sub_id: int,
        *,
        since: datetime.datetime,
        until: datetime.datetime | None = None,
        events: Sequence[models.EventKey] | None = None,
        state: models.ReplayState | None = None,
        idempotency_key: str | None = None,
    ) -> models.WebhookReplay:
        """Replay events to a webhook subscription.

        Sends the events of a period to the subscription once more, also those from before it existed or that it
        did not name then. Each attempt has the event's own `event_id`, and the header `Service-Replay` with the
        replay's id. Attempts start at once and take turns with all others. A delivery that fails is parked; one
        that was waiting for a retry goes on waiting for it. The answer comes before the attempts: `GET
        /webhooks/{sub_id}/replays/{replay_id}` says how far they are. A replay is about 100,000 events at most,
        and a subscription has one under way at a time.

        sub_id: The subscription's `entity_id`.
        since: Only events that were stored at this instant or later. It must carry a UTC offset.
        until: Only events that were stored before this instant; left out: until now.
        events: Only events with these keys, which the subscription must name; left out: all that it names.
        state: `all`: every event, whether it arrived, failed or was never sent to this subscription. `parked`:
        those whose delivery is parked. `failed`: those whose delivery is parked or waits after a failed attempt.
        Left out: `all`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            path("/webhooks/{sub_id}/replay", sub_id),
            body={"since": since, "until": until, "events": events, "state": state},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.WebhookReplay)

    async def get_replay(self, sub_id: int, replay_id: int) -> models.WebhookReplay:
        """Fetch a replay.

        How far a replay is. It is kept for 30 days after it has finished.

        sub_id: The subscription's `entity_id`.
        replay_id: The replay's `entity_id`.
        """
        request = Request("GET", path("/webhooks/{sub_id}/replays/{replay_id}", sub_id, replay_id))
        return await self.client.call(request, models.WebhookReplay)


class AsyncEvents(AsyncFollowing):
    """Events: `client.events`."""

    def list(
        self,
        *,
        event: models.EventKey | None = None,
        entity_type: models.EventEntityType | None = None,
        entity_id: int | None = None,
        since: datetime.datetime | None = None,
        until: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> AsyncEventFeed:
        """Follow events.

        The company's events of 30 days in the order in which they were stored: the envelopes that deliveries
        carry, byte for byte, whether a subscription names them or not. `positions` numbers them: a company's
        events have the numbers 1, 2, 3 and so on, so without filters each number follows the one before, and a
        gap would be a lost event. What an installation stored before it had this list is not in it.

        event: Only events with this key. Any other value is refused with 422.
        entity_type: Only events about a record of this kind. Any other value is refused with 422. Needs
        `entity_id` beside it; alone it is refused with 400.
        entity_id: Only events about the record with this id. Needs `entity_type` beside it; alone it is refused
        with 400.
        since: Only events that were stored at this instant or later, which is seconds after `occurred_at` as a
        rule. It must carry a UTC offset.
        until: Only events that were stored before this instant. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/events",
            query={
                "event": event,
                "entity_type": entity_type,
                "entity_id": entity_id,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
                "wait": wait,
            },
        )
        return AsyncEventFeed(self.client, request)


class AsyncRequests(AsyncResource):
    """Requests: `client.requests`."""

    def follow(
        self,
        *,
        key_id: int | None = None,
        status: str | None = None,
        code: str | None = None,
        route: str | None = None,
        request_id: str | None = None,
        since: datetime.datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        wait: int | None = None,
    ) -> AsyncFeed[models.LoggedRequest]:
        """Follow requests.

        The requests of 30 days with the company's keys, in the order in which they were stored, a second or two
        after the answer; with `wait`, as they come. A key with the scope `read` gets those with itself alone.
        Those of `GET /requests` itself come with `route` alone. An operator may log fewer requests than all.

        key_id: Only requests with the key with this id.
        status: Only answers with this status, such as 404, or of this class, such as 4xx. Anything else is
        refused with 422.
        code: Only refusals with this code.
        route: Only requests of this route: its path with the names of ids.
        request_id: Only the request whose answer had this id in `X-Request-Id`.
        since: Only requests at this instant or later. It must carry a UTC offset.
        limit: How many records a page has; as many as the API allows if left out.
        """
        request = Request(
            "GET",
            "/requests",
            query={
                "key_id": key_id,
                "status": status,
                "code": code,
                "route": route,
                "request_id": request_id,
                "since": since,
                "limit": limit,
                "cursor": cursor,
                "wait": wait,
            },
        )
        return AsyncWalk(self.client, request, FeedPage[models.LoggedRequest])

    async def fetch(self, request_id: str) -> models.LoggedRequestBodies:
        """Fetch a request.

        One request with the bodies that are kept of it, which they are in sandboxes alone: see `request_body`. A
        key with the scope `read` gets those with itself alone.

        request_id: The id that the request's answer had in `X-Request-Id`.
        """
        request = Request("GET", path("/requests/{request_id}", request_id))
        return await self.client.call(request, models.LoggedRequestBodies)


class AsyncSandbox(AsyncResource):
    """Sandbox: `client.sandbox`."""

    async def get_clock(self) -> models.SandboxClock:
        """Fetch the sandbox's clock.

        The clock, what falls due next by time alone, and what the last advance has done so far.
        """
        request = Request("GET", "/sandbox/clock")
        return await self.client.call(request, models.SandboxClock)

    async def advance_clock(
        self,
        *,
        advance_to: datetime.datetime | None = None,
        advance_by: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.SandboxClock:
        """Advance the sandbox's clock.

        Moves the clock forward, to `advance_to` or by `advance_by`, and does everything that would have happened
        meanwhile, in the order of time: residencies begin and end, records become stale, events fire, and
        deliveries are attempted. What falls due at the target itself is done, too; an advance by `PT0S` does what
        is due already. The answer comes before all that: `GET /sandbox/clock` says `ready` when it is done.
        Writes that come meanwhile have the instant that the clock then says. Rate limits, the ends of keys, the
        log of requests and the `t` of signatures keep to the real clock.

        advance_to: The instant to advance to, by the sandbox's clock. It must carry a UTC offset.
        advance_by: How far, as an ISO 8601 duration of weeks, days, hours, minutes and seconds, for example
        P1DT2H.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/sandbox/clock",
            body={"advance_to": advance_to, "advance_by": advance_by},
            idempotency_key=idempotency_key,
        )
        return await self.client.call(request, models.SandboxClock)

    async def create_trigger(
        self,
        *,
        event: models.EventKey,
        ticket_id: int | None = None,
        turn_id: int | None = None,
        vendor_id: int | None = None,
        inspection_id: int | None = None,
        property_id: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.Event:
        """Trigger an event.

        Makes an event happen in a sandbox by its real cause: the commands that people give in the administrator
        interface, and the sweep that the clock would start. Deliveries, feeds and records show it as they show
        any other. The answer is the event as `GET /events` has it, once it is there. A record may be named that
        it is to happen to: see the fields. Where none is named, a new one is made, in the property `Sandbox
        triggers`, which is made once; what that takes, such as a move-in before a turn can change, may fire
        events of its own first. `inspection.stale` moves the date of an inspection whose day is not over. The
        commands are those of the administrator who minted the key.

        event: The event's key.
        ticket_id: The ticket of `ticket.status_changed` or `ticket.stale`.
        turn_id: The turn of `turn.status_changed` or `turn.schedule_changed`; that of the new task of
        `turn.task.stale`.
        vendor_id: The vendor of `vendor.hold`.
        inspection_id: The inspection of `inspection.stale`.
        property_id: The property of the new ticket of `ticket.created`, of the notice of
        `property.notice.published`, or of the new task of `pm.stale`.
        idempotency_key: Names this write; a new one if left out. All retries of the call have the same.
        """
        request = Request(
            "POST",
            "/sandbox/triggers",
            body={
                "event": event,
                "ticket_id": ticket_id,
                "turn_id": turn_id,
                "vendor_id": vendor_id,
                "inspection_id": inspection_id,
                "property_id": property_id,
            },
            idempotency_key=idempotency_key,
        )
        return await self.client.event(request)


class AsyncApi(AsyncCore):
    """All operations of the API."""

    @property
    def tickets(self) -> AsyncTickets:
        return AsyncTickets(self)

    @property
    def properties(self) -> AsyncProperties:
        return AsyncProperties(self)

    @property
    def units(self) -> AsyncUnits:
        return AsyncUnits(self)

    @property
    def assets(self) -> AsyncAssets:
        return AsyncAssets(self)

    @property
    def vendors(self) -> AsyncVendors:
        return AsyncVendors(self)

    @property
    def inspections(self) -> AsyncInspections:
        return AsyncInspections(self)

    @property
    def turns(self) -> AsyncTurns:
        return AsyncTurns(self)

    @property
    def meters(self) -> AsyncMeters:
        return AsyncMeters(self)

    @property
    def staff(self) -> AsyncStaff:
        return AsyncStaff(self)

    @property
    def reports(self) -> AsyncReports:
        return AsyncReports(self)

    @property
    def changes(self) -> AsyncChanges:
        return AsyncChanges(self)

    @property
    def snapshots(self) -> AsyncSnapshots:
        return AsyncSnapshots(self)

    @property
    def webhooks(self) -> AsyncWebhooks:
        return AsyncWebhooks(self)

    @property
    def events(self) -> AsyncEvents:
        return AsyncEvents(self)

    @property
    def requests(self) -> AsyncRequests:
        return AsyncRequests(self)

    @property
    def sandbox(self) -> AsyncSandbox:
        return AsyncSandbox(self)

    async def whoami(self) -> models.Whoami:
        """Identify the key.

        The key's company and scope. Every active key may call it: a good first request.
        """
        request = Request("GET", "/whoami")
        return await self.call(request, models.Whoami)

    async def openapi(self) -> dict[str, Any]:
        """Fetch this document.

        The OpenAPI document of this API. It is public: no key is needed, and a key that is sent is ignored.
        """
        request = Request("GET", "/openapi.json")
        return await self.call(request, dict[str, Any])

    async def search(self, *, external_id: str, kind: models.RecordKind | None = None) -> models.SearchResults:
        """Find records by your own identifier.

        The records of the company that have this `external_id`, of the kind if one is given. It finds a property,
        unit, asset, vendor, inspection, meter, reading, ticket, turn or member of staff that was synced from your
        system, without reading its list. The identifier is compared whole, upper and lower case differ. A turn is
        found by the `external_id` of its move-in, not of its notice.

        external_id: Your own identifier of the record.
        kind: Only records of this kind. Any other value is refused with 422.
        """
        request = Request("GET", "/search", query={"external_id": external_id, "kind": kind})
        return await self.call(request, models.SearchResults)
