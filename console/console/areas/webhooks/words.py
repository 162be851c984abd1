"""What the pages of webhook subscriptions say in sentences: what is wrong, how an attempt ended, who did what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from console.kit import attempt_words
from console.kit.records import Record
from console.kit.texts import _, ngettext
from console.kit.times import Wall, apart
from makeready.common.v1 import audit_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb

# The ten keys that a subscription can name (spec 6.1), by the record that they are about.
EVENTS: Sequence[tuple[str, str]] = (
    ("ticket.created", _("ticket opened")),
    ("ticket.status_changed", _("ticket status changed")),
    ("ticket.stale", _("ticket response overdue")),
    ("turn.status_changed", _("unit status changed")),
    ("turn.schedule_changed", _("ready date changed")),
    ("turn.task.stale", _("make-ready task overdue")),
    ("pm.stale", _("preventive maintenance overdue")),
    ("inspection.stale", _("inspection overdue")),
    ("property.notice.published", _("notice published")),
    ("vendor.hold", _("vendor hold placed")),
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
    waits = ngettext("%(num)s delivery waiting", "%(num)s deliveries waiting", undelivered.waiting)
    waits %= {"num": f"{undelivered.waiting:,}"}
    if not subscription.company_active:
        until = _("%(waiting)s until it is active again.") % {"waiting": waits}
        return Trouble("amber", "lock", _("The company is inactive."), [until])
    if subscription.health == "paused":
        since = wall.text(subscription.paused_at) if subscription.HasField("paused_at") else ""
        sentence = _("Paused since %(when)s") % {"when": since} if since else _("Paused")
        sentence += f" · {paused_by}." if paused_by else "."
        consequences = [_("%(waiting)s until you resume it.") % {"waiting": waits}]
        if not undelivered.waiting:
            consequences = [_("New events wait until you resume it.")]
        return Trouble("amber", "pause", sentence, [*consequences, *_parked(undelivered.parked, kept_until)], "resume")
    is_failing = subscription.HasField("failing_since")
    sentence = _("Failing since %(when)s") % {"when": wall.text(subscription.failing_since)} if is_failing else ""
    if sentence:
        sentence += ", " + _("mostly %(failure)s.") % {"failure": failure} if failure else "."
    if undelivered.parked:
        more = _parked(undelivered.parked, kept_until)
        tone = "red" if is_failing else "amber"
        return Trouble(tone, "warn", sentence or _("It is working again."), more, "retry")
    if not sentence:
        return None
    more = []
    if undelivered.waiting:
        more = [f"{waits}."]
    tone = "red" if subscription.health == "dead_lettered" else "amber"
    return Trouble(tone, "warn", sentence, more, "test")


def _parked(parked: int, kept_until: str) -> Sequence[str]:
    if not parked:
        return ()
    sentence = ngettext("%(num)s delivery needs a retry.", "%(num)s deliveries need a retry.", parked)
    sentence %= {"num": f"{parked:,}"}
    if not kept_until:
        return (sentence,)
    return (sentence, _("The oldest is kept until %(day)s.") % {"day": kept_until})


# History


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
        "subscription.created": _("created the endpoint"),
        "subscription.deleted": _("deleted the endpoint"),
        "subscription.resumed": _("resumed the endpoint"),
        "subscription.secret_rotated": _("rotated the secret"),
        "subscription.tested": _("sent a test"),
        "delivery.retried": _("retried a delivery"),
        "delivery.attempted": _("attempted a delivery now"),
        "delivery.resent": _("resent a delivery"),
    }
    if entry.action in plain:
        return Change(plain[entry.action], event_id)
    if entry.action == "subscription.paused":
        reason = str(after.get("pause_reason") or "")
        return Change(_("paused the endpoint") + (f": “{reason}”" if reason else ""))
    if entry.action == "deliveries.retried" and isinstance(after.get("deliveries"), int):
        words = ngettext("retried %(num)s delivery", "retried %(num)s deliveries", after["deliveries"])
        return Change(words % {"num": after["deliveries"]})
    if entry.action == "subscription.changed":
        return Change(_("changed %(what)s") % {"what": _changed(before, after)})
    return Change(entry.action)


def _changed(before: Record, after: Record) -> str:
    parts = []
    if before.get("destination_url") != after.get("destination_url"):
        parts.append(_("the URL to %(url)s") % {"url": after.get("destination_url", "")})
    was, now = (set(map(str, state.get("events") or ())) for state in (before, after))
    if was != now:
        names = [f"+ {event}" for event in sorted(now - was)] + [f"- {event}" for event in sorted(was - now)]
        parts.append(_("the events (%(events)s)") % {"events": ", ".join(names)})
    return ", ".join(parts) or _("the endpoint")


def _object(data: bytes) -> Record:
    try:
        parsed = json.loads(data) if data else {}
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


# Signatures


# The tone, the icon, the verdict and what to do about it. age: of the signature; most: what receivers accept.
_VERDICTS = {
    pb.SIGNATURE_VERDICT_GENUINE: (
        "green",
        "check",
        _("Valid signature."),
        _("Signed with the current secret, {age}."),
    ),
    pb.SIGNATURE_VERDICT_STALE: (
        "amber",
        "clock",
        _("Too old: signed {age}."),
        _(
            "The secret and body are correct. Receivers refuse signatures older than {most}: check the receiver's"
            " clock, and verify when the request arrives, not later from a queue."
        ),
    ),
    pb.SIGNATURE_VERDICT_RESERIALIZED: (
        "red",
        "x",
        _("The body was rewritten."),
        _(
            "The secret is correct and the JSON is equal, but its bytes differ. Verify the raw body before a framework"
            " parses it."
        ),
    ),
    pb.SIGNATURE_VERDICT_OTHER_BODY: (
        "red",
        "x",
        _("Different body."),
        _(
            "The signature matches the stored body of this event, but this body differs. Something changes it on the"
            " way, or the header and the body are from two requests."
        ),
    ),
    pb.SIGNATURE_VERDICT_MALFORMED: (
        "red",
        "x",
        _("Not a Service-Signature header."),
        _("The value looks like t=SECONDS,v1=HEX, with 64 lowercase hexadecimal digits."),
    ),
}
_WRONG_SECRET = (
    "red",
    "x",
    _("Wrong secret."),
    _("Not signed with the current secret. Compare the first characters of your receiver's secret with those above;"
      " after a rotation the old secret no longer works."),
)  # fmt: skip


def verdict(check: pb.CheckSignatureResponse) -> tuple[str, str, str, str]:
    """The tone, the icon, the verdict and what to do about it."""
    tone, icon, *sentences = _VERDICTS.get(check.verdict, _WRONG_SECRET)
    age = (_("%(time)s ago") if check.age_seconds >= 0 else _("%(time)s in the future")) % {
        "time": apart(check.age_seconds)
    }
    title, advice = (sentence.format(age=age, most=apart(check.age_seconds_max)) for sentence in sentences)
    return tone, icon, title, advice
