"""The audit log of a context: the actor, the action, the record, its values before and after, and the request.

An entry is a row, written in the transaction of the action, and is never changed after that.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from chassis.auth import identity
from chassis.db.database import Connection, Database
from chassis.db.statements import CLOCK, TIME, Statement, param
from chassis.lists.updated_since import stretch
from chassis.refusals import invalid_request
from chassis.schedule.instants import printed
from makeready.common.v1 import audit_pb2 as pb

AUDIT = "audit"
ENTRIES_MAX = 200

_NAMES = ("company_id", "actor", "action", "subject", "subject_id", "before", "after", "request_id")


def audit_table(metadata: sa.MetaData) -> sa.Table:
    """The entries of one context."""
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
    return table


class Audit:
    """Writes the entries of one context, and serves them (AuditService)."""

    def __init__(self, table: sa.Table, database: Database) -> None:
        self._database = database
        self._insert = Statement(sa.insert(table).values({name: param(name, table.c[name].type) for name in _NAMES}))
        names = ("id", "recorded_at", "actor", "action", "subject", "subject_id", "request_id")
        texts = [sa.cast(table.c[name], sa.Text).label(name) for name in ("before", "after")]
        mine = (table.c.company_id, param("company_id", sa.BigInteger))
        of_kind = (table.c.subject, param("subject", sa.Text))
        of_one = (table.c.subject_id, param("subject_id", sa.BigInteger))

        def page(*having: tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]) -> Statement:
            # `stretch` makes each page use the index with just these columns, whatever the statistics.
            conditions, order = stretch(having, [])
            rows = sa.select(*(table.c[name] for name in names), *texts)
            rows = rows.where(*conditions, table.c.id < param("before_id", sa.BigInteger))
            newest_first = (column.desc() for column in (*order, table.c.id))
            return Statement(rows.order_by(*newest_first).limit(param("rows", sa.Integer)))

        self._all, self._of_kind, self._of_one = page(mine), page(mine, of_kind), page(mine, of_kind, of_one)

    async def add(
        self,
        connection: Connection,
        call: identity.Call,
        company_id: int,
        action: str,
        subject: str,
        subject_id: int,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> None:
        """Adds an entry in the caller's transaction. before, after: values by name; only differing ones are stored."""
        differing = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        changed = [{name: side[name] for name in differing if name in side} for side in (before, after)]
        await connection.execute(
            self._insert,
            company_id=company_id,
            actor=call.identity.actor,
            action=action,
            subject=subject,
            subject_id=subject_id,
            before=msgspec.to_builtins(changed[0]),
            after=msgspec.to_builtins(changed[1]),
            request_id=call.request_id,
        )
        connection.changed.add((company_id, subject, subject_id))

    async def ListAudit(self, request: pb.ListAuditRequest, call: identity.Call) -> pb.ListAuditResponse:
        if not 1 <= request.limit <= ENTRIES_MAX:
            raise invalid_request(f"limit must be from 1 to {ENTRIES_MAX}.", "limit")
        if "\0" in request.subject:
            raise invalid_request("subject must not hold the character NUL.", "subject")
        if request.HasField("subject_id") and not request.subject:
            raise invalid_request("subject_id needs a subject.", "subject_id")
        values: dict[str, Any] = {"company_id": identity.company_id(call), "rows": request.limit}
        values["before_id"] = request.before_id if request.HasField("before_id") else 2**63 - 1
        statement = self._all
        if request.subject:
            statement, values["subject"] = self._of_kind, request.subject
        if request.HasField("subject_id"):
            statement, values["subject_id"] = self._of_one, request.subject_id
        return pb.ListAuditResponse(entries=map(_entry, await self._database.rows(statement, **values)))


class SweepsAhead:
    """Records, in every company's log, who starts a sweep ahead of the clock: it is about all of them.

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

    async def note(self, call: identity.Call, sweep: str, now: datetime.datetime, account: str) -> None:
        after = {"sweep": sweep, "now": printed(now), "requested_by": account}
        await self._database.execute(self._insert, actor=call.identity.actor, after=after, request_id=call.request_id)


def _entry(row: Any) -> pb.AuditEntry:
    values = dict(row)
    recorded_at = values.pop("recorded_at")
    entry = pb.AuditEntry(**values | {name: values[name].encode() for name in ("before", "after")})
    entry.recorded_at.FromDatetime(recorded_at)
    return entry
