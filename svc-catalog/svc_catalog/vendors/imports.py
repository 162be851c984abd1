"""The import of vendors (spec 2.8), and of the businesses behind them."""

from __future__ import annotations

import datetime
from dataclasses import asdict

from chassis.db.database import Connection
from chassis.imports.importer import Batch, ImportRow
from chassis.refusals import invalid_request
from chassis.schedule.instants import local_date
from makeready.events.v1.events_pb2 import References
from svc_catalog.companies import timezone_of
from svc_catalog.vendors import queries as q
from svc_catalog.vendors import rules
from svc_catalog.vendors.inputs import VendorRow
from svc_catalog.vendors.rules import VendorCompliance

_DEFAULTS = {
    "rating_count": 0,
    "property_visibility": rules.DEFAULT_PROPERTY_VISIBILITY,
    "on_hold": False,
    "insurance_tracked": False,
}


async def save(connection: Connection, batch: Batch[VendorRow], *, events: bool) -> References:
    """Saves a batch's rows; returns the changed rows for the contexts that replicate them.

    events: whether the snapshot announces lapses. If not, a lapsed vendor goes on hold here, without vendor.hold.
    """
    await batch.lock_existing(connection, q.VENDORS)
    await _Businesses(batch).resolve(connection)
    today = local_date(batch.moment, await timezone_of(connection, batch.company_id))
    for line in batch.good.values():
        _complete(line, batch)
        _insure(line, batch, today, events)
    saved = await batch.save(connection, q.VENDORS, _DEFAULTS)
    # The row's name is the vendor's name, whether it is stored as nickname or legal name.
    return q.VENDOR_REFERENCES.made_of(row | {"name": batch.good[row["external_id"]].row.name} for row in saved)


def _complete(line: ImportRow[VendorRow], batch: Batch[VendorRow]) -> None:
    """Sets the columns that depend on others."""
    values = line.values
    values["onboarded_at"] = values.get("onboarded_at") or line.stored("onboarded_at") or batch.moment
    if values.get("is_active") is None and (line.before is None or "is_active" in line.given):
        retired_at = values["retired_at"] if "retired_at" in line.given else line.stored("retired_at")
        values["is_active"] = retired_at is None


def _insure(line: ImportRow[VendorRow], batch: Batch[VendorRow], today: datetime.date, events: bool) -> None:
    """Records the row's insurance. The next snapshot evaluates it."""
    expires_on = line.values.pop("insurance_expires_on", None)
    before = VendorCompliance() if line.before is None else q.compliance_of(line.before)
    after = before
    if "last_compliance_state" in line.given:
        after = rules.record_state(after, line.values["last_compliance_state"])
    if "insurance_expires_on" in line.given:
        after = rules.record_insurance(after, expires_on, today)
        if after != before and not events:
            after = rules.hold_if_lapsed(after, today)
    line.values |= asdict(after)
    if after.on_hold and not before.on_hold:
        line.values["held_at"] = batch.moment


class _Businesses:
    """The businesses that the rows of a batch name, and their websites."""

    def __init__(self, batch: Batch[VendorRow]) -> None:
        self._batch = batch
        self._legal_names: dict[str, str] = {}  # by the row's external_id
        self._websites: dict[str, str | None] = {}  # by legal name, for rows with a website column

    async def resolve(self, connection: Connection) -> None:
        """Sets the business of every good row, created if missing, and the vendor's nickname."""
        batch = self._batch
        keeping = {external_id: line for external_id, line in batch.good.items() if _keeps_business(line)}
        named = {line.row.legal_name or line.row.name for line in batch.good.values()}
        ids = {line.stored("business_id") for line in keeping.values()}
        rows = await q.businesses(connection, batch.company_id, ids, named, batch.good)
        names = {row.id: row.legal_name for row in rows}
        for external_id, line in batch.good.items():
            of_row = line.row.legal_name or line.row.name
            self._legal_names[external_id] = names[line.stored("business_id")] if external_id in keeping else of_row
        batch.each(self._take_website)
        business_ids = await self._save(connection, {row.legal_name: row for row in rows})
        for external_id, line in batch.good.items():
            legal_name = self._legal_names[external_id]
            line.values["business_id"] = business_ids[legal_name]
            line.values["nickname"] = rules.nickname(line.row.name, legal_name)

    def _take_website(self, line: ImportRow[VendorRow]) -> None:
        if "website" not in line.given:
            return
        legal_name = self._legal_names[line.row.external_id]
        earlier, website = self._websites.get(legal_name), line.row.website
        if earlier and website and earlier != website:
            raise invalid_request("An earlier row gives this business another website.", "website")
        self._websites[legal_name] = earlier or website

    async def _save(self, connection: Connection, stored: dict[str, q.StoredBusiness]) -> dict[str, int]:
        """Stores new businesses and websites, and marks the batch's vendors as changed if their business is. Returns
        ids by legal name."""
        differing = {}
        for legal_name, website in self._websites.items():
            before = stored.get(legal_name)
            # A blank clears the website only if no other vendor shares the business: another row may set it.
            if before and before.website != website and (website or not before.is_shared):
                differing[legal_name] = before._replace(website=website)
        for external_id, line in self._batch.good.items():
            line.touched = self._legal_names[external_id] in differing
        self._batch.beside["businesses"] = [
            q.WEBSITES.change(stored[legal_name]._asdict(), after._asdict()) for legal_name, after in differing.items()
        ]
        await q.save_websites(connection, list(differing.values()))
        named = {self._legal_names[external_id] for external_id in self._batch.good}
        missing = [
            {"company_id": self._batch.company_id, "legal_name": name, "website": self._websites.get(name)}
            for name in sorted(named - stored.keys())
        ]
        inserted = await q.insert_businesses(connection, missing)
        return inserted | {name: row.id for name, row in stored.items()}


def _keeps_business(line: ImportRow[VendorRow]) -> bool:
    """Whether the vendor exists and the file has no legal_name."""
    return line.before is not None and "legal_name" not in line.given
