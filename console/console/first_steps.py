"""The first steps of a company, which its administrators see on the first page until all are done or one of them
dismisses them. They are the company's: what one administrator has done or dismissed, no other is asked for again."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Database
from chassis.db.statements import Statement, param
from console.tables import first_steps

_company_id = param("company_id", sa.BigInteger)
_ARE_OVER = Statement(sa.select(sa.exists().where(first_steps.c.company_id == _company_id)))
_END = Statement(insert(first_steps).values(company_id=_company_id).on_conflict_do_nothing())


class FirstSteps:
    """Those of all companies. Every method raises DatabaseUnavailable."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """database: the open database; raises DatabaseUnavailable before it is open."""
        self._database = database

    async def are_over(self, company_id: int) -> bool:
        return bool(await self._database().value(_ARE_OVER, company_id=company_id))

    async def end(self, company_id: int) -> None:
        """Shows them no more. It may be done again."""
        await self._database().execute(_END, company_id=company_id)
