"""The actions on webhook subscriptions, each with the page that asks for it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from aiohttp import web
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.refusals import Refusal
from console.areas.webhooks import endpoint, receiver, words
from console.areas.webhooks.endpoint import COUNT, GET
from console.areas.webhooks.pages import HERE, PATH
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Field, Form
from console.kit.links import with_query
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from console.kit.sending import needs_confirmation
from console.kit.texts import _
from makeready.webhooks.v1 import webhooks_pb2 as pb

ADD = "webhooks.AdministrationService/AddSubscription"
CHANGE = "webhooks.AdministrationService/UpdateSubscription"
REMOVE = "webhooks.AdministrationService/RemoveSubscription"
PAUSE = "webhooks.AdministrationService/PauseSubscription"
RESUME = "webhooks.AdministrationService/ResumeSubscription"
ROTATE = "webhooks.AdministrationService/RotateSecret"
TEST = "webhooks.AdministrationService/SendTest"
CHECK = "webhooks.AdministrationService/CheckSignature"
RETRY = "webhooks.AdministrationService/RetryParked"
PROGRESS = "webhooks.DeliveriesService/GetRetryProgress"
RETRIES = (GET, COUNT, PROGRESS, NAMES)

TEST_SECONDS = 30.0  # an attempt takes ten at most, and may wait for another one of the same receiver
RETRY_SECONDS = 120.0  # thousands of deliveries
REASON_MAX = {"maxlength": "500"}
LAST_SECOND = 253402300799  # of the year 9999


async def _subscription(context: PageContext) -> pb.GetSubscriptionResponse:
    response: pb.GetSubscriptionResponse = await context.rpcs.call(
        GET, pb.GetSubscriptionRequest(sub_id=context.number("sub_id"))
    )
    return response


def _path(sub_id: int, suffix: str = "") -> str:
    return f"{PATH}/{sub_id}{suffix}"


def _is_shown(refusal: Refusal) -> bool:
    """Whether the form shows the refusal; of others the page of errors or of the confirmation does."""
    return refusal.status != 404 and not needs_confirmation(refusal)


# Create and change


def _fields() -> Sequence[Field]:
    looks = {"placeholder": "https://hooks.example.com/makeready", "maxlength": "2000", "spellcheck": "false"}
    address = _("Your server's public https URL, without user name and password.")
    events = _("Choose the events that your server handles.")
    choices = [(key, f"{key}: {meaning}") for key, meaning in words.EVENTS]
    return (
        Field("destination_url", _("URL"), address, required=True, more=looks),
        Field("events", _("Events"), events, choices=choices, required=True),
    )


async def show_create(context: PageContext) -> web.StreamResponse:
    return context.render("webhooks/create.html", here=HERE, form=Form(pb.AddSubscriptionRequest(), _fields()))


async def create(context: PageContext) -> web.StreamResponse:
    """Shows the secret once."""
    form = Form(pb.AddSubscriptionRequest(), _fields())
    if form.read(context.form):
        form.message.idempotency_key = context.form_token
        try:
            created = await context.rpcs.call(ADD, form.message)
        except Refusal as refusal:
            if not _is_shown(refusal):
                raise
            form.refuse(refusal)
        else:
            return context.render(
                "webhooks/secret.html", here=HERE, subscription=created.subscription, secret=created.secret,
                is_new=True, words=words, snippets=receiver.SNIPPETS,
            )  # fmt: skip
    return context.render("webhooks/create.html", 422, here=HERE, form=form)


async def show_change(context: PageContext) -> web.StreamResponse:
    subscription = (await _subscription(context)).subscription
    return context.render(
        "webhooks/change.html", here=HERE, subscription=subscription, form=_change_form(subscription), words=words
    )


def _change_form(subscription: pb.SubscriptionDetails) -> Form:
    request = pb.UpdateSubscriptionRequest(
        sub_id=subscription.sub_id, destination_url=subscription.destination_url, events=subscription.events
    )
    return Form(request, _fields())


async def change(context: PageContext) -> web.StreamResponse:
    subscription = (await _subscription(context)).subscription
    form = _change_form(subscription)
    if form.read(context.form):
        request = form.message
        request.idempotency_key = context.form_token
        # A name that does not resolve now is no reason to refuse.
        if request.destination_url == subscription.destination_url:
            request.ClearField("destination_url")
        try:
            await context.rpcs.call(CHANGE, request)
        except Refusal as refusal:
            if not _is_shown(refusal):
                raise
            form.refuse(refusal)
        else:
            return context.redirect(_path(subscription.sub_id), _("Endpoint updated."))
    return context.render("webhooks/change.html", 422, here=HERE, subscription=subscription, form=form, words=words)


# Delete


async def show_delete(context: PageContext) -> web.StreamResponse:
    return await _delete(context)


async def _delete(context: PageContext, status: int = 200, error: str = "") -> web.Response:
    sub_id = context.number("sub_id")
    response, counted = await together(
        _subscription(context), context.rpcs.panel(COUNT, pb.CountDeliveriesRequest(sub_id=sub_id))
    )
    return context.render(
        "webhooks/delete.html",
        status,
        here=HERE,
        subscription=response.subscription,
        counted=counted,
        error=error,
        words=words,
    )


async def delete(context: PageContext) -> web.StreamResponse:
    """Wants the host typed."""
    subscription = (await _subscription(context)).subscription
    host = words.host_of(subscription.destination_url)
    if context.form.get("host", "").strip().lower() != host.lower():
        return await _delete(context, 422, _("Type the host exactly as shown to delete the endpoint."))
    done = await context.rpcs.call(
        REMOVE, pb.RemoveSubscriptionRequest(sub_id=subscription.sub_id, idempotency_key=context.form_token)
    )
    message = _("Endpoint %(host)s deleted with %(deliveries)s deliveries, %(lost)s of them undelivered.")
    numbers = {"host": host, "deliveries": f"{done.deliveries:,}", "lost": f"{done.undelivered:,}"}
    return context.redirect(PATH, message % numbers)


# Pause and resume


def _pause_form(sub_id: int, reason: str = "") -> Form:
    request = pb.PauseSubscriptionRequest(sub_id=sub_id)
    if reason:
        request.reason = reason
    hint = _("Optional. Shown on the endpoint's page and in the audit log.")
    return Form(request, [Field("reason", _("Reason"), hint, kind="area", more=REASON_MAX)])


async def show_pause(context: PageContext) -> web.StreamResponse:
    subscription = (await _subscription(context)).subscription
    return context.render(
        "webhooks/pause.html", here=HERE, subscription=subscription, form=_pause_form(subscription.sub_id), words=words
    )


async def pause(context: PageContext) -> web.StreamResponse:
    sub_id = context.number("sub_id")
    form = _pause_form(sub_id)
    refused = not form.read(context.form)
    if not refused:
        form.message.idempotency_key = context.form_token
        try:
            await context.rpcs.call(PAUSE, form.message)
        except Refusal as refusal:
            if not _is_shown(refusal):
                raise
            form.refuse(refusal)
            refused = True
    if refused:
        subscription = (await _subscription(context)).subscription
        return context.render("webhooks/pause.html", 422, here=HERE, subscription=subscription, form=form, words=words)
    goes_on = context.form.get("then") == "rotate"
    message = _("Endpoint paused. Deliveries wait until you resume it.")
    return context.redirect(_path(sub_id, "/rotate" if goes_on else ""), message)


async def resume(context: PageContext) -> web.StreamResponse:
    sub_id = context.number("sub_id")
    await context.rpcs.call(RESUME, pb.ResumeSubscriptionRequest(sub_id=sub_id, idempotency_key=context.form_token))
    return context.redirect(_path(sub_id), _("Endpoint resumed. Waiting deliveries are attempted with the next sweep."))


# The secret


async def show_rotate(context: PageContext) -> web.StreamResponse:
    return await _rotate(context)


async def _rotate(context: PageContext, status: int = 200, error: str = "") -> web.Response:
    subscription = (await _subscription(context)).subscription
    return context.render(
        "webhooks/rotate.html", status, here=HERE, subscription=subscription, error=error, words=words
    )


async def rotate(context: PageContext) -> web.StreamResponse:
    """Shows the new secret once."""
    sub_id = context.number("sub_id")
    try:
        done = await context.rpcs.call(
            ROTATE, pb.RotateSecretRequest(sub_id=sub_id, idempotency_key=context.form_token)
        )
    except Refusal as refusal:
        if not _is_shown(refusal):
            raise
        return await _rotate(context, refusal.status, refusal.message)
    subscription = (await _subscription(context)).subscription
    return context.render(
        "webhooks/secret.html", here=HERE, subscription=subscription, secret=done.secret, is_new=False, words=words,
        snippets=receiver.SNIPPETS,
    )  # fmt: skip


# Test and check


async def test(context: PageContext) -> web.StreamResponse:
    """Shows how it ended on the endpoint's page."""
    request = pb.SendTestRequest(sub_id=context.number("sub_id"), idempotency_key=context.form_token)
    try:
        done = await context.rpcs.call(TEST, request, deadline_seconds=TEST_SECONDS)
    except Refusal as refusal:
        if not _is_shown(refusal):
            raise
        return await endpoint.page(context, refusal.status, error=refusal.message)
    return await endpoint.page(context, tested=done.delivery)


async def show_check(context: PageContext) -> web.StreamResponse:
    return await _check(context, SignatureCheck())


@dataclass(frozen=True, slots=True)
class SignatureCheck:
    """What the form of a check holds, and what came of it. was_cut: line breaks at the end were left out."""

    signature: str = ""
    body: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    verdict: tuple[str, str, str, str] | None = None
    was_cut: bool = False
    event_id: str = ""


async def _check(context: PageContext, check: SignatureCheck, status: int = 200) -> web.Response:
    subscription = (await _subscription(context)).subscription
    return context.render(
        "webhooks/signature.html", status, here=HERE, subscription=subscription, words=words, check=check
    )


async def check(context: PageContext) -> web.StreamResponse:
    """Nothing of it is stored: what was sent goes back into the form alone."""
    signature, sent = context.form.get("signature", "").strip(), context.form.get("body", "")
    # Browsers send the line breaks of a form as CR LF, and people copy one more at the end.
    text = sent.replace("\r\n", "\n")
    body = text.rstrip("\n")
    sent_check = SignatureCheck(signature, text)
    if not signature:
        return await _check(context, replace(sent_check, errors={"signature": _("Enter the header.")}), 422)
    request = pb.CheckSignatureRequest(sub_id=context.number("sub_id"), signature=signature, body=body.encode())
    try:
        answer = await context.rpcs.call(CHECK, request)
    except Refusal as refusal:
        if not _is_shown(refusal):
            raise
        return await _check(context, replace(sent_check, errors={refusal.field or "body": refusal.message}), 422)
    was_cut = len(body) < len(text)
    done = replace(sent_check, verdict=words.verdict(answer), was_cut=was_cut, event_id=answer.event_id)
    return await _check(context, done)


# Retry of what is parked


def _period(
    context: PageContext, values: Mapping[str, str]
) -> tuple[pb.CountDeliveriesRequest, dict[str, str], dict[str, str]]:
    """The parked deliveries that the fields `from`, `to` and `event` name, the fields, and their errors."""
    request = pb.CountDeliveriesRequest(sub_id=context.number("sub_id"), state=pb.DELIVERY_STATE_PARKED)
    chosen = {name: str(values.get(name, "")).strip()[:40] for name in ("from", "to", "event")}
    errors = {}
    for name, stamp, days in (("from", request.since, 0), ("to", request.until, 1)):
        if chosen[name]:
            try:
                date = datetime.date.fromisoformat(chosen[name]) + datetime.timedelta(days=days)
                stamp.FromDatetime(datetime.datetime.combine(date, datetime.time(), context.wall.zone))
            except (ValueError, OverflowError):
                errors[name] = _("Enter a date such as 2026-11-22.")
    if chosen["event"] in dict(words.EVENTS):
        request.event = chosen["event"]
    elif chosen["event"]:
        errors["event"] = _("Choose one of the events.")
    return request, chosen, errors


async def show_retry(context: PageContext) -> web.StreamResponse:
    return await _retry(context)


async def _retry(context: PageContext, status: int = 200, error: str = "") -> web.Response:
    request, chosen, errors = _period(context, context.form if context.form else context.query)
    since = _instant(context.query.get("retried", ""))
    progress = pb.GetRetryProgressRequest(sub_id=request.sub_id, since=since)
    work = [_subscription(context), context.rpcs.panel(COUNT, request)]
    response, counted, *optional = await together(*work, *([context.rpcs.panel(PROGRESS, progress)] if since else []))
    subscription = response.subscription
    names = await names_of(context.rpcs, [subscription.paused_by])
    here = _path(subscription.sub_id, "/retry")
    return context.render(
        "webhooks/retry.html", status, here=HERE, subscription=subscription, words=words, chosen=chosen, errors=errors,
        error=error, counted=counted, since=since, progress=optional[0] if optional else None,
        next_sweep_at=response.next_sweep_at, path=here,
        again=with_query(here, {**chosen, "retried": context.query.get("retried", "")}), names=names,
    )  # fmt: skip


def _instant(text: str) -> Timestamp | None:
    """The instant in an address, in seconds since 1970; None for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) < 13 and int(text) <= LAST_SECOND):
        return None
    return Timestamp(seconds=int(text))


async def retry(context: PageContext) -> web.StreamResponse:
    counted, chosen, errors = _period(context, context.form)
    if errors:
        return await _retry(context, 422)
    request = pb.RetryParkedRequest(sub_id=counted.sub_id, idempotency_key=context.form_token, event=counted.event)
    if counted.HasField("since"):
        request.since.CopyFrom(counted.since)
    if counted.HasField("until"):
        request.until.CopyFrom(counted.until)
    try:
        done = await context.rpcs.call(RETRY, request, deadline_seconds=RETRY_SECONDS)
    except Refusal as refusal:
        if not _is_shown(refusal):
            raise
        return await _retry(context, refusal.status, refusal.message)
    # The second click of a double click may have found nothing left: the progress is that of the first.
    retried = {**chosen, "retried": done.retried_at.seconds}
    return context.redirect(with_query(_path(counted.sub_id, "/retry"), retried))
