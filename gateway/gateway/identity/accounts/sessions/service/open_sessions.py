"""Finds the session of a text that a browser holds, and says what its people are told of it."""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.auth.identity import KINDS
from chassis.db.database import Connection, Database
from gateway.identity.accounts import people, rules
from gateway.identity.accounts import queries as accounts
from gateway.identity.accounts.sessions import queries
from makeready.identity.v1 import sessions_pb2 as pb


async def any_session(database: Database, text: str) -> Record | None:
    """The session and its person, over or not."""
    if not text or len(text) > rules.SECRET_CHARACTERS_MAX:
        return None
    return await queries.session_by_digest(database, rules.digest(rules.without_sandbox(text)[0]))


async def sandbox_of(on: Connection | Database, account_id: int, text: str) -> Record | None:
    """The sandbox that the text of a session or a permit names, as `accounts.sandbox` has it; None if it names none.
    Raises Refusal if the account's person may not work there, or not any longer."""
    _, sandbox_id = rules.without_sandbox(text)
    if sandbox_id is None:
        return None
    sandbox = await accounts.sandbox(on, account_id, sandbox_id)
    if sandbox is None:
        raise rules.sandbox_is_over()
    return sandbox


async def open_session(database: Database, text: str, now: datetime.datetime) -> Record:
    """The session and its person. Raises Refusal if it is over."""
    row = await any_session(database, text)
    if row is None or not is_open(row, now):
        raise rules.no_session()
    return row


def is_open(row: Record, now: datetime.datetime) -> bool:
    """Whether the session is not over, and its person may still sign in."""
    is_over = rules.has_ended(row["kind"], last_seen_at=row["last_seen_at"], ends_at=row["ends_at"], now=now)
    return row["person_active"] and row["company_active"] and not is_over


def was_displaced(row: Record, now: datetime.datetime) -> bool:
    """Whether a session that is over was ended by a newer one of its account."""
    return rules.was_displaced(
        row["kind"],
        started_at=row["started_at"],
        last_seen_at=row["last_seen_at"],
        ends_at=row["ends_at"],
        now=now,
    )


def session_message(
    row: Record, sandbox: Record | None, last_seen_at: datetime.datetime, now: datetime.datetime
) -> pb.Session:
    """sandbox: where the person works; None: in the company of their account."""
    company_id, name, timezone = (row[field] for field in ("company_id", "company_name", "timezone"))
    if sandbox is not None:
        company_id, name, timezone = (sandbox[field] for field in ("id", "name", "timezone"))
    message = pb.Session(
        session_id=row["session_id"],
        kind=KINDS[row["kind"]],
        person_id=row["person_id"],
        actor=f"{row['kind']}:{row['person_id']}",
        name=row["name"],
        email=row["email"],
        company_id=company_id,
        company_name=name,
        timezone=timezone,
        is_sandbox=row["is_sandbox"] or sandbox is not None,
        has_password=row["has_password"],
        has_totp=row["totp_since"] is not None,
        has_passkey=row["has_passkey"],
        second_factor_due=people.second_factor_due(row),
    )
    message.clock_offset.FromTimedelta((row if sandbox is None else sandbox)["clock_offset"])
    if sandbox is not None:
        message.live_company_id, message.live_company_name = row["company_id"], row["company_name"]
    message.started_at.FromDatetime(row["started_at"])
    message.idle_ends_at.FromDatetime(min(rules.idle_ends_at(row["kind"], last_seen_at), row["ends_at"]))
    message.ends_at.FromDatetime(row["ends_at"])
    if row["stepped_up_at"] - rules.AHEAD_MAX <= now < row["stepped_up_at"] + rules.STEP_UP:
        message.step_up_until.FromDatetime(row["stepped_up_at"] + rules.STEP_UP)
    return message
