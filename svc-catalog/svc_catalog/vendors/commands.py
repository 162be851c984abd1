"""The RPCs by which people add, change, hold and release vendors, and record their insurance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import lock_company_imports
from chassis.records import bodies
from chassis.schedule.instants import local_date
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import EditableTable, LockedRecord, RecordEditor, audited
from makeready.catalog.v1 import vendor_commands_pb2 as pb
from svc_catalog.companies import timezone_of
from svc_catalog.vendors import inputs, rules
from svc_catalog.vendors import queries as q
from svc_catalog.vendors.records import HELD, VENDOR, Vendor
from svc_catalog.vendors.tables import vendor

# Columns of the vendor's row in an audit entry, in addition to the public record.
_AUDITED_COLUMNS = ("external_id", "on_hold", "hold_reason", "insurance_tracked", "insurance_expires_on")
# The audited fields that other contexts replicate.
_REPLICATED = ("name", "external_id", "on_hold")


def audited_vendor(record: Vendor, row: Mapping[str, object]) -> dict[str, object]:
    """A vendor's values in an audit entry: without onboarded_at, which nothing changes, and the compliance state."""
    values = audited(record)
    for name in ("business", "onboarded_at", "last_compliance_state"):
        del values[name]
    values |= {"legal_name": record.business.legal_name, "website": record.business.website}
    return values | {name: row[name] for name in _AUDITED_COLUMNS}


class VendorCommandsService:
    """Adds, changes, holds and releases vendors, and records their insurance."""

    def __init__(self, database: Database, commands: CommandRunner, links_url: str) -> None:
        self._database = database
        self._commands = commands
        self._vendors = RecordEditor(
            "vendor",
            EditableTable(vendor, *q.VENDORS.changeable),
            q.ONE_VENDOR,
            VENDOR.renderer(links_url),
            q.VENDOR_REFERENCES.of,
            audit=audited_vendor,
            replicated=_REPLICATED,
        )

    async def AddVendor(self, request: pb.AddVendorRequest, call: identity.Call) -> pb.AddVendorResponse:
        values = inputs.VENDOR_FIELDS.of(request)

        async def work(command: Command) -> pb.AddVendorResponse:
            # Imports create businesses too.
            await lock_company_imports(command.connection, command.company_id)
            columns = asdict(rules.VendorCompliance()) | await _with_business(command, values, None)
            columns["is_active"] = columns.get("is_active") is not False
            columns["retired_at"] = None if columns["is_active"] else command.now
            columns["rating_count"] = columns.get("rating_count") or 0
            columns["property_visibility"] = columns.get("property_visibility") or rules.DEFAULT_PROPERTY_VISIBILITY
            columns["onboarded_at"] = command.now
            return pb.AddVendorResponse(document=await self._vendors.add(command, columns))

        return await self._commands.run(call, request, pb.AddVendorResponse, work)

    async def UpdateVendor(self, request: pb.UpdateVendorRequest, call: identity.Call) -> pb.UpdateVendorResponse:
        values = inputs.VENDOR_FIELDS.of(request)

        async def work(command: Command) -> pb.UpdateVendorResponse:
            if "legal_name" in values or "website" in values:
                await lock_company_imports(command.connection, command.company_id)
            locked = await self._vendors.lock(command, request.vendor_id)
            columns = await _with_business(command, values, locked)
            is_active = columns.get("is_active", locked.row["is_active"])
            if is_active != locked.row["is_active"]:
                columns["retired_at"] = None if is_active else command.now
            touched = values.get("website", locked.record.business.website) != locked.record.business.website
            return pb.UpdateVendorResponse(document=await self._vendors.change(command, locked, columns, touched))

        return await self._commands.run(call, request, pb.UpdateVendorResponse, work)

    async def HoldVendor(self, request: pb.HoldVendorRequest, call: identity.Call) -> pb.HoldVendorResponse:
        reason = bodies.check(inputs.Hold, fields(request, "reason")).reason

        async def work(command: Command) -> pb.HoldVendorResponse:
            locked = await self._vendors.lock(command, request.vendor_id)
            values = asdict(rules.hold(q.compliance_of(locked.row), reason))
            held_at, was_held = locked.row["held_at"], locked.row["on_hold"]
            at = command.now if held_at is None else command.next_instant(held_at)
            if not was_held:
                values["held_at"] = at
            document = await self._vendors.change(command, locked, values, action="held")
            if not was_held:
                await command.publish_event("vendor.hold", request.vendor_id, at, document.json, HELD)
            return pb.HoldVendorResponse(document=document)

        return await self._commands.run(call, request, pb.HoldVendorResponse, work)

    async def ReleaseVendor(self, request: pb.ReleaseVendorRequest, call: identity.Call) -> pb.ReleaseVendorResponse:
        async def work(command: Command) -> pb.ReleaseVendorResponse:
            locked = await self._vendors.lock(command, request.vendor_id)
            released = rules.release(q.compliance_of(locked.row)) if locked.row["on_hold"] else None
            values = {} if released is None else asdict(released)
            document = await self._vendors.change(command, locked, values, action="released")
            return pb.ReleaseVendorResponse(document=document)

        return await self._commands.run(call, request, pb.ReleaseVendorResponse, work)

    async def RecordInsurance(
        self, request: pb.RecordInsuranceRequest, call: identity.Call
    ) -> pb.RecordInsuranceResponse:
        expires_on = bodies.check(inputs.Insurance, fields(request, "expires_on")).expires_on

        async def work(command: Command) -> pb.RecordInsuranceResponse:
            locked = await self._vendors.lock(command, request.vendor_id)
            today = local_date(command.now, await timezone_of(command.connection, command.company_id))
            recorded = rules.record_insurance(q.compliance_of(locked.row), expires_on, today)
            document = await self._vendors.change(command, locked, asdict(recorded), action="insurance_recorded")
            return pb.RecordInsuranceResponse(document=document)

        return await self._commands.run(call, request, pb.RecordInsuranceResponse, work)

    async def ListVendorHolds(
        self, _request: pb.ListVendorHoldsRequest, call: identity.Call
    ) -> pb.ListVendorHoldsResponse:
        rows = await q.vendors_on_hold(self._database, identity.company_id(call))
        return pb.ListVendorHoldsResponse(holds=map(_hold, rows))


async def _with_business(
    command: Command, values: Mapping[str, Any], before: LockedRecord[Vendor] | None
) -> dict[str, Any]:
    """The values of a vendor's columns, with the id of its business. A website is saved in the business's row."""
    columns = {name: value for name, value in values.items() if name not in ("name", "legal_name", "website")}
    name = values["name"] if "name" in values or before is None else before.record.name
    legal_name = values.get("legal_name") or (name if before is None else before.record.business.legal_name)
    if before is not None and legal_name == before.record.business.legal_name:
        business_id: int = before.row["business_id"]
    else:
        business_id = await q.business_named(command.connection, command.company_id, legal_name)
    if "website" in values:
        await q.save_website(command.connection, command.company_id, business_id, values["website"])
    return columns | {"business_id": business_id, "nickname": rules.nickname(name, legal_name)}


def _hold(held: q.HeldVendor) -> pb.VendorHold:
    message = pb.VendorHold(vendor_id=held.vendor_id, name=held.name, reason=held.reason)
    message.held_at.FromDatetime(held.held_at)
    if held.insurance_expires_on is not None:
        message.insurance_expires_on = str(held.insurance_expires_on)
    return message
