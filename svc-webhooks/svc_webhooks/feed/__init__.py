"""What integrations get besides deliveries: the feed of events, their deliveries, tests and replays."""
