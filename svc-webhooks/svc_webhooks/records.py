"""The public JSON of a webhook subscription (spec 2.12) and the body that creates one (spec 4.11)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Annotated

import msgspec
from asyncpg import Record

from chassis.bodies import Text
from chassis.instants import printed
from svc_webhooks.destinations import URL_CHARACTERS_MAX

SCHEMA_VERSION = 1


class SubscriptionCreate(msgspec.Struct, kw_only=True):
    """Body of POST /webhooks. An absent `events` is as good as an empty one: 422 events_empty."""

    destination_url: Annotated[str, Text(longest=URL_CHARACTERS_MAX)]
    events: list[str] | None = None


class Subscription(msgspec.Struct, kw_only=True):
    """A subscription as lists and replays show it."""

    schema_version: int = SCHEMA_VERSION
    entity_type: str = "webhook_subscription"
    entity_id: int
    destination_url: str
    events: Sequence[str]
    health: str
    secret_prefix: str
    created_at: str
    source: str


class NewSubscription(Subscription, kw_only=True):
    """What the original 201 shows, and nothing else ever: the secret, as the last key."""

    secret: str


def subscription(row: Record) -> Subscription:
    created_at: datetime.datetime = row["created_at"]
    return Subscription(
        entity_id=row["id"],
        destination_url=row["destination_url"],
        events=row["events"],
        health=row["health"],
        secret_prefix=row["secret_prefix"],
        created_at=printed(created_at),
        source=row["source"],
    )
