"""`makeready webhooks event …`: an event by its id, with all its delivery attempts."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_cli.commands.webhooks import rendering as shapes
from makeready_cli.errors import printable
from makeready_cli.output import Answer, instant, labels, table
from makeready_cli.parsers import Commands
from makeready_cli.rpc.command import RpcCommand, add_commands
from makeready_cli.rpc.rendering import picked

_RPCS = pb.DESCRIPTOR.services_by_name["AdministrationService"].methods_by_name
_DELIVERIES = pb.DESCRIPTOR.services_by_name["DeliveriesService"].methods_by_name
_OUTCOMES = labels(pb.EventOutcome.DESCRIPTOR)
EXCERPT_POINTS_MAX = 76
HEADERS = ("#", "STARTED (UTC)", "CAUSE", "CONN", "TLS", "FIRST", "TOTAL MS", "OUTCOME", "THEN", "ADDRESS")


def add(verbs: Commands) -> None:
    telling = RpcCommand(
        "event",
        pb.DESCRIPTOR.services_by_name["AdministrationService"].methods_by_name["GetEvent"],
        "show everything about one event",
        description="Tells what happened and when, and for each subscription that the event was meant for, every "
        "attempt: when and why it was made, milliseconds until the connection stood (CONN), TLS was agreed upon (TLS), "
        "the first byte came (FIRST) and the end (TOTAL MS), what the receiver answered, and what came next.",
        company=False,
        flags={"--body": "also the bytes that are sent"},
        answer=_answer,
    )
    listing = RpcCommand(
        "events", _RPCS["ListEvents"], "list a company's events of 30 days, newest first", answer=_events
    )
    of_record = RpcCommand(
        "deliveries-of", _DELIVERIES["ListDeliveriesOf"], "list the deliveries of a record's events, newest first"
    )
    whole = RpcCommand(
        "delivery",
        _DELIVERIES["GetDelivery"],
        "show one delivery with its requests",
        description="Shows each attempt with the request's headers and the answer, and the body that was sent.",
        company=False,
        answer=_whole,
    )
    add_commands(verbs, telling, listing, of_record, whole)


def _answer(event: pb.GetEventResponse, arguments: argparse.Namespace) -> Answer:
    value = picked(event, "event_id event company_id entity_id? occurred_at stored_at request_id?")
    value["deliveries"] = [shapes.delivery_record(delivery) for delivery in event.deliveries]
    lines = [
        f"{event.event} of company {event.company_id}" + (f", record {event.entity_id}" if event.entity_id else ""),
        f"  event     {event.event_id}",
        f"  occurred  {value['occurred_at']}",
        f"  stored    {value['stored_at']}",
        f"  request   {printable(event.request_id) or '-'}",
    ]
    if arguments.body:
        value["body"] = event.body.decode(errors="replace")
        lines.append(f"  body      {printable(value['body'])}")
    if not event.deliveries:
        lines += ["", "No subscription was there for it, or those that were are deleted."]
    for delivery in event.deliveries:
        lines += ["", *_delivery(delivery)]
    return Answer(value, "\n".join(lines))


def _events(response: pb.ListEventsResponse, _arguments: argparse.Namespace) -> Answer:
    following = response.next_before_event_id if response.HasField("next_before_event_id") else None
    value = {
        "events": [
            picked(
                event, "event_id event entity_type? entity_id? occurred_at request_id? outcome waiting succeeded parked"
            )
            for event in response.events
        ],
        "next_before": following,
    }
    rows = [
        (
            event.event_id,
            shapes.second(event.occurred_at),
            f"{event.entity_type} {event.entity_id}",
            _OUTCOMES.get(event.outcome),
            event.event,
            printable(event.request_id) or None,
        )
        for event in response.events
    ]
    text = table(("EVENT ID", "OCCURRED (UTC)", "RECORD", "OUTCOME", "EVENT", "REQUEST"), rows, "No events.")
    return Answer(value, f"{text}\nMore follow with --before-event-id {following}" if following else text)


def _whole(response: pb.GetDeliveryResponse, _arguments: argparse.Namespace) -> Answer:
    value = shapes.delivery_record(response.delivery) | {
        "request_id": response.request_id or None,
        "body": response.body.decode(errors="replace"),
        "fresh_signature": response.fresh_signature or None,
    }
    lines = [*_delivery(response.delivery), ""]
    for record, attempt in zip(value["attempts"], response.delivery.attempts, strict=True):
        record["request_headers"] = {header.name: header.value for header in attempt.request_headers}
        lines.append(f"Attempt {attempt.number}")
        lines += [f"  {header.name}: {printable(header.value)}" for header in attempt.request_headers]
    return Answer(value, "\n".join([*lines, "", printable(value["body"])]))


def _delivery(delivery: pb.Delivery) -> Iterator[str]:
    yield f"Subscription {delivery.sub_id}, {printable(delivery.destination_url)}"
    yield f"  {_state(delivery)}; kept until {shapes.day(delivery.expires_at)}"
    if not delivery.attempts:
        return
    rows = [
        (
            attempt.number,
            shapes.second(attempt.started_at),
            shapes.CAUSES.get(attempt.cause, "unknown"),
            attempt.connect_milliseconds if attempt.HasField("connect_milliseconds") else None,
            attempt.tls_milliseconds if attempt.HasField("tls_milliseconds") else None,
            attempt.first_byte_milliseconds if attempt.HasField("first_byte_milliseconds") else None,
            attempt.duration_milliseconds,
            shapes.outcome(attempt),
            shapes.second(attempt.due_at) if attempt.HasField("due_at") else shapes.STATES.get(attempt.state),
            attempt.address or None,
        )
        for attempt in delivery.attempts
    ]
    for line in table(HEADERS, rows, "").splitlines():
        yield f"  {line}"
    for excerpt, same in itertools.groupby(delivery.attempts, lambda attempt: attempt.response_excerpt):
        numbers = [attempt.number for attempt in same]
        if excerpt:
            which = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
            yield f"  {which} answered {_short(excerpt)}"


def _short(excerpt: str) -> str:
    """The text in quotes, escaped for a terminal, and cut to one line."""
    printed = printable(excerpt[:EXCERPT_POINTS_MAX])
    is_whole = len(printed) <= EXCERPT_POINTS_MAX and len(excerpt) <= EXCERPT_POINTS_MAX
    return f'"{printed}"' if is_whole else f'"{printed[: EXCERPT_POINTS_MAX - 1]}…"'


def _state(delivery: pb.Delivery) -> str:
    state = shapes.STATES.get(delivery.state, "unknown")
    match delivery.held_by:
        case "paused":
            return f"{state}, held back: the subscription is paused"
        case "company_inactive":
            return f"{state}, held back: the company is inactive"
    return f"{state}, next attempt {instant(delivery.due_at)}" if delivery.HasField("due_at") else state
