"""The SQL statements of the sweeps: which rows are due (see `chassis.schedule.overdue`), and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select

from chassis.db.database import Connection
from chassis.db.rows import InsertMany, UpdateMany
from svc_catalog import tables as t
from svc_catalog.queries_inspections import INSPECTIONS_SERVED
from svc_catalog.queries_vendors import STANDING, VENDOR_NAME, WITH_BUSINESS
from svc_catalog.tables_inspections import MAY_BECOME_STALE, inspection
from svc_catalog.tables_vendors import vendor

INSERT_EVENTS = InsertMany(t.outbox, ("event_id", "subject", "message"))


def stale(day: Any, _now: Any) -> tuple[Any, ...]:
    """Inspections that were to be done before the day, are open, and of which nobody was told."""
    return (MAY_BECOME_STALE, inspection.c.scheduled_date < day)


# INSPECTION_COLUMNS, then the company.
INSPECTIONS = INSPECTIONS_SERVED.add_columns(inspection.c.company_id.label("company_id"))

_ANNOUNCE = UpdateMany(inspection, ("stale_announced_at",))


async def announce(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """rows: company_id, id, stale_announced_at. The version stays: nothing that is served changes."""
    await _ANNOUNCE.run(connection, rows)


def to_be_looked_at(day: Any, _now: Any) -> tuple[Any, ...]:
    """Vendors of whose insurance the day may say something new."""
    return (vendor.c.compliance_due_on <= day,)


# The standing, and what is told of the vendor, with the timezone of its company.
VENDORS = select(
    vendor.c.company_id,
    vendor.c.id,
    vendor.c.version,
    vendor.c.external_id,
    vendor.c.held_at,
    *(vendor.c[name] for name in STANDING),
    VENDOR_NAME.label("name"),
    t.company.c.timezone,
).select_from(WITH_BUSINESS.join(t.company, t.company.c.id == vendor.c.company_id))
_SAVE = UpdateMany(vendor, ("version", "held_at", *STANDING))


async def save_standings(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """rows: the key, version, held_at and the standing of vendors as they will be."""
    await _SAVE.run(connection, rows)
