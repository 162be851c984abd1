"""Events: the outbox, the relay to NATS, the consumer."""
