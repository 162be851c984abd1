"""What commands on a turn share: they lock the unit first, and change the turn, then the unit's state."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from google.protobuf.message import Message

from chassis.auth import identity
from chassis.records.shapes import Renderer
from chassis.schedule import instants
from chassis.writes.commands import Command, CommandRunner
from chassis.writes.editing import RecordEditor, RecordWording, audited_columns
from makeready.common.v1.documents_pb2 import Document
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.turns import events, queries, rules
from svc_occupancy.turns.queries import NOTICE_NAMES, HeldUnit
from svc_occupancy.turns.records import Turn
from svc_occupancy.turns.rules import not_of_company
from svc_occupancy.turns.tables import StoredTurn
from svc_occupancy.units import queries as unit_queries
from svc_occupancy.units.events import references_of
from svc_occupancy.units.rules import StatusCause, UnitStatus, status_change

# The audited columns of a turn. They include the notice's, which the public record lacks.
_AUDITED = (
    *("status", "move_in_date", "move_out_date", "projected_ready_on", "occupancy_source", "external_id"),
    *NOTICE_NAMES,
)
_EVENTS = {"status": "unit_status", "schedule": "projected_ready_on"}

Reply = TypeVar("Reply", bound=Message)


class _ReplicaLacksError(Exception):
    """The replica lacks a unit that its owner may have."""


def turn_editor(turns: Renderer[Turn]) -> RecordEditor[Turn]:
    """Adds and changes turns. Its callers have locked the unit."""
    return RecordEditor(
        "turn",
        queries.EDITABLE_TURNS,
        queries.SERVED_TURN,
        turns,
        audit=audited_columns(_AUDITED),
        wording=RecordWording(missing=lambda: not_of_company("turn")),
    )


async def hold_unit_of(command: Command, turn_id: int) -> HeldUnit:
    """Locks a turn's unit; the caller reads the turn afterwards. Every writer locks a unit before its turns, so a
    transaction that holds a turn never waits for its unit. Raises Refusal 404."""
    turn = await queries.stored_turn(command.connection, command.company_id, turn_id)
    unit = None if turn is None else await queries.held_unit(command.connection, command.company_id, turn.unit_id)
    if unit is None:
        raise rules.not_of_company("turn")
    return unit


async def run_on_unit(
    commands: CommandRunner,
    fetcher: ReplicaFetcher,
    call: identity.Call,
    request: Any,
    reply: type[Reply],
    work: Callable[[Command, HeldUnit], Awaitable[Reply]],
) -> Reply:
    """Runs a command with the request's unit locked. If the replica lacks the unit, fetches it and tries once more."""
    is_fetched = False

    async def with_unit(command: Command) -> Reply:
        unit = await queries.held_unit(command.connection, command.company_id, request.unit_id)
        if unit is None:
            raise not_of_company("unit") if is_fetched else _ReplicaLacksError
        return await work(command, unit)

    try:
        return await commands.run(call, request, reply, with_unit)
    except _ReplicaLacksError:
        is_fetched = True
        await fetcher.fetch_unit(identity.company_id(call), request.unit_id)
        return await commands.run(call, request, reply, with_unit)


async def change_unit(
    command: Command,
    unit: HeldUnit,
    status: UnitStatus,
    ready_on: datetime.date | None,
    cause: StatusCause,
    turn_id: int | None,
) -> None:
    """Stores the unit's new state and publishes it to svc-catalog. ready_on: the active turn's date; turn_id: the
    active turn after the change."""
    state = unit.state.became(status, ready_on)
    if state is None:
        return
    changes = status_change(
        unit.state,
        state,
        at=command.next_instant(command.now),
        cause=cause,
        actor=command.call.identity.actor,
        turn_id=turn_id,
    )
    await unit_queries.save_states(command.connection, [state], changes)
    await command.publish_references(references_of([state]))
    if status != unit.state.unit_status:
        before, after = {"unit_status": unit.state.unit_status}, {"unit_status": status}
        await command.audit("unit.status_changed", "unit", unit.id, before, after)


async def departure_dealt_with(
    command: Command, unit: HeldUnit, turn: StoredTurn, status: UnitStatus
) -> datetime.date | None:
    """`vacated_on` of the unit's current turn, once staff have set this status."""
    is_swept = rules.is_over(turn.move_out_date, instants.overdue_before(command.now, unit.timezone or "UTC"))
    if not is_swept and turn.vacated_on is not None:
        # An operator may have swept ahead of the clock.
        is_swept = await unit_queries.is_vacated_by_sweep(command.connection, command.company_id, unit.id, turn.id)
    return rules.vacated_on(turn.vacated_on, turn.move_out_date, status, is_swept=is_swept)


async def publish_change(
    command: Command,
    turn_id: int,
    at: datetime.datetime,
    document: Document,
    aspect: Literal["status", "schedule"],
    before: object,
    after: object,
) -> None:
    """Publishes the event of a turn. aspect: `status` of its unit, or its `schedule`."""
    change = events.change(_EVENTS[aspect], before, after)
    await command.publish_event(f"turn.{aspect}_changed", turn_id, at, document.json, change)
