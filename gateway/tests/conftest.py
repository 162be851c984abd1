"""Fixtures of the gateway's tests, which run real gateways on a real PostgreSQL and NATS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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
from testkit.valkey import ValkeyServer, running_valkey

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
    "store",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A store that gateways share."""
    with running_valkey(tmp_path) as running:
        yield running
