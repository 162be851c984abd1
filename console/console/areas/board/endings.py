"""Forms that take something back: a notice, with the inspections that were planned for it, and a turn."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.board import residencies
from console.areas.board.pages import HERE, TURN, UNIT, render
from console.areas.board.rows import UnitResponse, left_over, open_tasks, row_of, stay_of
from console.kit.calls import Panel
from console.kit.context import PageContext
from console.kit.records import Record, record_of
from console.kit.texts import _
from makeready.catalog.v1 import inspection_commands_pb2, inspection_details_pb2, inspections_pb2
from makeready.occupancy.v1 import turn_board_pb2, turns_pb2

CANCEL_NOTICE = "occupancy.TurnBoardService/CancelNotice"
CANCEL_TURN = "occupancy.TurnBoardService/CancelTurn"
INSPECTIONS = "catalog.InspectionDetailsService/SearchInspections"
CANCEL_INSPECTION = "catalog.InspectionCommandsService/CancelInspection"
INSPECTIONS_MAX = 20


async def turn_of(context: PageContext) -> tuple[Record, UnitResponse]:
    """The turn, and its unit with its residents."""
    request = turns_pb2.GetTurnRequest(turn_id=context.number("turn_id"))
    turn = record_of((await context.rpcs.call(TURN, request)).document)
    response = await context.rpcs.call(UNIT, turn_board_pb2.GetBoardUnitRequest(unit_id=turn["unit"]["id"]))
    return turn, response


async def _ending(
    context: PageContext, template: str, turn: Record, response: UnitResponse, error: str = "", **more: object
) -> web.Response:
    stay, before, behind = stay_of(response, turn["entity_id"])
    return render(
        context, template, 422 if error else 200, here=HERE, turn=turn, unit=response.unit,
        residents=response.residents, error=error, party_name=residencies.party_name, stay=stay, before=before,
        behind=behind, row=row_of(response), to_do=open_tasks(response, turn["entity_id"]),
        left_over=left_over(response), **more,
    )  # fmt: skip


async def _scheduled(context: PageContext, turn: Record) -> Panel[Sequence[inspection_details_pb2.InspectionDetails]]:
    """The unit's inspections that are still to come, those of a move-out first."""
    request = inspection_details_pb2.SearchInspectionsRequest(
        unit_id=turn["unit"]["id"], status=[inspections_pb2.INSPECTION_STATUS_SCHEDULED], limit=INSPECTIONS_MAX
    )
    page = await context.rpcs.panel(INSPECTIONS, request)
    if not page.ok:
        return Panel(None, page.reason)
    return Panel(sorted(page.inspections, key=lambda inspection: not is_of_move_out(inspection)))


def is_of_move_out(inspection: inspection_details_pb2.InspectionDetails) -> bool:
    """Whether it is probably for the departure that is taken back: its kind or its title says so."""
    text = f"{inspection.inspection_type} {inspection.title}".lower().replace("-", " ")
    return "move out" in text or "moveout" in text


async def show_cancel_notice(context: PageContext) -> web.StreamResponse:
    turn, response = await turn_of(context)
    return await _cancel_notice(context, turn, response)


async def _cancel_notice(context: PageContext, turn: Record, response: UnitResponse, error: str = "") -> web.Response:
    inspections = await _scheduled(context, turn)
    marked = set(context.form.getall("inspection", []))
    return await _ending(context, "cancel_notice", turn, response, error, inspections=inspections, marked=marked)


async def cancel_notice(context: PageContext) -> web.StreamResponse:
    """Takes the notice back; then cancels the inspections that are ticked, each with a key of its own."""
    turn, response = await turn_of(context)
    if turn["status"] != "Active":
        return await _cancel_notice(
            context, turn, response, _("The turn is already %(status)s.") % {"status": turn["status"].lower()}
        )
    request = turn_board_pb2.CancelNoticeRequest(idempotency_key=context.form_token, unit_id=turn["unit"]["id"])
    try:
        await context.rpcs.call(CANCEL_NOTICE, request)
    except Refusal as refusal:
        return await _cancel_notice(context, turn, response, refusal.message)
    messages = [_("Notice cancelled: %(unit)s stays occupied.") % {"unit": turn["unit"]["name"]}]
    scheduled = await _scheduled(context, turn)
    marked = set(context.form.getall("inspection", []))
    messages += [
        await _call_off(context, inspection)
        for inspection in scheduled.value or ()
        if str(inspection.inspection_id) in marked
    ]
    if marked and not scheduled.ok:
        messages.append(_("Inspections are unavailable right now: cancel them on their own pages."))
    return context.redirect(f"/turns/{turn['entity_id']}", " ".join(messages))


async def _call_off(context: PageContext, inspection: inspection_details_pb2.InspectionDetails) -> str:
    """Cancels an inspection; returns a sentence about it."""
    name = inspection.title or _("Inspection %(id)s") % {"id": inspection.inspection_id}
    request = inspection_commands_pb2.CancelInspectionRequest(
        idempotency_key=f"{context.form_token}.{inspection.inspection_id}", inspection_id=inspection.inspection_id,
        reason=_("Notice cancelled: the resident stays."),
    )  # fmt: skip
    try:
        await context.rpcs.call(CANCEL_INSPECTION, request)
    except Refusal as refusal:
        return _("“%(name)s” was not cancelled: %(reason)s") % {"name": name, "reason": refusal.message}
    return _("Inspection “%(name)s” cancelled.") % {"name": name}


async def show_cancel_turn(context: PageContext) -> web.StreamResponse:
    return await _ending(context, "cancel_turn", *await turn_of(context))


async def cancel_turn(context: PageContext) -> web.StreamResponse:
    turn_id = context.number("turn_id")
    try:
        await context.rpcs.call(
            CANCEL_TURN, turn_board_pb2.CancelTurnRequest(idempotency_key=context.form_token, turn_id=turn_id)
        )
    except Refusal as refusal:
        if refusal.status == web.HTTPNotFound.status_code:
            raise
        return await _ending(context, "cancel_turn", *await turn_of(context), refusal.message)
    return context.redirect(f"/turns/{turn_id}", _("Turn %(id)s cancelled.") % {"id": turn_id})
