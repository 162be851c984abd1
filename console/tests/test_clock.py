"""The page of a sandbox's clock."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from chassis.refusals import Refusal
from makeready.webhooks.v1 import webhooks_pb2

from .browsing import Browser
from .samples import clock
from .stubs import Stubs
from .test_sandboxes import TRIAL, go

GET = "identity.SandboxClockService/GetSandboxClock"
ADVANCE = "identity.SandboxClockService/AdvanceSandboxClock"
EVENTS = "webhooks.AdministrationService/ListEvents"
EVENT_ID = "019caf2d-2f66-7986-ac42-0f923d0db2f6"
EMPTY = {"advance_by": "", "advance_to": "", "length": "", "until": ""}


@pytest.fixture
async def in_sandbox(administrator: Browser) -> Browser:
    assert (await go(administrator, TRIAL)).status == 303
    return administrator


async def send(browser: Browser, **values: str) -> Any:
    await browser.get("/clock")
    return await browser.post("/clock", {"act": browser.form("/clock")["act"], **values})


async def test_the_menu_has_the_clock_in_sandboxes_alone(administrator: Browser) -> None:
    assert 'href="/clock"' not in (await administrator.get("/")).text
    live = await administrator.get("/clock")
    assert live.status == 200 and "A live company always uses the real time." in live.words
    await go(administrator, TRIAL)
    assert 'href="/clock"' in (await administrator.get("/")).text


async def test_the_page_has_the_clock_what_is_next_and_what_has_happened(in_sandbox: Browser, stubs: Stubs) -> None:
    event = webhooks_pb2.Event(event_id=EVENT_ID, event="ticket.stale", entity_type="ticket", entity_id=102)
    stubs.answers[EVENTS] = webhooks_pb2.ListEventsResponse(events=[event])
    page = await in_sandbox.get("/clock")
    assert "Friday, 20 November 2026, 12:20:02" in page.words and "ready" in page.words
    assert "ticket.stale" in page.words and "inspection.stale" in page.words
    assert re.search(r'name="advance_to" value="2026-11-20T19:02:11.500000Z"', page.text)
    assert 'value="PT1H"' in page.text and 'value="P1D"' in page.text and "hx-get" not in page.text
    assert "Activity" in page.words and f'href="/events/{EVENT_ID}"' in page.text
    (request,) = stubs.called(EVENTS)
    assert request.since.ToJsonString() == "2026-11-19T17:20:02.114901Z"


async def test_what_happened_just_now_has_the_real_clock(in_sandbox: Browser, stubs: Stubs) -> None:
    event = webhooks_pb2.Event(event_id=EVENT_ID, event="ticket.stale", entity_type="ticket", entity_id=102)
    event.occurred_at.FromJsonString("2099-01-01T00:00:00Z")
    stubs.answers[EVENTS] = webhooks_pb2.ListEventsResponse(events=[event])
    words = (await in_sandbox.get("/audit/recent")).words
    assert re.search(r"ticket 102 is overdue for a response \d+ \w+ ago", words), words


@pytest.mark.parametrize(
    ("written", "body"),
    [
        ({"advance_by": "PT1H"}, {"advance_by": "PT1H"}),
        ({"advance_to": "2026-11-20T19:02:11.500000Z"}, {"advance_to": "2026-11-20T19:02:11.500000Z"}),
        ({"length": "25h"}, {"advance_by": "PT25H"}),
        ({"length": " 7 d"}, {"advance_by": "P7D"}),
        ({"length": "90m"}, {"advance_by": "PT90M"}),
        ({"length": "2w"}, {"advance_by": "P2W"}),
        ({"length": "p1dt2h"}, {"advance_by": "P1DT2H"}),
        ({"until": "2026-12-24T18:00"}, {"advance_to": "2026-12-24T23:00:00+00:00"}),
    ],
)
async def test_a_form_advances_the_clock_once(
    in_sandbox: Browser, stubs: Stubs, written: dict[str, str], body: dict[str, str]
) -> None:
    reply = await send(in_sandbox, **(EMPTY | written))
    assert (reply.status, reply.headers["Location"]) == (303, "/clock")
    (request,) = stubs.called(ADVANCE)
    assert json.loads(request.body) == body and request.idempotency_key


@pytest.mark.parametrize("written", [{}, {"length": "soon"}, {"until": "tomorrow"}])
async def test_what_cannot_be_read_is_said(in_sandbox: Browser, stubs: Stubs, written: dict[str, str]) -> None:
    reply = await send(in_sandbox, **(EMPTY | written))
    assert reply.status == 422 and "Enter a length such as 25h" in reply.words and not stubs.called(ADVANCE)


async def test_a_refusal_stands_above_the_form_with_what_was_written(in_sandbox: Browser, stubs: Stubs) -> None:
    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_request", "An advance is at most 400 days; take several.")

    stubs.answers[ADVANCE] = refuse
    reply = await send(in_sandbox, **(EMPTY | {"length": "500d"}))
    assert reply.status == 422 and "at most 400 days" in reply.words and 'value="500d"' in reply.text


async def test_an_advance_on_its_way_shows_how_far_it_is_and_why_it_waits(in_sandbox: Browser, stubs: Stubs) -> None:
    sentence = "The service of catalog has not answered for 40 seconds; the advance goes on once it does."
    stubs.answers[GET] = clock(status="advancing", now="2026-11-19T23:20:02.114901Z", waiting=sentence, next_due=None)
    page = await in_sandbox.get("/clock")
    assert "advancing" in page.words and sentence in page.words
    assert '<progress max="100" value="25">' in page.text and 'hx-trigger="every 1s"' in page.text
    assert 'name="advance_by"' not in page.text


async def test_before_the_first_advance_nothing_has_happened(in_sandbox: Browser, stubs: Stubs) -> None:
    stubs.answers[GET] = clock(start=None, target=None, done={}, next_due=None)
    page = await in_sandbox.get("/clock")
    assert "Nothing is due." in page.words and "Last advance" not in page.words
