"""What people do with an inspection besides walking it: plan, edit, start, complete, cancel, and its list of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.inspections import fields
from console.areas.inspections.pages import GET, HERE, PATH, ROWS, SHOWS_ONE, SentForms, page
from console.kit import photos, pickers
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Form
from console.kit.sending import needs_confirmation, send
from console.kit.texts import _
from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.catalog.v1 import inspection_details_pb2 as details_pb
from makeready.catalog.v1 import inspection_templates_pb2 as templates_pb

SCHEDULE = "catalog.InspectionCommandsService/ScheduleInspection"
UPDATE = "catalog.InspectionCommandsService/UpdateInspection"
START = "catalog.InspectionCommandsService/StartInspection"
COMPLETE = "catalog.InspectionCommandsService/CompleteInspection"
CANCEL = "catalog.InspectionCommandsService/CancelInspection"
ADD_ROW = "catalog.InspectionCommandsService/AddInspectionRow"
REMOVE_ROW = "catalog.InspectionCommandsService/RemoveInspectionRow"
TEMPLATES = "catalog.InspectionTemplatesService/ListInspectionTemplates"
PLANS = (GET, ROWS, TEMPLATES)
SCHEDULES = (SCHEDULE, TEMPLATES)
_PRESET = ("property_id", "unit_id", "assignee_id", "scheduled_date", "title", "inspection_type", "template_id")
_AGAIN = ("property_id", "unit_id", "assignee_id", "title", "inspection_type", "compliance_type")


def path_of(inspection_id: int, suffix: str = "") -> str:
    return f"{PATH}/{inspection_id}{suffix}"


async def does(context: PageContext, form: Form, rpc: str) -> Any:
    """Reads the form and sends it. Returns the RPC's answer; None if the form is to be shown again."""
    return await send(context, rpc, form) if form.read(context.form) else None


# Plan and edit


async def show_new(context: PageContext) -> web.StreamResponse:
    """`?like=9` plans another one like an inspection, with its rows."""
    form = fields.new_form(await _templates(context))
    like = context.query.get("like", "")
    if like.isascii() and like.isdigit() and 0 < len(like) < 19:
        form = await _like(context, int(like), form)
    form.preset(context.query, *_PRESET)
    return await _new(context, form)


async def _templates(context: PageContext) -> Sequence[templates_pb.InspectionTemplate]:
    """None while they cannot be listed: the rows can be typed."""
    answer = await context.rpcs.panel(TEMPLATES, templates_pb.ListInspectionTemplatesRequest())
    return answer.templates if answer.ok else ()


async def _like(context: PageContext, inspection_id: int, form: Form) -> Form:
    response, rows = await together(
        context.rpcs.call(GET, details_pb.GetInspectionDetailsRequest(inspection_id=inspection_id)),
        context.rpcs.call(ROWS, pb.ListInspectionRowsRequest(inspection_id=inspection_id)),
    )
    inspection = response.inspection
    form.preset({name: str(getattr(inspection, name) or "") for name in _AGAIN}, *_AGAIN)
    form.values["is_compliance_inspection"] = "1" if inspection.is_compliance_inspection else ""
    form.values["row"] = "\n".join(row.label for row in rows.rows)
    return form


async def _new(context: PageContext, form: Form, status: int = 200) -> web.Response:
    return context.render("inspections/new.html", status, here=HERE, form=await pickers.fill(context, form))


async def schedule(context: PageContext) -> web.StreamResponse:
    form = fields.new_form(await _templates(context))
    scheduled = await does(context, form, SCHEDULE)
    if scheduled is None:
        return await _new(context, form, form.status)
    return context.redirect(path_of(scheduled.document.entity_id), _("Inspection scheduled."))


async def _inspection(context: PageContext) -> details_pb.InspectionDetails:
    request = details_pb.GetInspectionDetailsRequest(inspection_id=context.number("inspection_id"))
    inspection: details_pb.InspectionDetails = (await context.rpcs.call(GET, request)).inspection
    return inspection


async def show_edit(context: PageContext) -> web.StreamResponse:
    inspection = await _inspection(context)
    if inspection.HasField("cancelled_at"):
        return await _closed(context)
    return await _edit(context, inspection, fields.edit_form(inspection))


async def _closed(context: PageContext) -> web.Response:
    """What a page of actions answers once there is nothing to do any more."""
    return context.redirect(
        path_of(context.number("inspection_id")), _("This inspection is cancelled and can no longer be edited.")
    )


async def _edit(
    context: PageContext, inspection: details_pb.InspectionDetails, form: Form, status: int = 200
) -> web.Response:
    form = await pickers.fill(context, form, property_id=inspection.property_id)
    return context.render("inspections/edit.html", status, here=HERE, inspection=inspection, form=form)


async def edit(context: PageContext) -> web.StreamResponse:
    inspection = await _inspection(context)
    form = fields.edit_form(inspection)
    done = await does(context, form, UPDATE)
    if done is None:
        return await _edit(context, inspection, form, form.status)
    message = form.summary(_("Inspection updated."))
    if form.changed == {"scheduled_date"}:
        message = f"The inspection is planned for {form.message.scheduled_date} now."
    return context.redirect(path_of(inspection.inspection_id), message)


# Start, complete, cancel


async def _act(context: PageContext, rpc: str, request: Any, message: str, then: str = "") -> web.StreamResponse:
    """An action of one button. What refuses it stands above the inspection as it is now."""
    request.idempotency_key = context.form_token
    try:
        await context.rpcs.call(rpc, request)
    except Refusal as refusal:
        return await _refused(context, refusal)
    return context.redirect(then or path_of(request.inspection_id), message)


async def _refused(context: PageContext, refusal: Refusal) -> web.StreamResponse:
    if refusal.status == web.HTTPNotFound.status_code or needs_confirmation(refusal):
        raise refusal
    return await page(context, refusal.status, error=refusal.message)


async def start(context: PageContext) -> web.StreamResponse:
    inspection_id = context.number("inspection_id")
    request = pb.StartInspectionRequest(inspection_id=inspection_id)
    return await _act(context, START, request, _("Inspection started."), path_of(inspection_id, "/walk"))


async def complete(context: PageContext) -> web.StreamResponse:
    inspection_id = context.number("inspection_id")
    form = fields.complete_form(inspection_id, context.wall.now.date())
    if await does(context, form, COMPLETE) is None:
        return await page(context, form.status, sent=SentForms(completing=form))
    return context.redirect(path_of(inspection_id), _("Inspection completed."))


async def cancel(context: PageContext) -> web.StreamResponse:
    inspection_id = context.number("inspection_id")
    form = fields.cancel_form(inspection_id)
    if await does(context, form, CANCEL) is None:
        return await page(context, form.status, sent=SentForms(cancelling=form))
    return context.redirect(path_of(inspection_id), _("Inspection cancelled."))


# Rows


async def add_row(context: PageContext) -> web.StreamResponse:
    inspection_id = context.number("inspection_id")
    form = fields.row_form(inspection_id)
    done = await does(context, form, ADD_ROW)
    if done is None:
        return await page(context, form.status, sent=SentForms(adding=form))
    return context.redirect(
        f"{path_of(inspection_id)}#row-{done.row.row_id}",
        _("Item %(position)s added.") % {"position": done.row.position},
    )


async def remove_row(context: PageContext) -> web.StreamResponse:
    request = pb.RemoveInspectionRowRequest(
        inspection_id=context.number("inspection_id"), row_id=context.number("row_id")
    )
    request.idempotency_key = context.form_token
    try:
        removed = await context.rpcs.call(REMOVE_ROW, request)
    except Refusal as refusal:
        return await _refused(context, refusal)
    if removed.photo_url:
        await photos.delete(context, removed.photo_url)
    return context.redirect(f"{path_of(request.inspection_id)}#r", _("Item removed."))


STARTS = (START, *SHOWS_ONE)
COMPLETES = (COMPLETE, *SHOWS_ONE)
CANCELS = (CANCEL, *SHOWS_ONE)
ADDS_ROW = (ADD_ROW, *SHOWS_ONE)
REMOVES_ROW = (REMOVE_ROW, *SHOWS_ONE)
