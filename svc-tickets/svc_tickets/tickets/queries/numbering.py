"""Ticket numbers: takes the next ones of a property, and finds an API ticket's place, with its number and its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import BigInteger, FromClause, Integer, Text, and_, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, insert

from chassis.changes.tables import NAMES_SEEN
from chassis.db.coalescing import Coalescer
from chassis.db.database import Connection, Database
from chassis.db.rows import array_rows
from chassis.db.statements import Query, Statement, param
from chassis.lists.updated_since import is_of
from chassis.writes.coalescing import LINGER_SECONDS
from svc_tickets.schema import asset, property_, unit
from svc_tickets.tickets import tables as t


def _take_numbers() -> Statement:
    ids = param("property_ids", ARRAY(BigInteger))
    counts = param("counts", ARRAY(Integer))
    counters = func.unnest(ids, counts).table_valued("property_id", "many").render_derived()
    put = insert(t.ticket_number).from_select(
        ["property_id", "last"], select(counters.c.property_id, counters.c.many).order_by(counters.c.property_id)
    )
    return Statement(
        put.on_conflict_do_update(
            index_elements=["property_id"], set_={"last": t.ticket_number.c.last + put.excluded.last}
        ).returning(t.ticket_number.c.property_id, t.ticket_number.c.last)
    )


_TAKE_NUMBERS = _take_numbers()


async def take_numbers(connection: Connection, counts: Mapping[int, int]) -> dict[int, int]:
    """Takes so many ticket numbers of each property; returns the first of each."""
    rows = await connection.rows(_TAKE_NUMBERS, property_ids=list(counts), counts=list(counts.values()))
    return {row["property_id"]: row["last"] - counts[row["property_id"]] + 1 for row in rows}


async def take_number(connection: Connection, property_id: int) -> int:
    """Takes the next ticket number of a property."""
    return (await take_numbers(connection, {property_id: 1}))[property_id]


# An import locks the counters of its properties until its batch is stored. A statement that several creates share gives
# up on such a lock soon, and each create then runs alone, where it waits as long as any statement does.
TOGETHER_WAIT, ALONE_WAIT = "50ms", "3s"


class NumberedPlace(NamedTuple):
    """A new ticket's place, its number there and its id. unit_id, asset_id: null if they do not exist there."""

    n: int
    unit_id: int | None
    unit_name: str | None
    unit_external_id: str | None
    unit_number: str | None
    property_id: int
    property_name: str
    property_external_id: str | None
    asset_id: int | None
    names_seen: int
    ticket_number: int
    ticket_id: int


def _requested(requests: FromClause, *, of_property: bool) -> FromClause:
    """The requests joined with their places. The conditions force look-ups by primary key: a planner that knows few
    rows takes the company's index for just as good."""
    of_company = is_of([(unit.c.company_id, requests.c.company_id)])
    its_unit = and_(unit.c.id == requests.c.unit_id, *of_company, unit.c.version > 0)
    if of_property:
        of_company = is_of([(property_.c.company_id, requests.c.company_id)])
        its_property = and_(property_.c.id == requests.c.property_id, *of_company)
        on_it = and_(its_unit, *is_of([(unit.c.property_id, property_.c.id)]))
        here = requests.join(property_, its_property).outerjoin(unit, on_it)
    else:
        here = requests.join(unit, its_unit).join(property_, property_.c.id == unit.c.property_id)
    on_property = is_of([(asset.c.property_id, property_.c.id), (asset.c.company_id, property_.c.company_id)])
    return here.outerjoin(asset, and_(asset.c.id == requests.c.asset_id, *on_property, asset.c.version > 0))


def _places_and_numbers(*, of_property: bool) -> Query[NumberedPlace]:
    """For each request whose place exists: the unit, its property, its asset if that exists, and the ticket's number
    and id. of_property: requests name the property, and a unit and an asset on it; else the unit alone.

    Numbers are taken as the sequence's ids are: at once, for good, and unused if the create is refused. Their commit
    does not wait for the disk: the later commit of the tickets makes it durable.
    """
    names = ("company_id", *(("property_id",) if of_property else ()), "unit_id", "asset_id")
    keys = dict.fromkeys(names, BigInteger())
    requests = array_rows("requests", keys, prefix="requested_", numbered=True)
    here = _requested(requests, of_property=of_property)
    following = func.row_number().over(partition_by=property_.c.id, order_by=requests.c.n.desc())
    place = (
        select(
            requests.c.n,
            unit.c.id.label("unit_id"),
            unit.c.name.label("unit_name"),
            unit.c.external_id.label("unit_external_id"),
            unit.c.unit_number,
            property_.c.id.label("property_id"),
            property_.c.name.label("property_name"),
            property_.c.external_id.label("property_external_id"),
            asset.c.id.label("asset_id"),
            NAMES_SEEN,
            (following - text("1")).label("before_the_last"),
        )
        .select_from(here)
        .where(property_.c.version > 0)
        .cte("place")
    )
    settings = select(
        func.set_config("synchronous_commit", "off", True).label("unhurried"),
        func.set_config("lock_timeout", param("wait", Text), True).label("wait"),
    ).cte("settings")
    # All writers lock counters in the order of property ids.
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
    columns = [column for column in place.c if column.name != "before_the_last"]
    new_id = t.ticket_id.next_value().label("ticket_id")
    rows = select(*columns, taken, new_id).select_from(place.join(number, number.c.property_id == place.c.property_id))
    return Query(NumberedPlace, rows)


PLACES_AND_NUMBERS = _places_and_numbers(of_property=False)
PLACES_AND_NUMBERS_ON = _places_and_numbers(of_property=True)


class _Request(NamedTuple):
    database: Database
    company_id: int
    unit_id: int
    asset_id: int


async def _several(requests: Sequence[_Request], wait: str = TOGETHER_WAIT) -> list[NumberedPlace | None]:
    rows = await PLACES_AND_NUMBERS.rows(
        requests[0].database,
        requested_company_id=[request.company_id for request in requests],
        requested_unit_id=[request.unit_id for request in requests],
        requested_asset_id=[request.asset_id for request in requests],
        wait=wait,
    )
    by_number = {row.n: row for row in rows}
    return [by_number.get(n) for n in range(1, len(requests) + 1)]


async def _alone(request: _Request) -> NumberedPlace | None:
    (row,) = await _several([request], ALONE_WAIT)
    return row


_COALESCER: Coalescer[_Request, NumberedPlace | None] = Coalescer(_several, _alone, LINGER_SECONDS)


async def place_and_number(database: Database, company_id: int, unit_id: int, asset_id: int) -> NumberedPlace | None:
    """The place and the number of a new ticket; None if the replica lacks the unit."""
    return await _COALESCER.ask(_Request(database, company_id, unit_id, asset_id))


async def place_and_number_on(
    database: Database, company_id: int, property_id: int, unit_id: int | None, asset_id: int | None
) -> NumberedPlace:
    """The place and the number of a new ticket of a property that the replica has."""
    place = await PLACES_AND_NUMBERS_ON.row(
        database,
        requested_company_id=[company_id],
        requested_property_id=[property_id],
        requested_unit_id=[unit_id or 0],
        requested_asset_id=[asset_id or 0],
        wait=ALONE_WAIT,
    )
    assert place is not None
    return place
