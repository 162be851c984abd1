"""All tables of the gateway's database."""

from gateway.identity.tables import metadata

__all__ = ["metadata"]
