"""What people do to several records at once, and what each record was before, so that it can be undone.

A bulk act is stored before its first write. Its writes are the services' own, each with an idempotency key of its own,
derived from the form's token: sent again after a kill, the act finishes what is left. Then it is stored what each
record became. An undo writes the fields of a record back where they still are what the act made them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Database
from chassis.db.statements import Query, Statement, param
from console.tables import bulk_act

UNDO_SECONDS = 60
SENDING_SECONDS = 15
"""What a form that is sent in the last moment may take until it is here."""
KEPT_DAYS = 1

Values = Mapping[int, Mapping[str, Any]]
"""The changed fields of records by id; None for an empty one."""


class _Row(NamedTuple):
    id: int
    act: str
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class BulkAct:
    """What was done by one form. act: its token; name: which act of its page."""

    id: int
    act: str
    name: str
    before: Values
    after: Values


def _number(name: str) -> Any:
    return param(name, sa.BigInteger)


def _text(name: str) -> Any:
    return param(name, sa.Text)


def _since(seconds: int) -> Any:
    return sa.func.clock_timestamp() - sa.literal_column(f"interval '{seconds} seconds'")


_COLUMNS = (bulk_act.c.id, bulk_act.c.act, bulk_act.c.name, bulk_act.c.before, bulk_act.c.after)
_own = (
    bulk_act.c.company_id == _number("company_id"),
    bulk_act.c.person == _text("person"),
    bulk_act.c.path == _text("path"),
)
_BEGIN = Statement(
    insert(bulk_act)
    .values(
        {name: param(name, bulk_act.c[name].type) for name in ("company_id", "person", "act", "path", "name", "before")}
    )
    .on_conflict_do_nothing(constraint="bulk_act_act")
)
_BY_ACT = Query(_Row, sa.select(*_COLUMNS).where(*_own, bulk_act.c.act == _text("act")))
_END = Statement(
    sa.update(bulk_act)
    .where(bulk_act.c.id == _number("act_id"))
    .values(after=_text("after"), ended_at=sa.func.coalesce(bulk_act.c.ended_at, sa.func.clock_timestamp()))
)
# One that has begun is finished whenever it is sent again.
_UNDO = Query(
    _Row,
    sa.update(bulk_act)
    .where(
        *_own,
        bulk_act.c.id == _number("act_id"),
        sa.or_(bulk_act.c.undone_at.is_not(None), bulk_act.c.ended_at > _since(UNDO_SECONDS + SENDING_SECONDS)),
    )
    .values(undone_at=sa.func.coalesce(bulk_act.c.undone_at, sa.func.clock_timestamp()))
    .returning(*_COLUMNS),
)
_OLD = Statement(sa.delete(bulk_act).where(bulk_act.c.began_at < _since(KEPT_DAYS * 86400)))


class BulkActs:
    """The bulk acts of all companies. Every method raises DatabaseUnavailable."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """database: the open database; raises DatabaseUnavailable before it is open."""
        self._database = database

    async def begin(self, company_id: int, person: str, path: str, act: str, name: str, before: Values) -> BulkAct:
        """Stores what is about to be done. The same form again is the same act, with what the records were then."""
        form = {"company_id": company_id, "person": person, "path": path, "act": act}
        await self._database().execute(_BEGIN, name=name, before=json.dumps(before), **form)
        row = await _BY_ACT.row(self._database(), **form)
        assert row is not None, "another person's form has this token"
        return _read(row)

    async def end(self, act_id: int, after: Values) -> None:
        """Stores what the records became, without those that were not changed. Forgets acts of the day before."""
        await self._database().execute(_END, act_id=act_id, after=json.dumps(after))
        await self._database().execute(_OLD)

    async def undo(self, company_id: int, person: str, path: str, act_id: int) -> BulkAct | None:
        """The act that this person undoes; None if it is too late, or if there is none."""
        row = await _UNDO.row(self._database(), company_id=company_id, person=person, path=path, act_id=act_id)
        return None if row is None else _read(row)


def _read(row: _Row) -> BulkAct:
    before, after = ({int(key): value for key, value in json.loads(text).items()} for text in (row.before, row.after))
    return BulkAct(row.id, row.act, row.name, before, after)
