"""Records changed since an instant, ascending by id: a page with `updated_since` (spec 4.2, 4.6, 4.9, 4.10).

No index has both orders. A scan by id reads every unchanged row, a scan by time every changed row, and a company may
have hundreds of thousands of either. So one statement goes step by step, and each step reads a bounded number of rows:

- FIRST scans the next ids. If most rows match, as at a first synchronisation, they are the page.
- RECENT takes the company's changes since the instant. If they are few, as at every later synchronisation, it has them
  all and chooses the page from them.
- BLOCK goes from one block of ids to the next and takes its matches by an index that has the block before the time.
  A block without matches costs few descents.
- DENSE scans the ids of a block that has more matches than BLOCK takes, until the page is full or the block ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, array

from chassis.db.statements import TIME, Expression, Selection, param

BLOCK_BITS = 14  # 16,384 ids: larger, DENSE scans more ids in vain; smaller, BLOCK passes more blocks
STEP_ROWS, RECENT_ROWS = 256, 1000
FIRST, RECENT, BLOCK, DENSE, DONE = (sa.literal_column(str(mode), sa.Integer) for mode in range(5))

Condition = sa.ColumnElement[bool]
# Columns of the record's table, each with its required value.
Having = Sequence[tuple[Expression, Expression]]
_IDS = ARRAY(sa.BigInteger)
_NONE = sa.cast(sa.literal_column("'{}'"), _IDS)
_NOTHING, _ONE, _BITS, _KEY_BITS, _STEP, _RECENT = (
    sa.literal_column(str(number), sa.Integer) for number in (0, 1, BLOCK_BITS, 30, STEP_ROWS, RECENT_ROWS)
)
_ROWS, _COMPANY_ID, _SINCE = param("rows", sa.Integer), param("company_id", sa.BigInteger), param("updated_since", TIME)


def block_key(place: Expression, entity_id: Expression) -> sa.ColumnElement[int]:
    """The index key of a place's changes (a company's, a property's, a unit's) in one block of ids.

    It is an expression, so that only the index of this place matches, whatever the statistics. Several places may share
    a key, so the rows that it finds are checked again.
    """
    high = place.op("<<", return_type=sa.BigInteger())(_KEY_BITS)
    key: sa.ColumnElement[int] = high.op("#", return_type=sa.BigInteger())(block_of(entity_id))
    return key


def block_of(entity_id: Expression) -> sa.ColumnElement[int]:
    """The block that an id lies in."""
    block: sa.ColumnElement[int] = entity_id.op(">>", return_type=sa.BigInteger())(_BITS)
    return block


def stretch(having: Having, since: Having) -> tuple[list[Condition], list[Expression]]:
    """The conditions and the order of the rows with the values `having`, starting at the values `since`.

    A value stands in an array of one, so that its column counts in the order, which only the index with just these
    columns has. A plain comparison would drop the column from the order. An index without the column would then seem as
    good if the statistics know one value of it, and a page of a status that no record has would read all records.
    """
    conditions = [column == sa.any_(array([value])) for column, value in having]
    conditions += [column >= value for column, value in since]
    return conditions, [column for column, _ in (*having, *since)]


def status_key(place: Expression, status: Expression) -> sa.ColumnElement[int]:
    """The index key of a place's records with one status; an expression for the same reason as `block_key`."""
    return sa.func.hashtextextended(status, place, type_=sa.BigInteger)


def is_of(having: Having) -> list[Condition]:
    """Conditions that a row has these values, in a form that no index matches, to check rows that a key has found."""
    return [(column == value).is_(sa.true()) for column, value in having]


def list_of(company: Having, place: Having, status: Having) -> tuple[Having, list[Condition]]:
    """The first columns of a list's index, with their values, and the conditions left to check on each row."""
    if not status:
        return [*company, *place], []
    ((column_of_place, this),), ((column, value),) = place or company, status
    return [(status_key(column_of_place, column), status_key(this, value))], is_of([*company, *place, *status])


def ids_changed(
    table: sa.Table, place: Having, status: Having, parts: Iterable[Having], also: Condition
) -> sa.Select[tuple[int]]:
    """At most `:rows` ids of `:company_id` above `:after_id`, changed at `:updated_since` or later.

    The list's other filters are `place` and `status`, each one column or none. There is one of `parts` for each
    possible status; one empty part if the table has no status. `also` is a further condition.
    """
    start = (param("after_id", sa.BigInteger) + _ONE).label("next")
    step = sa.select(start, _NONE.label("ids"), FIRST.label("mode")).cte("step", recursive=True)
    steps = _Steps(table, place, status, tuple(parts), also, step)
    following = sa.union_all(steps.by_id(), steps.recent(), steps.of_block()).lateral("following")
    step = step.union_all(sa.select(following).select_from(step.join(following, sa.true())).where(step.c.mode != DONE))
    ids = sa.func.unnest(step.c.ids).label("id")
    return sa.select(ids).where(step.c.mode == DONE).order_by(ids).limit(_ROWS)


@dataclass(frozen=True, slots=True)
class _Steps:
    """What follows a step, as three SELECTs of (next, ids, mode), of which one has a row: by the mode of `step`."""

    table: sa.Table
    place: Having
    status: Having
    parts: Sequence[Having]
    also: Condition
    step: sa.CTE

    def by_id(self) -> Selection:
        """FIRST and DENSE: the next ids, changed or not."""
        at = self.step.c
        changed = (self.table.c.updated_at >= _SINCE).label("changed")
        scanned = self._scan(self.table.c.id, changed, first=at.next, rows_max=_STEP).subquery("scanned").c
        ids, following = self._ids_and(scanned.id, scanned.changed), sa.func.max(scanned.id) + _ONE
        mode = sa.case(
            (sa.or_(sa.func.count(scanned.id) < _STEP, _is_full(ids)), DONE),
            (at.mode == FIRST, RECENT),
            (block_of(following) == block_of(at.next), DENSE),
            else_=BLOCK,
        )
        is_due = sa.or_(at.mode == FIRST, at.mode == DENSE)
        return sa.select(following, ids, mode).having(is_due).correlate(self.step)

    def recent(self) -> Selection:
        """RECENT: the company's changes since the instant, if they are few."""
        at, c = self.step.c, self.table.c
        fits = sa.and_(self.also, *(column == value for column, value in (*self.place, *self.status))).label("fits")
        conditions, order = stretch(self._company, [(c.updated_at, _SINCE)])
        recent = sa.select(c.id, fits).where(*conditions).order_by(*order).limit(_RECENT).subquery("recent").c
        is_all = sa.func.count(recent.id) < _RECENT
        ids = sa.case((is_all, self._ids_and(recent.id, sa.and_(recent.fits, recent.id >= at.next))), else_=at.ids)
        mode = sa.case((is_all, DONE), else_=BLOCK)
        return sa.select(at.next, ids, mode).having(at.mode == RECENT).correlate(self.step)

    def of_block(self) -> Selection:
        """BLOCK: the matches of a block of ids, if it has few; else the block is scanned."""
        at = self.step.c
        matches = self._matches().limit(_STEP).subquery("matches").c
        border = (block_of(at.next) + _ONE).op("<<", return_type=sa.BigInteger())(_BITS)
        beyond = self._scan(self.table.c.id, first=border, rows_max=_ONE).scalar_subquery()
        block = (
            sa.select(
                (sa.func.count(matches.id) < _STEP).label("is_all"),
                self._ids_and(matches.id, matches.id >= at.next).label("ids"),
                beyond.label("beyond"),
            )
            .having(at.mode == BLOCK)
            .correlate(self.step)
            .subquery("block")
            .c
        )
        mode = sa.case(
            (sa.not_(block.is_all), DENSE),
            (sa.or_(block.beyond.is_(None), _is_full(block.ids)), DONE),
            else_=BLOCK,
        )
        following, ids = (
            sa.case((block.is_all, new), else_=old) for new, old in ((block.beyond, at.next), (block.ids, at.ids))
        )
        return sa.select(following, ids, mode).correlate(self.step)

    def _matches(self) -> Selection:
        """The ids of the step's block that match, by the index that has the block before the time."""
        at, c = self.step.c, self.table.c
        ((column, value),) = self.place or self._company
        key = (block_key(column, c.id), block_key(value, at.next))
        here = [*is_of([*self._company, *self.place]), block_of(c.id) == block_of(at.next)]
        each = []
        for part in self.parts:
            conditions, order = stretch([key, *part], [(c.updated_at, _SINCE)])
            matching = sa.select(c.id).where(self.also, *conditions, *here).order_by(*order).limit(_STEP)
            each.append(matching.correlate(self.step))
        return sa.select(sa.union_all(*each).subquery("parts").c.id)

    def _scan(self, *columns: Expression, first: Expression, rows_max: Expression) -> Selection:
        """Columns of the list's rows in the order of their ids."""
        having, checks = list_of(self._company, self.place, self.status)
        conditions, order = stretch(having, [(self.table.c.id, first)])
        scanned = sa.select(*columns).where(self.also, *checks, *conditions).order_by(*order).limit(rows_max)
        return scanned.correlate(self.step)

    def _ids_and(self, further: sa.ColumnElement[int], condition: Condition) -> Expression:
        """The step's ids with those that meet the condition."""
        array_of = sa.func.array_agg(aggregate_order_by(further, further)).filter(condition)
        return self.step.c.ids.op("||", return_type=_IDS)(sa.func.coalesce(array_of, _NONE))

    @property
    def _company(self) -> Having:
        return [(self.table.c.company_id, _COMPANY_ID)]


def _is_full(ids: Expression) -> Condition:
    return sa.func.cardinality(ids) >= _ROWS
