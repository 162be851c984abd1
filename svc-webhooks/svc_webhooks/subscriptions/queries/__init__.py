"""The SQL of subscriptions, and of the histories of deleted ones."""
