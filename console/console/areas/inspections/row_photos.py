"""The photo of an inspection's row: added while one walks, shown small, and removed with the row."""

from __future__ import annotations

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.inspections.actions import path_of
from console.areas.inspections.pages import ROWS, page
from console.kit import photos
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.sending import needs_confirmation
from console.kit.texts import _
from makeready.catalog.v1 import inspection_commands_pb2 as pb

SET = "catalog.InspectionCommandsService/SetInspectionRowPhoto"


async def add(context: PageContext) -> web.StreamResponse:
    """Stores the first photo of the form. The one that the row had before is deleted once the row has this one; the
    same form sent again after a break goes on from there."""
    inspection_id, row_id = context.number("inspection_id"), context.number("row_id")
    # Before a byte is read.
    rows = (await context.rpcs.call(ROWS, pb.ListInspectionRowsRequest(inspection_id=inspection_id))).rows
    if all(row.row_id != row_id for row in rows):
        raise web.HTTPNotFound
    async for taken in photos.take(context):
        if taken.refused:
            return await _refused(context, f"{taken.name}: {taken.refused}")
        return await _set(context, taken.address, is_new=taken.is_new)
    return await _refused(context, _("Choose a photo."))


async def remove(context: PageContext) -> web.StreamResponse:
    return await _set(context, "")


async def _set(context: PageContext, address: str, *, is_new: bool = False) -> web.StreamResponse:
    inspection_id, row_id = context.number("inspection_id"), context.number("row_id")
    request = pb.SetInspectionRowPhotoRequest(
        idempotency_key=context.form_token, inspection_id=inspection_id, row_id=row_id, photo_url=address or None
    )
    try:
        done = await context.rpcs.call(SET, request)
    except Refusal as refusal:
        if is_new:
            await photos.delete(context, address)
        if refusal.status == web.HTTPNotFound.status_code or needs_confirmation(refusal):
            raise
        return await _refused(context, refusal.message)
    if done.previous_photo_url and done.previous_photo_url != address:
        await photos.delete(context, done.previous_photo_url)
    path = with_query(path_of(inspection_id, "/walk"), {"row": row_id})
    return context.redirect(path, _("Photo added.") if address else _("Photo removed."))


async def _refused(context: PageContext, message: str) -> web.StreamResponse:
    return await page(context, 422, error=message)
