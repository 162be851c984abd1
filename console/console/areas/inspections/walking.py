"""Walking an inspection: one row a screen, made for a phone. The next row that has no result follows by itself."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.inspections import fields
from console.areas.inspections.actions import does, path_of
from console.areas.inspections.pages import GET, HERE, NAMES, OPEN, ROWS, SHOWS_ONE, page, row_of
from console.kit import names, photos, pickers
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.filters import number
from console.kit.forms import Form
from console.kit.links import with_query
from console.kit.sending import needs_confirmation
from console.kit.texts import _
from makeready.catalog.v1 import inspection_commands_pb2 as pb
from makeready.catalog.v1 import inspection_details_pb2 as details_pb

PASSING = "catalog.InspectionCommandsService/PassInspectionRow"
FAILING = "catalog.InspectionCommandsService/FailInspectionRow"
WALKS = (GET, ROWS, NAMES)
PASSES = (PASSING, *SHOWS_ONE)
FAILS = (FAILING, *SHOWS_ONE)


def _path(inspection_id: int, row_id: int | None) -> str:
    return with_query(path_of(inspection_id, "/walk"), {"row": row_id})


def next_row(rows: Sequence[pb.InspectionRow], row_id: int) -> int | None:
    """The next row without a result after this one, round the list; None if all have one."""
    here = next((index for index, row in enumerate(rows) if row.row_id == row_id), -1)
    ahead = [*rows[here + 1 :], *rows[: max(here, 0)]]
    return next((row.row_id for row in ahead if not row.result), None)


async def show_walk(context: PageContext) -> web.StreamResponse:
    """`?row=4` shows that row; else the first without a result, and after the last one what was found."""
    inspection, rows = await _inspection_and_rows(context)
    if not _is_open(inspection) or not rows:
        return context.redirect(path_of(inspection.inspection_id))
    row_id = number(context.query.get("row", "")) or next_row(rows, 0)
    item = next((row for row in rows if row.row_id == row_id), None)
    if item is None:
        return await _end(context, inspection, rows)
    return await _row(context, inspection, rows, item)


async def _inspection_and_rows(context: PageContext) -> tuple[details_pb.InspectionDetails, Sequence[pb.InspectionRow]]:
    inspection_id = context.number("inspection_id")
    response, rows = await together(
        context.rpcs.call(GET, details_pb.GetInspectionDetailsRequest(inspection_id=inspection_id)),
        context.rpcs.call(ROWS, pb.ListInspectionRowsRequest(inspection_id=inspection_id)),
    )
    return response.inspection, rows.rows


def _is_open(inspection: details_pb.InspectionDetails) -> bool:
    return inspection.status in OPEN and not inspection.HasField("cancelled_at")


async def _row(
    context: PageContext,
    inspection: details_pb.InspectionDetails,
    rows: Sequence[pb.InspectionRow],
    item: pb.InspectionRow,
    form: Form | None = None,
    status: int = 200,
    error: str = "",
) -> web.Response:
    """One row. form: that of a failure which was refused; error: why a pass was."""
    row_form = form or fields.fail_form(inspection.inspection_id, item)
    index = next(index for index, row in enumerate(rows) if row.row_id == item.row_id)
    row_form, by = await together(
        pickers.fill(
            context,
            row_form,
            property_id=inspection.property_id,
            unit_id=inspection.unit_id if inspection.unit_id else None,
        ),
        names.names_of(context.rpcs, [item.inspected_by]),
    )
    return context.render(
        "inspections/walk.html", status, here=HERE, row=row_of(inspection, context.wall.now.date()), item=item,
        rows=rows, form=row_form, is_failing=form is not None, error=error, names=by, looked_at=_looked_at(rows),
        before=_path(inspection.inspection_id, rows[index - 1].row_id) if index else "",
        after=_path(inspection.inspection_id, rows[index + 1].row_id) if index + 1 < len(rows) else "",
        seen=item.result or fields.NOT_LOOKED_AT, shown_photo=photos.shown(context.site.url, item.photo_url),
    )  # fmt: skip


def _looked_at(rows: Sequence[pb.InspectionRow]) -> int:
    return sum(1 for row in rows if row.result)


async def _end(
    context: PageContext, inspection: details_pb.InspectionDetails, rows: Sequence[pb.InspectionRow]
) -> web.Response:
    today = context.wall.now.date()
    failed = [row for row in rows if row.result == "failed"]
    return context.render(
        "inspections/walked.html", here=HERE, row=row_of(inspection, today), rows=rows, failed=failed,
        remaining=len(rows) - _looked_at(rows), form=fields.complete_form(inspection.inspection_id, today),
        walk=path_of(inspection.inspection_id, "/walk"),
    )  # fmt: skip


async def pass_row(context: PageContext) -> web.StreamResponse:
    request = pb.PassInspectionRowRequest(
        inspection_id=context.number("inspection_id"),
        row_id=context.number("row_id"),
        idempotency_key=context.form_token,
    )
    if seen := context.form.get("seen", ""):
        request.seen_result = seen[:20]
    try:
        done = await context.rpcs.call(PASSING, request)
    except Refusal as refusal:
        return await _refused(context, refusal)
    return await _next(context, done.row, _("“%(item)s” passed."))


async def fail_row(context: PageContext) -> web.StreamResponse:
    inspection_id, row_id = context.number("inspection_id"), context.number("row_id")
    _inspection, rows = await _inspection_and_rows(context)
    item = next((row for row in rows if row.row_id == row_id), None)
    if item is None:
        raise web.HTTPNotFound
    form = fields.fail_form(inspection_id, item)
    if seen := context.form.get("seen", ""):
        form.message.seen_result = seen[:20]
    done = await does(context, form, FAILING)
    if done is None:
        inspection, rows = await _inspection_and_rows(context)  # as it is now: somebody else may have recorded a result
        item = next((row for row in rows if row.row_id == row_id), None)
        if item is None or not _is_open(inspection):
            return await page(context, form.status, error=form.fault)
        return await _row(context, inspection, rows, item, form, form.status)
    message = _("“%(item)s” failed.") if item.HasField("failed_at") else _("“%(item)s” failed. A ticket was opened.")
    return await _next(context, done.row, message)


async def _next(context: PageContext, done: pb.InspectionRow, message: str) -> web.StreamResponse:
    inspection_id = context.number("inspection_id")
    rows = (await context.rpcs.call(ROWS, pb.ListInspectionRowsRequest(inspection_id=inspection_id))).rows
    return context.redirect(_path(inspection_id, next_row(rows, done.row_id)), message % {"item": done.label})


async def _refused(context: PageContext, refusal: Refusal) -> web.StreamResponse:
    """The row as it is now, with what refused the pass."""
    if refusal.status == web.HTTPNotFound.status_code or needs_confirmation(refusal):
        raise refusal
    inspection, rows = await _inspection_and_rows(context)
    item = next((row for row in rows if row.row_id == context.number("row_id")), None)
    if item is None or not _is_open(inspection):
        return await page(context, refusal.status, error=refusal.message)
    return await _row(context, inspection, rows, item, None, refusal.status, refusal.message)
