"""The SQL statements of lists, counts and the search for people, named for what they return. The first parameter is
the company."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSQUERY, array

from chassis.db.database import IN_ORDER
from chassis.db.statements import TEXTS, TIME, Statement, param
from chassis.lists.paging import on_rows
from svc_catalog.meters.tables import meter, reading
from svc_catalog.places.tables import asset, building, floor, floorplan, known_status, location, property_, unit
from svc_catalog.schema import IDS, company, in_order_of_names
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


def _literal(sql: str) -> sa.ColumnElement[Any]:
    return sa.literal_column(sql)


_one, _most, _few = (_literal(str(number)) for number in (1, COUNT_MAX + 1, 1000))
_nothing = sa.literal_column("''", sa.Text)


def _text(column: Any, name: str) -> Any:
    return sa.func.coalesce(column, sa.literal_column("''"), type_=sa.Text).label(name)


def _day(column: Any, name: str) -> Any:
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
        rows: sa.Select[Any],
        filters: Mapping[str, sa.ColumnElement[bool]],
        leads: Sequence[Mapping[str, Any]] = (),
        small: str = "",
        order: Sequence[Any] = (),
        rows_max: int = 200,
    ) -> None:
        """rows: the SELECT. filters: by the name of their parameter, which is an array if it ends in "s". leads: by
        name of a filter, the column that it equals, in the order of an index. small: the filter of a small place.
        order: columns instead of the name."""
        self.kind, self.table, self._all = kind, table, rows
        self._filters, self._leads, self._small = filters, leads, small
        self._longest = _literal(str(rows_max + 1))
        self._order = tuple(order) or (in_order_of_names(table.c.name),)
        self._statements: dict[frozenset[str], Statement] = {}
        self._by_ids = self._joined(
            sa.select(*table.primary_key.columns, sa.func.array_position(param("ids", IDS), table.c.id).label("place"))
            .where(table.c.company_id == _company, table.c.id == sa.func.any(param("ids", IDS)))
            .subquery("longest"),
            ["place"],
        )

    async def rows(self, database: Any, company_id: int, after_id: int, rows: int, given: Mapping[str, Any]) -> Any:
        """Up to `rows` rows. given: the values of filters; `query` is the text of a tsquery."""
        values = {"company_id": company_id, "after_id": after_id, "rows": rows, **given}
        names = frozenset(given)
        async with database.transaction(self.first(names), writes=False) as connection:
            return await connection.rows(self.statement(names), **values)

    def first(self, names: frozenset[str]) -> str:
        """The SQL at the start of the statement's transaction."""
        return "" if names & {"query", self._small} else IN_ORDER

    async def by_ids(self, database: Any, company_id: int, ids: Sequence[int]) -> Any:
        """The company's rows with these ids, in their order."""
        return await database.rows(self._by_ids, company_id=company_id, ids=ids) if ids else []

    def statement(self, names: frozenset[str]) -> Statement:
        """The statement for a set of filters. Its parameters: the filters', company_id, after_id and rows."""
        if names not in self._statements:
            by_words = "query" in names
            choose = self._found if by_words else self._sorted if self._small in names else self._walked
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

    def _walked(self, names: frozenset[str]) -> sa.Select[Any]:
        table = self.table
        lead = next((one for one in self._leads if one.keys() <= names), {})
        columns: list[Any] = [table.c.company_id]
        values: list[Any] = [_company]
        each = None
        for name, column in lead.items():
            columns.append(column)
            if name.endswith("s"):
                each = sa.func.unnest(param(name, TEXTS)).table_valued("value").render_derived("each")
                values.append(each.c.value)
            else:
                values.append(self._filters[name].right)
        own = sa.select(*self._row(table, self._order)).where(
            *(column == sa.any_(array([value])) for column, value in zip(columns, values, strict=True)),
            self._further(table, self._order),
            *(self._filters[name] for name in sorted(names - lead.keys())),
        )
        own = own.order_by(*columns, *self._order, table.c.id).limit(_rows)
        if each is not None:
            parts = own.lateral("parts")
            own = sa.select(parts).select_from(each.join(parts, sa.true()))
            return own.order_by(*(parts.c[f"o{place}"] for place in range(len(self._order))), parts.c.id)
        return own

    def _sorted(self, names: frozenset[str]) -> sa.Select[Any]:
        """The rows of a small place."""
        table, column = self.table, self.table.c[self._small]
        having = [(table.c.company_id, _company), (column, param(self._small, column.type))]
        conditions = [one == sa.any_(array([value])) for one, value in having]
        walk = sa.select(table).where(*conditions).order_by(table.c.company_id, column, table.c.id).limit(_few)
        own = walk.subquery("own")
        order = [on_rows(one, own) for one in self._order]
        rest = [on_rows(self._filters[name], own) for name in sorted(names - {self._small})]
        further = on_rows(self._further(table, self._order), own)
        return sa.select(*self._row(own, order)).where(further, *rest).order_by(*order, own.c.id)

    def _found(self, names: frozenset[str]) -> sa.Select[Any]:
        """The rows that have all words."""
        found, table = place_search, self.table
        order = (found.c.name_order,)
        is_kind = found.c.kind == sa.literal_column(f"'{self.kind}'")
        chosen = sa.select(*self._key(found, order)).where(
            found.c.words.bool_op("@@")(_query),
            # Not for the key's index, which would lead to all of the company's rows.
            *((one).is_(sa.true()) for one in (found.c.company_id == _company, is_kind)),
            self._further(found, order, is_kind),
        )
        if rest := sorted(names - {"query"}):
            same = (table.c.company_id == found.c.company_id, table.c.id == found.c.id)
            chosen = chosen.join_from(found, table, sa.and_(*same)).where(*(self._filters[name] for name in rest))
        return chosen.order_by(*order, found.c.id)

    @staticmethod
    def _row(table: Any, order: Sequence[Any]) -> list[Any]:
        return [*table.c, *(one.label(f"o{place}") for place, one in enumerate(order))]

    @staticmethod
    def _key(table: Any, order: Sequence[Any]) -> list[Any]:
        return [table.c.company_id, table.c.id, *(one.label(f"o{place}") for place, one in enumerate(order))]

    @staticmethod
    def _further(table: sa.Table, order: Sequence[Any], *also: Any) -> sa.ColumnElement[bool]:
        """The condition that a row follows the record `after_id`; each row follows an unknown one."""
        at = table.alias("at")
        there = [on_rows(one, at) for one in (table.c.company_id == _company, table.c.id == _after, *also)]
        first = [_literal("'-infinity'::date" if isinstance(one.type, sa.Date) else "''") for one in order]
        begins = [
            sa.func.coalesce(sa.select(on_rows(one, at)).where(*there).scalar_subquery(), least, type_=one.type)
            for one, least in zip(order, first, strict=True)
        ]
        return sa.tuple_(*order, table.c.id) > sa.tuple_(*begins, _after)


def _is(table: sa.Table, column: str, name: str = "") -> Any:
    return table.c[column] == param(name or column, table.c[column].type)


def _any(column: Any, name: str) -> Any:
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
BY_KIND = {one.kind: one for one in (PROPERTIES, UNITS, ASSETS, METERS)}


def _best(*, in_property: bool) -> Statement:
    """The records of one kind that have all words, those first that have each as a whole word."""
    found, whole = place_search, sa.cast(param("whole", sa.Text), TSQUERY)
    conditions = [found.c.company_id == _company, found.c.kind == param("kind", sa.Text)]
    if in_property:
        conditions.append(found.c.property_id == param("property_id", sa.BigInteger))
    return Statement(
        sa.select(found.c.id)
        .where(found.c.words.bool_op("@@")(_query), *(one.is_(sa.true()) for one in conditions))
        .order_by(found.c.words.bool_op("@@")(whole).desc(), found.c.name_order, found.c.id)
        .limit(_rows)
    )


BEST, BEST_IN_PROPERTY = _best(in_property=False), _best(in_property=True)


def _counted(
    what: str, table: Any, *conditions: Any, status: Any = None, statuses: str = "", by: Sequence[Any] = ()
) -> Any:
    """Rows (what, status, count): the first COUNT_MAX + 1 rows, of each status if there are some."""
    label = sa.literal_column(f"'{what}'", sa.Text).label("what")
    some = sa.select(_one).select_from(table).limit(_most)
    some = some.where(table.c.company_id == sa.any_(array([_company])), *conditions)
    if status is None:
        some = some.order_by(table.c.company_id, *(by or [table.c.id]))
        return sa.select(label, _nothing.label("status"), sa.func.count().label("count")).select_from(some.subquery())
    each = sa.func.unnest(param(statuses, TEXTS)).table_valued("value").render_derived("each")
    # In the order of an index, so that the planner takes no other.
    some = some.where(status == sa.any_(array([each.c.value]))).order_by(table.c.company_id, status).correlate(each)
    count = sa.select(sa.func.count().label("count")).select_from(some.subquery()).lateral("counted")
    return sa.select(label, each.c.value, count.c.count).select_from(each.join(count, sa.true()))


COUNTS = Statement(
    sa.union_all(
        _counted("properties", property_),
        _counted("units", unit, status=known_status, statuses="unit_statuses"),
        _counted("assets", asset, status=asset.c.status, statuses="asset_statuses"),
        _counted("meters", meter),
        _counted(
            "warranties",
            asset,
            _warranty >= param("warranty_from", sa.Date),
            _warranty <= param("warranty_by", sa.Date),
            asset.c.status != sa.literal_column("'Retired'"),
            by=[_warranty],
        ),
    )
)


def _units_of() -> Statement:
    """Rows (property_id, status, count): the units of some properties by status, at most COUNT_MAX of each."""
    of = sa.func.unnest(param("property_ids", IDS)).table_valued("id").render_derived("of")
    each = sa.func.unnest(param("unit_statuses", TEXTS)).table_valued("value").render_derived("each")
    some = (
        sa.select(_one)
        .select_from(unit)
        .where(
            unit.c.company_id == sa.any_(array([_company])),
            unit.c.property_id == sa.any_(array([of.c.id])),
            known_status == sa.any_(array([each.c.value])),
        )
        .order_by(unit.c.company_id, unit.c.property_id, known_status)
        .limit(_most)
        .correlate(of, each)
        .subquery("some")
    )
    counted = sa.select(sa.func.count().label("count")).select_from(some).lateral("counted")
    return Statement(
        sa.select(of.c.id.label("property_id"), each.c.value.label("status"), counted.c.count)
        .select_from(of.join(each, sa.true()).join(counted, sa.true()))
        .where(counted.c.count > sa.literal_column("0"))
    )


UNITS_OF = _units_of()

_property_id = param("property_id", sa.BigInteger)


def _inside(table: Any) -> list[Any]:
    return [table.c.company_id == _company, table.c.property_id == _property_id]


IS_PROPERTY = Statement(
    sa.select(property_.c.id).where(property_.c.company_id == _company, property_.c.id == _property_id)
)


def _grouped(what: str, table: Any, column: Any) -> Any:
    label = sa.literal_column(f"'{what}'", sa.Text).label("what")
    status = sa.cast(column, sa.Text).label("status")
    return sa.select(label, status, sa.func.count().label("count")).where(*_inside(table)).group_by(column)


SUMMARY = Statement(
    sa.union_all(
        _grouped("units", unit, known_status),
        _grouped("assets", asset, asset.c.status),
        _grouped("meters", meter, meter.c.is_active),
    )
)


def _parts(table: Any, columns: Sequence[Any], member: Any, refers: str) -> Statement:
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
    return Statement(rows.order_by(*(one.desc() for one in _by_period)).limit(_rows))


# By whether they are those before the reading `before_id`.
READINGS = {before: _readings(before=before) for before in (False, True)}

# The company's time zone, and the unit of a meter's newest reading.
TERMS = Statement(
    sa.select(
        sa.func.coalesce(
            sa.select(company.c.timezone).where(company.c.id == _company).scalar_subquery(),
            sa.literal_column("'UTC'"),
            type_=sa.Text,
        ).label("timezone"),
        sa.select(reading.c.unit_of_measure)
        .where(*_of_meter, reading.c.period_start < param("until", TIME))
        .order_by(*(one.desc() for one in _by_period))
        .limit(_one)
        .scalar_subquery()
        .label("unit_of_measure"),
    )
)


def _months() -> Statement:
    """Rows (month, is_unit, consumption, estimated, cost, seconds, readings): the sums of a meter's readings by month
    and by whether they have the unit of the newest one. A reading counts in each month by its share of the time."""
    month, step = _literal("'month'"), _literal("interval '1 month'")
    zone, begin = param("timezone", sa.Text), param("since", TIME)
    r = reading.c

    def local(at: Any) -> Any:
        return sa.func.date_trunc(month, sa.func.timezone(zone, at))

    def seconds(length: Any) -> Any:
        return sa.func.date_part(sa.literal_column("'epoch'"), length, type_=sa.Double)

    # A period that ends at a month's beginning has no part of that month.
    last = sa.func.greatest(r.period_start, r.period_end - sa.literal_column("interval '1 microsecond'"))
    months = sa.func.generate_series(local(r.period_start), local(last), step)
    of = months.table_valued("month").render_derived("of")
    start, end = (sa.func.timezone(zone, at) for at in (of.c.month, of.c.month + step))
    inside = seconds(sa.func.least(r.period_end, end) - sa.func.greatest(r.period_start, start))
    share = sa.case(
        (r.period_end == r.period_start, sa.literal_column("1::float8")),
        else_=inside / seconds(r.period_end - r.period_start),
    )
    is_unit = r.unit_of_measure.is_not_distinct_from(param("unit_of_measure", sa.Text))
    part = (
        sa.select(
            sa.func.to_char(of.c.month, sa.literal_column("'YYYY-MM'"), type_=sa.Text).label("month"),
            is_unit.label("is_unit"),
            *(r.consumption, r.cost, r.is_estimated, share.label("share"), inside.label("seconds")),
        )
        .select_from(reading.join(of, sa.true()))
        .where(
            *_of_meter,
            # Longer periods than that, from before the first month, are not seen.
            r.period_start >= begin - sa.literal_column("interval '400 days'"),
            r.period_start < param("until", TIME),
            end > begin,
        )
        .subquery("part")
    ).c
    amount = part.consumption * part.share
    return Statement(
        sa.select(
            part.month,
            part.is_unit,
            sa.func.sum(amount, type_=sa.Double).label("consumption"),
            sa.func.sum(amount, type_=sa.Double).filter(part.is_estimated).label("estimated"),
            sa.func.sum(part.cost * part.share, type_=sa.Double).label("cost"),
            sa.func.sum(part.seconds, type_=sa.Double).label("seconds"),
            sa.func.count().label("readings"),
        ).group_by(part.month, part.is_unit)
    )


MONTHS = _months()
