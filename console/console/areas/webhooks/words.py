"""What the pages of webhook subscriptions say in sentences: what is wrong, how an attempt ended, who did what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from console.kit import attempt_words
from console.kit.records import Record
from console.kit.times import Wall, apart, count
from makeready.common.v1 import audit_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb

# The ten keys that a subscription can name (spec 6.1), by the record that they are about.
EVENTS: Sequence[tuple[str, str]] = (
    ("ticket.created", "a ticket was opened"),
    ("ticket.status_changed", "a ticket has another status"),
    ("ticket.stale", "a ticket was quiet for too long"),
    ("turn.status_changed", "a unit has another status"),
    ("turn.schedule_changed", "a unit is ready on another day"),
    ("turn.task.stale", "a make-ready task is late"),
    ("pm.stale", "planned upkeep is late"),
    ("inspection.stale", "an inspection is late"),
    ("property.notice.published", "a notice was published"),
    ("vendor.hold", "a vendor was put on hold or taken off it"),
)


def host_of(url: str) -> str:
    """The host of a destination with its port, unless that is the usual one."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url
    return (f"{host}:{port}" if port not in (None, 443) else host) or url


def most_frequent(stats: pb.GetDeliveryStatsResponse | None) -> str:
    """The failure that most failed attempts of a period had; empty if none failed."""
    for answer in stats.answers if stats is not None else ():
        if answer.error:
            return attempt_words.answer(answer)
    return ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with an endpoint, and what helps. help: "retry", "resume", "test" or empty."""

    tone: str
    icon: str
    sentence: str
    more: Sequence[str]
    help: str = ""


def trouble(
    subscription: pb.SubscriptionDetails, failure: str, kept_until: str, paused_by: str, wall: Wall
) -> Trouble | None:
    """None if nothing is wrong.

    failure: the most frequent one, as `most_frequent` says it; kept_until: the day on which the first parked delivery
    goes, if that is known; paused_by: the name of who paused it.
    """
    undelivered = subscription.undelivered
    waits = f"{count(undelivered.waiting, 'delivery')} {'waits' if undelivered.waiting == 1 else 'wait'}"
    if not subscription.company_active:
        return Trouble("amber", "lock", "The company is inactive.", [f"{waits} until it is active again."])
    if subscription.health == "paused":
        since = wall.text(subscription.paused_at) if subscription.HasField("paused_at") else ""
        sentence = "It is paused" + (f" since {since}" if since else "") + (f", by {paused_by}." if paused_by else ".")
        consequences = (
            [f"{waits} until it is resumed."] if undelivered.waiting else ["New events wait until it is resumed."]
        )
        return Trouble("amber", "pause", sentence, [*consequences, *_parked(undelivered.parked, kept_until)], "resume")
    is_failing = subscription.HasField("failing_since")
    sentence = f"It has failed since {wall.text(subscription.failing_since)}" if is_failing else ""
    if sentence:
        sentence += f", mostly with {failure}." if failure else "."
    if undelivered.parked:
        more = _parked(undelivered.parked, kept_until)
        tone = "red" if is_failing else "amber"
        return Trouble(tone, "warn", sentence or "It works again.", more, "retry")
    if not sentence:
        return None
    more = []
    if undelivered.waiting and undelivered.HasField("next_due_at"):
        more = [f"{waits}; the next attempt is due {_when(undelivered, wall)}."]
    tone = "red" if subscription.health == "dead_lettered" else "amber"
    return Trouble(tone, "warn", sentence, more, "test")


def _when(undelivered: pb.Undelivered, wall: Wall) -> str:
    at = wall.local(undelivered.next_due_at)
    return "now" if at is None or at <= wall.now else f"at {wall.text(undelivered.next_due_at)}"


def _parked(parked: int, kept_until: str) -> Sequence[str]:
    if not parked:
        return ()
    is_single = parked == 1
    sentence = f"{count(parked, 'delivery')} {'is' if is_single else 'are'} parked and will not be tried again by "
    sentence += "itself." if is_single else "themselves."
    if not kept_until:
        return (sentence,)
    return (
        sentence,
        f"It is kept until {kept_until}." if is_single else f"The first of them is kept until {kept_until}.",
    )


# Who did what


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the audit log in words, after the name of who did it."""

    words: str
    event_id: str = ""
    """The event whose delivery it concerns."""


def change_of(entry: audit_pb2.AuditEntry) -> Change:
    """For an action that is not known here, the action itself."""
    before, after = _object(entry.before), _object(entry.after)
    event_id = str(after.get("event_id", ""))
    plain = {
        "subscription.created": "made the endpoint",
        "subscription.deleted": "deleted the endpoint",
        "subscription.resumed": "resumed it",
        "subscription.secret_rotated": "rotated the secret",
        "subscription.tested": "sent a test",
        "delivery.retried": "retried a delivery",
        "delivery.attempted": "attempted a delivery before its date",
        "delivery.resent": "sent a delivery again",
    }
    if entry.action in plain:
        return Change(plain[entry.action], event_id)
    if entry.action == "subscription.paused":
        reason = str(after.get("pause_reason") or "")
        return Change(f"paused it: “{reason}”" if reason else "paused it")
    if entry.action == "deliveries.retried" and isinstance(after.get("deliveries"), int):
        return Change(f"retried {count(after['deliveries'], 'parked delivery')}")
    if entry.action == "subscription.changed":
        return Change(f"changed {_changed(before, after)}")
    return Change(entry.action)


def _changed(before: Record, after: Record) -> str:
    parts = []
    if before.get("destination_url") != after.get("destination_url"):
        parts.append(f"the destination to {after.get('destination_url', '')}")
    was, now = (set(map(str, state.get("events") or ())) for state in (before, after))
    if was != now:
        names = [f"+ {event}" for event in sorted(now - was)] + [f"- {event}" for event in sorted(was - now)]
        parts.append(f"the events ({', '.join(names)})")
    return " and ".join(parts) or "it"


def _object(data: bytes) -> Record:
    try:
        parsed = json.loads(data) if data else {}
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


# Signatures


# The tone, the icon, the verdict and what to do about it. age: of the signature; most: what receivers accept.
_VERDICTS = {
    pb.SIGNATURE_VERDICT_GENUINE: ("green", "check", "Genuine.", "The present secret signed these bytes, {age}."),
    pb.SIGNATURE_VERDICT_STALE: (
        "amber",
        "clock",
        "Stale: it was signed {age}.",
        "The secret and the body are right. A receiver refuses what is older than {most}: check its clock, and verify"
        " when the request arrives, not later from a queue.",
    ),
    pb.SIGNATURE_VERDICT_RESERIALIZED: (
        "red",
        "x",
        "The body was written anew.",
        "The secret is right, and the JSON says the same, but its bytes are others. Verify the raw body, before a"
        " framework parses it.",
    ),
    pb.SIGNATURE_VERDICT_OTHER_BODY: (
        "red",
        "x",
        "Another body.",
        "The secret signed the stored body of this event, and this one has other content. Something on the way changes"
        " it, or header and body are of two requests.",
    ),
    pb.SIGNATURE_VERDICT_MALFORMED: (
        "red",
        "x",
        "That is no Service-Signature header.",
        "Its value has the form t=SECONDS,v1=HEX, with 64 hexadecimal digits in lower case.",
    ),
}
_WRONG_SECRET = (
    "red",
    "x",
    "Wrong secret.",
    "The present secret did not sign this. Compare the first characters of your receiver's secret with those above; "
    "after a rotation the old secret signs nothing.",
)  # fmt: skip


def verdict(check: pb.CheckSignatureResponse) -> tuple[str, str, str, str]:
    """The tone, the icon, the verdict and what to do about it."""
    tone, icon, *sentences = _VERDICTS.get(check.verdict, _WRONG_SECRET)
    age = f"{apart(check.age_seconds)} ago" if check.age_seconds >= 0 else f"{apart(check.age_seconds)} in the future"
    title, advice = (sentence.format(age=age, most=apart(check.age_seconds_max)) for sentence in sentences)
    return tone, icon, title, advice
