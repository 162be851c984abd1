"""`makeready webhooks deliveries|parked|expiring|retry …`."""

from __future__ import annotations

import argparse
import datetime
import secrets
from typing import Any

from chassis.schedule.instants import now
from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, ensure_company
from makeready_cli.commands.webhooks import rendering as shapes
from makeready_cli.errors import CommandError, UsageError, printable
from makeready_cli.output import Answer, instant, table
from makeready_cli.parsers import Commands, command
from makeready_cli.rpc.actor import add_actor
from makeready_cli.rpc.arguments import KEY_BYTES

SERVICE = "svc-webhooks"
_RPCS = pb.DESCRIPTOR.services_by_name["AdministrationService"].methods_by_name
_READS = pb.DESCRIPTOR.services_by_name["DeliveriesService"].methods_by_name
PAGE = 200
UNDELIVERED_PAGE = 1000
RETRY_SECONDS = 60.0  # the attempt's own deadline, and that of another dispatcher's attempt that may be under way
ALL_PARKED_SECONDS = 3600.0


def add(verbs: Commands) -> None:
    showing = command(verbs, "deliveries", "list a subscription's deliveries, newest first")
    showing.add_argument("sub_id", metavar="SUB_ID", type=types.record_id)
    showing.add_argument("--state", choices=list(shapes.STATE_NUMBERS), help="only those in this state")
    showing.add_argument("--limit", metavar="N", type=types.rows, default=PAGE, help=f"at most (default {PAGE})")
    showing.add_argument("--before", metavar="EVENT_ID", default="", help="only of older events: the next page")
    showing.add_argument("--event", metavar="KEY", help="only of events with this key")
    showing.add_argument("--entity-type", metavar="KIND", help="only about the record of this kind, such as ticket")
    showing.add_argument("--entity-id", metavar="ID", type=types.record_id, help="with this id")
    showing.add_argument("--since", metavar="TIME", type=types.instant, help="only of events made then or later")
    showing.add_argument("--until", metavar="TIME", type=types.instant, help="only of events made before")
    add_actor(showing, _READS["ListDeliveries"])
    showing.set_defaults(run=list_deliveries)

    counting = command(
        verbs,
        "count",
        "count a subscription's deliveries",
        description="Counts deliveries, for example the parked ones of a period before `webhooks retry --all-parked`.",
    )
    counting.add_argument("sub_id", metavar="SUB_ID", type=types.record_id)
    counting.add_argument("--state", choices=list(shapes.STATE_NUMBERS), help="only those in this state")
    counting.add_argument("--event", metavar="KEY", help="only of events with this key")
    counting.add_argument("--since", metavar="TIME", type=types.instant, help="only of events made then or later")
    counting.add_argument("--until", metavar="TIME", type=types.instant, help="only of events made before")
    add_actor(counting, _READS["CountDeliveries"])
    counting.set_defaults(run=count)

    parking = command(
        verbs,
        "parked",
        "list a company's parked deliveries, oldest first",
        description="Lists the deliveries whose retries are used up, with the last attempt of each and the day on "
        "which it goes: the oldest go first. What stands in the first column is what `webhooks retry` takes.",
    )
    parking.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    parking.add_argument("--limit", metavar="N", type=types.rows, help="at most (default: all)")
    add_actor(parking, _RPCS["ListUndelivered"])
    parking.set_defaults(run=list_parked)

    expiring = command(
        verbs,
        "expiring",
        "list what a company will lose undelivered, soonest first",
        description="Lists the deliveries that wait or are parked and are about to go: 30 days after its day an event "
        "goes with all that is kept about it, delivered or not.",
    )
    expiring.add_argument("company_id", metavar="COMPANY_ID", type=types.record_id)
    expiring.add_argument("--within", metavar="DAYS", type=types.days, default=3, help="go within (default 3)")
    expiring.add_argument("--limit", metavar="N", type=types.rows, help="at most (default: all)")
    add_actor(expiring, _RPCS["ListUndelivered"])
    expiring.set_defaults(run=list_expiring)

    following = command(
        verbs,
        "retry-progress",
        "show how far a retry of parked deliveries is",
        description="Counts the attempts that `webhooks retry` has led to since an instant, and what still waits for "
        "its attempt.",
    )
    following.add_argument("sub_id", metavar="SUB_ID", type=types.record_id)
    following.add_argument(
        "--since", metavar="TIME", type=types.instant, required=True, help="when the retry was requested"
    )
    add_actor(following, _READS["GetRetryProgress"])
    following.set_defaults(run=retry_progress)

    retrying = command(
        verbs,
        "retry",
        "attempt parked deliveries once more",
        description="Attempts each parked delivery once, now, and prints the result; one that fails is parked "
        "again. With --all-parked, all of a subscription get one attempt each from the next sweep. Exit status 1 "
        "where one could not be attempted; an attempt that fails is none of that.",
    )
    retrying.add_argument("deliveries", metavar="EVENT_ID:SUB_ID", type=types.delivery_key, nargs="*")
    retrying.add_argument("--all-parked", metavar="SUB_ID", type=types.record_id)
    retrying.add_argument("--event", metavar="KEY", help="with --all-parked: only of events with this key")
    retrying.add_argument(
        "--since", metavar="TIME", type=types.instant, help="with --all-parked: only of events made then or later"
    )
    retrying.add_argument(
        "--until", metavar="TIME", type=types.instant, help="with --all-parked: only of events made before"
    )
    add_actor(retrying, _RPCS["RetryDelivery"])
    retrying.set_defaults(run=retry)


async def list_deliveries(operator: Operator, arguments: argparse.Namespace) -> Answer:
    found: list[pb.Delivery] = []
    before = arguments.before
    while (left := arguments.limit + 1 - len(found)) > 0:  # one more shows whether others follow
        request = pb.ListDeliveriesRequest(
            sub_id=arguments.sub_id,
            limit=min(left, PAGE),
            state=pb.DeliveryState.ValueType(shapes.STATE_NUMBERS.get(arguments.state, 0)),
            before_event_id=before,
            event=arguments.event,
            entity_type=arguments.entity_type,
            entity_id=arguments.entity_id,
            without_excerpts=False,
        )
        _set_instants(request, arguments)
        answer = await operator.call(SERVICE, request, pb.ListDeliveriesResponse)
        page = answer.deliveries
        found += page
        # A page of a filtered list may be short although another follows.
        if not answer.HasField("next_before_event_id") and len(page) < request.limit:
            break
        before = answer.next_before_event_id or page[-1].event_id
    first = found[: arguments.limit]
    next_before = first[-1].event_id if len(found) > len(first) else None
    rows = [
        (one.event_id, shapes.STATES[one.state], shapes.last(one.attempts), shapes.due(one), one.event) for one in first
    ]
    text = table(("EVENT ID", "STATE", "LAST", "DUE (UTC)", "EVENT"), rows, "No deliveries.")
    if next_before:
        text += f"\nMore follow with --before {next_before}"
    return Answer({"deliveries": [shapes.delivery(one) for one in first], "next_before": next_before}, text)


def _set_instants(request: Any, arguments: argparse.Namespace) -> None:
    for name in ("since", "until"):
        if (at := getattr(arguments, name)) is not None:
            getattr(request, name).FromDatetime(at)


async def count(operator: Operator, arguments: argparse.Namespace) -> Answer:
    state = pb.DeliveryState.ValueType(shapes.STATE_NUMBERS.get(arguments.state, 0))
    request = pb.CountDeliveriesRequest(sub_id=arguments.sub_id, state=state, event=arguments.event)
    _set_instants(request, arguments)
    found = await operator.call(SERVICE, request, pb.CountDeliveriesResponse)
    has_any = found.deliveries > 0
    value = {
        "sub_id": arguments.sub_id,
        "deliveries": found.deliveries,
        "first_made_at": instant(found.first_made_at) if has_any else None,
        "last_made_at": instant(found.last_made_at) if has_any else None,
        "first_expires_at": instant(found.first_expires_at) if has_any else None,
    }
    text = "1 delivery." if found.deliveries == 1 else f"{found.deliveries:,} deliveries."
    if has_any:
        text += f" The first goes on {shapes.day(found.first_expires_at)}."
    return Answer(value, text)


async def retry_progress(operator: Operator, arguments: argparse.Namespace) -> Answer:
    request = pb.GetRetryProgressRequest(sub_id=arguments.sub_id)
    request.since.FromDatetime(arguments.since)
    found = await operator.call(SERVICE, request, pb.GetRetryProgressResponse)
    value = {
        "sub_id": arguments.sub_id,
        "succeeded": found.succeeded,
        "failed": found.failed,
        "waiting": found.waiting,
        "next_sweep_at": instant(found.next_sweep_at),
    }
    text = f"{found.succeeded:,} arrived, {found.failed:,} failed again, {found.waiting:,} wait for the next sweep"
    return Answer(value, f"{text} at {instant(found.next_sweep_at)}." if found.waiting else f"{text}.")


async def list_parked(operator: Operator, arguments: argparse.Namespace) -> Answer:
    found, more = await _undelivered(operator, arguments, pb.ListUndeliveredRequest(state=pb.DELIVERY_STATE_PARKED))
    rows = [
        (
            f"{one.event_id}:{one.sub_id}",
            shapes.last(one.attempts),
            shapes.day(one.expires_at),
            one.event,
        )
        for one in found
    ]
    return _listed(found, more, table(("EVENT_ID:SUB_ID", "LAST", "GOES", "EVENT"), rows, "Nothing is parked."))


async def list_expiring(operator: Operator, arguments: argparse.Namespace) -> Answer:
    request = pb.ListUndeliveredRequest()
    request.expires_before.FromDatetime(now() + datetime.timedelta(days=arguments.within))
    found, more = await _undelivered(operator, arguments, request)
    rows = [
        (
            f"{one.event_id}:{one.sub_id}",
            shapes.held(one) or shapes.STATES[one.state],
            shapes.last(one.attempts),
            shapes.day(one.expires_at)[5:],
            one.event,
        )
        for one in found
    ]
    when_empty = f"Nothing goes undelivered within {arguments.within} days."
    return _listed(found, more, table(("EVENT_ID:SUB_ID", "STATE", "LAST", "GOES", "EVENT"), rows, when_empty))


async def _undelivered(
    operator: Operator, arguments: argparse.Namespace, request: pb.ListUndeliveredRequest
) -> tuple[list[pb.Delivery], bool]:
    """At most --limit undelivered deliveries, and whether there are more."""
    await ensure_company(operator, arguments.company_id)
    found: list[pb.Delivery] = []
    while True:
        left = UNDELIVERED_PAGE if arguments.limit is None else arguments.limit - len(found)
        request.limit = min(left, UNDELIVERED_PAGE)
        page = await operator.call(
            SERVICE, request, pb.ListUndeliveredResponse, company_id=arguments.company_id, deadline_seconds=60.0
        )
        found += page.deliveries
        if not page.more or len(found) == arguments.limit:
            return found, page.more
        request.after_event_id, request.after_sub_id = found[-1].event_id, found[-1].sub_id


def _listed(found: list[pb.Delivery], more: bool, text: str) -> Answer:
    value: dict[str, Any] = {"deliveries": [shapes.delivery(one) for one in found]}
    if more:
        value["more"] = True
        text += "\nMore follow; a larger --limit shows them."
    return Answer(value, text)


async def retry(operator: Operator, arguments: argparse.Namespace) -> Answer:
    if bool(arguments.deliveries) == (arguments.all_parked is not None):
        raise UsageError("give either deliveries as EVENT_ID:SUB_ID or --all-parked SUB_ID")
    operator.trace()
    if arguments.all_parked is not None:
        return await _retry_all(operator, arguments)
    if arguments.event or arguments.since or arguments.until:
        raise UsageError("--event, --since and --until go with --all-parked")
    done: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    lines: list[str] = []
    keys = dict.fromkeys(arguments.deliveries)
    for event_id, sub_id in keys:
        request = pb.RetryDeliveryRequest(event_id=event_id, sub_id=sub_id, idempotency_key=_key())
        try:
            answer = await operator.call(SERVICE, request, pb.RetryDeliveryResponse, deadline_seconds=RETRY_SECONDS)
        except CommandError as failed:
            if len(keys) == 1:
                raise
            refused.append({"event_id": event_id, "sub_id": sub_id, "reason": str(failed)})
            lines.append(f"{printable(event_id)}:{sub_id}  not attempted: {failed}")
        else:
            done.append(shapes.delivery(answer.delivery))
            lines.append(f"{event_id}:{sub_id}  {shapes.attempted(answer.delivery)}")
    value = {"deliveries": done} | ({"refused": refused} if refused else {})
    return Answer(value, "\n".join(lines), 1 if refused else 0)


async def _retry_all(operator: Operator, arguments: argparse.Namespace) -> Answer:
    sub_id: int = arguments.all_parked
    request = pb.RetryParkedRequest(sub_id=sub_id, idempotency_key=_key(), event=arguments.event)
    _set_instants(request, arguments)
    answer = await operator.call(SERVICE, request, pb.RetryParkedResponse, deadline_seconds=ALL_PARKED_SECONDS)
    text = f"{answer.deliveries} parked deliveries are due: one attempt each with the next sweep."
    return Answer({"sub_id": sub_id, "due": answer.deliveries}, text)


def _key() -> str:
    """A new idempotency key."""
    return secrets.token_hex(KEY_BYTES)
