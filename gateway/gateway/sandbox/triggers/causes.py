"""The cause of each event: the commands that people give for it, and the time that passes.

What a cause depends on, such as a record's present status or the day, is decided once: a repeat of the trigger reads
the decision.
"""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping

from gateway.sandbox.triggers import fixtures, rules
from gateway.sandbox.triggers.rules import EventKey
from gateway.sandbox.triggers.trigger import DAY, Caused, Trigger
from makeready.catalog.v1 import (
    inspection_commands_pb2,
    inspection_details_pb2,
    inspections_pb2,
    notices_pb2,
    vendor_commands_pb2,
    vendor_details_pb2,
)
from makeready.occupancy.v1 import residency_commands_pb2, turn_board_pb2, turn_tasks_pb2, turns_pb2
from makeready.tickets.v1 import pm_tasks_pb2, ticket_commands_pb2, tickets_pb2

_NOTICE_DAYS, _READY_DAYS = 30, 7


async def _ticket_created(trigger: Trigger) -> Caused:
    return Caused("ticket", await fixtures.ticket_id(trigger, trigger.record_id))


async def _ticket_status_changed(trigger: Trigger) -> Caused:
    ticket_id = await fixtures.ticket_id(trigger) if trigger.record_id is None else trigger.record_id

    async def decide() -> str:
        ticket = await trigger.record("svc-tickets", tickets_pb2.GetTicketRequest(ticket_id=ticket_id))
        return "On Hold" if ticket["status"] == "In Progress" else "In Progress"

    to: str = await trigger.decided("status", decide)
    status = tickets_pb2.TICKET_STATUS_ON_HOLD if to == "On Hold" else tickets_pb2.TICKET_STATUS_IN_PROGRESS
    request = ticket_commands_pb2.SetTicketStatusRequest(ticket_id=ticket_id, status=status)
    await trigger.command("set status", "svc-tickets", request)
    return Caused("ticket", ticket_id, to)


async def _ticket_stale(trigger: Trigger) -> Caused:
    ticket_id = await fixtures.ticket_id(trigger) if trigger.record_id is None else trigger.record_id
    request = ticket_commands_pb2.PassStaleThresholdRequest(ticket_id=ticket_id)
    await trigger.as_gateway("pass threshold", "svc-tickets", request)
    return Caused("ticket", ticket_id, due_in="svc-tickets")


async def _turn_status_changed(trigger: Trigger) -> Caused:
    """The unit goes down, or comes back."""
    turn_id = trigger.record_id
    if turn_id is None:
        turn = await fixtures.turn(trigger)
        if turn.has_begun_now:
            return Caused("turn", turn.turn_id, "Occupied")
        turn_id = turn.turn_id

    async def decide() -> tuple[int, str]:
        turn = await trigger.record("svc-occupancy", turns_pb2.GetTurnRequest(turn_id=turn_id))
        request = turn_board_pb2.GetBoardUnitRequest(unit_id=turn["unit"]["id"])
        unit = (await trigger.details("svc-occupancy", request)).unit
        if unit.turn_id != turn_id:
            raise rules.not_current()
        back = "Vacant Not Ready" if unit.HasField("move_out_date") else "Occupied"
        return unit.unit_id, back if unit.unit_status == "Down" else "Down"

    unit_id, to = await trigger.decided("unit_status", decide)
    request = turn_board_pb2.SetUnitStatusRequest(unit_id=unit_id, unit_status=to)
    await trigger.command("set unit status", "svc-occupancy", request)
    return Caused("turn", turn_id, to)


async def _turn_schedule_changed(trigger: Trigger) -> Caused:
    turn_id = await _departing_turn_id(trigger) if trigger.record_id is None else trigger.record_id

    async def decide() -> str:
        turn = await trigger.record("svc-occupancy", turns_pb2.GetTurnRequest(turn_id=turn_id))
        if turn["move_out_date"] is None:
            raise rules.no_departure()
        if turn["projected_ready_on"] is not None:
            return (datetime.date.fromisoformat(turn["projected_ready_on"]) + DAY).isoformat()
        return (datetime.date.fromisoformat(turn["move_out_date"]) + _READY_DAYS * DAY).isoformat()

    to: str = await trigger.decided("projected_ready_on", decide)
    request = turn_board_pb2.ScheduleTurnRequest(turn_id=turn_id, projected_ready_on=to)
    await trigger.command("schedule", "svc-occupancy", request)
    return Caused("turn", turn_id, to)


async def _departing_turn_id(trigger: Trigger) -> int:
    """The turn of the triggers' unit, after its resident has given notice."""
    turn_id = (await fixtures.turn(trigger)).turn_id

    async def decide() -> str:
        turn = await trigger.record("svc-occupancy", turns_pb2.GetTurnRequest(turn_id=turn_id))
        return "" if turn["move_out_date"] else (trigger.today() + _NOTICE_DAYS * DAY).isoformat()

    if date := await trigger.decided("move_out_date", decide):
        unit_id = await fixtures.unit_id(trigger)
        request = residency_commands_pb2.AddNoticeRequest(unit_id=unit_id, move_out_date=date)
        await trigger.command("give notice", "svc-occupancy", request)
    return turn_id


async def _turn_task_stale(trigger: Trigger) -> Caused:
    turn_id = (await fixtures.turn(trigger)).turn_id if trigger.record_id is None else trigger.record_id
    request = turn_tasks_pb2.AddTaskRequest(
        turn_id=turn_id, task_type="Sandbox: paint the walls", scheduled_date=await trigger.day_over()
    )
    task = (await trigger.command("add task", "svc-occupancy", request)).task
    return Caused("turn", task.task_id, due_in="svc-occupancy")


async def _vendor_hold(trigger: Trigger) -> Caused:
    if trigger.record_id is None:
        return Caused("vendor", await fixtures.vendor_id(trigger), due_in="svc-catalog")

    vendor_id = trigger.record_id

    async def decide() -> None:
        request = vendor_details_pb2.GetVendorDetailsRequest(vendor_id=vendor_id)
        if (await trigger.details("svc-catalog", request)).vendor.on_hold:
            raise rules.already_on_hold()

    await trigger.decided("is_free", decide)
    request = vendor_commands_pb2.HoldVendorRequest(vendor_id=vendor_id, reason="Sandbox: a trigger")
    await trigger.command("hold", "svc-catalog", request)
    return Caused("vendor", vendor_id)


async def _inspection_stale(trigger: Trigger) -> Caused:
    day = await trigger.day_over()
    if trigger.record_id is None:
        scheduled = inspection_commands_pb2.ScheduleInspectionRequest(
            property_id=await fixtures.property_id(trigger), title="Sandbox: smoke detectors", scheduled_date=day
        )
        inspection = (await trigger.command("schedule", "svc-catalog", scheduled)).document
        return Caused("inspection", inspection.entity_id, due_in="svc-catalog")

    inspection_id = trigger.record_id

    async def decide() -> bool:
        """Whether its day lies ahead, so that it must be moved."""
        request = inspection_details_pb2.GetInspectionDetailsRequest(inspection_id=inspection_id)
        inspection = (await trigger.details("svc-catalog", request)).inspection
        if inspection.HasField("cancelled_at"):
            raise trigger.not_visible()
        if inspection.status == inspections_pb2.INSPECTION_STATUS_COMPLETED:
            raise rules.inspection_completed()
        if inspection.HasField("stale_announced_at"):
            raise rules.already_stale()
        return not inspection.scheduled_date or inspection.scheduled_date > day

    if await trigger.decided("is_ahead", decide):
        moved = inspection_commands_pb2.UpdateInspectionRequest(inspection_id=inspection_id, scheduled_date=day)
        await trigger.command("move inspection", "svc-catalog", moved)
    return Caused("inspection", inspection_id, due_in="svc-catalog")


async def _notice_published(trigger: Trigger) -> Caused:
    property_id = await fixtures.property_id(trigger) if trigger.record_id is None else trigger.record_id
    composed = notices_pb2.ComposeNoticeRequest(
        property_id=property_id,
        subject="Sandbox: the water is off",
        body="The water is off while the main valve is replaced.",
        when="Tomorrow from 9 to 11",
    )
    notice_id = (await trigger.command("compose", "svc-catalog", composed)).notice.notice_id
    await trigger.command("publish", "svc-catalog", notices_pb2.PublishNoticeRequest(notice_id=notice_id))
    return Caused("notice", notice_id)


async def _pm_stale(trigger: Trigger) -> Caused:
    property_id = await fixtures.property_id(trigger) if trigger.record_id is None else trigger.record_id
    request = pm_tasks_pb2.AddPmTaskRequest(
        property_id=property_id, task_name="Sandbox: replace the filters", due_date=await trigger.day_over()
    )
    task = (await trigger.command("add task", "svc-tickets", request)).task
    return Caused("pm_task", task.pm_task_id, due_in="svc-tickets")


CAUSES: Mapping[EventKey, Callable[[Trigger], Awaitable[Caused]]] = {
    "ticket.created": _ticket_created,
    "ticket.status_changed": _ticket_status_changed,
    "turn.status_changed": _turn_status_changed,
    "turn.schedule_changed": _turn_schedule_changed,
    "vendor.hold": _vendor_hold,
    "ticket.stale": _ticket_stale,
    "inspection.stale": _inspection_stale,
    "property.notice.published": _notice_published,
    "turn.task.stale": _turn_task_stale,
    "pm.stale": _pm_stale,
}
