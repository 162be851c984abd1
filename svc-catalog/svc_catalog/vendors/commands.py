"""The RPCs of the back office about vendors: identity, rule, statement, record."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from asyncpg import UniqueViolationError

from chassis.auth import identity
from chassis.db.database import Database
from chassis.imports.importer import lock_company_imports
from chassis.records import bodies
from chassis.refusals import invalid_request
from chassis.schedule.instants import local_date
from chassis.writes.commands import Command, CommandRunner, fields
from makeready.catalog.v1 import vendor_commands_pb2 as pb
from makeready.common.v1.documents_pb2 import Document
from makeready.events.v1.events_pb2 import References
from svc_catalog.companies import timezone_of
from svc_catalog.documents import document
from svc_catalog.editing import no_such, taken
from svc_catalog.vendors import inputs as records
from svc_catalog.vendors import queries as q
from svc_catalog.vendors import rules
from svc_catalog.vendors.queries import STANDING
from svc_catalog.vendors.records import HELD, VendorLinks
from svc_catalog.vendors.rules import Standing

_AUDITED = (
    "name",
    "legal_name",
    "website",
    "avg_rating",
    "rating_count",
    "is_active",
    "property_visibility",
    "retired_at",
    "external_id",
    "on_hold",
    "hold_reason",
    "insurance_tracked",
    "insurance_expires_on",
)
_REPLICATED = ("name", "external_id", "on_hold")


def audited(vendor: Mapping[str, Any]) -> dict[str, Any]:
    """What the audit log keeps of a vendor."""
    return {name: vendor[name] for name in _AUDITED}


def references(company_id: int, vendor: Mapping[str, Any]) -> References:
    """What other contexts keep of a vendor."""
    told = References()
    told.vendors.add(company_id=company_id, **{name: vendor[name] for name in ("id", "version", *_REPLICATED)})
    return told


def standing_of(vendor: Mapping[str, Any]) -> Standing:
    return Standing(**{name: vendor[name] for name in STANDING})


class VendorCommandsService:
    """Adds, changes, holds and releases vendors, and records their insurance."""

    def __init__(self, database: Database, commands: CommandRunner, links: VendorLinks) -> None:
        self._database = database
        self._commands = commands
        self._links = links

    async def AddVendor(self, request: pb.AddVendorRequest, call: identity.Call) -> pb.AddVendorResponse:
        new = bodies.check(records.NewVendor, fields(request, *records.FIELDS))
        legal_name = new.legal_name or new.name

        async def work(command: Command) -> pb.AddVendorResponse:
            await lock_company_imports(
                command.connection, command.company_id
            )  # a batch of an import makes businesses too
            business_id = await q.business_named(command.connection, command.company_id, legal_name)
            if new.website is not None:
                await q.save_website(command.connection, command.company_id, business_id, new.website)
            is_active = new.is_active is not False
            try:
                vendor_id = await q.add_vendor(
                    command.connection,
                    company_id=command.company_id,
                    business_id=business_id,
                    nickname=rules.nickname(new.name, legal_name),
                    avg_rating=new.avg_rating,
                    rating_count=new.rating_count or 0,
                    is_active=is_active,
                    property_visibility=new.property_visibility or rules.DEFAULT_PROPERTY_VISIBILITY,
                    onboarded_at=command.now,
                    retired_at=None if is_active else command.now,
                    external_id=new.external_id,
                    source="staff",
                )
            except UniqueViolationError as fault:
                raise taken(fault, "vendor") from None
            made = await self._vendor(command, vendor_id)
            await command.audit("vendor.added", "vendor", vendor_id, {}, audited(made))
            await command.publish_references(references(command.company_id, made))
            return pb.AddVendorResponse(document=await self._document(command, vendor_id))

        return await self._commands.run(call, request, pb.AddVendorResponse, work)

    async def UpdateVendor(self, request: pb.UpdateVendorRequest, call: identity.Call) -> pb.UpdateVendorResponse:
        found = fields(request, *records.FIELDS)
        for name, value in found.items():
            if value is None and name not in records.CLEARABLE:
                raise invalid_request(f"clear may name {', '.join(sorted(records.CLEARABLE))} only.", "clear")
        change = bodies.check(records.VendorChange, found)
        given = {name: getattr(change, name) for name in found}

        async def work(command: Command) -> pb.UpdateVendorResponse:
            if "legal_name" in given or "website" in given:
                await lock_company_imports(command.connection, command.company_id)
            before = await self._vendor(command, request.vendor_id)
            after = before | given
            if after["is_active"] != before["is_active"]:
                after["retired_at"] = None if after["is_active"] else command.now
            if after["legal_name"] != before["legal_name"]:
                after["business_id"] = await q.business_named(
                    command.connection, command.company_id, after["legal_name"]
                )
            after["nickname"] = rules.nickname(after["name"], after["legal_name"])
            if "website" in given:
                await q.save_website(command.connection, command.company_id, after["business_id"], given["website"])
            await self._save(command, "vendor.updated", before, after)
            return pb.UpdateVendorResponse(document=await self._document(command, request.vendor_id))

        return await self._commands.run(call, request, pb.UpdateVendorResponse, work)

    async def HoldVendor(self, request: pb.HoldVendorRequest, call: identity.Call) -> pb.HoldVendorResponse:
        reason = bodies.check(records.Hold, fields(request, "reason")).reason

        async def work(command: Command) -> pb.HoldVendorResponse:
            before = await self._vendor(command, request.vendor_id)
            after = before | asdict(rules.hold(standing_of(before), reason))
            at = command.now if before["held_at"] is None else command.next_instant(before["held_at"])
            if not before["on_hold"]:
                after["held_at"] = at
            await self._save(command, "vendor.held", before, after)
            answer = await self._document(command, request.vendor_id)
            if not before["on_hold"]:
                await command.publish_event("vendor.hold", request.vendor_id, at, answer.json, HELD)
            return pb.HoldVendorResponse(document=answer)

        return await self._commands.run(call, request, pb.HoldVendorResponse, work)

    async def ReleaseVendor(self, request: pb.ReleaseVendorRequest, call: identity.Call) -> pb.ReleaseVendorResponse:
        async def work(command: Command) -> pb.ReleaseVendorResponse:
            before = await self._vendor(command, request.vendor_id)
            if before["on_hold"]:
                after = before | asdict(rules.release(standing_of(before)))
                await self._save(command, "vendor.released", before, after)
            return pb.ReleaseVendorResponse(document=await self._document(command, request.vendor_id))

        return await self._commands.run(call, request, pb.ReleaseVendorResponse, work)

    async def RecordInsurance(
        self, request: pb.RecordInsuranceRequest, call: identity.Call
    ) -> pb.RecordInsuranceResponse:
        expires_on = bodies.check(records.Insurance, fields(request, "expires_on")).expires_on

        async def work(command: Command) -> pb.RecordInsuranceResponse:
            before = await self._vendor(command, request.vendor_id)
            today = local_date(command.now, await timezone_of(command.connection, command.company_id))
            recorded = rules.record_insurance(standing_of(before), expires_on, today)
            await self._save(command, "vendor.insurance_recorded", before, before | asdict(recorded))
            return pb.RecordInsuranceResponse(document=await self._document(command, request.vendor_id))

        return await self._commands.run(call, request, pb.RecordInsuranceResponse, work)

    async def ListVendorHolds(
        self, _request: pb.ListVendorHoldsRequest, call: identity.Call
    ) -> pb.ListVendorHoldsResponse:
        rows = await q.vendors_on_hold(self._database, identity.company_id(call))
        return pb.ListVendorHoldsResponse(holds=map(_hold, rows))

    async def _vendor(self, command: Command, vendor_id: int) -> dict[str, Any]:
        """The vendor, which is locked. Raises Refusal 404."""
        found = await q.vendor_for_update(command.connection, command.company_id, vendor_id)
        if found is None:
            raise no_such("vendor")
        return found

    async def _save(self, command: Command, action: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Stores what differs and tells of it. A website is its business's, and is stored already."""
        if after == before:
            return
        vendor_id: int = before["id"]
        try:
            await q.save_vendor(command.connection, command.company_id, vendor_id, after)
        except UniqueViolationError as fault:
            raise taken(fault, "vendor") from None
        stored = await self._vendor(command, vendor_id)
        await command.audit(action, "vendor", vendor_id, audited(before), audited(stored))
        if any(stored[name] != before[name] for name in _REPLICATED):
            await command.publish_references(references(command.company_id, stored))

    async def _document(self, command: Command, vendor_id: int) -> Document:
        row = await q.vendor_row(command.connection, command.company_id, vendor_id)
        return document(self._links.vendor(row), row)


def _hold(row: Any) -> pb.VendorHold:
    held_at: datetime.datetime = row["held_at"]
    told = pb.VendorHold(vendor_id=row["vendor_id"], name=row["name"], reason=row["reason"])
    told.held_at.FromDatetime(held_at)
    if row["insurance_expires_on"] is not None:
        told.insurance_expires_on = str(row["insurance_expires_on"])
    return told
