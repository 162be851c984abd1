"""The SQL statements about companies, which the gateway owns."""

from __future__ import annotations

from sqlalchemy import BigInteger, select

from chassis.db.database import Connection
from chassis.db.statements import Statement, param
from svc_catalog import tables as t

_TIMEZONE = Statement(select(t.company.c.timezone).where(t.company.c.id == param("company_id", BigInteger)))


async def timezone_of(connection: Connection, company_id: int) -> str:
    """Where the company is; UTC while its row has not arrived."""
    found: str | None = await connection.value(_TIMEZONE, company_id=company_id)
    return found or "UTC"
