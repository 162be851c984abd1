"""Webhook subscriptions: what integrations create, list and delete."""
