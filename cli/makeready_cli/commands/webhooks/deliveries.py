"""`makeready webhooks deliveries|parked|expiring|retry …`."""

from __future__ import annotations

import argparse
import datetime
import secrets

from chassis.schedule.instants import now
from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_cli import argument_types as types
from makeready_cli.calls import Operator, ensure_company
from makeready_cli.commands.webhooks import rendering as shapes
from makeready_cli.errors import CommandError, UsageError, printable
from makeready_cli.output import Answer, Record, table
from makeready_cli.parsers import Commands, Settings, command
from makeready_cli.rpc.actor import add_actor
from makeready_cli.rpc.arguments import KEY_BYTES, add_option, request_of
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.rendering import record_of

SERVICE = "svc-webhooks"
_RPCS = pb.DESCRIPTOR.services_by_name["AdministrationService"].methods_by_name
_READS = pb.DESCRIPTOR.services_by_name["DeliveriesService"].methods_by_name
PAGE = 200
UNDELIVERED_PAGE = 1000
RETRY_SECONDS = 60.0  # the attempt's own deadline, and that of another dispatcher's attempt that may be under way
ALL_PARKED_SECONDS = 3600.0
_PERIOD = ("event", "since", "until")
_OF_EVENT: dict[str, Settings] = {"event": {"metavar": "KEY"}}
_FILTERS: dict[str, Settings] = _OF_EVENT | {
    "state": {"required": False, "metavar": None, "help": "only those in this state"}
}
_AT_MOST: Settings = {"type": types.rows, "required": False, "help": "at most (default: all)"}


def add(verbs: Commands) -> None:
    """Adds the commands. Their options are the fields of their RPCs."""
    add_commands(verbs, *_commands())
    retrying = command(
        verbs,
        "retry",
        "retry parked deliveries once",
        description="Attempts each parked delivery once, now, and prints the result; one that fails is parked "
        "again. With --all-parked, all of a subscription get one attempt each from the next sweep. Exit status 1 "
        "where one could not be attempted; an attempt that fails is none of that.",
    )
    retrying.add_argument("deliveries", metavar="EVENT_ID:SUB_ID", type=types.delivery_key, nargs="*")
    retrying.add_argument("--all-parked", metavar="SUB_ID", type=types.record_id)
    for name in _PERIOD:
        add_option(retrying, _RPCS["RetryParked"].input_type.fields_by_name[name], _OF_EVENT.get(name, {}))
    add_actor(retrying, _RPCS["RetryDelivery"])
    retrying.set_defaults(run=retry)


def _commands() -> tuple[RpcCommand, ...]:
    newest: dict[str, Settings] = {
        "limit": {**_AT_MOST, "default": PAGE, "help": f"at most (default {PAGE})"},
        "before_event_id": {"flag": "--before", "metavar": "EVENT_ID", "required": False, "default": ""},
        "entity_type": {"metavar": "KIND"},
    }
    within = {"flag": "--within", "metavar": "DAYS", "type": types.days, "default": 3, "help": "go within (default 3)"}
    cursor = ("state", "after_event_id", "after_sub_id")
    return (
        RpcCommand(
            "deliveries",
            _READS["ListDeliveries"],
            "list a subscription's deliveries, newest first",
            company=False,
            settings=_FILTERS | newest,
            hidden=("without_excerpts",),
            run=list_deliveries,
        ),
        RpcCommand(
            "count",
            _READS["CountDeliveries"],
            "count a subscription's deliveries",
            "Counts deliveries, for example the parked ones of a period before `webhooks retry --all-parked`.",
            company=False,
            settings=_FILTERS,
            answer=_counted,
        ),
        RpcCommand(
            "parked",
            _RPCS["ListUndelivered"],
            "list deliveries that need a retry (parked), oldest first",
            "Lists the deliveries whose retries are used up, with the last attempt of each and the day on "
            "which it goes: the oldest go first. What stands in the first column is what `webhooks retry` takes.",
            settings={"limit": _AT_MOST},
            hidden=(*cursor, "expires_before"),
            run=list_parked,
        ),
        RpcCommand(
            "expiring",
            _RPCS["ListUndelivered"],
            "list what a company will lose undelivered, soonest first",
            "Lists the deliveries that wait or are parked and are about to go: 30 days after its day an event "
            "goes with all that is kept about it, delivered or not.",
            settings={"limit": _AT_MOST, "expires_before": within},
            hidden=cursor,
            run=list_expiring,
        ),
        RpcCommand(
            "retry-progress",
            _READS["GetRetryProgress"],
            "show how far a retry of parked deliveries is",
            "Counts the attempts that `webhooks retry` has led to since an instant, and what still waits for "
            "its attempt.",
            company=False,
            settings={"since": {"required": True}},
            answer=_progress,
        ),
    )


async def list_deliveries(operator: Operator, arguments: argparse.Namespace) -> Answer:
    request = request_of(_READS["ListDeliveries"], arguments)
    request.without_excerpts = False
    deliveries: list[pb.Delivery] = []
    while (remaining := arguments.limit + 1 - len(deliveries)) > 0:  # one more shows whether others follow
        request.limit = min(remaining, PAGE)
        response = await operator.call(SERVICE, request, pb.ListDeliveriesResponse)
        page = response.deliveries
        deliveries += page
        # A page of a filtered list may be short although another follows.
        if not response.HasField("next_before_event_id") and len(page) < request.limit:
            break
        request.before_event_id = response.next_before_event_id or page[-1].event_id
    first = deliveries[: arguments.limit]
    next_before = first[-1].event_id if len(deliveries) > len(first) else None
    rows = [
        (
            delivery.event_id,
            shapes.STATES[delivery.state],
            shapes.last(delivery.attempts),
            shapes.due(delivery),
            delivery.event,
        )
        for delivery in first
    ]
    text = table(("EVENT ID", "STATE", "LAST", "DUE (UTC)", "EVENT"), rows, "No deliveries.")
    if next_before:
        text += f"\nMore follow with --before {next_before}"
    return Answer(
        {"deliveries": [shapes.delivery_record(delivery) for delivery in first], "next_before": next_before}, text
    )


def _counted(counted: pb.CountDeliveriesResponse, arguments: argparse.Namespace) -> Answer:
    # Without deliveries the instants are absent.
    value = {"sub_id": arguments.sub_id, **record_of(counted)}
    text = "1 delivery." if counted.deliveries == 1 else f"{counted.deliveries:,} deliveries."
    if counted.deliveries:
        text += f" The first goes on {shapes.day(counted.first_expires_at)}."
    return Answer(value, text)


def _progress(progress: pb.GetRetryProgressResponse, arguments: argparse.Namespace) -> Answer:
    value = {"sub_id": arguments.sub_id, **record_of(progress)}
    text = f"{progress.succeeded:,} arrived, {progress.failed:,} failed again"
    text += f", {progress.waiting:,} wait for the next sweep"
    return Answer(value, f"{text} at {value['next_sweep_at']}." if progress.waiting else f"{text}.")


async def list_parked(operator: Operator, arguments: argparse.Namespace) -> Answer:
    request = pb.ListUndeliveredRequest(state=pb.DELIVERY_STATE_PARKED)
    deliveries, more = await _undelivered(operator, arguments, request)
    rows = [
        (_key_of(delivery), shapes.last(delivery.attempts), shapes.day(delivery.expires_at), delivery.event)
        for delivery in deliveries
    ]
    return _listed(deliveries, more, table(("EVENT_ID:SUB_ID", "LAST", "GOES", "EVENT"), rows, "Nothing is parked."))


async def list_expiring(operator: Operator, arguments: argparse.Namespace) -> Answer:
    days: int = arguments.expires_before
    request = pb.ListUndeliveredRequest()
    request.expires_before.FromDatetime(now() + datetime.timedelta(days=days))
    deliveries, more = await _undelivered(operator, arguments, request)
    rows = [
        (
            _key_of(delivery),
            shapes.held(delivery) or shapes.STATES[delivery.state],
            shapes.last(delivery.attempts),
            shapes.day(delivery.expires_at)[5:],
            delivery.event,
        )
        for delivery in deliveries
    ]
    when_empty = f"Nothing goes undelivered within {days} days."
    return _listed(deliveries, more, table(("EVENT_ID:SUB_ID", "STATE", "LAST", "GOES", "EVENT"), rows, when_empty))


def _key_of(delivery: pb.Delivery) -> str:
    """As `webhooks retry` takes it."""
    return f"{delivery.event_id}:{delivery.sub_id}"


async def _undelivered(
    operator: Operator, arguments: argparse.Namespace, request: pb.ListUndeliveredRequest
) -> tuple[list[pb.Delivery], bool]:
    """At most --limit undelivered deliveries, and whether there are more."""
    await ensure_company(operator, arguments.company_id)
    deliveries: list[pb.Delivery] = []
    while True:
        remaining = UNDELIVERED_PAGE if arguments.limit is None else arguments.limit - len(deliveries)
        request.limit = min(remaining, UNDELIVERED_PAGE)
        page = await operator.call(
            SERVICE, request, pb.ListUndeliveredResponse, company_id=arguments.company_id, deadline_seconds=60.0
        )
        deliveries += page.deliveries
        if not page.more or len(deliveries) == arguments.limit:
            return deliveries, page.more
        request.after_event_id, request.after_sub_id = deliveries[-1].event_id, deliveries[-1].sub_id


def _listed(deliveries: list[pb.Delivery], more: bool, text: str) -> Answer:
    value: Record = {"deliveries": [shapes.delivery_record(delivery) for delivery in deliveries]}
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
    done: list[Record] = []
    refused: list[Record] = []
    lines: list[str] = []
    keys = dict.fromkeys(arguments.deliveries)
    for event_id, sub_id in keys:
        request = pb.RetryDeliveryRequest(
            event_id=event_id, sub_id=sub_id, idempotency_key=secrets.token_hex(KEY_BYTES)
        )
        try:
            response = await operator.call(SERVICE, request, pb.RetryDeliveryResponse, deadline_seconds=RETRY_SECONDS)
        except CommandError as failed:
            if len(keys) == 1:
                raise
            refused.append({"event_id": event_id, "sub_id": sub_id, "reason": str(failed)})
            lines.append(f"{printable(event_id)}:{sub_id}  not attempted: {failed}")
        else:
            done.append(shapes.delivery_record(response.delivery))
            lines.append(f"{event_id}:{sub_id}  {shapes.attempted(response.delivery)}")
    value = {"deliveries": done} | ({"refused": refused} if refused else {})
    return Answer(value, "\n".join(lines), 1 if refused else 0)


async def _retry_all(operator: Operator, arguments: argparse.Namespace) -> Answer:
    sub_id: int = arguments.all_parked
    request = request_of(_RPCS["RetryParked"], arguments)
    request.sub_id = sub_id
    response = await operator.call(SERVICE, request, pb.RetryParkedResponse, deadline_seconds=ALL_PARKED_SECONDS)
    text = f"{response.deliveries} parked deliveries are due: one attempt each with the next sweep."
    return Answer({"sub_id": sub_id, "due": response.deliveries}, text)
