"""The event of a trigger: waits until svc-webhooks has stored it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from chassis.auth.clients import ServiceClient
from chassis.auth.identity import Call
from chassis.refusals import Refusal, Unavailable
from gateway.sandbox.triggers.rules import EventKey
from gateway.sandbox.triggers.trigger import Caused, Trigger
from makeready.events.v1 import events_pb2
from makeready.webhooks.v1 import webhooks_pb2 as pb

WAIT_SECONDS = 20.0
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.02, 1.0
_FOUND_MAX = 200


class _Change(msgspec.Struct):
    to: Any


class _Event(msgspec.Struct):
    change: _Change | None


_event = msgspec.json.Decoder(_Event).decode


async def newest_position(webhooks: ServiceClient, call: Call) -> bytes:
    """The end of the company's events."""
    request = pb.FeedServiceListEventsRequest(limit=1, from_now=True)
    return bytes((await _listed(webhooks, request, call)).position)


async def stored_event(trigger: Trigger, event: EventKey, caused: Caused) -> bytes:
    """The envelope of the first such event since the trigger began. Raises Unavailable if it does not come in time: a
    repeat of the request waits on."""
    request = pb.FeedServiceListEventsRequest(
        position=trigger.steps.position,
        limit=_FOUND_MAX,
        event=events_pb2.EventKey.Value("EVENT_KEY_" + event.upper().replace(".", "_")),
        entity_type=pb.EventEntityType.Value("EVENT_ENTITY_TYPE_" + caused.entity_type.upper()),
        entity_id=caused.entity_id,
    )
    give_up, pause = asyncio.get_running_loop().time() + WAIT_SECONDS, PAUSE_SECONDS
    while asyncio.get_running_loop().time() < give_up:
        if caused.due_in:
            await _do_due(trigger, caused.due_in)
        for envelope in (await _listed(trigger.clients["svc-webhooks"], request, trigger.call)).documents:
            change = _event(envelope).change
            if not caused.to or (change is not None and change.to == caused.to):
                return bytes(envelope)
        await asyncio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)
    raise Unavailable(f"the event {event} of a trigger was not stored in time")


async def _do_due(trigger: Trigger, service: str) -> None:
    try:
        await trigger.do_due(service)
    except Refusal as refusal:
        if refusal.status != 404:  # the context has not heard of the sandbox yet
            raise


async def _listed(webhooks: ServiceClient, request: pb.FeedServiceListEventsRequest, call: Call) -> Any:
    response = await webhooks.call(
        request, pb.FeedServiceListEventsResponse, identity=call.identity, request_id=call.request_id
    )
    return response.feed
