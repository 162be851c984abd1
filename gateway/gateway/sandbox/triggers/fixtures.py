"""The records that a trigger makes where its caller names none.

The property and its unit are made once in a company, and found again by their external_id.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from google.protobuf.message import Message

from chassis.refusals import Refusal, idempotency_in_progress
from gateway.sandbox.triggers.trigger import Trigger
from makeready.catalog.v1 import place_commands_pb2, places_pb2, vendor_commands_pb2
from makeready.occupancy.v1 import residency_commands_pb2, turn_board_pb2
from makeready.tickets.v1 import ticket_commands_pb2

PROPERTY, UNIT = "sandbox-triggers", "sandbox-triggers-unit"
"""The external_id of the property, and that of its unit."""

PAUSE_SECONDS = 0.05
_IN_PROGRESS = idempotency_in_progress().code


async def property_id(trigger: Trigger) -> int:
    """The property that triggers have in the company."""

    async def decide() -> int:
        look_up = places_pb2.BatchGetReferencesRequest(company_id=trigger.company_id, property_external_ids=[PROPERTY])
        addition = place_commands_pb2.AddPropertyRequest(
            name="Sandbox triggers", address="Made by POST /sandbox/triggers", external_id=PROPERTY
        )
        return await _found_or_added(trigger, look_up, "properties", addition)

    decided: int = await trigger.decided("property_id", decide)
    return decided


async def unit_id(trigger: Trigger) -> int:
    """The unit of that property."""
    of_property = await property_id(trigger)

    async def decide() -> int:
        look_up = places_pb2.BatchGetReferencesRequest(company_id=trigger.company_id, unit_external_ids=[UNIT])
        addition = place_commands_pb2.AddUnitRequest(
            property_id=of_property, name="Sandbox triggers 1", unit_number="1", external_id=UNIT
        )
        return await _found_or_added(trigger, look_up, "units", addition)

    decided: int = await trigger.decided("unit_id", decide)
    return decided


async def _found_or_added(trigger: Trigger, look_up: Message, kind: str, addition: Any) -> int:
    """The record that a look-up finds, or that is added. Other triggers may add it at the same time."""
    while True:
        rows = getattr((await trigger.reference("svc-catalog", look_up)).references, kind)
        entity_id: int
        if rows:
            entity_id = rows[0].id
            return entity_id
        try:
            added = await trigger.command_with_key(addition.external_id, "svc-catalog", addition)
        except Refusal as refusal:
            if refusal.field != "external_id" and refusal.code != _IN_PROGRESS:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            entity_id = added.document.entity_id
            return entity_id


async def ticket_id(trigger: Trigger, in_property: int | None = None) -> int:
    """A new ticket of a resident; in the unit of the triggers, unless a property is named."""
    request = ticket_commands_pb2.OpenTicketRequest(
        property_id=await property_id(trigger) if in_property is None else in_property,
        unit_id=await unit_id(trigger) if in_property is None else None,
        title="Sandbox: the kitchen tap drips",
        category="Plumbing",
        by=ticket_commands_pb2.OPENER_RESIDENT,
    )
    opened = await trigger.command("open ticket", "svc-tickets", request)
    entity_id: int = opened.document.entity_id
    return entity_id


async def vendor_id(trigger: Trigger) -> int:
    """A new vendor, which is insured no more."""
    request = vendor_commands_pb2.AddVendorRequest(name="Sandbox vendor")
    added = await trigger.command("add vendor", "svc-catalog", request)
    entity_id: int = added.document.entity_id
    lapsed = vendor_commands_pb2.RecordInsuranceRequest(vendor_id=entity_id, expires_on=await trigger.day_over())
    await trigger.command("record insurance", "svc-catalog", lapsed)
    return entity_id


class FixtureTurn(NamedTuple):
    """The current turn of the triggers' unit."""

    turn_id: int
    has_begun_now: bool
    """Whether this trigger has moved its resident in, which fired turn.status_changed."""


async def turn(trigger: Trigger) -> FixtureTurn:
    """The turn of the resident of the triggers' unit; where none is there, one moves in."""
    if turn_id := await _current_turn_id(trigger, "turn_id"):
        return FixtureTurn(turn_id, has_begun_now=False)
    day = await trigger.day_over()
    addition = residency_commands_pb2.AddMoveInRequest(
        unit_id=await unit_id(trigger),
        move_in_date=day,
        lease_start_date=day,
        parties=[residency_commands_pb2.NewParty(first_name="Sandbox", last_name="Resident", role="leaseholder")],
    )
    try:
        moved_in = await trigger.command("move in", "svc-occupancy", addition)
    except Refusal as refusal:
        # Another trigger may have moved somebody in at the same time.
        turn_id = await _current_turn_id(trigger, "turn_id_of_another") if refusal.status == 422 else 0
        if not turn_id:
            raise
        return FixtureTurn(turn_id, has_begun_now=False)
    return FixtureTurn(moved_in.document.entity_id, has_begun_now=True)


async def _current_turn_id(trigger: Trigger, decision: str) -> int:
    """The current turn of the triggers' unit when it was decided; 0 if it had none."""
    unit = await unit_id(trigger)

    async def decide() -> int:
        try:
            board = await trigger.details("svc-occupancy", turn_board_pb2.GetBoardUnitRequest(unit_id=unit))
        except Refusal as refusal:
            if refusal.status != 404:
                raise
            return 0  # svc-occupancy has not heard of the unit yet
        turn_id: int = board.unit.turn_id
        return turn_id

    decided: int = await trigger.decided(decision, decide)
    return decided
