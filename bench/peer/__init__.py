"""The peer of the comparison: one FastAPI process with SQLAlchemy's ORM and Pydantic, as its users write it.

It serves the three measured routes under the same contract: keys, scopes, rate limit, error envelope, idempotency,
signed cursors. It is not a product: it has only what is measured.
"""
