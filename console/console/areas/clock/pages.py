"""The page of a sandbox's clock: what it says, what falls due next, and what its last advance has done."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping

from aiohttp import web

from chassis.refusals import Refusal
from console.kit.context import PageContext
from console.kit.panels import Included, include
from console.kit.records import record_of
from console.kit.sending import needs_confirmation
from console.kit.texts import _
from makeready.identity.v1 import sandbox_pb2 as pb

HERE = "Clock"
PATH = "/clock"
GET = "identity.SandboxClockService/GetSandboxClock"
ADVANCE = "identity.SandboxClockService/AdvanceSandboxClock"

_WRITTEN = ("advance_by", "advance_to", "length", "until")
_UNITS = {"m": "T{}M", "h": "T{}H", "d": "{}D", "w": "{}W"}


async def show(context: PageContext) -> web.StreamResponse:
    return await _clock(context)


async def advance(context: PageContext) -> web.StreamResponse:
    """Begins an advance: to an instant, by a length of ISO 8601, or as a person has written it."""
    if not context.session.person.is_sandbox:
        raise web.HTTPNotFound
    written = {name: context.form.get(name, "").strip() for name in _WRITTEN}
    body = _body(written, context.wall.zone)
    if body is None:
        return await _clock(context, 422, _("Enter a length such as 25h, 7d or P1DT2H, or a date and time."), written)
    request = pb.AdvanceSandboxClockRequest(idempotency_key=context.form_token, body=json.dumps(body).encode())
    try:
        await context.rpcs.call(ADVANCE, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await _clock(context, refusal.status, refusal.message, written)
    return context.redirect(PATH, "The clock is advancing.")


def _body(written: Mapping[str, str], zone: datetime.tzinfo) -> dict[str, str] | None:
    """What a form asks for; None for a length or a time that cannot be read."""
    for name in ("advance_by", "advance_to"):
        if written[name]:
            return {name: written[name]}
    if written["length"]:
        match = re.fullmatch(r"([0-9]{1,6}) ?([mhdw])", written["length"])
        text = f"P{_UNITS[match[2]].format(match[1])}" if match else written["length"].upper()
        return {"advance_by": text} if text.startswith("P") else None
    try:
        until = datetime.datetime.fromisoformat(written["until"]).replace(tzinfo=zone)
        return {"advance_to": until.astimezone(datetime.UTC).isoformat()}
    except (ValueError, OverflowError):
        return None


async def _clock(
    context: PageContext, status: int = 200, error: str = "", written: Mapping[str, str] | None = None
) -> web.Response:
    """error: why a form was refused, with what was `written` in it."""
    if not context.session.person.is_sandbox:
        return context.render("clock/live.html", here=HERE)
    clock = record_of((await context.rpcs.call(GET, pb.GetSandboxClockRequest())).document)
    instants = {name: _instant(clock[name]) for name in ("now", "start", "target")}
    due = clock["next_due"]
    happened = Included()
    if clock["start"] and clock["done"]:
        happened = await include(context, "/events/between", since=clock["start"], until=clock["now"])
    return context.render(
        "clock/clock.html", status, here=HERE, clock=clock, **instants, due=due, error=error,
        written=written or dict.fromkeys(_WRITTEN, ""),
        due_at=_instant(due["at"]) if due else None, happened=happened, is_advancing=clock["status"] == "advancing",
        progress=_progress(**instants),
    )  # fmt: skip


def _instant(text: str | None) -> datetime.datetime | None:
    return None if text is None else datetime.datetime.fromisoformat(text)


def _progress(now: datetime.datetime | None, start: datetime.datetime | None, target: datetime.datetime | None) -> int:
    """How far the last advance is, in percent."""
    if now is None or start is None or target is None or target <= start:
        return 100
    return max(0, min(100, int(100 * (now - start) / (target - start))))
