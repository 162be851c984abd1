"""The gateway's tests speak to real gateways on a real PostgreSQL and NATS."""

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
