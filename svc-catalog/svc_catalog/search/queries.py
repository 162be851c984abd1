"""The SQL statements of lists, counts and the search for people, named for what they return. The first parameter is
the company."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import TSQUERY, array

from chassis.db.database import IN_ORDER, Database
from chassis.db.statements import TEXTS, TIME, Expression, Selection, Statement, param, sql
from chassis.lists.paging import on_rows
from chassis.lists.spelling import Spelling
from svc_catalog.meters.tables import meter, reading
from svc_catalog.places.tables import asset, building, floor, floorplan, known_status, location, property_, unit
from svc_catalog.schema import IDS, in_order_of_names
from svc_catalog.search.tables import place_search
from svc_catalog.selects import refers_to

COUNT_MAX = 1000
"""Counts of all of a company's records end here: a page must not cost what the company has."""
ROWS_MAX = 500

_company, _after, _rows = (
    param(name, kind)
    for name, kind in (("company_id", sa.BigInteger), ("after_id", sa.BigInteger), ("rows", sa.Integer))
)
_query = sa.cast(param("query", sa.Text), TSQUERY)
SPELLING = Spelling(place_search.c.words)


def _number(number: int) -> Expression:
    return sa.literal_column(str(number))


_one, _most, _few = map(_number, (1, COUNT_MAX + 1, 1000))
_nothing = sa.literal_column("''", sa.Text)


def _text(column: Expression, name: str) -> Expression:
    return sa.func.coalesce(column, sa.literal_column("''"), type_=sa.Text).label(name)


def _day(column: Expression, name: str) -> Expression:
    return _text(sa.func.to_char(column, sa.literal_column("'YYYY-MM-DD'"), type_=sa.Text), name)


_PROPERTIES = sa.select(
    property_.c.id,
    property_.c.name,
    property_.c.address,
    _text(property_.c.city, "city"),
    _text(property_.c.state, "state"),
    _text(property_.c.external_id, "external_id"),
)
_UNITS = sa.select(
    unit.c.id,
    unit.c.name,
    _text(unit.c.unit_number, "unit_number"),
    known_status.label("unit_status"),
    unit.c.property_id,
    property_.c.name.label("property_name"),
    unit.c.building_id,
    building.c.name.label("building_name"),
    unit.c.floor_id,
    floor.c.name.label("floor_name"),
    unit.c.floorplan_id,
    floorplan.c.name.label("floorplan_name"),
    floorplan.c.bedrooms,
    floorplan.c.bathrooms,
    floorplan.c.square_feet,
    _day(unit.c.projected_ready_on, "projected_ready_on"),
    _text(unit.c.external_id, "external_id"),
).select_from(
    unit.join(property_, refers_to(unit, "property_id", property_))
    .outerjoin(building, refers_to(unit, "building_id", building))
    .outerjoin(floor, refers_to(unit, "floor_id", floor))
    .outerjoin(floorplan, refers_to(unit, "floorplan_id", floorplan))
)
_ASSETS = sa.select(
    asset.c.id,
    asset.c.name,
    asset.c.category,
    *(_text(asset.c[name], name) for name in ("sub_category", "asset_tag")),
    asset.c.make,
    asset.c.model,
    _text(asset.c.serial_number, "serial_number"),
    asset.c.status,
    asset.c.property_id,
    property_.c.name.label("property_name"),
    asset.c.unit_id,
    unit.c.name.label("unit_name"),
    asset.c.location_id,
    location.c.name.label("location_name"),
    asset.c.year,
    *(_day(asset.c[name], name) for name in ("installed_on", "warranty_expires_on")),
    asset.c.expected_life_years,
    _text(asset.c.external_id, "external_id"),
).select_from(
    asset.join(property_, refers_to(asset, "property_id", property_))
    .outerjoin(unit, refers_to(asset, "unit_id", unit))
    .outerjoin(location, refers_to(asset, "location_id", location))
)
_last = (
    sa.select(reading)
    .where(reading.c.company_id == meter.c.company_id, reading.c.meter_id == meter.c.id)
    .order_by(
        reading.c.company_id.desc(), reading.c.meter_id.desc(), reading.c.period_start.desc(), reading.c.id.desc()
    )
    .limit(_one)
    .correlate(meter)
    .lateral("last_reading")
)
READING_COLUMNS = (
    "id",
    "period_start",
    "period_end",
    "consumption",
    "cost",
    "created_at",
    "is_estimated",
    "unit_of_measure",
    "external_id",
    "source",
)
_METERS = sa.select(
    meter.c.id,
    meter.c.name,
    meter.c.utility_type,
    meter.c.scope,
    *(_text(meter.c[name], name) for name in ("meter_number", "unit_of_measure", "external_id")),
    meter.c.is_active,
    meter.c.property_id,
    property_.c.name.label("property_name"),
    meter.c.unit_id,
    unit.c.name.label("unit_name"),
    *(_last.c[name].label(f"reading_{name}") for name in READING_COLUMNS),
).select_from(
    meter.join(property_, refers_to(meter, "property_id", property_))
    .outerjoin(unit, refers_to(meter, "unit_id", unit))
    .outerjoin(_last, sa.true())
)


class NamePages:
    """Pages of one kind of record for people, in the order of names: one statement for each set of filters.

    A page starts from the rows that an index has in that order: those of the first of `leads` whose filters are all
    set. The other filters are checked on each row, so a page with them costs at most the rows of its lead. Filters of
    words start from the rows that have them. The records of a small place, such as a unit's assets, are few: the first
    thousand are sorted.
    """

    def __init__(
        self,
        kind: str,
        table: sa.Table,
        rows: Selection,
        filters: Mapping[str, sa.ColumnElement[bool]],
        leads: Sequence[Mapping[str, Expression]] = (),
        small: str = "",
        order: Sequence[Expression] = (),
        rows_max: int = 200,
    ) -> None:
        """rows: the SELECT. filters: by the name of their parameter, which is an array if it ends in "s". leads: by
        name of a filter, the column that it equals, in the order of an index. small: the filter of a small place.
        order: columns instead of the name."""
        self.kind, self.table, self._all = kind, table, rows
        self._filters, self._leads, self._small = filters, leads, small
        self._longest = _number(rows_max + 1)
        self._order = tuple(order) or (in_order_of_names(table.c.name),)
        self._statements: dict[frozenset[str], Statement] = {}
        self._by_ids = self._joined(
            sa.select(*table.primary_key.columns, sa.func.array_position(param("ids", IDS), table.c.id).label("place"))
            .where(table.c.company_id == _company, table.c.id == sa.func.any(param("ids", IDS)))
            .subquery("longest"),
            ["place"],
        )

    async def rows(
        self, database: Database, company_id: int, after_id: int, rows: int, filters: Mapping[str, object]
    ) -> list[Record]:
        """Up to `rows` rows. filters: their values; `query` is the text of a tsquery."""
        values = {"company_id": company_id, "after_id": after_id, "rows": rows, **filters}
        names = frozenset(filters)
        async with database.transaction(self.first(names), writes=False) as connection:
            return await connection.rows(self.statement(names), **values)

    def first(self, names: frozenset[str]) -> str:
        """The SQL at the start of the statement's transaction."""
        return "" if names & {"query", self._small} else IN_ORDER

    async def by_ids(self, database: Database, company_id: int, ids: Sequence[int]) -> list[Record]:
        """The company's rows with these ids, in their order."""
        return await database.rows(self._by_ids, company_id=company_id, ids=ids) if ids else []

    def statement(self, names: frozenset[str]) -> Statement:
        """The statement for a set of filters. Its parameters: the filters', company_id, after_id and rows."""
        if names not in self._statements:
            by_words = "query" in names
            choose = self._by_words if by_words else self._of_small_place if self._small in names else self._by_lead
            cut = choose(names).limit(_rows).subquery("cut")
            # A literal limit: with a parameter the planner expects a tenth of the table, and joins whole tables.
            longest = sa.select(cut).limit(self._longest).subquery("longest")
            order = [f"o{place}" for place in range(1 if by_words else len(self._order))]
            if by_words:
                self._statements[names] = self._joined(longest, [*order, "id"])
            else:
                # The cut has the table's columns. Joined with the table instead, a page might read all of a company.
                rows = on_rows(self._all, longest)
                self._statements[names] = Statement(rows.order_by(*(longest.c[name] for name in [*order, "id"])))
        return self._statements[names]

    def _joined(self, longest: sa.Subquery, order: Sequence[str]) -> Statement:
        table, at = self.table, longest.c
        same = (table.c.company_id == at.company_id, table.c.id == at.id)
        return Statement(self._all.join_from(table, longest, sa.and_(*same)).order_by(*(at[name] for name in order)))

    def _by_lead(self, names: frozenset[str]) -> Selection:
        """The rows of the first lead whose filters are all set, in the order of its index."""
        table = self.table
        lead = next((lead for lead in self._leads if lead.keys() <= names), {})
        columns: list[Expression] = [table.c.company_id]
        values: list[Expression] = [_company]
        each = None
        for name, column in lead.items():
            columns.append(column)
            if name.endswith("s"):
                each = sa.func.unnest(param(name, TEXTS)).table_valued("value").render_derived("each")
                values.append(each.c.value)
            else:
                values.append(self._filters[name].right)
        scan = sa.select(*_with_order(table.c, self._order)).where(
            *(column == sa.any_(array([value])) for column, value in zip(columns, values, strict=True)),
            self._further(table, self._order),
            *(self._filters[name] for name in sorted(names - lead.keys())),
        )
        scan = scan.order_by(*columns, *self._order, table.c.id).limit(_rows)
        if each is not None:
            parts = scan.lateral("parts")
            scan = sa.select(parts).select_from(each.join(parts, sa.true()))
            return scan.order_by(*(parts.c[f"o{place}"] for place in range(len(self._order))), parts.c.id)
        return scan

    def _of_small_place(self, names: frozenset[str]) -> Selection:
        table, column = self.table, self.table.c[self._small]
        having = [(table.c.company_id, _company), (column, param(self._small, column.type))]
        conditions = [key == sa.any_(array([value])) for key, value in having]
        scan = sa.select(table).where(*conditions).order_by(table.c.company_id, column, table.c.id).limit(_few)
        members = scan.subquery("members")
        order = [on_rows(expression, members) for expression in self._order]
        filters = [on_rows(self._filters[name], members) for name in sorted(names - {self._small})]
        further = on_rows(self._further(table, self._order), members)
        rows = sa.select(*_with_order(members.c, order)).where(further, *filters)
        return rows.order_by(*order, members.c.id)

    def _by_words(self, names: frozenset[str]) -> Selection:
        """The rows that have all words."""
        words, table = place_search, self.table
        order = (words.c.name_order,)
        is_kind = words.c.kind == sa.literal_column(f"'{self.kind}'")
        rows = sa.select(*_with_order((words.c.company_id, words.c.id), order)).where(
            words.c.words.bool_op("@@")(_query),
            # Not for the key's index, which would lead to all of the company's rows.
            *(condition.is_(sa.true()) for condition in (words.c.company_id == _company, is_kind)),
            self._further(words, order, is_kind),
        )
        if filters := sorted(names - {"query"}):
            same = (table.c.company_id == words.c.company_id, table.c.id == words.c.id)
            rows = rows.join_from(words, table, sa.and_(*same)).where(*(self._filters[name] for name in filters))
        return rows.order_by(*order, words.c.id)

    @staticmethod
    def _further(table: sa.Table, order: Sequence[Expression], *also: Expression) -> sa.ColumnElement[bool]:
        """The condition that a row follows the record `after_id`; each row follows an unknown one."""
        at = table.alias("at")
        is_after = [on_rows(same, at) for same in (table.c.company_id == _company, table.c.id == _after, *also)]
        least: list[Expression] = [
            sa.literal_column("'-infinity'::date" if isinstance(column.type, sa.Date) else "''") for column in order
        ]
        begins = [
            sa.func.coalesce(
                sa.select(on_rows(column, at)).where(*is_after).scalar_subquery(), first, type_=column.type
            )
            for column, first in zip(order, least, strict=True)
        ]
        return sa.tuple_(*order, table.c.id) > sa.tuple_(*begins, _after)


def _with_order(columns: Iterable[Expression], order: Sequence[Expression]) -> list[Expression]:
    """The columns, then those of the order as o0, o1, …"""
    return [*columns, *(column.label(f"o{place}") for place, column in enumerate(order))]


def _is(table: sa.Table, column: str) -> sa.ColumnElement[bool]:
    return table.c[column] == param(column, table.c[column].type)


def _any(column: Expression, name: str) -> sa.ColumnElement[bool]:
    return column == sa.func.any(param(name, TEXTS))


PROPERTIES = NamePages("property", property_, _PROPERTIES, {})
UNITS = NamePages(
    "unit",
    unit,
    _UNITS,
    {"property_id": _is(unit, "property_id"), "statuses": _any(known_status, "statuses")},
    [
        {"property_id": unit.c.property_id, "statuses": known_status},
        {"property_id": unit.c.property_id},
        {"statuses": known_status},
    ],
    rows_max=ROWS_MAX,
)
_warranty = asset.c.warranty_expires_on
_ASSET_FILTERS = {
    **{name: _is(asset, name) for name in ("property_id", "unit_id", "category")},
    "statuses": _any(asset.c.status, "statuses"),
    "warranty_from": _warranty >= param("warranty_from", sa.Date),
    "warranty_by": _warranty <= param("warranty_by", sa.Date),
}
ASSETS = NamePages(
    "asset",
    asset,
    _ASSETS,
    _ASSET_FILTERS,
    [
        {"property_id": asset.c.property_id, "statuses": asset.c.status},
        {"property_id": asset.c.property_id},
        {"category": asset.c.category},
        {"statuses": asset.c.status},
    ],
    "unit_id",
)
WARRANTIES = NamePages("asset", asset, _ASSETS, _ASSET_FILTERS, small="unit_id", order=[_warranty])
METERS = NamePages(
    "meter",
    meter,
    _METERS,
    {
        **{name: _is(meter, name) for name in ("property_id", "unit_id", "scope", "is_active")},
        "utility_types": _any(meter.c.utility_type, "utility_types"),
    },
    [{"property_id": meter.c.property_id}, {"utility_types": meter.c.utility_type}],
    "unit_id",
)
BY_KIND = {pages.kind: pages for pages in (PROPERTIES, UNITS, ASSETS, METERS)}


def _best(*, in_property: bool) -> Statement:
    """The records of one kind that have all words, those first that have each as a whole word."""
    words, whole = place_search, sa.cast(param("whole", sa.Text), TSQUERY)
    conditions = [words.c.company_id == _company, words.c.kind == param("kind", sa.Text)]
    if in_property:
        conditions.append(words.c.property_id == param("property_id", sa.BigInteger))
    return Statement(
        sa.select(words.c.id)
        .where(words.c.words.bool_op("@@")(_query), *(condition.is_(sa.true()) for condition in conditions))
        .order_by(words.c.words.bool_op("@@")(whole).desc(), words.c.name_order, words.c.id)
        .limit(_rows)
    )


BEST, BEST_IN_PROPERTY = _best(in_property=False), _best(in_property=True)


def _named(field: str) -> Expression:
    """The column of a count that says which field of the response it belongs to."""
    return sa.literal_column(f"'{field}'", sa.Text).label("field")


def _counted(field: str, table: sa.Table, *conditions: Expression, by: Expression | None = None) -> Selection:
    """A row (field, "", count): the first COUNT_MAX + 1 rows. by: the column after the company in an index."""
    rows = sa.select(_one).select_from(table).limit(_most)
    rows = rows.where(table.c.company_id == sa.any_(array([_company])), *conditions)
    rows = rows.order_by(table.c.company_id, table.c.id if by is None else by)
    count = sa.func.count().label("count")
    return sa.select(_named(field), _nothing.label("status"), count).select_from(rows.subquery())


def _counted_by_status(field: str, table: sa.Table, status: Expression, statuses: str) -> Selection:
    """Rows (field, status, count): the first COUNT_MAX + 1 rows of each status. statuses: the parameter's name."""
    each = sa.func.unnest(param(statuses, TEXTS)).table_valued("value").render_derived("each")
    rows = sa.select(_one).select_from(table).limit(_most)
    rows = rows.where(table.c.company_id == sa.any_(array([_company])), status == sa.any_(array([each.c.value])))
    # In the order of an index, so that the planner takes no other.
    rows = rows.order_by(table.c.company_id, status).correlate(each)
    count = sa.select(sa.func.count().label("count")).select_from(rows.subquery()).lateral("counted")
    return sa.select(_named(field), each.c.value, count.c.count).select_from(each.join(count, sa.true()))


COUNTS = Statement(
    sa.union_all(
        _counted("properties", property_),
        _counted_by_status("units", unit, known_status, "unit_statuses"),
        _counted_by_status("assets", asset, asset.c.status, "asset_statuses"),
        _counted("meters", meter),
        _counted(
            "warranties",
            asset,
            _warranty >= param("warranty_from", sa.Date),
            _warranty <= param("warranty_by", sa.Date),
            asset.c.status != sa.literal_column("'Retired'"),
            by=_warranty,
        ),
    )
)


# Rows (property_id, status, count): the units of these properties by status, of each at most one more than COUNT_MAX.
UNITS_OF = Statement(
    sql(
        """
        SELECT properties.id AS property_id, statuses.value AS status, counted.count
        FROM unnest(:property_ids) AS properties(id)
        CROSS JOIN unnest(:unit_statuses) AS statuses(value)
        CROSS JOIN LATERAL (
            SELECT count(*) AS count
            FROM (
                SELECT 1
                FROM unit
                WHERE unit.company_id = ANY (ARRAY[:company_id])
                    AND unit.property_id = ANY (ARRAY[properties.id])
                    AND coalesce(unit.unit_status, '') = ANY (ARRAY[statuses.value])
                ORDER BY unit.company_id, unit.property_id, coalesce(unit.unit_status, '')
                LIMIT 1001
            ) AS units
        ) AS counted
        WHERE counted.count > 0
        """,
        company_id=sa.BigInteger,
        property_ids=IDS,
        unit_statuses=TEXTS,
    )
)

_property_id = param("property_id", sa.BigInteger)


def _inside(table: sa.Table) -> list[sa.ColumnElement[bool]]:
    return [table.c.company_id == _company, table.c.property_id == _property_id]


IS_PROPERTY = Statement(
    sa.select(property_.c.id).where(property_.c.company_id == _company, property_.c.id == _property_id)
)


def _grouped(field: str, table: sa.Table, column: Expression) -> Selection:
    status, count = sa.cast(column, sa.Text).label("status"), sa.func.count().label("count")
    return sa.select(_named(field), status, count).where(*_inside(table)).group_by(column)


SUMMARY = Statement(
    sa.union_all(
        _grouped("units", unit, known_status),
        _grouped("assets", asset, asset.c.status),
        _grouped("meters", meter, meter.c.is_active),
    )
)


def _parts(table: sa.Table, columns: Sequence[Expression], member: sa.Table, refers: str) -> Statement:
    """The parts of one property by name, each with how many members lie in it."""
    inside = sa.select(member.c[refers].label("part_id"), sa.func.count().label("count"))
    inside = inside.where(*_inside(member), member.c[refers].is_not(None)).group_by(member.c[refers])
    counted = inside.subquery("counted")
    count = sa.func.coalesce(counted.c.count, sa.literal_column("0"), type_=sa.BigInteger).label("count")
    return Statement(
        sa.select(table.c.id, table.c.name, *columns, count)
        .select_from(table.outerjoin(counted, counted.c.part_id == table.c.id))
        .where(*_inside(table))
        .order_by(in_order_of_names(table.c.name), table.c.id)
    )


BUILDINGS = _parts(building, [_text(building.c.external_id, "external_id")], unit, "building_id")
FLOORS = _parts(floor, [floor.c.building_id], unit, "floor_id")
FLOORPLANS = _parts(
    floorplan, [floorplan.c[name] for name in ("bedrooms", "bathrooms", "square_feet")], unit, "floorplan_id"
)
LOCATIONS = _parts(location, [location.c.location_type], asset, "location_id")


# The readings of one meter.
_meter_id = param("meter_id", sa.BigInteger)
_of_meter = [reading.c.company_id == sa.any_(array([_company])), reading.c.meter_id == sa.any_(array([_meter_id]))]
_by_period = [reading.c.company_id, reading.c.meter_id, reading.c.period_start, reading.c.id]
IS_METER = Statement(sa.select(meter.c.id).where(meter.c.company_id == _company, meter.c.id == _meter_id))


def _readings(*, before: bool) -> Statement:
    """The readings of one meter, newest period first."""
    rows = sa.select(*(reading.c[name] for name in READING_COLUMNS)).where(*_of_meter)
    if before:
        before_id, at = param("before_id", sa.BigInteger), reading.alias("at")
        is_it = (at.c.company_id == _company, at.c.meter_id == _meter_id, at.c.id == before_id)
        began = sa.select(at.c.period_start).where(*is_it).scalar_subquery()
        rows = rows.where(sa.tuple_(reading.c.period_start, reading.c.id) < sa.tuple_(began, before_id))
    return Statement(rows.order_by(*(column.desc() for column in _by_period)).limit(_rows))


# By whether they are those before the reading `before_id`.
READINGS = {before: _readings(before=before) for before in (False, True)}

# The company's time zone, and the unit of a meter's newest reading.
TERMS = Statement(
    sql(
        """
        SELECT
            coalesce((SELECT company.timezone FROM company WHERE company.id = :company_id), 'UTC') AS timezone,
            (
                SELECT reading.unit_of_measure
                FROM reading
                WHERE reading.company_id = ANY (ARRAY[:company_id])
                    AND reading.meter_id = ANY (ARRAY[:meter_id])
                    AND reading.period_start < :until
                ORDER BY reading.company_id DESC, reading.meter_id DESC, reading.period_start DESC, reading.id DESC
                LIMIT 1
            ) AS unit_of_measure
        """,
        company_id=sa.BigInteger,
        meter_id=sa.BigInteger,
        until=TIME,
    )
)

# The sums of a meter's readings by month and by whether they have the unit of the newest one. A reading counts in each
# month by its share of the time. A period that ends at a month's beginning has no part of that month. Periods longer
# than 400 days from before the first month are not seen.
MONTHS = Statement(
    sql(
        """
        SELECT
            part.month,
            part.is_unit,
            sum(part.consumption * part.share) AS consumption,
            sum(part.consumption * part.share) FILTER (WHERE part.is_estimated) AS estimated,
            sum(part.cost * part.share) AS cost,
            sum(part.seconds) AS seconds,
            count(*) AS readings
        FROM (
            SELECT
                to_char(months.month, 'YYYY-MM') AS month,
                r.unit_of_measure IS NOT DISTINCT FROM :unit_of_measure AS is_unit,
                r.consumption,
                r.cost,
                r.is_estimated,
                inside.seconds,
                CASE
                    WHEN r.period_end = r.period_start THEN 1::float8
                    ELSE inside.seconds / date_part('epoch', r.period_end - r.period_start)
                END AS share
            FROM reading AS r
            CROSS JOIN LATERAL generate_series(
                date_trunc('month', timezone(:timezone, r.period_start)),
                date_trunc(
                    'month', timezone(:timezone, greatest(r.period_start, r.period_end - interval '1 microsecond'))
                ),
                interval '1 month'
            ) AS months(month)
            CROSS JOIN LATERAL (
                SELECT
                    timezone(:timezone, months.month) AS start,
                    timezone(:timezone, months.month + interval '1 month') AS end
            ) AS bounds
            CROSS JOIN LATERAL (
                SELECT
                    date_part('epoch', least(r.period_end, bounds.end) - greatest(r.period_start, bounds.start))
                    AS seconds
            ) AS inside
            WHERE r.company_id = ANY (ARRAY[:company_id])
                AND r.meter_id = ANY (ARRAY[:meter_id])
                AND r.period_start >= :since - interval '400 days'
                AND r.period_start < :until
                AND bounds.end > :since
        ) AS part
        GROUP BY part.month, part.is_unit
        """,
        company_id=sa.BigInteger,
        meter_id=sa.BigInteger,
        since=TIME,
        until=TIME,
        timezone=sa.Text,
        unit_of_measure=sa.Text,
    )
)
