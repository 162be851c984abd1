"""Acts on several tickets at once, and their undo, without script."""

from __future__ import annotations

import re
from typing import Any

import asyncpg
import pytest

from chassis.auth.clients import ServiceUnavailable
from chassis.refusals import Refusal
from makeready.tickets.v1 import ticket_commands_pb2 as pb
from makeready.tickets.v1 import ticket_views_pb2 as views

from .browsing import Browser, Reply
from .samples import tickets
from .stubs import Stubs

COMMANDS = "tickets.TicketCommandsService/"
BULK, UNDO = "/tickets/bulk", "/tickets/bulk/undo"
HIGH = "/tickets?priority=High"


class Tickets:
    """Tickets that do what is asked, by the rules that the service has: what the person saw must still be so."""

    def __init__(self, stubs: Stubs) -> None:
        self.rows = {ticket.ticket_id: ticket for ticket in tickets()}
        self.done: dict[str, Any] = {}
        """The requests that were done, by idempotency key."""
        self.refused: dict[int, Exception] = {}
        stubs.answers[COMMANDS + "AssignTicket"] = self._assign
        stubs.answers[COMMANDS + "UpdateTicket"] = self._update
        stubs.answers[COMMANDS + "SetTicketStatus"] = self._status
        stubs.answers["tickets.TicketViewsService/BatchGetTickets"] = lambda request, _who: (
            views.BatchGetTicketsResponse(tickets=[self.rows[n] for n in request.ticket_ids if n in self.rows])
        )

    def _once(self, request: Any) -> bool:
        if request.ticket_id in self.refused:
            raise self.refused[request.ticket_id]
        if request.idempotency_key in self.done:
            assert self.done[request.idempotency_key] == request, "the key is used for another request"
            return False
        self.done[request.idempotency_key] = request
        return True

    def _conflict(self, field: str) -> None:
        raise Refusal(422, "invalid_request", "It was changed meanwhile; look at it again.", f"from_{field}")

    def _assign(self, request: Any, _who: Any) -> Any:
        row = self.rows[request.ticket_id]
        for name in ("assignee_id", "vendor_id"):
            if request.HasField(name) or name in request.clear:
                after = getattr(request, name)
                if after != getattr(row, name) and getattr(request, f"from_{name}") != getattr(row, name):
                    self._conflict(name)
        if self._once(request):
            for name in request.clear:
                row.ClearField(name)
            for name in ("assignee_id", "vendor_id"):
                if request.HasField(name):
                    setattr(row, name, getattr(request, name))
        return pb.AssignTicketResponse()

    def _update(self, request: Any, _who: Any) -> Any:
        row = self.rows[request.ticket_id]
        if row.priority not in (request.priority, request.from_priority):
            self._conflict("priority")
        if self._once(request):
            row.priority = request.priority
        return pb.UpdateTicketResponse()

    def _status(self, request: Any, _who: Any) -> Any:
        labels = {1: "Open", 2: "In Progress", 3: "On Hold", 4: "Completed", 5: "Cancelled"}
        if request.status == 4 and not request.note:
            raise Refusal(422, "invalid_request", "note is required with status Completed: 5 or more words.", "note")
        if labels[request.from_status] != self.rows[request.ticket_id].status:
            self._conflict("status")
        if self._once(request):
            self.rows[request.ticket_id].status = labels[request.status]
        return pb.SetTicketStatusResponse()


@pytest.fixture
def desk(stubs: Stubs) -> Tickets:
    return Tickets(stubs)


async def form_of(browser: Browser, act: str, *ids: int) -> list[tuple[str, str]]:
    """The pairs of an act's form for these tickets."""
    ticked = "".join(f"&ticket={ticket_id}" for ticket_id in ids)
    page = await browser.get(f"{BULK}?do={act}{ticked}&back={HIGH.replace('=', '%3D')}")
    assert page.status == 200
    values = browser.form(BULK)
    seen = [(name, value) for name, value in values.items() if name.startswith("seen.")]
    return [("act", values["act"]), ("do", act), ("back", values["back"]), *seen, *(("ticket", str(n)) for n in ids)]


async def undo_of(browser: Browser, reply: Reply) -> Reply:
    """Presses Undo on the page that an act led to."""
    page = await browser.follow(reply) if reply.status == 303 else reply
    assert "Undo" in page.words
    return await browser.send(UNDO)


async def test_tickets_are_assigned_and_are_then_what_they_were(staff: Browser, desk: Tickets) -> None:
    page = await staff.get(HIGH)
    assert f'<form id="bulk" action="{BULK}">' in page.text and 'id="tick-102" name="ticket"' in page.text
    page = await staff.get(HIGH + "&tick=all")
    assert re.search(r'value="102" aria-label="[^"]*" checked', page.text), "all of this page, without script"
    page = await staff.get(f"{BULK}?do=assign&ticket=86&ticket=102&ticket=86&ticket=x&ticket=999&back={HIGH}")
    assert "Assign 2 tickets" in page.words and "José Luis Fernández" in page.words
    form = await form_of(staff, "assign", 86, 102, 82)
    before = {n: desk.rows[n].assignee_id for n in (86, 102, 82)}
    for more, right in (((), "Choose a staff member"), ((("clear", "status"),), "no choice")):
        reply = await staff.post(BULK, [*form, *more])
        assert reply.status == 422 and right in reply.words
    assert not desk.done
    reply = await staff.post(BULK, [*form, ("assignee_id", "8")])
    assert (reply.status, reply.headers["Location"]) == (303, HIGH)
    assert {n: desk.rows[n].assignee_id for n in before} == dict.fromkeys(before, 8)
    token = dict(form)["act"]
    assert set(desk.done) == {f"{token}.{n}" for n in before}, "a write of its own for each"
    reply = await undo_of(staff, reply)
    assert {n: desk.rows[n].assignee_id for n in before} == before
    assert {key for key in desk.done if ".undo." in key} == {f"{token}.undo.{n}" for n in before if before[n] != 8}
    assert (await staff.follow(reply)).words.count("Undone: 3 are as before.") == 1


async def test_a_form_that_was_cut_short_is_finished_by_sending_it_again(staff: Browser, desk: Tickets) -> None:
    form = [*await form_of(staff, "priority", 86, 102), ("priority", "Emergency")]
    desk.refused[102] = Refusal(403, "forbidden", "The process ends here, so to speak.")
    assert (await staff.post(BULK, form)).status == 403
    before = desk.rows[102].priority
    assert (desk.rows[86].priority, before) == ("Emergency", "High")
    desk.refused.clear()
    reply = await staff.post(BULK, form)
    assert reply.status == 303 and len(desk.done) == 2, "the first is not done twice"
    assert "2 tickets: priority changed." in (await staff.follow(reply)).words
    await staff.send(UNDO)
    assert desk.rows[86].priority == next(row.priority for row in tickets() if row.ticket_id == 86)
    assert desk.rows[102].priority == before


async def test_what_does_not_go_stays_selected_with_the_reason(staff: Browser, desk: Tickets) -> None:
    form = await form_of(staff, "assign", 86, 102)
    desk.rows[86].assignee_id = 10  # another person, meanwhile
    reply = await staff.post(BULK, [*form, ("assignee_id", "8")])
    assert reply.status == 422 and "1 of 2 done" in reply.words and "It was changed meanwhile" in reply.words
    assert 'name="ticket" value="86"' in reply.text and 'name="ticket" value="102"' not in reply.text
    await staff.send(UNDO)
    assert desk.rows[102].assignee_id == 7, "what was done can be undone from here"
    page = await staff.post(BULK, [*form, ("assignee_id", "8")])
    reply = await staff.send(BULK, assignee_id="8")
    assert reply.status == 303 and desk.rows[86].assignee_id == 8, "seen as it is now, it goes"
    assert page.status == 422
    reply = await staff.post(BULK, [("act", dict(form)["act"]), ("do", "assign"), ("back", "//evil.example")])
    assert reply.status == 422 and "Nothing is selected" in reply.words and "evil" not in reply.text


async def test_what_had_no_answer_is_sent_again_as_the_same_act(staff: Browser, desk: Tickets, stubs: Stubs) -> None:
    form = [*await form_of(staff, "priority", 86), ("priority", "Low")]
    stubs.slow.add(COMMANDS + "UpdateTicket")
    desk.refused[86] = ServiceUnavailable("gone")
    stubs.slow.clear()
    reply = await staff.post(BULK, form)
    assert reply.status == 422 and "Send again: nothing is done twice." in reply.words
    desk.refused.clear()
    assert staff.form(BULK)["act"] == dict(form)["act"], "its service knows by the key whether it was done"
    assert (await staff.send(BULK, priority="Low")).status == 303
    assert set(desk.done) == {f"{dict(form)['act']}.86"}


async def test_an_undo_leaves_what_has_changed_since_and_names_it(staff: Browser, desk: Tickets) -> None:
    form = [*await form_of(staff, "priority", 86, 102), ("priority", "Low")]
    reply = await staff.post(BULK, form)
    desk.rows[102].priority = "Medium"
    reply = await undo_of(staff, reply)
    assert reply.status == 200 and "Undone: 1 is as before." in reply.words
    assert desk.rows[102].title in reply.words and "It was changed meanwhile" in reply.words
    assert (desk.rows[86].priority, desk.rows[102].priority) != ("Low", "Low") and desk.rows[102].priority == "Medium"


async def test_a_status_that_took_a_note_is_not_made_again_by_an_undo(staff: Browser, desk: Tickets) -> None:
    desk.rows[102].status = "Completed"
    form = await form_of(staff, "status", 86, 102)
    reply = await staff.post(BULK, [*form, ("status", "Completed")])
    assert reply.status == 422 and reply.words.count("“What was done” is required") == 2, "beside the field, once"
    reply = await staff.post(BULK, [*form, ("status", "In Progress")])
    assert reply.status == 303 and {desk.rows[n].status for n in (86, 102)} == {"In Progress"}
    reply = await undo_of(staff, reply)
    assert "It was completed, which takes a note" in reply.words
    assert (desk.rows[86].status, desk.rows[102].status) == ("On Hold", "In Progress")


async def test_an_undo_is_its_persons_alone_and_lasts_a_minute(
    staff: Browser, administrator: Browser, desk: Tickets, database_url: str
) -> None:
    form = [*await form_of(staff, "priority", 86), ("priority", "Low")]
    page = await staff.follow(await staff.post(BULK, form))
    bulk_act = staff.form(UNDO)["bulk_act"]
    assert "Undo" in page.words and "Undo" not in (await staff.get(HIGH)).words, "it is offered once"
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute("UPDATE bulk_act SET ended_at = ended_at - interval '2 minutes' WHERE id = $1",
                                 int(bulk_act))  # fmt: skip
        await staff.post(BULK, [*await form_of(staff, "priority", 102), ("priority", "Low")])
        await staff.get(HIGH)
        reply = await staff.post(UNDO, {"act": staff.form(UNDO)["act"], "bulk_act": bulk_act, "back": HIGH})
        assert "It is too late to undo that." in (await staff.follow(reply)).words and desk.rows[86].priority == "Low"
        await administrator.post(BULK, [*await form_of(administrator, "priority", 90), ("priority", "Low")])
        await administrator.get(HIGH)
        other = {"act": administrator.form(UNDO)["act"], "bulk_act": str(int(bulk_act) + 1), "back": HIGH}
        reply = await administrator.post(UNDO, other)
        assert "It is too late" in (await administrator.follow(reply)).words and desk.rows[102].priority == "Low"
    finally:
        await connection.close()


async def test_the_file_has_the_tickets_that_are_selected(staff: Browser) -> None:
    reply = await staff.get("/tickets?csv=1&ticket=102&ticket=86&back=/tickets")
    assert [line.split(",")[0] for line in reply.text.splitlines()[1:]] == ["102", "86"]


async def test_inspections_are_assigned_and_rescheduled(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/inspections?tick=all")
    assert 'id="tick-1" name="inspection"' in page.text and "Reschedule" in page.words
    path, update = "/inspections/bulk", "catalog.InspectionCommandsService/UpdateInspection"
    await staff.get(f"{path}?do=reschedule&inspection=1&inspection=404&inspection=2&back=/inspections")
    form = staff.form(path)
    ticked = [("inspection", "1"), ("inspection", "2"), ("scheduled_date", "2026-12-24")]
    pairs = [pair for pair in form.items() if pair[0] not in ("inspection", "scheduled_date")]
    reply = await staff.post(path, [*pairs, *ticked])
    assert (reply.status, reply.headers["Location"]) == (303, "/inspections")
    for request in stubs.called(update):
        assert request.scheduled_date == "2026-12-24" and request.HasField("from_scheduled_date")
        assert not request.HasField("from_assignee_id")
    assert "2 inspections rescheduled." in (await staff.follow(reply)).words
    stubs.calls.clear()
    await staff.send(f"{path}/undo")
    assert {request.from_scheduled_date for request in stubs.called(update)} == {"2026-12-24"}
    assert "2026-12-24" not in {request.scheduled_date for request in stubs.called(update)}
    await staff.get(f"{path}?do=assign&inspection=1")
    reply = await staff.send(path, inspection="1")
    assert reply.status == 422 and "Choose a staff member" in reply.words
