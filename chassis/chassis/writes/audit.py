"""The audit log of a context: the actor, the action, the record, its values before and after, and the request.

An entry is a row, written in the transaction of the action, and is never changed after that. What was removed from a
record since then, because a person is forgotten, stays in the row and is left out of what AuditService returns.
"""

from __future__ import annotations

import datetime
import itertools
import json
import types
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from asyncpg import Record
from sqlalchemy.dialects.postgresql import JSONB

from chassis.auth import identity
from chassis.db.database import IN_ORDER, Connection, Database
from chassis.db.statements import CLOCK, TIME, NewValues, Statement, Values, param
from chassis.lists.updated_since import Having, is_of, status_key, stretch
from chassis.refusals import Refusal, invalid_request
from chassis.schedule.instants import of_request, printed
from makeready.common.v1 import audit_pb2 as pb

AUDIT = "audit"
DELETE_ENTRIES = "delete_audit_of_ended_company"
ENTRIES_MAX = 200
# Ids ascend with the entries' instants, unless the database's clock was set back: by at most this much, it is assumed.
CLOCK_STEP_MAX = datetime.timedelta(minutes=10)
_LAST_ID = 2**63 - 1
_EVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NEVER = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)
_FILTERS = ("actor", "subject", "subject_id", "request_id")
# The columns of the indexes, the most selective first.
_ACTOR_AND_KIND = ("actor", "subject")
_INDEXED = (("request_id",), ("subject", "subject_id"), _ACTOR_AND_KIND, ("actor",), ("subject",), ())
_ONE = sa.literal_column("1", sa.Integer)

Removed = Callable[[Database, int, Sequence[Record]], Awaitable[Mapping[int, Collection[str]]]]
"""Which values of a company's entries were removed from their records: names by the entry's id. Entries that lack
nothing are left out. An entry has id, recorded_at, action, subject, subject_id, and before and after as JSON texts."""

_NAMES = ("company_id", "actor", "action", "subject", "subject_id", "before", "after", "request_id")


def deletes_entries(ended: str) -> str:
    """The function that deletes entries of a company that has ended, as SQL: to be copied into migrations.

    A service's role may read entries and add them. This runs as the owner of the tables. `ended` is a condition on the
    company's row, which must be a sandbox's.
    """
    return f"""CREATE FUNCTION {DELETE_ENTRIES}(ended_id bigint, rows integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    gone bigint;
BEGIN
    DELETE FROM audit WHERE id IN (
        SELECT id FROM audit WHERE company_id = ended_id
        AND EXISTS (SELECT FROM company WHERE company.id = ended_id AND is_sandbox AND {ended})
        ORDER BY id LIMIT rows
    );
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$"""  # noqa: S608 - of constants alone


def audit_table(metadata: sa.MetaData, ended: str = "ended") -> sa.Table:
    """The entries of one context. For `ended` see `deletes_entries`."""
    table = sa.Table(
        AUDIT,
        metadata,
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
        sa.Column("recorded_at", TIME, nullable=False, server_default=CLOCK),
        sa.Column("company_id", sa.BigInteger, nullable=False),
        # As Identity.actor spells it; the service's own name for scheduled work.
        sa.Column("actor", sa.Text, nullable=False),
        # The action, in the past tense: "parcel.handed_over".
        sa.Column("action", sa.Text, nullable=False),
        # The kind of record and its id: "parcel", 12.
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("subject_id", sa.BigInteger, nullable=False),
        # The values that changed, never a secret.
        sa.Column("before", JSONB, nullable=False),
        sa.Column("after", JSONB, nullable=False),
        sa.Column("request_id", sa.Text, nullable=False),
    )
    sa.Index("audit_of_company", table.c.company_id, table.c.id)
    sa.Index("audit_of_kind", table.c.company_id, table.c.subject, table.c.id)
    sa.Index("audit_of_subject", table.c.company_id, table.c.subject, table.c.subject_id, table.c.id)
    sa.Index("audit_of_actor", table.c.company_id, table.c.actor, table.c.id)
    sa.Index("audit_of_actor_and_kind", _actor_and_kind(table.c), table.c.id)
    sa.Index("audit_of_request", table.c.company_id, table.c.request_id, table.c.id)
    sa.Index("audit_recorded", table.c.company_id, table.c.recorded_at, table.c.id)
    sa.event.listen(table, "after_create", sa.DDL(deletes_entries(ended)))  # type: ignore[no-untyped-call]
    return table


def _actor_and_kind(columns: Any) -> sa.ColumnElement[int]:
    """The index key of an actor's entries about a kind of record. It is an expression, so that no index which begins
    with the same columns seems as good."""
    return status_key(status_key(columns.company_id, columns.actor), columns.subject)


def entry(
    call: identity.Call,
    company_id: int,
    action: str,
    subject: str,
    subject_id: int,
    before: Values,
    after: Values,
) -> NewValues:
    """The row of an entry. Of the values `before` and `after`, by name, only differing ones are stored."""
    differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    sides = ({name: side[name] for name in differing if name in side} for side in (before, after))
    stored_before, stored_after = map(msgspec.to_builtins, sides)
    return {
        "company_id": company_id,
        "actor": call.identity.actor,
        "action": action,
        "subject": subject,
        "subject_id": subject_id,
        "before": stored_before,
        "after": stored_after,
        "request_id": call.request_id,
    }


class Audit:
    """Writes the entries of one context, and serves them (AuditService)."""

    def __init__(
        self, table: sa.Table, database: Database, for_staff: Collection[str] = (), removed: Removed | None = None
    ) -> None:
        """Staff see the entries of records whose kinds are `for_staff`, which they may open. The values that nobody
        sees any more are found by `removed`; None if no record of this context loses any."""
        self._database = database
        self._removed = removed
        self._for_staff = frozenset(for_staff)
        self._insert = Statement(sa.insert(table).values({name: param(name, table.c[name].type) for name in _NAMES}))
        names = ("id", "recorded_at", "actor", "action", "subject", "subject_id", "request_id")
        texts = [sa.cast(table.c[name], sa.Text).label(name) for name in ("before", "after")]
        mine = (table.c.company_id, param("company_id", sa.BigInteger))
        filters = {name: (table.c[name], param(name, table.c[name].type)) for name in _FILTERS}
        since, until = param("since", TIME), param("until", TIME)
        # In a form that no index matches.
        is_within = [(table.c.recorded_at >= since).is_(sa.true()), (table.c.recorded_at < until).is_(sa.true())]

        def page(names_given: frozenset[str]) -> Statement:
            by_index = next(indexed for indexed in _INDEXED if names_given.issuperset(indexed))
            having: Having = [mine, *(filters[name] for name in by_index)]
            # A request has few entries, and so has a record.
            others: Having = [filters[name] for name in sorted(names_given.difference(by_index))]
            if by_index == _ACTOR_AND_KIND:
                key = _actor_and_kind(types.SimpleNamespace(**{column.name: value for column, value in having}))
                having, others = [(_actor_and_kind(table.c), key)], [*having]
            # `stretch` makes each page use the index with just these columns, whatever the statistics.
            conditions, order = stretch(having, [])
            checks = is_of(others)
            ids = (table.c.id > param("after_id", sa.BigInteger), table.c.id < param("before_id", sa.BigInteger))
            rows = sa.select(*(table.c[name] for name in names), *texts)
            rows = rows.where(*conditions, *ids, *is_within, *checks)
            newest_first = (column.desc() for column in (*order, table.c.id))
            return Statement(rows.order_by(*newest_first).limit(param("rows", sa.Integer)))

        sets = (frozenset(filter_names) for size in range(5) for filter_names in itertools.combinations(_FILTERS, size))
        self._pages = {
            filter_names: page(filter_names)
            for filter_names in sets
            if "subject" in filter_names or "subject_id" not in filter_names
        }

        def end(condition: sa.ColumnElement[bool], *, newest_first: bool) -> Statement:
            conditions, order = stretch([mine], [])
            columns = [*order, table.c.recorded_at, table.c.id]
            ordered = [column.desc() for column in columns] if newest_first else columns
            return Statement(sa.select(table.c.id).where(*conditions, condition).order_by(*ordered).limit(_ONE))

        self._last_before = end(table.c.recorded_at < since, newest_first=True)
        self._first_after = end(table.c.recorded_at >= until, newest_first=False)

    async def add(
        self,
        connection: Connection,
        call: identity.Call,
        company_id: int,
        action: str,
        subject: str,
        subject_id: int,
        before: Values,
        after: Values,
    ) -> None:
        """Adds an entry in the caller's transaction: see `entry`."""
        row = entry(call, company_id, action, subject, subject_id, before, after)
        await connection.execute(self._insert, **row)
        connection.changed.add((company_id, subject, subject_id))

    async def ListAudit(self, request: pb.ListAuditRequest, call: identity.Call) -> pb.ListAuditResponse:
        if not 1 <= request.limit <= ENTRIES_MAX:
            raise invalid_request(f"limit must be from 1 to {ENTRIES_MAX}.", "limit")
        is_of_record = request.subject in self._for_staff and request.HasField("subject_id")
        if call.identity.kind == identity.STAFF and not is_of_record:
            raise Refusal(403, "forbidden", "Staff see the entries of one record, of a kind that they may open.")
        filters: NewValues = {}
        name: Any
        for name in _FILTERS:
            value = getattr(request, name)
            # The subject has no presence: an empty one is none.
            if not (request.subject if name == "subject" else request.HasField(name)):
                continue
            if isinstance(value, str) and "\0" in value:
                raise invalid_request(f"{name} must not hold the character NUL.", name)
            filters[name] = value
        if "subject_id" in filters and "subject" not in filters:
            raise invalid_request("subject_id needs a subject.", "subject_id")
        company_id = identity.company_id(call)
        since, until = of_request(request, "since"), of_request(request, "until")
        before_id = request.before_id if request.HasField("before_id") else _LAST_ID
        values = {
            "company_id": company_id,
            "after_id": await self._id_before(company_id, since),
            "before_id": min(before_id, await self._id_after(company_id, until)),
            "since": since or _EVER,
            "until": until or _NEVER,
            "rows": request.limit + 1,
        }
        async with self._database.transaction(IN_ORDER, writes=False) as connection:
            rows = await connection.rows(self._pages[frozenset(filters)], **values, **filters)
        entries = rows[: request.limit]
        removed = await self._removed(self._database, company_id, entries) if self._removed and entries else {}
        answer = pb.ListAuditResponse(entries=(_entry(row, removed.get(row["id"], ())) for row in entries))
        if len(rows) > request.limit:
            answer.next_before_id = rows[request.limit - 1]["id"]
        return answer

    async def _id_before(self, company_id: int, since: datetime.datetime | None) -> int:
        """An id below those of all entries recorded since the instant."""
        if since is None or since <= _EVER:
            return 0
        earlier = since - CLOCK_STEP_MAX
        return await self._database.value(self._last_before, company_id=company_id, since=earlier) or 0

    async def _id_after(self, company_id: int, until: datetime.datetime | None) -> int:
        """An id above those of all entries recorded before the instant."""
        if until is None or until >= _NEVER:
            return _LAST_ID
        later = until + CLOCK_STEP_MAX
        return await self._database.value(self._first_after, company_id=company_id, until=later) or _LAST_ID


class FutureSweeps:
    """Records, in every company's log, who starts a sweep as of a future instant: it is about all of them.

    The entry is written before the sweep begins, so that a sweep that is cut off has one.
    """

    def __init__(self, table: sa.Table, company: sa.Table, database: Database) -> None:
        self._database = database
        named = ("actor", "after", "request_id")
        values = {name: param(name, table.c[name].type) for name in named}
        entry = {
            "company_id": company.c.id,
            "actor": values["actor"],
            "action": sa.literal_column("'sweep.started_ahead'"),
            "subject": sa.literal_column("'company'"),
            "subject_id": company.c.id,
            "before": sa.literal_column("'{}'::jsonb"),
            "after": values["after"],
            "request_id": values["request_id"],
        }
        self._insert = Statement(sa.insert(table).from_select(list(entry), sa.select(*entry.values())))

    async def record(self, call: identity.Call, sweep: str, now: datetime.datetime, account: str) -> None:
        after = {"sweep": sweep, "now": printed(now), "requested_by": account}
        await self._database.execute(self._insert, actor=call.identity.actor, after=after, request_id=call.request_id)


def without(values: str, removed: Collection[str]) -> str:
    """The JSON object without the values of these names."""
    return json.dumps({name: value for name, value in json.loads(values).items() if name not in removed})


def _entry(row: Record, removed: Collection[str]) -> pb.AuditEntry:
    values = dict(row)
    recorded_at = values.pop("recorded_at")
    if removed:
        values |= {name: without(values[name], removed) for name in ("before", "after")}
    entry = pb.AuditEntry(**values | {name: values[name].encode() for name in ("before", "after")})
    entry.recorded_at.FromDatetime(recorded_at)
    return entry
