"""The import of inspections (spec 2.9), including those that the API does not serve."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from asyncpg import Record

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from chassis.schedule.instants import overdue_before
from makeready.events.v1.events_pb2 import References
from svc_catalog.companies import timezone_of
from svc_catalog.inspections import queries as q
from svc_catalog.inspections import rules
from svc_catalog.inspections.inputs import InspectionRow
from svc_catalog.inspections.staff import STAFF_NAMED
from svc_catalog.places.lookups import PROPERTIES_NAMED, UNITS_NAMED

InspectionLine = ImportRow[InspectionRow]

_DEFAULTS: dict[str, Any] = {
    "status": rules.DEFAULT_STATUS,
    "is_compliance_inspection": False,
    "kind": rules.DEFAULT_KIND,
}


async def save(connection: Connection, batch: Batch[InspectionRow], *, events: bool) -> References:
    """Saves a batch's rows. No other context stores inspections.

    events: whether the sweep may still announce an inspection that the import makes overdue.
    """
    company_id = batch.company_id
    properties = await PROPERTIES_NAMED.by_external_id(connection, company_id, batch.named("property"))
    batch.resolve("property", properties)
    staff = await STAFF_NAMED.by_external_id(connection, company_id, batch.named("assignee"))
    batch.resolve("assignee", staff)
    await batch.lock_existing(connection, q.INSPECTIONS)
    units = await UNITS_NAMED.by_external_id(connection, company_id, batch.named("unit"))
    batch.each(lambda line: _place(line, units))
    batch.each(_check_engagement)
    batch.each(_reinstate)
    await _number(connection, batch)
    if not events:
        today = overdue_before(batch.moment, await timezone_of(connection, company_id))
        for line in batch.good.values():
            if _is_stale(line.after, today) and not (line.before and _is_stale(line.stored, today)):
                line.values["stale_announced_at"] = line.stored("stale_announced_at") or batch.moment
    saved = await batch.save(connection, q.INSPECTIONS, _DEFAULTS)
    # Each inspection by its id: what reports keep of it ignores the hint "several inspections".
    connection.changed.update((company_id, "inspection", row["id"]) for row in saved)
    return References()


def _after(line: InspectionLine, column: str) -> Any:
    """The column's value after the import."""
    value = line.after(column)
    return _DEFAULTS.get(column) if value is None else value


def _is_stale(column: Callable[[str], Any], today: datetime.date) -> bool:
    """column: returns the value of the named column."""
    scheduled_date: datetime.date | None = column("scheduled_date")
    status, kind = column("status") or rules.DEFAULT_STATUS, column("kind") or rules.DEFAULT_KIND
    is_over = scheduled_date is not None and scheduled_date < today
    return is_over and rules.may_become_stale(status, kind, column("engagement"))


def _place(line: InspectionLine, units: Mapping[str, Record]) -> None:
    """Sets unit_id from the row's unit, or clears it if the row's unit is blank. Raises Refusal with the field."""
    if line.row.unit is None:
        if "unit" in line.given:
            line.values["unit_id"] = None
        elif line.moves("property_id") and line.stored("unit_id") is not None:
            raise invalid_request("The inspection moves to another property; give its unit there.", "unit")
        return
    unit = units.get(line.row.unit)
    if unit is None:
        raise invalid_request("No unit with that external_id is known.", "unit")
    if unit["property_id"] != line.values["property_id"]:
        raise invalid_request("The unit lies in another property.", "unit")
    line.values["unit_id"] = unit["id"]


def _check_engagement(line: InspectionLine) -> None:
    # Without this check, the API would serve a consultant's walk if the file omits its kind.
    if _after(line, "engagement") is not None and _after(line, "kind") == "operations":
        raise invalid_request("An inspection of operations belongs to no engagement; give the walk's kind.", "kind")


def _reinstate(line: InspectionLine) -> None:
    """A row that gives its kind takes a cancellation back. Without it, a cancelled inspection stays cancelled."""
    if line.before and line.stored("kind") == rules.CANCELLED and line.row.kind is not None:
        line.values |= dict.fromkeys(("cancelled_at", "cancelled_by", "cancel_reason"))


async def _number(connection: Connection, batch: Batch[InspectionRow]) -> None:
    """Sets each inspection's number: its row's, else the stored one, else the next one of its property."""
    numbers = [_key(line) for line in batch.good.values() if line.row.inspection_number is not None]
    holders = await q.holders_of_numbers(connection, batch.company_id, numbers)
    batch.each(lambda line: _take(line, holders))
    highest: dict[int, int] = {}
    lacking: list[InspectionLine] = []
    for line in batch.good.values():
        property_id, number = line.values["property_id"], line.row.inspection_number
        if number is not None:
            highest[property_id] = max(highest.get(property_id, 0), number)
            continue
        line.values["inspection_number"] = None if line.moves("property_id") else line.stored("inspection_number")
        if line.values["inspection_number"] is None and rules.is_numbered(_after(line, "status")):
            lacking.append(line)
    await q.count_from(connection, batch.company_id, highest)
    counts = Counter(line.values["property_id"] for line in lacking)
    following = await q.take_numbers(connection, batch.company_id, counts)
    for line in lacking:
        property_id = line.values["property_id"]
        line.values["inspection_number"] = following[property_id]
        following[property_id] += 1


def _key(line: InspectionLine) -> tuple[int, int]:
    return (line.values["property_id"], line.row.inspection_number)


def _take(line: InspectionLine, holders: dict[tuple[int, int], str | None]) -> None:
    """Reserves the row's number for the inspection. Raises Refusal if another inspection has it."""
    if line.row.inspection_number is None:
        return
    if holders.setdefault(_key(line), line.row.external_id) != line.row.external_id:
        raise invalid_request("Another inspection of the property has this number.", "inspection_number")
