"""Sending a form's request, once however often the form is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from chassis.refusals import Refusal
from console.kit.context import PageContext
from console.kit.forms import Form


def needs_confirmation(refusal: Refusal) -> bool:
    """Whether the action is refused only until its person confirms who they are."""
    return refusal.code == "step_up_required"


async def send(context: PageContext, rpc: str, form: Form, part: str = "") -> Any:
    """Sends a form that was read. Returns the response; None if it is refused: the form says why.

    part: which one it is, where a page's form is several actions with a key each.
    """
    form.message.idempotency_key = f"{context.form_token}.{part}" if part else context.form_token
    try:
        return await context.rpcs.call(rpc, form.message)
    except Refusal as refusal:
        if needs_confirmation(refusal):
            raise
        form.refuse(refusal)
        return None


async def submit(
    context: PageContext,
    rpc: str,
    request: Any,
    path: str,
    message: str,
    redraw: Callable[..., Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """Does what a form asks for, once however often it is sent, and leads to `path` with the message.

    redraw: makes the form's page again (context, status, error=sentence) where the RPC refuses; a refusal that asks for
    a confirmation, or says that there is no such record, is raised.
    """
    request.idempotency_key = context.form_token
    try:
        await context.rpcs.call(rpc, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await redraw(context, refusal.status, error=refusal.message)
    return context.redirect(path, message)
