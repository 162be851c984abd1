"""`makeready webhooks …`: subscriptions, their deliveries, and events."""

from __future__ import annotations

from makeready_cli.commands.webhooks import acts, deliveries, events, subscriptions
from makeready_cli.parsers import Commands, group


def add(commands: Commands) -> None:
    verbs = group(commands, "webhooks", "look after webhook subscriptions and their deliveries")
    subscriptions.add_listing(verbs)
    deliveries.add(verbs)
    events.add(verbs)
    subscriptions.add(verbs)
    acts.add(verbs)
