"""The peers of the comparison: monoliths of one process that serve the measured routes under the same contract.

`app` is FastAPI with SQLAlchemy's ORM and Pydantic, as its users write it. `by_aiohttp` and `by_litestar` are asyncpg
by hand (`by_hand`), and so is `fastify`, on Node. All have keys, scopes, rate limit, error envelope, idempotency and
signed cursors. None is a product: each has only what is measured.
"""
