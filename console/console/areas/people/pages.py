"""The pages of the staff: who they are, whether they sign in, and what they have to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiohttp import web
from google.protobuf.message import Message

from chassis.refusals import Refusal
from console.kit import csv_files
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.links import with_query
from console.kit.panels import include
from console.kit.sending import needs_confirmation, submit
from console.kit.texts import _
from makeready.identity.v1 import administrators_pb2
from makeready.identity.v1 import staff_commands_pb2 as pb

HERE = "Staff"
PATH = "/staff"
LIST = "identity.StaffCommandsService/ListStaff"
GET = "identity.StaffCommandsService/GetStaff"
INVITE = "identity.StaffCommandsService/InviteStaff"
END = "identity.StaffCommandsService/EndStaff"
REINSTATE = "identity.StaffCommandsService/ReinstateStaff"
LINK = "identity.AdministratorsService/MakeLink"
SHOWN, CSV_ROWS, FOUND = 50, 200, 8
TEXT_MAX = 100
STATES = (("", _("Active")), ("ended", _("Inactive")), ("all", "All"))


async def list_staff(context: PageContext) -> web.StreamResponse:
    words = " ".join(context.query.get("q", "").replace("\0", " ").split())[:TEXT_MAX]
    state = context.query.get("state", "")
    state = state if state in dict(STATES) else ""
    as_file = "csv" in context.query
    request = pb.ListStaffRequest(limit=CSV_ROWS if as_file else SHOWN, words=words)
    if state != "all":
        request.active = state != "ended"
    after = context.query.get("after", "")
    if after.isascii() and after.isdigit() and len(after) < 19:
        request.after_id = int(after)
    page = await context.rpcs.call(LIST, request)
    if as_file:
        return _csv(page.staff)
    filters = {"q": words, "state": state}
    return context.render(
        "people/list.html", here=HERE, people=page.staff, words=words, state=state, later=bool(request.after_id),
        states=[(name, with_query(PATH, {"q": words, "state": key}), key == state) for key, name in STATES],
        more=with_query(PATH, {**filters, "after": page.next_after_id}) if page.HasField("next_after_id") else "",
        first=with_query(PATH, filters), csv_path=with_query(PATH, {**filters, "after": after, "csv": 1}),
    )  # fmt: skip


def _csv(people: Iterable[pb.Staff]) -> web.Response:
    header = ("staff_id", "name", "title", "email", "external_id", "state", "last_sign_in_at")
    rows = (
        (person.staff_id, person.name, person.title, person.email, person.external_id,
         "active" if person.active else "ended",
         person.last_sign_in_at.ToJsonString() if person.HasField("last_sign_in_at") else "")
        for person in people
    )  # fmt: skip
    return csv_files.answer("staff", header, rows)


async def show(context: PageContext) -> web.StreamResponse:
    return await _person(context)


async def _person(context: PageContext, status: int = 200, error: str = "", link: Any = None) -> web.Response:
    number = context.number("staff_id")
    response, tickets, audit = await together(
        context.rpcs.call(GET, pb.GetStaffRequest(staff_id=number)),
        include(context, "/tickets/panel", assignee_id=number),
        include(context, "/audit/panel", kind="staff", id=number),
    )
    return context.render(
        "people/person.html", status, here=HERE, person=response.staff, tickets=tickets, audit=audit, error=error,
        link=link, path=f"{PATH}/{number}",
    )  # fmt: skip


async def home(context: PageContext) -> web.StreamResponse:
    """The first step: a member of the staff."""
    page = await context.rpcs.call(LIST, pb.ListStaffRequest(limit=1))
    return context.render("people/home.html", people=page.staff)


async def search_hits(context: PageContext) -> web.StreamResponse:
    """The panel of the search. An external id that is just one person's leads there."""
    words = context.query.get("q", "")
    request = pb.ListStaffRequest(limit=FOUND + 1, words=words[:TEXT_MAX])
    people = (await context.rpcs.call(LIST, request)).staff
    exact = [person for person in people if words and words in (person.external_id, person.email)]
    if len(exact) == 1:
        return context.redirect(f"{PATH}/{exact[0].staff_id}")
    more = with_query(PATH, {"q": words, "state": "all"}) if len(people) > FOUND else ""
    return context.render("people/found.html", people=people[:FOUND], more=more)


async def invite(context: PageContext) -> web.StreamResponse:
    """Shows the invitation's link once."""
    request = pb.InviteStaffRequest(staff_id=context.number("staff_id"), idempotency_key=context.form_token)
    return await _with_link(context, INVITE, request)


async def make_link(context: PageContext) -> web.StreamResponse:
    """Shows the link once."""
    return await _with_link(context, LINK, administrators_pb2.MakeLinkRequest(staff_id=context.number("staff_id")))


async def _with_link(context: PageContext, rpc: str, request: Message) -> web.StreamResponse:
    try:
        response = await context.rpcs.call(rpc, request)
    except Refusal as refusal:
        if needs_confirmation(refusal) or refusal.status == 404:
            raise
        return await _person(context, refusal.status, refusal.message)
    return await _person(context, link=response.link)


async def end(context: PageContext) -> web.StreamResponse:
    request = pb.EndStaffRequest(staff_id=context.number("staff_id"))
    path = f"{PATH}/{request.staff_id}"
    return await submit(
        context, END, request, path, _("Deactivated and signed out everywhere. Their work stays assigned."), _person
    )


async def reinstate(context: PageContext) -> web.StreamResponse:
    request = pb.ReinstateStaffRequest(staff_id=context.number("staff_id"))
    path = f"{PATH}/{request.staff_id}"
    return await submit(context, REINSTATE, request, path, _("Reactivated. They can sign in again."), _person)
