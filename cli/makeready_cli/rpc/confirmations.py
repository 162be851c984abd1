"""What an act says to people when it is done: one line. `--json` prints the response instead.

By the RPC's name. `{name}` is a field of the response, `{unit[name]}` of a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from google.protobuf.descriptor import MethodDescriptor

from makeready_cli.errors import printable
from makeready_cli.output import Record


def _assigned(ticket: Record) -> str:
    people = [person["name"] for person in (ticket["assignee"], ticket["assigned_vendor"]) if person]
    return f"Ticket {ticket['entity_id']} is assigned to {' and '.join(people) or 'nobody'}."


def _scheduled(inspection: Record) -> str:
    day = inspection["scheduled_date"]
    return f'Inspection {inspection["entity_id"]}, "{inspection["title"]}", is planned for {day}.'


def _completed(task: Record) -> str:
    following = task["next_pm_task_id"]
    after = f" Its successor is maintenance task {following}." if following else ""
    return f'Maintenance task {task["pm_task_id"]}, "{task["task_name"]}", is completed.{after}'


def _ordered(answer: Record) -> str:
    """A response of OrderTasks."""
    names = ", ".join(f'"{task["task_type"]}"' for task in answer["tasks"] if task["status"] == "Open")
    return f"The open tasks are in this order: {names}." if names else "The turn has no open task."


def _applied(applied: Record) -> str:
    """A response of ApplyTurnTemplate."""
    added = ", ".join(f'"{task["task_type"]}"' for task in applied["tasks"])
    left_out = "".join(f' "{name}" was there already.' for name in applied["present"])
    on_hold = "".join(f" {name} is on hold, so its tasks have no vendor." for name in applied["vendors_on_hold"])
    return f"{f'Added: {added}.' if added else 'No task is added.'}{left_out}{on_hold}"


def _ready(turn: Record) -> str:
    day = turn["projected_ready_on"]
    ready = f"its unit will be ready on {day}" if day else "it is unknown when its unit will be ready"
    return f"Turn {turn['entity_id']}: {ready}."


SENTENCES: Mapping[str, str | Callable[[Record], str]] = {
    "OpenTicket": 'Ticket {entity_id}, "{title}", is open.',
    "UpdateTicket": 'Ticket {entity_id}, "{title}", is changed.',
    "AssignTicket": _assigned,
    "CommentOnTicket": 'The comment is on ticket {entity_id}, "{title}".',
    "AddTicketPhoto": 'The photo is on ticket {entity_id}, "{title}".',
    "RemoveTicketPhoto": 'The photo is removed from ticket {entity_id}, "{title}".',
    "SetTicketStatus": 'Ticket {entity_id}, "{title}", is {status}.',
    "ScheduleInspection": _scheduled,
    "UpdateInspection": "Inspection {entity_id} is changed.",
    "StartInspection": "Inspection {entity_id} is {status}.",
    "PassInspectionRow": 'Row {row_id}, "{label}", has passed.',
    "FailInspectionRow": 'Row {row_id}, "{label}", has failed. A ticket is opened for it.',
    "AddInspectionTemplate": 'Template {template_id}, "{name}", is added.',
    "UpdateInspectionTemplate": 'Template {template_id}, "{name}", is changed.',
    "RemoveInspectionTemplate": 'Template {template_id}, "{name}", is removed.',
    "CancelInspection": "Inspection {inspection_id} is cancelled.",
    "AddInspectionRow": 'Row {row_id}, "{label}", is added as number {position}.',
    "RemoveInspectionRow": "The row is removed.",
    "SetInspectionRowPhoto": 'The photo of row {row[row_id]}, "{row[label]}", is set or removed.',
    "CompleteInspection": "Inspection {entity_id} is {status}: {result}.",
    "AddProperty": 'Property {entity_id}, "{name}", is added.',
    "UpdateProperty": 'Property {entity_id}, "{name}", is changed.',
    "AddUnit": 'Unit {entity_id}, "{name}", is added to {property[name]}.',
    "UpdateUnit": 'Unit {entity_id}, "{name}", is changed.',
    "AddAsset": 'Asset {entity_id}, "{name}", is added to {property[name]}.',
    "UpdateAsset": 'Asset {entity_id}, "{name}", is changed.',
    "AddMeter": 'Meter {entity_id}, "{name}", is added to {property[name]}.',
    "UpdateMeter": 'Meter {entity_id}, "{name}", is changed.',
    "RecordReading": "Reading {entity_id} is recorded for meter {meter_id}.",
    "CorrectReading": "Reading {entity_id} of meter {meter_id} is corrected.",
    "AddVendor": 'Vendor {entity_id}, "{name}", is added.',
    "UpdateVendor": 'Vendor {entity_id}, "{name}", is changed.',
    "HoldVendor": 'Vendor {entity_id}, "{name}", is on hold.',
    "ReleaseVendor": 'Vendor {entity_id}, "{name}", is not on hold any more.',
    "RecordInsurance": 'The insurance of vendor {entity_id}, "{name}", is recorded.',
    "ComposeNotice": 'Notice {notice_id}, "{subject}", is a draft.',
    "UpdateNotice": 'Notice {notice_id}, "{subject}", is changed.',
    "DiscardNotice": 'Notice {notice_id}, "{subject}", is discarded.',
    "PublishNotice": 'Notice {notice_id}, "{subject}", is published since {published_at}.',
    "SetUnitStatus": 'Unit {unit_id}, "{name}", is {unit_status}.',
    "ScheduleTurn": _ready,
    "CancelNotice": "Turn {entity_id}: the notice is taken back, {unit[name]} stays occupied.",
    "AddNotice": "Turn {entity_id}: the resident of {unit[name]} leaves on {move_out_date}.",
    "AddMoveIn": "Turn {entity_id}: the move-in to {unit[name]} on {move_in_date} is recorded.",
    "ChangeMoveIn": "Turn {entity_id}: the move-in to {unit[name]} is on {move_in_date} now.",
    "CancelTurn": "Turn {entity_id} of {unit[name]} is cancelled.",
    "AddTask": 'Task {task_id}, "{task_type}", is added to turn {turn_id}.',
    "UpdateTask": 'Task {task_id}, "{task_type}", is changed.',
    "CompleteTask": 'Task {task_id}, "{task_type}", is completed.',
    "CancelTask": 'Task {task_id}, "{task_type}", is cancelled.',
    "OrderTasks": _ordered,
    "ApplyTurnTemplate": _applied,
    "AddTurnTemplate": 'Template {template_id}, "{name}", is added.',
    "UpdateTurnTemplate": 'Template {template_id}, "{name}", is changed.',
    "RemoveTurnTemplate": 'Template {template_id}, "{name}", is removed.',
    "AddPmTask": 'Maintenance task {pm_task_id}, "{task_name}", is due on {due_date}.',
    "UpdatePmTask": 'Maintenance task {pm_task_id}, "{task_name}", is changed.',
    "CompletePmTask": _completed,
    "CancelPmTask": 'Maintenance task {pm_task_id}, "{task_name}", is cancelled.',
    "AddStaff": 'Member of staff {staff_id}, "{name}", is added.',
    "UpdateStaff": 'Member of staff {staff_id}, "{name}", is changed.',
    "EndStaff": 'Member of staff {staff_id}, "{name}", has ended, and so have their sessions.',
    "ReinstateStaff": 'Member of staff {staff_id}, "{name}", is back.',
    "UpdateAdministrator": 'Administrator {administrator_id}, "{name}", is changed.',
    "DeactivateAdministrator": 'Administrator {administrator_id}, "{name}", has ended, and so have their sessions.',
    "ReactivateAdministrator": 'Administrator {administrator_id}, "{name}", can sign in again.',
    "RemovePasskey": "The passkey is removed.",
    "RemoveTotp": "The authenticator app is removed.",
    "EndSession": "Sessions ended: {sessions_ended}.",
    "UpdateSubscription": "Subscription {sub_id} is changed: {destination_url}.",
}


def confirmation(rpc: MethodDescriptor, record: Record) -> str | None:
    """The line for people; None for an RPC without one."""
    sentence = SENTENCES.get(rpc.name)
    if sentence is None:
        return None
    return printable(sentence(record) if callable(sentence) else sentence.format_map(record))
