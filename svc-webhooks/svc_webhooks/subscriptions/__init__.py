"""Webhook subscriptions, which integrations create, list and delete."""
