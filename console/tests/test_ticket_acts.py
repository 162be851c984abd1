"""What people do to tickets in their pages, without script."""

from __future__ import annotations

from typing import Any

from chassis.refusals import Refusal
from console.areas.tickets.opening import ranked
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from makeready.tickets.v1 import ticket_views_pb2 as views

from .browsing import Browser, Reply
from .samples import HOSTILE, tickets
from .stubs import Stubs

COMMANDS = "tickets.TicketCommandsService/"
DETAILS = "tickets.TicketViewsService/GetTicketDetails"
OPEN, IN_PROGRESS, ON_HOLD, COMPLETED, CANCELLED = range(1, 6)


def refuse(stubs: Stubs, rpc: str, message: str, field: str = "", status: int = 422) -> None:
    def answer(_request: Any, _who: Any) -> Any:
        raise Refusal(status, "invalid_request", message, field)

    stubs.answers[COMMANDS + rpc] = answer


def sent(stubs: Stubs, rpc: str) -> Any:
    return stubs.called(COMMANDS + rpc)[-1]


def becomes(stubs: Stubs, **changes: Any) -> None:
    """Somebody else changes ticket 102."""
    answer = stubs.answers[DETAILS]

    def changed(request: Any, who: Any) -> Any:
        details = views.GetTicketDetailsResponse()
        details.CopyFrom(answer(request, who))
        for name, value in changes.items():
            setattr(details.ticket, name, value)
        return details

    stubs.answers[DETAILS] = changed


async def done(browser: Browser, reply: Reply, message: str, path: str = "/tickets/102") -> None:
    assert (reply.status, reply.headers["Location"].partition("#")[0]) == (303, path), reply.words
    assert message in (await browser.get(path)).words


async def test_a_comment_is_of_oneself_or_of_somebody_else(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/tickets/102")
    assert "Residents and integrations do not see comments" in page.text
    form = staff.form("/tickets/102/comment")
    reply = await staff.post("/tickets/102/comment", {**form, "body": "Where are you?", "by": "resident"})
    values: dict[str, Any] = {
        "ticket_id": 102,
        "body": "Where are you?",
        "by": pb.AUTHOR_RESIDENT,
        "idempotency_key": form["act"],
    }
    assert sent(stubs, "CommentOnTicket") == pb.CommentOnTicketRequest(**values)
    await done(staff, reply, "Comment added.")
    stubs.calls.clear()
    reply = await staff.send("/tickets/102/comment", body=" ")
    assert (
        reply.status == 422 and "Comment is required" in reply.words and not stubs.called(COMMANDS + "CommentOnTicket")
    )
    refuse(stubs, "CommentOnTicket", "body is too long.", "body", 400)
    reply = await staff.send("/tickets/102/comment", body=f"kept {HOSTILE}", by="vendor")
    assert reply.status == 422 and "“Comment” is too long." in reply.words and "kept &#34;" in reply.text
    assert '<option value="vendor" selected>' in reply.text


async def test_a_status_moves_from_the_one_that_was_seen(staff: Browser, stubs: Stubs) -> None:
    path = "/tickets/102/status"
    page = await staff.get("/tickets/102")
    assert all(words in page.words for words in ("Put on hold", "Set to Open", "Complete ticket …", "Cancel ticket …"))
    await done(staff, await staff.send(path, status="On Hold"), "Status set to On Hold.")
    request = sent(stubs, "SetTicketStatus")
    assert (request.status, request.from_status) == (ON_HOLD, IN_PROGRESS)
    await staff.get("/tickets/102")
    note = "New thermocouple, hot water again now"
    await done(staff, await staff.send(path, status="Completed", note=note), "Ticket completed.")
    assert (sent(stubs, "SetTicketStatus").status, sent(stubs, "SetTicketStatus").note) == (COMPLETED, note)
    await staff.get("/tickets/102")
    reply = await staff.send(path, status="Cancelled", cancellation_reason_code="see_notes", cancellation_notes=note)
    await done(staff, reply, "Ticket cancelled.")
    request = sent(stubs, "SetTicketStatus")
    assert (request.status, request.cancellation_reason_code) == (CANCELLED, "see_notes")
    assert request.cancellation_notes == note and not request.HasField("note")
    reply = await staff.send(path, status="Cancelled", cancellation_reason_code="boredom")
    assert reply.status == 422 and "none of the choices" in reply.words
    reply = await staff.send(path, status="Nonsense")
    assert reply.status == 422 and "Choose a status." in reply.words
    becomes(stubs, status="Completed")
    page = await staff.get("/tickets/102")
    assert "Reopen" in page.words and "Complete ticket …" not in page.words
    await done(staff, await staff.send(path), "Ticket set to Open.")
    assert (sent(stubs, "SetTicketStatus").status, sent(stubs, "SetTicketStatus").from_status) == (OPEN, COMPLETED)


async def test_what_was_written_stays_when_a_move_is_refused(staff: Browser, stubs: Stubs) -> None:
    await staff.get("/tickets/102")
    refuse(stubs, "SetTicketStatus", "note must have 5 or more words.", "note")
    reply = await staff.send("/tickets/102/status", status="Completed", note="all good")
    assert reply.status == 422 and reply.words.count("“Work done” must have 5 or more words.") == 2
    assert ">all good</textarea>" in reply.text and 'id="complete" open' in reply.text
    now = "Another person has set the ticket to Cancelled meanwhile; look at it again."
    refuse(stubs, "SetTicketStatus", now, "from_status")
    becomes(stubs, status="Cancelled")
    reply = await staff.send("/tickets/102/status", status="Completed", note="all good again since this morning")
    assert reply.status == 422 and now in reply.words and "Reopen" in reply.words
    assert "all good again since this morning" in reply.words, "although it is closed"
    assert 'name="from_status" value="Cancelled"' in reply.text, "sent again, it counts"
    reply = await staff.send("/tickets/102/status", status="Open", from_status="On Hold")
    assert reply.status == 422 and now in reply.words


async def test_staff_take_a_ticket_and_administrators_do_not(
    staff: Browser, administrator: Browser, stubs: Stubs
) -> None:
    assert "Take it" not in (await staff.get("/tickets/102")).words, "it is theirs"
    assert "Take it" not in (await administrator.get("/tickets/100")).words
    await staff.get("/tickets/100")
    await done(staff, await staff.send("/tickets/100/take"), "Assigned to you.", "/tickets/100")
    request = sent(stubs, "AssignTicket")
    assert (request.ticket_id, request.assignee_id, request.from_assignee_id) == (100, 7, 8)
    refuse(
        stubs,
        "AssignTicket",
        "The assignment was changed meanwhile: Ada Byrne has the ticket now; look at it again.",
        "from_assignee_id",
    )
    await staff.get("/tickets/100")
    await done(staff, await staff.send("/tickets/100/take"), "Ada Byrne has the ticket now", "/tickets/100/assign")


async def test_an_assignment_sends_what_was_changed_and_who_was_seen(administrator: Browser, stubs: Stubs) -> None:
    path = "/tickets/102/assign"
    page = await administrator.get(path)
    assert '<option value="7" selected' in page.text and "On hold" in page.text
    form = administrator.form(path)
    reply = await administrator.post(path, {**form, "assignee_id": "8", "vendor_id": ""})
    await done(administrator, reply, "Assignment updated.")
    values: dict[str, Any] = {"ticket_id": 102, "assignee_id": 8, "from_assignee_id": 7, "idempotency_key": form["act"]}
    assert sent(stubs, "AssignTicket") == pb.AssignTicketRequest(**values)
    await administrator.get(path)
    await administrator.send(path, assignee_id="", vendor_id="2")
    request = sent(stubs, "AssignTicket")
    assert (request.vendor_id, list(request.clear)) == (2, ["assignee_id"])
    stubs.calls.clear()
    await administrator.get(path)
    await done(administrator, await administrator.send(path, assignee_id="7"), "No changes were made.")
    await administrator.get(path)
    form = administrator.form(path)
    becomes(stubs, assignee_id=10, assignee_name="Ada Byrne")
    reply = await administrator.post(path, {**form, "assignee_id": "8"})
    assert (
        reply.status == 422 and "Meanwhile this was assigned to Ada Byrne. Submit again to replace that." in reply.words
    )
    assert not stubs.called(COMMANDS + "AssignTicket") and '<option value="8" selected' in reply.text
    refuse(stubs, "AssignTicket", "The vendor is on hold and gets no new work.", "vendor_id")
    reply = await administrator.send(path, assignee_id="10", vendor_id="6")
    assert reply.status == 422 and reply.words.count("The vendor is on hold and gets no new work.") == 2


async def test_a_correction_sends_what_was_changed(staff: Browser, stubs: Stubs) -> None:
    path = "/tickets/102/edit"
    await staff.get(path)
    seen = {name: value for name, value in staff.form(path).items() if name.startswith("seen.")}
    form = {**staff.form(path), **{name.removeprefix("seen."): value for name, value in seen.items()}}
    assert form["unit_id"] == "15" and form["permission_to_enter"] == "1"
    stubs.calls.clear()
    await done(staff, await staff.post(path, form), "No changes were made.")
    assert not stubs.called(COMMANDS + "UpdateTicket")
    changed = {**form, "title": "No hot water", "room": "", "asset_id": ""}
    del changed["permission_to_enter"]
    await done(staff, await staff.post(path, changed), "Ticket updated.")
    request = sent(stubs, "UpdateTicket")
    assert (request.title, request.permission_to_enter, request.HasField("description")) == (
        "No hot water",
        False,
        False,
    )
    assert sorted(request.clear) == ["asset_id", "room"] and request.HasField("version")
    becomes(stubs, title="Boiler is out")
    reply = await staff.post(path, changed)
    assert reply.status == 422 and "Meanwhile someone changed this to “Boiler is out”" in reply.words
    assert 'value="No hot water"' in reply.text
    refuse(stubs, "UpdateTicket", "Another person has changed the ticket meanwhile.", "version")
    reply = await staff.post(path, {**form, "priority": "Low"})
    assert reply.status == 422 and "Another person has changed the ticket" in reply.words


async def test_the_same_form_again_is_no_second_change(staff: Browser, stubs: Stubs) -> None:
    """A double click: the answer to the second request says what the first one did."""
    await staff.get("/tickets/102/edit")
    form = {**staff.form("/tickets/102/edit"), "title": "No hot water at all"}
    becomes(stubs, title="No hot water at all")
    await done(staff, await staff.post("/tickets/102/edit", form), "Ticket updated.")
    await staff.get("/tickets/102/assign")
    form = {**staff.form("/tickets/102/assign"), "assignee_id": "8"}
    becomes(stubs, assignee_id=8)
    await done(staff, await staff.post("/tickets/102/assign", form), "Assignment updated.")
    assert not stubs.called(COMMANDS + "UpdateTicket") and not stubs.called(COMMANDS + "AssignTicket")


async def test_a_ticket_is_opened_where_no_other_says_the_same(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/tickets/new?unit_id=15&title=Water+is+cold&category=nonsense")
    assert '<option value="1" selected' in page.text and '<option value="15" selected' in page.text
    assert 'value="Water is cold"' in page.text and "possible duplicate" in page.words
    act = staff.form("/tickets/new")["act"]
    form = {"act": act, "property_id": "1", "unit_id": "15", "title": "Water is cold", "priority": "High"}
    stubs.calls.clear()
    reply = await staff.post("/tickets/new", {**form, "find": "unit_id", "q.unit_id": "201"})
    assert reply.status == 200 and 'value="Water is cold"' in reply.text
    reply = await staff.post("/tickets/new", form)
    assert reply.status == 422 and "Category is required." in reply.words and "Reported by is required." in reply.words
    assert not stubs.called(COMMANDS + "OpenTicket")
    form |= {"category": "Plumbing", "by": "resident", "permission_to_enter": "1", "preferred_access_time": "evenings"}
    await done(staff, await staff.post("/tickets/new", form), "Ticket opened.")
    request = sent(stubs, "OpenTicket")
    assert (request.idempotency_key, request.property_id, request.unit_id, request.by) == (
        act,
        1,
        15,
        pb.OPENER_RESIDENT,
    )
    assert (request.priority, request.permission_to_enter) == ("High", True) and not request.HasField("asset_id")
    refuse(stubs, "OpenTicket", "The property has no unit with that id; check both ids.", "unit_id", 404)
    reply = await staff.post("/tickets/new", form)
    assert reply.status == 422 and reply.words.count("The property has no unit with that id") == 2
    part = await staff.get("/tickets/alike?title=x", HX_Request_Type="partial")
    assert part.status == 200 and "Choose a unit or an asset" in part.words


def test_alike_is_what_shares_the_asset_the_category_or_a_word() -> None:
    by_id = {ticket.ticket_id: ticket for ticket in tickets()}
    rows = [by_id[ticket_id] for ticket_id in (90, 102, 82)]

    def likely(title: str = "", category: str = "", asset_id: str = "") -> list[int]:
        return [ticket.ticket_id for is_likely, ticket in ranked(rows, title, category, asset_id) if is_likely]

    assert likely() == [] and likely("The gate of the POOL") == [90] and likely(asset_id="21") == [102]
    assert likely("卫生间墙面") == [82] and likely("its by a to") == []
    assert likely(category="Plumbing") == [102, 82]
    assert [ticket.ticket_id for _, ticket in ranked(rows, "墙面起泡", "", "")] == [82, 90, 102]
