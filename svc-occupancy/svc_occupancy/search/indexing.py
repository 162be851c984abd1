"""Fills `party_search` beside the parties, so that the write of a move-in pays nothing for it.

After its commit, a write of this process names its turn, whose parties are found a moment later. A process that is
killed in between loses the name; so each process compares all parties with the search when it starts, and every hour.
The same comparison fills the table after an upgrade, and finds people whom the release before has forgotten. A party's
row is locked while it is indexed: nobody is forgotten in between and indexed after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
import structlog
from sqlalchemy import BigInteger, Integer, Text, and_, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.db.database import Change, Connection, Database
from chassis.db.rows import array_rows, columns_of
from chassis.db.statements import Expression, Statement, param
from svc_occupancy.residencies.tables import party, party_search
from svc_occupancy.search.terms import terms_of

LINGER_SECONDS = 0.05
AT_ONCE = 200
WAITING_MAX = 50_000  # further turns wait for a comparison
COMPARE_SECONDS = 3600
STRETCH_ROWS = 2000
PAUSE_SECONDS = 0.02  # between two stretches, so that a comparison takes little of a service's time

log = structlog.stdlib.get_logger(__name__)

_p, _s = party.c, party_search.c
_company_id, _ids = param("company_id", BigInteger), param("ids", ARRAY(BigInteger))
_same = and_(_s.company_id == _p.company_id, _s.id == _p.id)
_TEXTS = ("first_name", "last_name", "email", "phone")
_read = select(_p.company_id, _p.id, _p.transition_id, *(_p[name] for name in _TEXTS)).where(
    _p.company_id == _company_id, _p.forgotten_at.is_(None)
)
_is_new = ~sa.exists(select(_s.id).where(_same))
# In a mode that waits for whoever forgets the person, and lets everybody else pass.
_OF_TURNS = Statement(
    _read.where(_p.transition_id == func.any(_ids), _is_new).with_for_update(read=True, key_share=True, of=party)
)
_OF_IDS = Statement(_read.where(_p.id == func.any(_ids)).with_for_update(read=True, key_share=True, of=party))

_NAMES = ("company_id", "id", "transition_id", "terms")


def _save() -> Statement:
    entries = array_rows("entries", {**{name: _s[name].type for name in _NAMES}, "terms": Text()})
    terms = func.array_to_tsvector(func.string_to_array(entries.c.terms, literal_column("E'\\n'")))
    rows = select(*(entries.c[name] for name in _NAMES[:3]), terms)
    adding = insert(party_search).from_select(list(_NAMES), rows, include_defaults=False)
    return Statement(adding.on_conflict_do_nothing())


_SAVE = _save()
_REMOVE = Statement(sa.delete(party_search).where(_s.company_id == _company_id, _s.id == func.any(_ids)))


def _compare() -> Statement:
    """The parties of a company after an id: those that the search lacks, and forgotten ones that it has."""
    stretch = (
        select(_p.company_id, _p.id, _p.forgotten_at)
        .where(_p.company_id == _company_id, _p.id > param("after_id", BigInteger))
        .order_by(_p.id)
        .limit(literal_column(str(STRETCH_ROWS)))
        .subquery("stretch")
    )
    row = and_(_s.company_id == stretch.c.company_id, _s.id == stretch.c.id)
    is_forgotten, is_found = stretch.c.forgotten_at.is_not(None), _s.id.is_not(None)

    def ids(*conditions: sa.ColumnElement[bool]) -> Expression:
        return func.array_agg(stretch.c.id, type_=sa.types.NullType()).filter(*conditions)

    return Statement(
        select(
            func.max(stretch.c.id).label("reached"),
            func.count(type_=Integer).label("met"),
            ids(is_forgotten.is_(sa.false()), is_found.is_(sa.false())).label("missing"),
            ids(is_forgotten, is_found).label("forgotten"),
        ).select_from(stretch.outerjoin(party_search, row))
    )


_COMPARE = _compare()
# A step from index entry to index entry, not over all parties.
_NEXT_COMPANY = Statement(select(func.min(_p.company_id)).where(_p.company_id > _company_id))


class PartyIndexing:
    """Keeps `party_search` up to date."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: set[tuple[int, int]] = set()
        self._woken = asyncio.Event()
        self._overflowed = False

    def add(self, changed: Iterable[Change]) -> None:
        """Records whose change has committed. It neither waits nor raises."""
        self._waiting.update(
            (company_id, entity_id) for company_id, kind, entity_id in changed if kind == "turn" and entity_id
        )
        if len(self._waiting) > WAITING_MAX:
            self._waiting.clear()
            self._overflowed = True
        if self._waiting or self._overflowed:
            self._woken.set()

    async def run(self) -> None:
        """Indexes the parties of turns that `add` names, until cancelled."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(LINGER_SECONDS)
            self._woken.clear()
            if self._overflowed:
                self._overflowed = False
                await self.compare()
            keys = sorted(self._waiting)[:AT_ONCE]
            self._waiting.difference_update(keys)
            try:
                for company_id in sorted({company_id for company_id, _ in keys}):
                    turn_ids = [turn_id for owner, turn_id in keys if owner == company_id]
                    async with self._database.transaction() as connection:
                        await self._index(connection, _OF_TURNS, company_id, turn_ids)
            except BaseException:
                self._waiting.update(keys)
                self._woken.set()
                raise
            if self._waiting:
                self._woken.set()

    async def keep_comparing(self) -> None:
        """Compares at the start and every COMPARE_SECONDS, until cancelled."""
        while True:
            await self.compare()
            await asyncio.sleep(COMPARE_SECONDS)

    async def compare(self) -> int:
        """Indexes all parties that the search lacks, and removes those who are forgotten; returns how many."""
        count, company_id = 0, 0
        while (company_id := await self._database.value(_NEXT_COMPANY, company_id=company_id)) is not None:
            count += await self._compare_company(company_id)
        if count:
            log.info("party_search_filled", rows=count)
        return count

    async def _compare_company(self, company_id: int) -> int:
        count, after_id = 0, 0
        while True:
            stretch = await self._database.row(_COMPARE, company_id=company_id, after_id=after_id)
            assert stretch is not None
            missing, forgotten = stretch["missing"] or [], stretch["forgotten"] or []
            for place in range(0, len(missing), AT_ONCE):
                async with self._database.transaction() as connection:
                    await self._index(connection, _OF_IDS, company_id, missing[place : place + AT_ONCE])
            if forgotten:
                await self._database.execute(_REMOVE, company_id=company_id, ids=forgotten)
            count += len(missing) + len(forgotten)
            if stretch["met"] < STRETCH_ROWS:
                return count
            after_id = stretch["reached"]
            await asyncio.sleep(PAUSE_SECONDS)

    async def _index(self, connection: Connection, read: Statement, company_id: int, ids: Sequence[int]) -> None:
        parties = await connection.rows(read, company_id=company_id, ids=list(ids))
        rows = [
            {name: row[name] for name in _NAMES[:3]}
            | {"terms": "\n".join(terms_of(company_id, *(row[name] for name in _TEXTS)))}
            for row in parties
        ]
        if rows:
            await connection.execute(_SAVE, **columns_of(rows, _NAMES))
