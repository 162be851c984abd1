"""Webhooks: subscriptions, the events that companies subscribe to, and their deliveries."""
