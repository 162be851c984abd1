"""The SQL statements that find parties."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Integer, Text, and_, case, func, literal_column, select
from sqlalchemy.dialects.postgresql import TSQUERY

from chassis.db.database import Database
from chassis.db.statements import Expression, Query, param
from chassis.lists.spelling import Spelling
from svc_occupancy import schema
from svc_occupancy.residencies.tables import party, party_search
from svc_occupancy.search.terms import ResidentStatus
from svc_occupancy.turns.rules import TransitionStatus
from svc_occupancy.turns.tables import transition
from svc_occupancy.units.rules import LIVED_IN
from svc_occupancy.units.tables import unit_state

MATCHES_MAX = 2000
"""Of more parties that fit, the ones with the newest leases."""


class FoundParty(NamedTuple):
    """A party that was found, with the fields of the message FoundResident. turn_status: as stored."""

    party_id: int
    first_name: str | None
    last_name: str | None
    role: str | None
    phone: str | None
    email: str | None
    status: ResidentStatus
    turn_id: int
    turn_status: TransitionStatus
    move_in_date: datetime.date | None
    move_out_date: datetime.date | None
    unit_id: int
    unit: str
    property_id: int
    property: str


_company_id = param("company_id", BigInteger)
_s, _party, _turn, _state, _unit = party_search.c, party.c, transition.c, unit_state.c, schema.unit.c


def _text(value: str) -> Expression:
    return literal_column(f"'{value}'", Text)


def _tsquery(name: str) -> Expression:
    return sa.cast(param(name, Text), TSQUERY)


def _find() -> Query[FoundParty]:
    """By the index of terms alone: the terms name the company. What was found is joined row by row."""
    matches = (
        select(_s.company_id, _s.id, _s.transition_id, _s.terms.op("@@")(_tsquery("whole")).label("is_whole"))
        .where(_s.terms.op("@@")(_tsquery("terms")), (_s.company_id == _company_id).is_(sa.true()))
        .order_by(_s.id.desc())
        .limit(literal_column(str(MATCHES_MAX)))
        .cte("matches")
        .prefix_with("MATERIALIZED")
    )
    # As `turns.rules.has_left` has it.
    lived_in = _state.unit_status.in_([_text(status) for status in sorted(LIVED_IN)])
    has_left = and_(_turn.vacated_on.is_not(None), func.coalesce(lived_in, sa.false(), type_=Boolean).is_(sa.false()))
    is_active = _turn.status == _text("active")
    status = case(
        (and_(is_active, _turn.has_begun, has_left.is_(sa.false())), _text("current")),
        (and_(is_active, _turn.has_begun.is_(sa.false())), _text("future")),
        else_=_text("former"),
    )
    same_turn = and_(_turn.company_id == _company_id, _turn.id == matches.c.transition_id)
    same_state = and_(_state.company_id == _company_id, _state.unit_id == _turn.unit_id)
    rank = case((status == _text("current"), 0), (status == _text("future"), 1), else_=2)
    first = (
        select(
            matches.c.id,
            matches.c.is_whole,
            rank.label("rank"),
            status.label("status"),
            _turn.id.label("turn_id"),
            _turn.status.label("turn_status"),
            *(_turn[name] for name in ("move_in_date", "move_out_date", "unit_id")),
        )
        .select_from(matches.join(transition, same_turn).outerjoin(unit_state, same_state))
        .order_by(rank, matches.c.is_whole.desc(), matches.c.id.desc())
        .limit(param("rows", Integer))
        .subquery("first")
    )
    same_party = and_(_party.company_id == _company_id, _party.id == first.c.id, _party.forgotten_at.is_(None))
    return Query(
        FoundParty,
        select(
            first.c.id.label("party_id"),
            *(_party[name] for name in ("first_name", "last_name", "role", "phone", "email")),
            *(
                first.c[name]
                for name in ("status", "turn_id", "turn_status", "move_in_date", "move_out_date", "unit_id")
            ),
            _unit.name.label("unit"),
            _unit.property_id,
            schema.property_.c.name.label("property"),
        )
        .select_from(
            first.join(party, same_party)
            .join(schema.unit, _unit.id == first.c.unit_id)
            .join(schema.property_, schema.property_.c.id == _unit.property_id)
        )
        .order_by(first.c.rank, first.c.is_whole.desc(), first.c.id.desc()),
    )


FIND = _find()
SPELLING = Spelling(_s.terms)


async def found(database: Database, company_id: int, terms: str, whole: str, rows: int) -> list[FoundParty]:
    """Those who live in a unit, those who will, those who did; of each, those with the whole words first, and the
    newest leases. terms, whole: tsqueries."""
    return await FIND.rows(database, company_id=company_id, terms=terms, whole=whole, rows=rows)
