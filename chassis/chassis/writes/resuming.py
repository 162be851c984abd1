"""A write that goes on after its claim is stored: what it has done so far stands in the ledger in place of its reply.

A repeat whose first request was killed reads it, and goes on from there.
"""

from __future__ import annotations

import sqlalchemy as sa

from chassis.db.database import Database
from chassis.db.statements import Statement, param
from chassis.writes.idempotency import KEY, Claim, Ledger


class ResumableWrite(Ledger):
    """A ledger whose replies may be replaced."""

    def __init__(self, claims: sa.Table) -> None:
        super().__init__(claims)
        same = [claims.c[name] == self._claimed[name] for name in KEY]
        reply, before = claims.c.reply, param("before", claims.c.reply.type)
        after = sa.case((reply == before, param("after", reply.type)), else_=reply)
        self._replace = Statement(sa.update(claims).where(*same).values(reply=after).returning(reply))
        self._drop = Statement(sa.delete(claims).where(*same, reply == before))

    async def replaced(self, database: Database, claim: Claim, before: bytes, after: bytes) -> bytes | None:
        """Stores `after` in place of `before`. Returns what is stored now, which another request with the key may have
        stored before; None if the key is free."""
        stored: bytes | None = await database.value(self._replace, before=before, after=after, **claim.key())
        return stored

    async def drop(self, database: Database, claim: Claim, before: bytes) -> None:
        """Frees the key of a write that was refused, unless another request has gone on from `before`."""
        await database.execute(self._drop, before=before, **claim.key())
