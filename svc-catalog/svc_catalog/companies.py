"""Reads the replica of companies, which the gateway owns."""

from __future__ import annotations

from sqlalchemy import BigInteger, select

from chassis.db.database import Connection
from chassis.db.statements import Statement, param
from svc_catalog.schema import company

_TIMEZONE = Statement(select(company.c.timezone).where(company.c.id == param("company_id", BigInteger)))


async def timezone_of(connection: Connection, company_id: int) -> str:
    """The company's timezone; UTC until its row has arrived."""
    timezone: str | None = await connection.value(_TIMEZONE, company_id=company_id)
    return timezone or "UTC"
