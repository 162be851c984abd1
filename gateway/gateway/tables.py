"""Every table of the database `gateway`, for migrations, tests and tools."""

from gateway.identity.accounts import tables as accounts
from gateway.identity.accounts.sessions import tables as sessions
from gateway.identity.idempotency import tables as idempotency
from gateway.identity.keys import tables as keys
from gateway.identity.requests import tables as requests
from gateway.identity.schema import metadata
from gateway.identity.tables import administrators, companies, staff
from gateway.identity.usage import tables as usage
from gateway.sandbox.clock import tables as sandbox_clock

__all__ = [
    "accounts",
    "administrators",
    "companies",
    "idempotency",
    "keys",
    "metadata",
    "requests",
    "sandbox_clock",
    "sessions",
    "staff",
    "usage",
]
