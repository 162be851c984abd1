"""Finds the session of a text that a browser holds, and says what its people are told of it."""

from __future__ import annotations

import datetime

from asyncpg import Record

from chassis.auth.identity import KINDS
from chassis.db.database import Database
from gateway.identity.accounts import people, rules
from gateway.identity.accounts.sessions import queries
from makeready.identity.v1 import sessions_pb2 as pb


async def any_session(database: Database, text: str) -> Record | None:
    """The session and its person, over or not."""
    if not text or len(text) > rules.SECRET_CHARACTERS_MAX:
        return None
    return await queries.session_by_digest(database, rules.digest(text))


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


def session_message(row: Record, last_seen_at: datetime.datetime, now: datetime.datetime) -> pb.Session:
    message = pb.Session(
        session_id=row["session_id"],
        kind=KINDS[row["kind"]],
        person_id=row["person_id"],
        actor=f"{row['kind']}:{row['person_id']}",
        name=row["name"],
        email=row["email"],
        company_id=row["company_id"],
        company_name=row["company_name"],
        timezone=row["timezone"],
        has_password=row["has_password"],
        has_totp=row["totp_since"] is not None,
        has_passkey=row["has_passkey"],
        second_factor_due=people.second_factor_due(row),
    )
    message.started_at.FromDatetime(row["started_at"])
    message.idle_ends_at.FromDatetime(min(rules.idle_ends_at(row["kind"], last_seen_at), row["ends_at"]))
    message.ends_at.FromDatetime(row["ends_at"])
    if row["stepped_up_at"] - rules.AHEAD_MAX <= now < row["stepped_up_at"] + rules.STEP_UP:
        message.step_up_until.FromDatetime(row["stepped_up_at"] + rules.STEP_UP)
    return message
