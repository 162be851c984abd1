"""Fixtures of the gateway's tests, which run real gateways on a real PostgreSQL and NATS."""

from testkit.gateway_fixtures import (
    _nothing_lingers,
    api,
    company_id,
    contexts,
    database,
    gateway,
    harness,
    identity_keys,
    key,
    operator,
)

__all__ = [
    "_nothing_lingers",
    "api",
    "company_id",
    "contexts",
    "database",
    "gateway",
    "harness",
    "identity_keys",
    "key",
    "operator",
]
