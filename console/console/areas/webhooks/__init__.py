"""Webhook subscriptions and their deliveries."""
