"""The SQL statements that search, count and show tickets. Each one filters by company first.

A page is found in one of two ways. An index scan reads a list in its order, from the page's beginning, and leaves out
the rows that do not fit; it ends after SCAN_ROWS rows. If that did not fill the page, fitting tickets are rare there.
Then an index look-up finds all of them by the terms of the filters, and they are sorted. So a page costs a few thousand
index entries, or the tickets that fit. `docs/plans.md` has what the statements read.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Integer, Text, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY, array

from chassis.db.database import Database
from chassis.db.statements import TEXTS, TIME, Expression, Query, Statement, param
from chassis.lists.spelling import Spelling
from svc_tickets import schema
from svc_tickets.search.rules import LARGEST, Cursor
from svc_tickets.search.tables import LEADS, ticket_search
from svc_tickets.tickets import tables as t
from svc_tickets.tickets.rules import fields

_s = ticket_search.c
_IDS = ARRAY(BigInteger)
_company_id = param("company_id", BigInteger)

PAGE_MAX = 200
SCAN_ROWS = 2000

# The filters, by name: conditions on one row of `ticket_search`.
FILTERS: Mapping[str, Expression] = {
    "statuses": _s.status == func.any(param("statuses", TEXTS)),
    "priorities": _s.priority == func.any(param("priorities", TEXTS)),
    "categories": _s.category == func.any(param("categories", TEXTS)),
    "sources": _s.source == func.any(param("sources", TEXTS)),
    "property_id": _s.property_id == param("property_id", BigInteger),
    "unit_id": _s.unit_id == param("unit_id", BigInteger),
    "asset_id": _s.asset_id == param("asset_id", BigInteger),
    "assignee_id": _s.assignee_id == param("assignee_id", BigInteger),
    "vendor_id": _s.vendor_id == param("vendor_id", BigInteger),
    "has_assignee": _s.assignee_id.is_not(None) == param("has_assignee", Boolean),
    "has_vendor": _s.vendor_id.is_not(None) == param("has_vendor", Boolean),
    "quiet_from": _s.quiet_since > param("quiet_from", TIME),
    "quiet_to": _s.quiet_since <= param("quiet_to", TIME),
    "opened_from": _s.opened >= param("opened_from", BigInteger),
    "opened_to": _s.opened < param("opened_to", BigInteger),
    "terms": _s.terms.op("@@")(sa.cast(param("terms", Text), TSQUERY)),
}
# The values of the lists that a scan may follow, by name of the lead.
_LEAD_VALUES: Mapping[str, Expression] = {
    **{name: param(name, BigInteger) for name in LEADS if name.endswith("_id")},
    "source": param("lead", Text),
    "is_open": param("lead", Boolean),
}


class ScannedTicket(NamedTuple):
    """A ticket that a scan has met. `n` says which row of the scan it is; `fits` is False for the row that ends a
    scan."""

    key: int
    id: int
    n: int
    fits: bool


class Variant(NamedTuple):
    """What a statement that finds a page depends on. `order` is a column of `tables.KEYS`; `lead` is of LEADS, or empty
    for the whole company; `filters` are names of FILTERS."""

    order: str
    lead: str
    filters: frozenset[str]
    descending: bool


def _bounds(order: str, names: frozenset[str]) -> list[Expression]:
    """The filters that are stretches of the order itself: they begin and end a scan."""
    return [FILTERS[name] for name in ("opened_from", "opened_to") if order == "opened" and name in names]


def _begins(variant: Variant) -> sa.ColumnElement[bool]:
    position = sa.tuple_(_s[variant.order], _s.id)
    last = sa.tuple_(param("last_key", BigInteger), param("last_id", BigInteger))
    return position < last if variant.descending else position > last


def _same(column: Expression, value: Expression) -> sa.ColumnElement[bool]:
    """Equal, in a form after which the column counts in the order: see `chassis.lists.updated_since.stretch`."""
    return column == sa.any_(array([value]))


def _ordered(columns: Sequence[Expression], descending: bool) -> list[Expression]:
    return [column.desc() if descending else column for column in columns]


def scan_statement(variant: Variant) -> Statement:
    """Parameters: company_id, last_key, last_id, rows, lead if there is one, and the filters'."""
    having: list[tuple[Expression, Expression]] = [(_s.company_id, _company_id)]
    if variant.lead:
        having.append((_s[variant.lead], _LEAD_VALUES[variant.lead]))
    order = [*(column for column, _ in having), _s[variant.order], _s.id]
    bounds = _bounds(variant.order, variant.filters)
    led = {variant.lead} if variant.lead in variant.filters else set[str]()
    checks = [FILTERS[name] for name in sorted(variant.filters - led) if FILTERS[name] not in bounds]
    fits = sa.and_(sa.true(), *checks)
    length = literal_column(str(SCAN_ROWS), Integer)
    numbered = func.row_number().over(order_by=_ordered(order, variant.descending)).label("n")
    leads = [column for column, _ in having]
    met = (
        select(*leads, _s[variant.order].label("key"), _s.id, func.coalesce(fits, sa.false()).label("fits"), numbered)
        .where(*(_same(column, value) for column, value in having), *bounds, _begins(variant))
        .order_by(*_ordered(order, variant.descending))
        .limit(length)
        .subquery("met")
    )
    page = select(met.c.key, met.c.id, met.c.n, met.c.fits).where(sa.or_(met.c.fits, met.c.n == length))
    # By the scan's columns: the planner knows that it is in this order, and ends it with the page's last row.
    key = [*(met.c[column.name] for column in leads), met.c.key, met.c.id]
    return Statement(page.order_by(*_ordered(key, variant.descending)).limit(param("rows", Integer)))


def lookup_statement(variant: Variant) -> Statement:
    """Parameters: those of `scan_statement`, without a lead. Without the filter `terms` it reads the tickets opened in
    a stretch of time."""
    checks = [FILTERS[name] for name in sorted(variant.filters)]
    of_company = _s.company_id == _company_id
    # The terms name the company: no index of the company's is needed.
    checks.append(of_company.is_(sa.true()) if "terms" in variant.filters else of_company)
    # Materialized, so that the planner scans no list in the page's order instead.
    fitting = select(_s[variant.order].label("key"), _s.id).where(*checks, _begins(variant))
    matches = fitting.cte("matches").prefix_with("MATERIALIZED")
    order = _ordered([matches.c.key, matches.c.id], variant.descending)
    zero = literal_column("0", Integer).label("n")
    page = select(matches.c.key, matches.c.id, zero, sa.true().label("fits"))
    return Statement(page.order_by(*order).limit(param("rows", Integer)))


_statements: dict[tuple[Callable[[Variant], Statement], Variant], Statement] = {}


def _statement(make: Callable[[Variant], Statement], variant: Variant) -> Statement:
    if (make, variant) not in _statements:
        _statements[make, variant] = make(variant)
    return _statements[make, variant]


class Search(NamedTuple):
    """A search as the statements take it. values: of the filters, by name of FILTERS; lead: the list to scan, and
    lead_value its value if no filter has it. terms: a tsquery for the filters that have terms; empty if none has.
    `scans` is False for filters that few tickets ever fit."""

    order: str
    descending: bool
    values: Mapping[str, object]
    lead: str
    lead_value: object
    terms: str
    scans: bool


def scan(search: Search, *, backwards: bool = False) -> tuple[Statement, dict[str, object]]:
    """The statement that scans for a page, with the values of its filters and its lead."""
    variant = Variant(search.order, search.lead, frozenset(search.values), search.descending != backwards)
    more = {"lead": search.lead_value} if search.lead_value is not None else {}
    return _statement(scan_statement, variant), dict(search.values) | more


def lookup(search: Search, *, backwards: bool = False) -> tuple[Statement, dict[str, object]]:
    """The statement that looks a page up, with the values of its filters."""
    values = dict(search.values) | ({"terms": search.terms} if search.terms else {})
    variant = Variant(search.order, "", frozenset(values), search.descending != backwards)
    return _statement(lookup_statement, variant), values


def beginning(search: Search, *, backwards: bool = False) -> Cursor:
    """The place before a search's first row."""
    edge = LARGEST if search.descending != backwards else -LARGEST
    return Cursor(edge, edge)


def has_page(scanned: Sequence[ScannedTicket], rows: int) -> bool:
    """Whether a scan has found the whole page: it is full, or the list ended before the scan did."""
    return sum(ticket.fits for ticket in scanned) == rows or not scanned or scanned[-1].n < SCAN_ROWS


async def page(
    database: Database, company_id: int, search: Search, after: Cursor | None, rows: int, *, backwards: bool
) -> list[ScannedTicket]:
    """Up to `rows` tickets after the cursor, in the search's order; backwards: before it, in the reverse order."""
    last = after or beginning(search, backwards=backwards)
    position = {"company_id": company_id, "last_key": last.key, "last_id": last.id, "rows": rows}
    if search.scans:
        statement, values = scan(search, backwards=backwards)
        tickets = await _rows(database, statement, **position, **values)
        if has_page(tickets, rows):
            return [ticket for ticket in tickets if ticket.fits]
    statement, values = lookup(search, backwards=backwards)
    return await _rows(database, statement, **position, **values)


async def _rows(database: Database, statement: Statement, **values: object) -> list[ScannedTicket]:
    return [ScannedTicket(*row) for row in await database.rows(statement, **values)]


SPELLING = Spelling(_s.terms)


# Tickets as rows of a list, from the tickets themselves: what they say is current, whatever the search table has.


class Summary(NamedTuple):
    """A ticket as a row of a list, with the fields of the message TicketSummary."""

    ticket_id: int
    ticket_number: int | None
    title: str
    category: str
    priority: str
    status: str
    property_id: int
    property_name: str
    unit_id: int | None
    unit_name: str | None
    asset_id: int | None
    asset_name: str | None
    assignee_id: int | None
    assignee_name: str | None
    vendor_id: int | None
    vendor_name: str | None
    vendor_on_hold: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime
    closed_at: datetime.datetime | None
    quiet_since: datetime.datetime | None
    source: str
    external_id: str | None
    unit_number: str | None
    resident_asked: bool


_t = t.ticket.c
_may_go_stale = _t.stale_due_at.is_not(None)
_SUMMARY: Mapping[str, Expression] = {
    "ticket_id": _t.id,
    "property_name": schema.property_.c.name,
    "unit_name": schema.unit.c.name,
    "asset_name": schema.asset.c.name,
    "assignee_name": schema.staff.c.name,
    "vendor_name": schema.vendor.c.name,
    "vendor_on_hold": func.coalesce(schema.vendor.c.on_hold, sa.false()),
    "closed_at": func.coalesce(_t.completed_at, _t.cancelled_at),
    "quiet_since": sa.case((_may_go_stale, _t.quiet_since)),
}
_summaries = select(
    *((_SUMMARY[name] if name in _SUMMARY else _t[name]).label(name) for name in Summary._fields)
).select_from(
    t.ticket.join(schema.property_, schema.property_.c.id == _t.property_id)
    .outerjoin(schema.unit, schema.unit.c.id == _t.unit_id)
    .outerjoin(schema.asset, schema.asset.c.id == _t.asset_id)
    .outerjoin(schema.staff, schema.staff.c.id == _t.assignee_id)
    .outerjoin(schema.vendor, schema.vendor.c.id == _t.vendor_id)
)
_BY_IDS = Query(Summary, _summaries.where(_t.company_id == _company_id, _t.id == func.any(param("ids", _IDS))))


async def summaries(database: Database, company_id: int, ids: Sequence[int]) -> dict[int, Summary]:
    """The tickets by id."""
    if not ids:
        return {}
    return {summary.ticket_id: summary for summary in await _BY_IDS.rows(database, company_id=company_id, ids=ids)}


# One ticket, for its page.


class Details(NamedTuple):
    """What a ticket's page shows besides its record and summary."""

    description: str | None
    subcategory: str | None
    room: str | None
    room_instance: str | None
    permission_to_enter: bool
    preferred_access_time: str | None
    photo_url: str | None
    cancellation_reason_code: str | None
    created_by_administrator_id: int | None
    inspection_id: int | None
    inspection_row_id: int | None
    other_tickets_of_asset: int


_is_ticket = (_t.company_id == _company_id, _t.id == param("ticket_id", BigInteger))
_row = t.ticket_of_inspection_row.c
_of_asset = (
    select(func.count())
    .select_from(ticket_search)
    .where(
        _s.company_id == _company_id,
        _s.asset_id == _t.asset_id,
        _s.opened >= param("opened_from", BigInteger),
        _s.id != _t.id,
    )
    .scalar_subquery()
    .label("other_tickets_of_asset")
)
_same_ticket = sa.and_(_row.company_id == _t.company_id, _row.ticket_id == _t.id)
_DETAILS = Query(
    Details,
    select(
        *(_t[name] for name in Details._fields[:9]),
        _row.inspection_id,
        _row.row_id.label("inspection_row_id"),
        _of_asset,
    )
    .select_from(t.ticket.outerjoin(t.ticket_of_inspection_row, _same_ticket))
    .where(*_is_ticket)
    .limit(literal_column("1")),
)
_SUMMARY_OF_ONE = Query(Summary, _summaries.where(*_is_ticket))


PHOTOS_MAX = 200


class Photo(NamedTuple):
    """A photo that was added to a ticket."""

    photo_url: str
    author: str | None
    actor: str | None
    api_key_id: int | None
    added_at: datetime.datetime


def _photos() -> Query[Photo]:
    row = t.ticket_comment.c
    of_ticket = (row.company_id == _company_id, row.ticket_id == param("ticket_id", BigInteger))
    return Query(
        Photo,
        select(row.body.label("photo_url"), row.author, row.actor, row.api_key_id, row.created_at.label("added_at"))
        .where(*of_ticket, row.kind == literal_column(f"'{fields.PHOTO}'"))
        .order_by(row.created_at.desc(), row.id.desc())
        .limit(literal_column(str(PHOTOS_MAX))),
    )


_PHOTOS = _photos()


class Whole(NamedTuple):
    """A ticket for its page. photos: the newest first."""

    summary: Summary
    details: Details
    photos: Sequence[Photo]


async def ticket(database: Database, company_id: int, ticket_id: int, opened_from: int) -> Whole | None:
    """opened_from: the other tickets of its asset since this key are counted."""
    key = {"company_id": company_id, "ticket_id": ticket_id}
    async with database.connection() as connection:
        summary = await _SUMMARY_OF_ONE.row(connection, **key)
        if summary is None:
            return None
        details = await _DETAILS.row(connection, **key, opened_from=opened_from)
        photos = await _PHOTOS.rows(connection, **key)
    assert details is not None  # tickets stay
    return Whole(summary, details, photos)


class OfRow(NamedTuple):
    """The ticket that a failed row of an inspection opened."""

    row_id: int
    ticket_id: int


_OF_INSPECTION = Query(
    OfRow,
    select(_row.row_id, _row.ticket_id)
    .where(_row.company_id == _company_id, _row.inspection_id == param("inspection_id", BigInteger))
    .order_by(_row.row_id)
    .limit(literal_column("1000")),
)


async def of_inspection(database: Database, company_id: int, inspection_id: int) -> list[OfRow]:
    """Ascending by row."""
    return await _OF_INSPECTION.rows(database, company_id=company_id, inspection_id=inspection_id)


# Counts of open tickets.


class Count(NamedTuple):
    """The open tickets of one value. by: the mask of GROUPING(), see `group_of`."""

    by: int
    value: str | None
    id: int | None
    tickets: int
    on_hold: int
    stale: int
    soon_stale: int
    unassigned: int
    urgent_unassigned: int


_GROUPED = ("age", "status", "priority", "assignee", "property")
# GROUPING() has a bit for each column that is not part of the group, the first column's being the highest.
_GROUPS = {31: "all"} | {31 - (1 << (4 - place)): name for place, name in enumerate(_GROUPED)}


def group_of(count: Count) -> str:
    """What the tickets have in common: "all", "age", "status", "priority", "assignee" or "property"."""
    return _GROUPS[count.by]


def _counts(*where: sa.ColumnElement[bool]) -> Query[Count]:
    """Reads each open ticket once, whatever it counts."""
    quiet, stale_to, soon_to = _s.quiet_since, param("stale_to", TIME), param("soon_to", TIME)
    nobody = sa.and_(_s.assignee_id.is_(None), _s.vendor_id.is_(None))
    age = func.width_bucket(_s.opened, param("ages", _IDS), type_=Integer)
    open_tickets = (
        select(
            age.label("age"), _s.status, _s.priority, _s.assignee_id, _s.property_id,
            quiet.label("quiet_since"), nobody.label("nobody"),
        )
        .where(_same(_s.company_id, _company_id), _same(_s.is_open, sa.true()), *where)
        .cte("open_tickets").prefix_with("MATERIALIZED")
    ).c  # fmt: skip
    names = [open_tickets[name] for name in ("age", "status", "priority", "assignee_id", "property_id")]
    which = func.grouping(*names, type_=Integer).label("by")
    text_of = func.coalesce(open_tickets.status, open_tickets.priority)
    number_of = func.coalesce(open_tickets.age, open_tickets.assignee_id, open_tickets.property_id, type_=BigInteger)
    urgent = open_tickets.priority.in_([literal_column("'High'"), literal_column("'Emergency'")])
    count = func.count()
    grouped = func.grouping_sets(sa.tuple_(), *(sa.tuple_(name) for name in names))
    return Query(
        Count,
        select(
            which, text_of.label("value"), number_of.label("id"), count.label("tickets"),
            count.filter(open_tickets.status == literal_column("'On Hold'")).label("on_hold"),
            count.filter(open_tickets.quiet_since <= stale_to).label("stale"),
            count.filter(open_tickets.quiet_since > stale_to, open_tickets.quiet_since <= soon_to).label("soon_stale"),
            count.filter(open_tickets.nobody).label("unassigned"),
            count.filter(open_tickets.nobody, urgent).label("urgent_unassigned"),
        ).group_by(grouped),
    )  # fmt: skip


_COUNTS = {False: _counts(), True: _counts(FILTERS["property_id"])}


async def counts(
    database: Database,
    company_id: int,
    property_id: int | None,
    ages: Sequence[int],
    stale_to: datetime.datetime,
    soon_to: datetime.datetime,
) -> list[Count]:
    """ages: keys of opening, ascending, between which a ticket's age is counted."""
    values = {"company_id": company_id, "ages": ages, "stale_to": stale_to, "soon_to": soon_to}
    if property_id is not None:
        values["property_id"] = property_id
    return await _COUNTS[property_id is not None].rows(database, **values)


class Name(NamedTuple):
    id: int
    name: str


def _names(table: sa.Table) -> Query[Name]:
    mine = (table.c.company_id == _company_id, table.c.id == func.any(param("ids", _IDS)))
    return Query(Name, select(table.c.id, table.c.name).where(*mine))


_NAMES = {
    "assignee": _names(schema.staff),
    "vendor": _names(schema.vendor),
    "property": _names(schema.property_),
    "unit": _names(schema.unit),
    "asset": _names(schema.asset),
}


async def names(database: Database, company_id: int, kind: str, ids: Sequence[int]) -> dict[int, str]:
    """The names of assignees, vendors, properties, units or assets, by id."""
    if not ids:
        return {}
    return {row.id: row.name for row in await _NAMES[kind].rows(database, company_id=company_id, ids=ids)}


# What happened to a ticket.


class Event(NamedTuple):
    """One thing that happened to a ticket. rank: its kind's place among those of the same instant; before, after:
    the JSON objects of an entry of the audit log."""

    occurred_at: datetime.datetime
    rank: int
    id: int
    kind: str
    actor: str | None
    api_key_id: int | None
    author: str | None
    text: str | None
    from_status: str | None
    to_status: str | None
    cancellation_reason_code: str | None
    before: str | None
    after: str | None
    request_id: str | None


# The audit log's entries that repeat comments and status changes.
_TOLD_ELSEWHERE = ("ticket.opened", "ticket.commented", "ticket.photographed", "ticket.status_changed")
OPENED, COMMENTS, CHANGES, AUDIT = "opened", "comments", "changes", "audit"
_last = (param("at", TIME), param("rank", Integer), param("last_id", BigInteger))


def _timeline(
    rank: int,
    source: sa.FromClause,
    at: Expression,
    entity_id: Expression,
    where: Sequence[Expression],
    **columns: Expression,
) -> Query[Event]:
    ranked = literal_column(str(rank), Integer)
    of_source = {"occurred_at": at, "rank": ranked, "id": entity_id, **columns}
    labelled = [of_source.get(name, sa.null()).label(name) for name in Event._fields]
    earlier = sa.tuple_(at, ranked, entity_id) < sa.tuple_(*_last)
    rows = select(*labelled).select_from(source).where(*where, earlier)
    return Query(Event, rows.order_by(at.desc(), entity_id.desc()).limit(param("rows", Integer)))


def _timelines() -> Mapping[str, Query[Event]]:
    comment, change, audit = t.ticket_comment, t.ticket_status_change, schema.audit
    of_comment, of_change = (
        (table.c.company_id == _company_id, table.c.ticket_id == param("ticket_id", BigInteger))
        for table in (comment, change)
    )
    noted = sa.and_(
        change.c.company_id == comment.c.company_id,
        change.c.ticket_id == comment.c.ticket_id,
        change.c.comment_id == comment.c.id,
    )
    is_note = comment.c.kind.in_([literal_column("'closing_note'"), literal_column("'cancellation_notes'")])
    with_note = change.outerjoin(comment, noted)
    elsewhere: list[Expression] = [literal_column(f"'{action}'") for action in _TOLD_ELSEWHERE]
    of_audit = (
        audit.c.company_id == _company_id,
        audit.c.subject == literal_column("'ticket'"),
        audit.c.subject_id == param("ticket_id", BigInteger),
        audit.c.action.not_in(elsewhere),
    )
    opened = audit.alias("opened")
    of_opening = sa.and_(
        opened.c.company_id == _t.company_id,
        opened.c.subject == literal_column("'ticket'"),
        opened.c.subject_id == _t.id,
        opened.c.action == literal_column("'ticket.opened'"),
    )
    by_administrator: Expression = sa.literal_column("'administrator:'") + sa.cast(_t.created_by_administrator_id, Text)
    return {
        COMMENTS: _timeline(
            1, comment, comment.c.created_at, comment.c.id,
            [*of_comment, ~sa.and_(is_note, select(change.c.version).where(noted).correlate(comment).exists())],
            kind=comment.c.kind, actor=comment.c.actor, api_key_id=comment.c.api_key_id, author=comment.c.author,
            text=comment.c.body),
        CHANGES: _timeline(
            2, with_note, change.c.occurred_at, change.c.version, of_change, kind=literal_column("'status'"),
            actor=change.c.actor, api_key_id=change.c.api_key_id, author=comment.c.author, text=comment.c.body,
            from_status=change.c.from_status, to_status=change.c.to_status,
            cancellation_reason_code=change.c.cancellation_reason_code, request_id=change.c.request_id),
        AUDIT: _timeline(
            3, audit, audit.c.recorded_at, audit.c.id, of_audit, kind=audit.c.action, actor=audit.c.actor,
            before=sa.cast(audit.c.before, Text), after=sa.cast(audit.c.after, Text), request_id=audit.c.request_id),
        OPENED: _timeline(
            0, t.ticket.outerjoin(opened, of_opening), _t.created_at, _t.id, _is_ticket,
            kind=literal_column("'opened'"), actor=func.coalesce(opened.c.actor, by_administrator),
            author=sa.case((_t.resident_asked, literal_column(f"'{fields.RESIDENT}'"))), text=_t.source,
            request_id=opened.c.request_id),
    }  # fmt: skip


_TIMELINES = _timelines()
_EXISTS = Statement(select(_t.id).where(*_is_ticket))


async def timeline(
    database: Database,
    company_id: int,
    ticket_id: int,
    sources: Sequence[str],
    before: tuple[datetime.datetime, int, int],
    rows: int,
) -> list[Event] | None:
    """The newest `rows` events before an instant, rank and id; None if the company has no such ticket."""
    key = {"company_id": company_id, "ticket_id": ticket_id}
    position = dict(zip(("at", "rank", "last_id"), before, strict=True))
    events: list[Event] = []
    async with database.connection() as connection:
        if await connection.value(_EXISTS, **key) is None:
            return None
        for source in sources:
            events += await _TIMELINES[source].rows(connection, **key, **position, rows=rows)
    events.sort(key=lambda event: (event.occurred_at, event.rank, event.id), reverse=True)
    return events[:rows]
