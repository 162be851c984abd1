"""The events of one test in an outbox that holds those of thousands of tests: to parse all of them for each look took
more CPU than the tests."""

from __future__ import annotations

import sqlalchemy as sa
from asyncpg import Record
from google.protobuf.message import Message

from chassis.db.database import Database
from chassis.db.statements import Statement, param


class OutboxRows:
    """The rows of an outbox by a part of their message, for example the company's id."""

    def __init__(self, outbox: sa.Table, order: str = "event_id") -> None:
        """order: the column by which the rows are ordered."""
        holds = sa.func.pg_catalog.position(outbox.c.message, param("part", sa.LargeBinary)) > sa.literal_column("0")
        self._rows = Statement(sa.select(outbox.c.subject, outbox.c.message).where(holds).order_by(outbox.c[order]))

    async def containing(self, database: Database, part: Message) -> list[Record]:
        """Rows of subject and message: all whose message has the fields of `part`, and a few others by chance.

        part: a message, or a message in it, with a single field.
        """
        return await database.rows(self._rows, part=part.SerializeToString())
