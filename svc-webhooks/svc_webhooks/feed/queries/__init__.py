"""The SQL of the feed of events and of replays."""
