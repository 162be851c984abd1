"""The place of a new ticket, and the number that it takes there; the place that somebody at a desk names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from asyncpg import Record
from sqlalchemy import BigInteger, Text, and_, func, select, text
from sqlalchemy.dialects.postgresql import insert

from chassis.db.database import Connection, Database
from chassis.db.statements import Statement, param
from chassis.lists.updated_since import is_of
from svc_tickets import tables as t
from svc_tickets.together import Together, numbered

# An import holds the counters of its properties until its batch is stored. Who shares a statement with one that waits
# for such a counter soon goes on without it; alone, it waits as long as any statement does.
TOGETHER_WAIT, ALONE_WAIT = "50ms", "3s"


def _places_and_numbers() -> Statement:
    """Of each unit that is there: itself, its property, whether the asset is there, and the property's next number.

    Numbers are taken as a sequence's are: at once, for good, and unused where the create is refused. Their commit
    need not wait for the disk: the tickets' own commit, which follows in the log, makes it durable.
    """
    asked = numbered("asked", company_id=BigInteger, unit_id=BigInteger, asset_id=BigInteger)
    # By their keys alone: to a planner that knows few of them, the company's index looks as good.
    beside = is_of([(t.asset.c.property_id, t.unit.c.property_id), (t.asset.c.company_id, t.unit.c.company_id)])
    asset = and_(t.asset.c.id == asked.c.asset_id, *beside, t.asset.c.version > 0)
    own_unit = and_(t.unit.c.id == asked.c.unit_id, *is_of([(t.unit.c.company_id, asked.c.company_id)]))
    following = func.row_number().over(partition_by=t.property_.c.id, order_by=asked.c.n.desc())
    place = (
        select(
            asked.c.n,
            t.unit.c.id.label("unit_id"),
            t.unit.c.name.label("unit_name"),
            t.unit.c.external_id.label("unit_external_id"),
            t.unit.c.unit_number,
            t.property_.c.id.label("property_id"),
            t.property_.c.name.label("property_name"),
            t.property_.c.external_id.label("property_external_id"),
            t.asset.c.id.label("asset_id"),
            (following - text("1")).label("before_the_last"),
        )
        .select_from(
            asked.join(t.unit, own_unit)
            .join(t.property_, t.property_.c.id == t.unit.c.property_id)
            .outerjoin(t.asset, asset)
        )
        .where(t.unit.c.version > 0, t.property_.c.version > 0)
        .cte("place")
    )
    settings = select(
        func.set_config("synchronous_commit", "off", True).label("unhurried"),
        func.set_config("lock_timeout", param("wait", Text), True).label("wait"),
    ).cte("settings")
    # In the order of the properties, in which everybody takes their locks.
    counted = (
        select(place.c.property_id, func.count())
        .select_from(place.join(settings, text("true")))
        .group_by(place.c.property_id)
        .order_by(place.c.property_id)
    )
    take = insert(t.ticket_number).from_select(["property_id", "last"], counted)
    number = (
        take.on_conflict_do_update(
            index_elements=["property_id"], set_={"last": t.ticket_number.c.last + take.excluded.last}
        )
        .returning(t.ticket_number.c.property_id, t.ticket_number.c.last)
        .cte("number")
    )
    taken = (number.c.last - place.c.before_the_last).label("ticket_number")
    return Statement(select(place, taken).select_from(place.join(number, number.c.property_id == place.c.property_id)))


PLACES_AND_NUMBERS = _places_and_numbers()


class _Asked(NamedTuple):
    database: Database
    company_id: int
    unit_id: int
    asset_id: int


async def _together(some: Sequence[_Asked], wait: str = TOGETHER_WAIT) -> list[Record | None]:
    rows = await some[0].database.rows(
        PLACES_AND_NUMBERS,
        asked_company_id=[one.company_id for one in some],
        asked_unit_id=[one.unit_id for one in some],
        asked_asset_id=[one.asset_id for one in some],
        wait=wait,
    )
    found = {row["n"]: row for row in rows}
    return [found.get(n) for n in range(1, len(some) + 1)]


async def _alone(one: _Asked) -> Record | None:
    (row,) = await _together([one], ALONE_WAIT)
    return row


_TOGETHER: Together[_Asked, Record | None] = Together(_together, _alone)


async def place_and_number(database: Database, company_id: int, unit_id: int, asset_id: int) -> Record | None:
    """None where the unit is not in the replica; asset_id is null in the row where the asset is not there."""
    return await _TOGETHER.ask(_Asked(database, company_id, unit_id, asset_id))


def _place() -> Statement:
    """The property, and what is there of the unit and the asset; ids that nobody has are 0."""
    here = t.property_.c.id
    its_unit = and_(t.unit.c.id == param("unit_id", BigInteger), t.unit.c.property_id == here, t.unit.c.version > 0)
    its_asset = and_(
        t.asset.c.id == param("asset_id", BigInteger), t.asset.c.property_id == here, t.asset.c.version > 0
    )
    rows = select(here.label("property_id"), t.unit.c.id.label("unit_id"), t.asset.c.id.label("asset_id"))
    return Statement(
        rows.select_from(t.property_.outerjoin(t.unit, its_unit).outerjoin(t.asset, its_asset)).where(
            here == param("property_id", BigInteger),
            t.property_.c.company_id == param("company_id", BigInteger),
            t.property_.c.version > 0,
        )
    )


_PLACE = _place()


async def place(
    database: Connection | Database, company_id: int, property_id: int, unit_id: int, asset_id: int
) -> Record | None:
    """property_id, unit_id, asset_id as far as the replicas have them; None where they lack the property."""
    return await database.row(
        _PLACE, company_id=company_id, property_id=property_id, unit_id=unit_id, asset_id=asset_id
    )
