"""Records changed since an instant, ascending by id: a page with `updated_since` (spec 4.2, 4.6, 4.9, 4.10).

No index has both orders. A walk by id reads every unchanged row, a walk by time every changed row, and a company may
have hundreds of thousands of either. So one statement goes step by step, and each step reads a bounded number of rows:

- FIRST walks the next ids. If most rows match, as at a first synchronisation, they are the page.
- RECENT takes the company's changes since the instant. If they are few, as at every later synchronisation, it has them
  all and chooses the page from them.
- BLOCK goes from one block of ids to the next and takes its matches by an index that has the block before the time.
  A block without matches costs few descents.
- DENSE walks the ids of a block that has more matches than BLOCK takes, until the page is full or the block ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, array

from chassis.db.statements import TIME, param

BLOCK_BITS = 14  # 16,384 ids: larger, DENSE walks more ids in vain; smaller, BLOCK passes more blocks
STEP_ROWS, RECENT_ROWS = 256, 1000
FIRST, RECENT, BLOCK, DENSE, DONE = (sa.literal_column(str(mode), sa.Integer) for mode in range(5))

# Columns of the record's table, each with its required value.
Having = Sequence[tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]]
_IDS = ARRAY(sa.BigInteger)
_NONE = sa.cast(sa.literal_column("'{}'"), _IDS)
_NOTHING, _ONE, _BITS, _KEY_BITS, _STEP, _RECENT = (
    sa.literal_column(str(number), sa.Integer) for number in (0, 1, BLOCK_BITS, 30, STEP_ROWS, RECENT_ROWS)
)


def block_key(place: Any, entity_id: Any) -> sa.ColumnElement[int]:
    """The index key of a place's changes (a company's, a property's, a unit's) in one block of ids.

    It is an expression, so that only the index of this place matches, whatever the statistics. Several places may share
    a key, so the rows that it finds are checked again.
    """
    high = place.op("<<", return_type=sa.BigInteger())(_KEY_BITS)
    key: sa.ColumnElement[int] = high.op("#", return_type=sa.BigInteger())(block_of(entity_id))
    return key


def block_of(entity_id: Any) -> sa.ColumnElement[int]:
    """The block that an id lies in."""
    block: sa.ColumnElement[int] = entity_id.op(">>", return_type=sa.BigInteger())(_BITS)
    return block


def stretch(having: Having, since: Having) -> tuple[list[sa.ColumnElement[bool]], list[sa.ColumnElement[Any]]]:
    """The conditions and the order of the rows with the values `having`, starting at the values `since`.

    A value stands in an array of one, so that its column counts in the order, which only the index with just these
    columns has. A plain comparison would drop the column from the order. An index without the column would then seem as
    good if the statistics know one value of it, and a page of a status that no record has would read all records.
    """
    conditions = [column == sa.any_(array([value])) for column, value in having]
    conditions += [column >= value for column, value in since]
    return conditions, [column for column, _ in (*having, *since)]


def status_key(place: Any, status: Any) -> sa.ColumnElement[int]:
    """The index key of a place's records with one status; an expression for the same reason as `block_key`."""
    return sa.func.hashtextextended(status, place, type_=sa.BigInteger)


def is_of(having: Having) -> list[sa.ColumnElement[bool]]:
    """Conditions that a row has these values, in a form that no index matches, to check rows that a key has found."""
    return [(column == value).is_(sa.true()) for column, value in having]


def list_of(company: Having, place: Having, status: Having) -> tuple[Having, list[sa.ColumnElement[bool]]]:
    """The first columns of a list's index, with their values, and the conditions left to check on each row."""
    if not status:
        return [*company, *place], []
    ((of, this),), ((column, value),) = place or company, status
    return [(status_key(of, column), status_key(this, value))], is_of([*company, *place, *status])


def ids_changed(
    table: sa.Table, place: Having, status: Having, parts: Iterable[Having], also: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    """At most `:rows` ids of `:company_id` above `:after_id`, changed at `:updated_since` or later.

    place, status: the list's other filters, each one column or none. parts: one part for each possible status; one
    empty part if the table has no status. also: a further condition.
    """
    entity_id, rows = table.c.id, param("rows", sa.Integer)
    mine = [(table.c.company_id, param("company_id", sa.BigInteger))]
    since = param("updated_since", TIME)
    having, checks = list_of(mine, place, status)
    start = (param("after_id", sa.BigInteger) + _ONE).label("next")
    step = sa.select(start, _NONE.label("ids"), FIRST.label("mode")).cte("step", recursive=True)
    at = step.c

    def walk(*columns: Any, first: Any, rows_max: Any) -> sa.Select[Any]:
        conditions, order = stretch(having, [(entity_id, first)])
        walked = sa.select(*columns).where(also, *checks, *conditions).order_by(*order).limit(rows_max)
        return walked.correlate(step)

    def ids_of(found: sa.ColumnElement[int], condition: sa.ColumnElement[bool]) -> sa.ColumnElement[Any]:
        several = sa.func.array_agg(aggregate_order_by(found, found)).filter(condition)
        return at.ids.op("||", return_type=_IDS)(sa.func.coalesce(several, _NONE))

    def is_full(ids: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        return sa.func.cardinality(ids) >= rows

    def walked() -> sa.Select[Any]:
        changed = (table.c.updated_at >= since).label("changed")
        x = walk(entity_id, changed, first=at.next, rows_max=_STEP).subquery("walked")
        found, following = ids_of(x.c.id, x.c.changed), sa.func.max(x.c.id) + _ONE
        mode = sa.case(
            (sa.or_(sa.func.count(x.c.id) < _STEP, is_full(found)), DONE),
            (at.mode == FIRST, RECENT),
            (block_of(following) == block_of(at.next), DENSE),
            else_=BLOCK,
        )
        return sa.select(following, found, mode).having(sa.or_(at.mode == FIRST, at.mode == DENSE)).correlate(step)

    def recent() -> sa.Select[Any]:
        fits = sa.and_(also, *(column == value for column, value in (*place, *status))).label("fits")
        conditions, order = stretch(mine, [(table.c.updated_at, since)])
        x = sa.select(entity_id, fits).where(*conditions).order_by(*order).limit(_RECENT)
        y = x.subquery("recent")
        is_all = sa.func.count(y.c.id) < _RECENT
        found = sa.case((is_all, ids_of(y.c.id, sa.and_(y.c.fits, y.c.id >= at.next))), else_=at.ids)
        return sa.select(at.next, found, sa.case((is_all, DONE), else_=BLOCK)).having(at.mode == RECENT).correlate(step)

    def of_block() -> sa.Select[Any]:
        ((column, value),) = place or mine
        key = (block_key(column, entity_id), block_key(value, at.next))
        here = [*is_of([*mine, *place]), block_of(entity_id) == block_of(at.next)]
        each = []
        for part in parts:
            conditions, order = stretch([key, *part], [(table.c.updated_at, since)])
            some = sa.select(entity_id).where(also, *conditions, *here).order_by(*order).limit(_STEP)
            each.append(some.correlate(step))
        x = sa.union_all(*each).subquery("parts")
        x = sa.select(x.c.id).limit(_STEP).subquery("matches")
        border = (block_of(at.next) + _ONE).op("<<", return_type=sa.BigInteger())(_BITS)
        beyond = walk(entity_id, first=border, rows_max=_ONE)
        y = (
            sa.select(
                (sa.func.count(x.c.id) < _STEP).label("is_all"),
                ids_of(x.c.id, x.c.id >= at.next).label("ids"),
                beyond.scalar_subquery().label("beyond"),
            )
            .having(at.mode == BLOCK)
            .correlate(step)
            .subquery("block")
        )
        return sa.select(
            sa.case((y.c.is_all, y.c.beyond), else_=at.next),
            sa.case((y.c.is_all, y.c.ids), else_=at.ids),
            sa.case(
                (sa.not_(y.c.is_all), DENSE),
                (sa.or_(y.c.beyond.is_(None), is_full(y.c.ids)), DONE),
                else_=BLOCK,
            ),
        ).correlate(step)

    following = sa.union_all(walked(), recent(), of_block()).lateral("following")
    step = step.union_all(sa.select(following).select_from(step.join(following, sa.true())).where(at.mode != DONE))
    ids = sa.func.unnest(step.c.ids).label("id")
    return sa.select(ids).where(step.c.mode == DONE).order_by(ids).limit(rows)
