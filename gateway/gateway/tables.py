"""Every table of the database `gateway`, for migrations, tests and tools."""

from gateway.identity.administrators import tables as administrators
from gateway.identity.companies import tables as companies
from gateway.identity.keys import tables as keys
from gateway.identity.schema import metadata
from gateway.identity.staff import tables as staff

__all__ = ["administrators", "companies", "keys", "metadata", "staff"]
