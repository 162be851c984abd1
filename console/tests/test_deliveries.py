"""Deliveries and events in words: attempts, the ladder, bodies to the byte, and what a search finds."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.areas.webhooks import deliveries
from console.kit import attempt_words, body_text
from makeready.webhooks.v1 import webhooks_pb2 as pb

from .browsing import Browser
from .samples_deliveries import BODY, EVENT, REQUEST, TITLE, failed, parked
from .samples_deliveries import deliveries as samples
from .stubs import Stubs

PATH = f"/webhooks/7/deliveries/{EVENT}"


def text_of(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.one_of(st.text(), json_values.map(lambda inner: json.dumps({"a": inner})), st.just(BODY.decode())))
def test_colours_change_no_character(text: str) -> None:
    assert text_of(str(body_text.coloured(text))) == text


def test_keys_and_values_have_their_marks() -> None:
    assert body_text.coloured('{"a":1,"b":"<\\""}') == '{<b>"a"</b>:<u>1</u>,<b>"b"</b>:<i>"&lt;\\""</i>}'.replace(
        '"', "&#34;"
    )


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_command_has_the_exact_body_and_headers(body: str) -> None:
    headers = [
        ("Host", "x.test"),
        ("Content-Length", "3"),
        ("Service-Signature", "t=1,v1=ab"),
        ("X-Request-Id", "'$(x)"),
    ]
    command = body_text.curl("https://x.test/h?a=$b&c='", headers, body)
    words = shlex.split(command.replace(" \\\n  ", " ", 3))
    assert words == [
        "curl", "https://x.test/h?a=$b&c='", "-H", "Service-Signature: t=1,v1=ab", "-H", "X-Request-Id: '$(x)",
        "--data-binary", body,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words", "sentence"),
    [
        ({"status": 200, "error": ""}, "200", ""),
        ({"status": 503, "error": "status"}, "503", ""),
        ({"status": 302, "error": "redirect"}, "302", "It redirects"),
        ({"status": 200, "error": "timeout"}, "200, timeout", "within 10 seconds"),
        ({"status": None, "error": "certificate"}, "invalid certificate", "not valid for that name"),
        ({"status": None, "error": "vault"}, "not sent", "does not count as a retry"),
        ({"status": None, "error": "new_class"}, "new_class", ""),
    ],
)
def test_an_attempt_in_words(values: dict[str, Any], words: str, sentence: str) -> None:
    attempt = failed(1, 1, **values)
    assert attempt_words.answer(attempt) == words
    assert sentence in attempt_words.explained(attempt) and bool(sentence) == bool(attempt_words.explained(attempt))


def test_the_ladder_has_each_step_once_and_peoples_attempts_beside_it() -> None:
    steps = deliveries.ladder(parked())
    assert [step.title for step in steps] == ["503", "503", "timeout", "503", "503", "503, needs retry"]
    assert [step.lines[0] for step in steps] == [
        "", "after 1 hour", "after 2 hours", "after 4 hours", "after 8 hours", "after 24 hours"
    ]  # fmt: skip
    (extra,) = deliveries.extras(parked())
    assert (extra.words, extra.attempt.actor) == ("retried", "administrator:2")
    waiting = samples()[0]
    waiting.attempts.append(failed(3, 0.5, error="egress", status=None))
    assert [step.tone for step in deliveries.ladder(waiting)] == ["no", "no", "next", "", "", ""]
    assert [other.words for other in deliveries.extras(waiting)] == ["could not send"]


def test_where_the_time_went_adds_up() -> None:
    assert deliveries.spans(failed(1, 1)) == [("connect", 0, 22), ("TLS", 22, 41), ("first byte", 63, 119),
                                              ("rest", 182, 13)]  # fmt: skip
    pooled = failed(1, 1, connect_milliseconds=None, tls_milliseconds=None)
    assert deliveries.spans(pooled) == [("first byte", 0, 182), ("rest", 182, 13)]
    silent = failed(1, 1, first_byte_milliseconds=None, error="timeout", status=None)
    assert deliveries.spans(silent)[-1] == ("no response", 63, 132)
    nothing = failed(1, 1, connect_milliseconds=None, tls_milliseconds=None, first_byte_milliseconds=None)
    assert deliveries.spans(nothing) == []


async def test_a_delivery_shows_the_bytes_that_were_sent(administrator: Browser) -> None:
    page = await administrator.get(PATH)
    body = re.search(rf'<pre class="code raw" id="d-{EVENT}-body"[^>]*>(.*?)</pre>', page.text, re.DOTALL)
    assert body and text_of(body[1]).encode() == BODY
    assert "whsec_5dQ" in page.words and "Marguerite Okafor retried" in page.words
    file = await administrator.get(f"{PATH}?body")
    assert file.text.encode() == BODY and file.headers["Content-Type"].startswith("application/json")
    assert (await administrator.get(f"/events/{EVENT}?body")).text.encode() == BODY
    assert "webhook-signature: v1,fresh=" in page.words and page.words.count("9e07" * 16) == 1
    assert "attempt 3," in (await administrator.get(f"{PATH}?attempt=3")).words
    row = await administrator.get(PATH, HX_Request_Type="partial")
    assert row.text.lstrip().startswith('<tr class="detail"') and "<html" not in row.text


@pytest.mark.parametrize(
    ("act", "rpc", "request_type"),
    [
        ("retry", "RetryDelivery", pb.RetryDeliveryRequest),
        ("attempt", "AttemptNow", pb.AttemptNowRequest),
        ("resend", "Resend", pb.ResendRequest),
    ],
)
async def test_each_act_is_one_rpc_with_the_forms_key(
    act: str, rpc: str, request_type: Callable[..., Any], administrator: Browser, stubs: Stubs
) -> None:
    at = {"retry": samples()[3], "attempt": samples()[0], "resend": samples()[2]}[act].event_id
    await administrator.get(f"/webhooks/7/deliveries/{at}")
    path = f"/webhooks/7/deliveries/{at}/{act}"
    form = administrator.form(path)
    reply = await administrator.follow(await administrator.post(path, form))
    assert "failed: 503 after 195 ms." in reply.words
    assert stubs.called(f"webhooks.AdministrationService/{rpc}") == [
        request_type(sub_id=7, event_id=at, idempotency_key=form["act"])
    ]
    await administrator.get("/webhooks/7/deliveries")
    assert f'action="{path}"' in administrator.page.text or act == "resend"  # type: ignore[union-attr]
    back = await administrator.post(path, {**form, "next": "//evil.example"})
    assert back.headers["Location"] == "/"


async def test_selected_deliveries_are_retried_at_once(administrator: Browser, stubs: Stubs) -> None:
    stubs.answers["webhooks.AdministrationService/RetryParked"] = pb.RetryParkedResponse(deliveries=1)
    await administrator.get("/webhooks/7/deliveries?state=parked")
    path = "/webhooks/7/deliveries/retry"
    form = administrator.form(path)
    reply = await administrator.follow(
        await administrator.post(path, [*form.items(), ("event_id", EVENT), ("event_id", "x' OR 1=1")])
    )
    assert "1 delivery queued for the next sweep." in reply.words
    (sent,) = stubs.called("webhooks.AdministrationService/RetryParked")
    assert list(sent.event_ids) == [EVENT] and sent.idempotency_key == form["act"]
    reply = await administrator.follow(await administrator.post(path, form))
    assert "Select deliveries first" in reply.words
    assert len(stubs.called("webhooks.AdministrationService/RetryParked")) == 1


async def test_filters_become_the_request(administrator: Browser, stubs: Stubs) -> None:
    query = "event=ticket.created&kind=ticket&id=102&from=2026-11-20&to=2026-11-21"
    reply = await administrator.get(f"/webhooks/7/deliveries?state=parked&{query}&csv=1")
    assert reply.headers["Content-Type"].startswith("text/csv") and TITLE in reply.text
    (request,) = stubs.called("webhooks.DeliveriesService/ListDeliveries")
    assert (request.state, request.event, request.entity_type, request.entity_id) == (
        3,
        "ticket.created",
        "ticket",
        102,
    )
    # Days of New York, both included.
    assert (request.since.ToJsonString(), request.until.ToJsonString()) == (
        "2026-11-20T05:00:00Z",
        "2026-11-22T05:00:00Z",
    )
    reply = await administrator.get(f"/events?{query}&outcome=undelivered&csv=1")
    (request,) = stubs.called("webhooks.AdministrationService/ListEvents")
    assert (request.event, request.entity_id, request.outcome) == ("ticket.created", 102, pb.EVENT_OUTCOME_UNDELIVERED)
    for wrong in ("id=x", "kind=ticket&id=-1", "from=yesterday", "event=nonsense", "kind=house"):
        assert 'role="alert"' in (await administrator.get(f"/events?{wrong}")).text, wrong
    for wrong in ("id=4", "kind=ticket", "from=x"):
        assert 'role="alert"' in (await administrator.get(f"/webhooks/7/deliveries?{wrong}")).text, wrong


async def test_an_exact_id_leads_to_its_page(administrator: Browser) -> None:
    for text, path in (
        (EVENT, f"/events/{EVENT}"),
        (EVENT.upper(), f"/events/{EVENT}"),
        (f"7/{EVENT}", PATH),
        (REQUEST, f"/events?request_id={REQUEST}"),
    ):
        reply = await administrator.get(f"/events/found?q={text}")
        assert (reply.status, reply.headers.get("Location")) == (303, path)
    for text in ("", "tap", EVENT[:-1] + "0", "%00", "no heat since morning"):
        assert (await administrator.get(f"/events/found?q={text}")).status == 200


async def test_staff_see_which_hosts_were_told_without_links(staff: Browser) -> None:
    reply = await staff.get("/events/panel?kind=ticket&id=102", HX_Request_Type="partial")
    assert "needs retry" in reply.words and "hooks.leasing.example" in reply.words
    assert "<a" not in reply.text and "makeready/v1" not in reply.text
