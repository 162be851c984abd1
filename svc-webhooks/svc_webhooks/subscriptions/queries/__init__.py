"""The SQL of subscriptions, and of what a deleted one leaves."""
