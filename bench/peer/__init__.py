"""The peer of the comparison: one FastAPI process with SQLAlchemy's ORM and Pydantic, as its users write it.

It serves the three routes that are measured under the same contract: keys, scopes, rate limit, error envelope,
idempotency, signed cursors. Not a product: what is not measured is not here.
"""
