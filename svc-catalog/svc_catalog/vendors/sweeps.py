"""The scheduled sweep of vendors: the hourly snapshot of their insurance."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence

from asyncpg import Record

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection, Database
from chassis.messaging.outbox import Outbox
from chassis.records.shapes import Renderer
from chassis.schedule.clocks import LIVE, Companies
from chassis.schedule.instants import END, after, day_begins, local_date, slot_of
from chassis.schedule.overdue import Days, FallsDue, Overdue
from chassis.schedule.sweeps import Due
from chassis.writes.audit import Audit
from svc_catalog.schema import company
from svc_catalog.vendors import queries as q
from svc_catalog.vendors import rules
from svc_catalog.vendors.records import HELD, Vendor
from svc_catalog.vendors.tables import vendor

VENDOR_HOLD, COMPLIANCE_CHANGED = "vendor.hold", "vendor.compliance_changed"
SNAPSHOT_SECONDS = 3600
# The actor in audit entries of this sweep.
_CLOCK = Call(Identity(SERVICE, "svc-catalog"), "")


@dataclasses.dataclass(frozen=True, slots=True)
class _Snapshot:
    """The snapshot of one vendor. row: a row of `DUE_VENDORS`."""

    row: Record
    before: rules.VendorCompliance
    after: rules.VendorCompliance
    # The new values.
    version: int
    held_at: datetime.datetime | None

    @property
    def is_newly_held(self) -> bool:
        return self.after.on_hold and not self.before.on_hold

    @property
    def finds_another_state(self) -> bool:
        return self.after.last_compliance_state != self.before.last_compliance_state

    def columns(self) -> dict[str, object]:
        """The vendor's new columns, with its key."""
        key = {"company_id": self.row["company_id"], "id": self.row["id"]}
        return key | {"version": self.version, "held_at": self.held_at} | dataclasses.asdict(self.after)


class ComplianceSnapshots:
    """Takes the hourly snapshot of vendors' insurance, and places vendors with lapsed insurance on hold."""

    def __init__(self, database: Database, outbox: Outbox, audit: Audit, renderer: Renderer[Vendor]) -> None:
        falls_due = FallsDue(vendor.c.compliance_due_on, SNAPSHOTS)
        self._overdue = Overdue(database, company, vendor, q.insurance_due, q.DUE_VENDORS, falls_due)
        self._outbox, self._audit, self._renderer = outbox, audit, renderer

    async def next_due(self, company_id: int) -> Due | None:
        """See `chassis.schedule.sweeps.Sweep`."""
        return Due.of(await self._overdue.next_due(company_id), COMPLIANCE_CHANGED)

    async def sweep(self, now: datetime.datetime, companies: Companies = LIVE) -> Mapping[str, int]:
        """Takes the snapshot as of the last full hour. Later sweeps in the hour evaluate only new records."""
        changed = held = 0

        async def save(connection: Connection, rows: Sequence[Record]) -> None:
            nonlocal changed, held
            snapshots = [_snapshot(row, now, companies.clock()) for row in rows]
            await q.save_compliance(connection, [snapshot.columns() for snapshot in snapshots])
            for snapshot in snapshots:
                if snapshot.is_newly_held:
                    await self._announce(connection, snapshot)
            changed += sum(snapshot.finds_another_state for snapshot in snapshots)
            held += sum(snapshot.is_newly_held for snapshot in snapshots)

        await self._overdue.each(now, save, companies)
        if held:
            self._outbox.wake()
        return {COMPLIANCE_CHANGED: changed, VENDOR_HOLD: held}

    async def _announce(self, connection: Connection, held: _Snapshot) -> None:
        """Publishes a new hold to subscribers and other contexts, and writes it to the audit log."""
        assert held.held_at is not None
        company_id, vendor_id = held.row["company_id"], held.row["id"]
        served = await connection.row(q.ONE_VENDOR, company_id=company_id, entity_id=vendor_id)
        assert served is not None
        data = self._renderer.json(served)
        row = {**held.row, "version": held.version, "on_hold": True}
        events = [
            self._outbox.public(
                VENDOR_HOLD,
                company_id=company_id,
                entity_id=vendor_id,
                occurred_at=held.held_at,
                data=data,
                change=HELD,
            ),
            self._outbox.references(
                q.VENDOR_REFERENCES.made_of([row]), company_id=company_id, occurred_at=held.held_at
            ),
        ]
        await self._outbox.add_many(connection, events)
        sides = [{"on_hold": side.on_hold, "hold_reason": side.hold_reason} for side in (held.before, held.after)]
        await self._audit.add(connection, _CLOCK, company_id, "vendor.held", "vendor", vendor_id, *sides)


def _day_of_snapshot(now: datetime.datetime, timezone: str) -> datetime.date:
    return local_date(slot_of(now, SNAPSHOT_SECONDS), timezone)


def _first_snapshot(date: datetime.date, timezone: str) -> datetime.datetime:
    """The first full hour of the day."""
    begins = day_begins(date, timezone)
    hour = slot_of(begins, SNAPSHOT_SECONDS)
    try:
        return hour if hour == begins else hour + datetime.timedelta(seconds=SNAPSHOT_SECONDS)
    except OverflowError:
        return END


SNAPSHOTS = Days(_day_of_snapshot, _first_snapshot)


def _snapshot(row: Record, now: datetime.datetime, at: datetime.datetime) -> _Snapshot:
    """The vendor after its snapshot. The version increases if a served or replicated column changes."""
    before = q.compliance_of(row)
    seen = rules.take_snapshot(before, _day_of_snapshot(now, row["timezone"]))
    differs = (before.last_compliance_state, before.on_hold) != (seen.last_compliance_state, seen.on_hold)
    held_at = row["held_at"]
    if seen.on_hold and not before.on_hold:
        held_at = at if held_at is None else after(at, held_at)
    return _Snapshot(row, before, seen, row["version"] + differs, held_at)
