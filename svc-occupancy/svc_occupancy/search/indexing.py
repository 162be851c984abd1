"""Fills `party_search` beside the parties, so that the write of a move-in pays nothing for it.

Parties are found by their turn, which is the record that a write names. A comparison also finds people whom the release
before has forgotten. A party's row is locked while it is indexed: nobody is forgotten in between and indexed then.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import BigInteger, Text, and_, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.changes.following import STRETCH_ROWS, RecordFollower
from chassis.db.database import Database
from chassis.db.rows import array_rows, columns_of
from chassis.db.statements import Statement, param
from svc_occupancy.residencies.tables import party, party_search
from svc_occupancy.search.terms import terms_of

_p, _s = party.c, party_search.c
_company_id, _turn_ids = param("company_id", BigInteger), param("turn_ids", ARRAY(BigInteger))
_same = and_(_s.company_id == _p.company_id, _s.id == _p.id)
_of_turns = and_(_p.company_id == _company_id, _p.transition_id == func.any(_turn_ids))
_TEXTS = ("first_name", "last_name", "email", "phone")
# In a mode that waits for whoever forgets the person, and lets everybody else pass.
_NEW = Statement(
    select(_p.company_id, _p.id, _p.transition_id, *(_p[name] for name in _TEXTS))
    .where(_of_turns, _p.forgotten_at.is_(None), ~sa.exists(select(_s.id).where(_same)))
    .with_for_update(read=True, key_share=True, of=party)
)

_NAMES = ("company_id", "id", "transition_id", "terms")


def _save() -> Statement:
    entries = array_rows("entries", {**{name: _s[name].type for name in _NAMES}, "terms": Text()})
    terms = func.array_to_tsvector(func.string_to_array(entries.c.terms, literal_column("E'\\n'")))
    rows = select(*(entries.c[name] for name in _NAMES[:3]), terms)
    adding = insert(party_search).from_select(list(_NAMES), rows, include_defaults=False)
    return Statement(adding.on_conflict_do_nothing())


_SAVE = _save()
_forgotten = select(_p.id).where(_of_turns, _p.forgotten_at.is_not(None))
_REMOVE = Statement(sa.delete(party_search).where(_s.company_id == _company_id, _s.id.in_(_forgotten)))


def _compare() -> Statement:
    """The turns of a company's parties below an id: of those that the search lacks, and of forgotten ones that it
    has; a turn once for each of them."""
    stretch = (
        select(_p.company_id, _p.id, _p.transition_id, _p.forgotten_at)
        .where(_p.company_id == _company_id, _p.id < param("below", BigInteger))
        .order_by(_p.id.desc())
        .limit(literal_column(str(STRETCH_ROWS)))
        .subquery("stretch")
    )
    row = and_(_s.company_id == stretch.c.company_id, _s.id == stretch.c.id)
    is_missing = _s.id.is_(None)
    differs = is_missing == stretch.c.forgotten_at.is_(None)
    return Statement(
        select(
            func.min(stretch.c.id).label("reached"),
            func.count().label("met"),
            func.array_agg(stretch.c.transition_id, type_=sa.types.NullType()).filter(differs).label("differing"),
            func.count().filter(is_missing, differs).label("missing"),
        ).select_from(stretch.outerjoin(party_search, row))
    )


_COMPARE = [_compare()]
# A step from index entry to index entry, not over all parties.
_NEXT_COMPANY = Statement(select(func.min(_p.company_id)).where(_p.company_id > _company_id))


class PartyIndexing(RecordFollower):
    """Keeps `party_search` up to date."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, "turn", _COMPARE, _NEXT_COMPANY)
        self._database = database

    async def fill(self, company_id: int, ids: Sequence[int]) -> None:
        """Indexes the parties of these turns, and removes those who are forgotten."""
        async with self._database.transaction() as connection:
            await connection.execute(_REMOVE, company_id=company_id, turn_ids=list(ids))
            parties = await connection.rows(_NEW, company_id=company_id, turn_ids=list(ids))
            rows = [
                {name: row[name] for name in _NAMES[:3]}
                | {"terms": "\n".join(terms_of(company_id, *(row[name] for name in _TEXTS)))}
                for row in parties
            ]
            if rows:
                await connection.execute(_SAVE, **columns_of(rows, _NAMES))
