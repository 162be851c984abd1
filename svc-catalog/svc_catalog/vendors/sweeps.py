"""What the clock does about vendors: it looks at their insurance."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from asyncpg import Record

from chassis.auth.identity import SERVICE, Call, Identity
from chassis.db.database import Connection, Database
from chassis.db.rows import InsertMany
from chassis.messaging.outbox import Outbox
from chassis.schedule.instants import local_date, slot_of
from chassis.schedule.overdue import Overdue
from chassis.writes.audit import Audit
from makeready.events.v1.events_pb2 import References
from svc_catalog import schema
from svc_catalog.documents import encode
from svc_catalog.vendors import queries as q
from svc_catalog.vendors import rules
from svc_catalog.vendors.queries import STANDING
from svc_catalog.vendors.records import HELD, VendorLinks
from svc_catalog.vendors.rules import Standing
from svc_catalog.vendors.tables import vendor

VENDOR_HOLD = "vendor.hold"
COMPLIANCE_CHANGED = "vendor.compliance_changed"
SNAPSHOT_SECONDS = 3600
_INSERT_EVENTS = InsertMany(schema.outbox, ("event_id", "subject", "message"))
_TICK = datetime.timedelta(microseconds=1)
# As whom the audit log knows the clock of this service.
_CLOCK = Call(Identity(SERVICE, "svc-catalog"), "")


class Compliance:
    """Takes the hourly snapshot of vendors' insurance, and places those on hold whose insurance has lapsed."""

    def __init__(
        self,
        database: Database,
        outbox: Outbox,
        audit: Audit,
        links: VendorLinks,
        clock: Callable[[], datetime.datetime],
    ) -> None:
        self._overdue = Overdue(database, schema.company, vendor, q.to_be_looked_at, q.DUE_VENDORS, _day_of_snapshot)
        self._outbox, self._audit, self._links, self._clock = outbox, audit, links, clock

    async def sweep(self, now: datetime.datetime) -> Mapping[str, int]:
        """As of the last full hour: the sweeps between two hours find what was recorded since, and nothing else."""
        changed = held = 0

        async def look(connection: Connection, rows: Sequence[Record]) -> None:
            nonlocal changed, held
            seen = [_seen(row, now, self._clock()) for row in rows]
            await q.save_standings(connection, seen)
            lapsed = [(row, after) for row, after in zip(rows, seen, strict=True) if after["on_hold"] > row["on_hold"]]
            for row, after in lapsed:
                await self._tell(connection, row, after)
            changed += sum(
                row["last_compliance_state"] != after["last_compliance_state"]
                for row, after in zip(rows, seen, strict=True)
            )
            held += len(lapsed)

        await self._overdue.each(now, look)
        if held:
            self._outbox.wake()
        return {COMPLIANCE_CHANGED: changed, VENDOR_HOLD: held}

    async def _tell(self, connection: Connection, row: Record, after: dict[str, Any]) -> None:
        """Of a hold that was placed: subscribers, other contexts and the audit log."""
        about = {"company_id": row["company_id"], "occurred_at": after["held_at"]}
        served = await q.vendor_row(connection, row["company_id"], row["id"])
        data = encode(self._links.vendor(served))
        event = self._outbox.public(VENDOR_HOLD, entity_id=row["id"], data=data, change=HELD, **about)
        references = References()
        told = {name: row[name] for name in ("company_id", "id", "name", "external_id")}
        references.vendors.add(version=after["version"], on_hold=True, **told)
        await _INSERT_EVENTS.run(connection, [event, self._outbox.references(references, **about)])
        kept = [{name: side[name] for name in ("on_hold", "hold_reason")} for side in (row, after)]
        await self._audit.add(connection, _CLOCK, row["company_id"], "vendor.held", "vendor", row["id"], *kept)


def _day_of_snapshot(now: datetime.datetime, timezone: str) -> datetime.date:
    return local_date(slot_of(now, SNAPSHOT_SECONDS), timezone)


def _seen(row: Record, now: datetime.datetime, at: datetime.datetime) -> dict[str, Any]:
    """The vendor as the snapshot leaves it. Its version moves with what is served or told of it."""
    before = Standing(**{name: row[name] for name in STANDING})
    after = rules.look(before, _day_of_snapshot(now, row["timezone"]))
    shown = (before.last_compliance_state, before.on_hold) != (after.last_compliance_state, after.on_hold)
    held_at = row["held_at"]
    if after.on_hold and not before.on_hold:
        held_at = at if held_at is None else max(at, held_at + _TICK)
    key = {"company_id": row["company_id"], "id": row["id"], "version": row["version"] + shown}
    return key | {"held_at": held_at} | asdict(after)
