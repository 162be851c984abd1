"""The public JSON of a webhook subscription (spec 2.12) and the body that creates one (spec 4.11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec

from chassis.records.bodies import SENSITIVE, Id, Text
from chassis.records.shapes import Shape
from svc_webhooks.http_client.destinations import URL_CHARACTERS_MAX
from svc_webhooks.rules import filters
from svc_webhooks.rules import subscriptions as rules
from svc_webhooks.schema import as_list
from svc_webhooks.tables.subscriptions import subscription

SCHEMA_VERSION: Literal[1] = 1


class SubscriptionCreate(msgspec.Struct, kw_only=True):
    """A webhook subscription to create.

    An absent `events` is as good as an empty one: 422 events_empty.
    """

    # A NUL, and more characters than these, are refused as every other bad destination is.
    keys_with_nul: ClassVar[tuple[str, ...]] = ("destination_url",)
    destination_url: Annotated[str, Text(longest=URL_CHARACTERS_MAX, has_own_rule=True)]
    """The URL that receives deliveries: https on port 443, with a public host. Other schemes and ports, private or
    loopback addresses, and more than 2,048 characters are refused. It is stored as it was sent."""
    events: list[str] | None = None
    """The events to deliver. They are stored sorted, each once."""


class Subscription(msgspec.Struct, kw_only=True):
    """A webhook subscription."""

    schema_version: Literal[1] = SCHEMA_VERSION
    entity_type: Literal["webhook_subscription"] = "webhook_subscription"
    entity_id: int
    destination_url: str
    """The URL that receives deliveries."""
    events: Sequence[rules.EventKey]
    """The events that are delivered, sorted, each once."""
    health: rules.Health
    """The health of the subscription as a whole: `retrying` after a failed attempt, `dead_lettered` after repeated
    failures (deliveries are still attempted), `paused` by an administrator; `healthy` after the next success."""
    secret_prefix: str
    """The first characters of the signing secret, to tell secrets apart."""
    created_at: str
    source: rules.Source
    """How it was created: `api` over this API, `administrator` in the administrator interface."""


class NewSubscription(Subscription, kw_only=True):
    """A webhook subscription that was just created, with its signing secret."""

    secret: Annotated[str, SENSITIVE] | msgspec.UnsetType = msgspec.UNSET
    """The signing secret. Store it: replays and lists do not contain it."""


class WebhookFilterSet(msgspec.Struct, kw_only=True):
    """Of which properties, categories and priorities a subscription hears. It replaces the filter that it has."""

    property_ids: list[Annotated[int, Id()]] | None = None
    """Only events of these properties, 1,000 at most; null or left out: of all. Whether there is a property with an id
    is not checked. An event whose record names no property's id passes."""
    categories: list[filters.Category] | None = None
    """Only tickets with these categories; null or left out: with any. Events of other records pass."""
    priorities: list[filters.Priority] | None = None
    """Only tickets with these priorities; null or left out: with any. Events of other records pass."""


class WebhookFilter(msgspec.Struct, kw_only=True):
    """The filter of a webhook subscription."""

    schema_version: Literal[1] = SCHEMA_VERSION
    entity_type: Literal["webhook_filter"] = "webhook_filter"
    entity_id: int
    """The id of the subscription."""
    property_ids: Sequence[int] | None
    """Only events of these properties, ascending; null: of all."""
    categories: Sequence[filters.Category] | None
    """Only tickets with these categories; null: with any."""
    priorities: Sequence[filters.Priority] | None
    """Only tickets with these priorities; null: with any."""


class AdministeredSubscription(Subscription, kw_only=True):
    """A webhook subscription as an administrator sees it."""

    paused_at: str | None
    """The instant since which its deliveries wait; null unless it is paused."""
    failures_in_a_row: int
    """Attempts that failed since the last success or resume."""


EVENTS = as_list(subscription.c.events)

SUBSCRIPTION = Shape(Subscription, subscription, events=EVENTS)
ADMINISTERED = Shape(AdministeredSubscription, subscription, events=EVENTS)
