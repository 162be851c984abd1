"""Notes of idempotency keys: to which service the write of each key went."""
