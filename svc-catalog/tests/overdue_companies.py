"""The sweeps of svc-catalog in a database that no process uses: companies in a timezone, with due records."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

from chassis.db.database import Database
from chassis.messaging.outbox import Outbox
from chassis.schedule.announcing import Announcer
from chassis.writes.audit import Audit
from svc_catalog import schema
from svc_catalog.inspections.records import INSPECTION
from svc_catalog.inspections.sweeps import overdue_inspections as announcer_of_inspections
from svc_catalog.vendors.records import VENDOR
from svc_catalog.vendors.sweeps import ComplianceSnapshots

LINKS = "https://app.test"
QUARTER = datetime.timedelta(minutes=15)
_ids = itertools.count(900_000)


def utc(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def overdue_inspections(database: Database) -> Announcer:
    return announcer_of_inspections(database, Outbox("svc-catalog", schema.outbox), INSPECTION.renderer(LINKS))


def compliance(database: Database) -> ComplianceSnapshots:
    outbox, audit = Outbox("svc-catalog", schema.outbox), Audit(schema.audit, database)
    return ComplianceSnapshots(database, outbox, audit, VENDOR.renderer(LINKS))


class OverdueCompany:
    """A company with a property, as svc-catalog's database has it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.id = next(_ids)

    async def founded(self, timezone: str = "UTC", *, active: bool = True, version: int = 1) -> OverdueCompany:
        await self._do(
            "INSERT INTO company (id, version, name, active, timezone) VALUES ($1, $2, 'C', $3, $4)",
            self.id,
            version,
            active,
            timezone,
        )
        await self._do(
            "INSERT INTO property (company_id, id, name, address, created_at, source)"
            " VALUES ($1, $1, 'Elm Court', 'A', now(), 'import')",
            self.id,
        )
        return self

    async def sets(self, **columns: Any) -> None:
        """Updates columns of the company's row."""
        for name, value in columns.items():
            await self._do(f"UPDATE company SET {name} = $2 WHERE id = $1", self.id, value)

    async def plans(self, scheduled_date: datetime.date | None, **columns: Any) -> int:
        """Inserts an inspection; returns its id."""
        values = {"status": "Scheduled", "kind": "operations", "engagement": None, "title": "Fire"} | columns
        values |= {"company_id": self.id, "property_id": self.id, "scheduled_date": scheduled_date}
        return await self._insert("inspection", values | {"is_compliance_inspection": False, "created_at": _OLD})

    async def moves(self, inspection_id: int, **columns: Any) -> None:
        for name, value in columns.items():
            await self._do(
                f"UPDATE inspection SET {name} = $3 WHERE company_id = $1 AND id = $2", self.id, inspection_id, value
            )

    async def insures(self, expires_on: datetime.date | None, **columns: Any) -> int:
        """Inserts a vendor whose insurance was recorded just now; returns its id."""
        business = {"company_id": self.id, "legal_name": f"B{next(_ids)}"}
        values: dict[str, Any] = {"business_id": await self._insert("business", business), "company_id": self.id}
        values |= {"rating_count": 0, "is_active": True, "property_visibility": "all_properties"}
        values |= {"onboarded_at": _OLD, "insurance_tracked": True, "insurance_expires_on": expires_on}
        return await self._insert("vendor", values | {"compliance_due_on": datetime.date.min} | columns)

    async def stands(self, vendor_id: int, standing: dict[str, Any]) -> None:
        """Updates columns of a vendor."""
        changes = ", ".join(f"{name} = ${number}" for number, name in enumerate(standing, start=3))
        await self._do(
            f"UPDATE vendor SET {changes} WHERE company_id = $1 AND id = $2", self.id, vendor_id, *standing.values()
        )

    async def _insert(self, table: str, values: dict[str, Any]) -> int:
        if table != "business":
            values = values | {"source": "staff"}
        places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
        async with self.database.connection() as connection:
            row_id: int = await connection.raw.fetchval(
                f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places}) RETURNING id", *values.values()
            )
        return row_id

    async def _do(self, sql: str, *values: Any) -> None:
        async with self.database.connection() as connection:
            await connection.raw.execute(sql, *values)


_OLD = utc("2020-01-01")
