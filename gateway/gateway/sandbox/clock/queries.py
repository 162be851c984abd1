"""The SQL statements about advances, named for what they return or do.

Leases run by PostgreSQL's clock. A process that has lost its lease finds another token, and changes nothing. Each
statement locks the company's row before that of the advance, as the beginning of an advance does.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asyncpg import Record
from sqlalchemy import BigInteger, Float, Integer, Interval, Text, Uuid

from chassis.db.database import Connection, Database
from chassis.db.statements import TIME, UUIDS, Statement, sql


@dataclass(slots=True)
class Advance:
    """An advance that this process carries out."""

    company_id: int
    target: datetime.datetime
    token: uuid.UUID
    done: Counter[str] = field(default_factory=Counter)


_CLOCK_OF = Statement(
    sql(
        """
SELECT c.is_sandbox, c.clock_offset, a.start_at, a.target_at, a.done::text AS done, a.finished_at,
    a.company_id IS NOT NULL AND a.finished_at IS NULL AS is_advancing, a.missing,
    extract(epoch FROM clock_timestamp() - a.missing_since)::float8 AS missing_seconds
FROM company AS c LEFT JOIN advance AS a ON a.company_id = c.id
WHERE c.id = :company_id
""",
        company_id=BigInteger(),
    )
)


async def clock_of(connection: Connection | Database, company_id: int) -> Record | None:
    """A company's offset and its last advance."""
    return await connection.row(_CLOCK_OF, company_id=company_id)


_BEGIN = Statement(
    sql(
        """
INSERT INTO advance (company_id, start_at, target_at) VALUES (:company_id, :start_at, :target_at)
ON CONFLICT (company_id) DO UPDATE SET start_at = excluded.start_at, target_at = excluded.target_at,
    done = '{}', begun_at = clock_timestamp(), finished_at = NULL, lease_token = NULL, leased_until = '-infinity',
    missing = NULL, missing_since = NULL
WHERE advance.finished_at IS NOT NULL
RETURNING company_id
""",
        company_id=BigInteger(),
        start_at=TIME,
        target_at=TIME,
    )
)


async def begin(
    connection: Connection, company_id: int, start_at: datetime.datetime, target_at: datetime.datetime
) -> bool:
    """Stores a new advance in place of the last one; False if that is under way."""
    row = await connection.row(_BEGIN, company_id=company_id, start_at=start_at, target_at=target_at)
    return row is not None


_CLAIM = Statement(
    sql(
        """
UPDATE advance SET lease_token = gen_random_uuid(),
    leased_until = clock_timestamp() + :seconds * interval '1 second'
WHERE company_id IN (
    SELECT a.company_id FROM advance AS a JOIN company AS c ON c.id = a.company_id
    WHERE a.finished_at IS NULL AND a.leased_until < clock_timestamp() AND c.ended_at IS NULL
    ORDER BY a.begun_at LIMIT :rows FOR UPDATE OF a SKIP LOCKED
)
RETURNING company_id, target_at, lease_token, done::text AS done
""",
        seconds=Float(),
        rows=Integer(),
    )
)


async def claim(database: Database, seconds: float, rows: int) -> list[Advance]:
    """Advances that no process carries out, which this one does from now on."""
    claimed = await database.rows(_CLAIM, seconds=seconds, rows=rows)
    return [
        Advance(row["company_id"], row["target_at"], row["lease_token"], Counter(json.loads(row["done"])))
        for row in claimed
    ]


_RENEW = Statement(
    sql(
        "UPDATE advance SET leased_until = clock_timestamp() + :seconds * interval '1 second'"
        " WHERE lease_token = ANY(:tokens)",
        seconds=Float(),
        tokens=UUIDS,
    )
)


async def renew(database: Database, tokens: Sequence[uuid.UUID], seconds: float) -> None:
    """Prolongs the leases; with 0 seconds it ends them."""
    await database.execute(_RENEW, tokens=list(tokens), seconds=seconds)


_MOVE = Statement(
    sql(
        """
WITH locked AS (
    SELECT c.id FROM advance AS a JOIN company AS c ON c.id = a.company_id WHERE a.lease_token = :token
    FOR NO KEY UPDATE OF c
), mine AS (
    UPDATE advance SET done = cast(:done AS jsonb), missing = NULL, missing_since = NULL FROM locked
    WHERE company_id = locked.id AND lease_token = :token AND finished_at IS NULL
    RETURNING company_id
)
UPDATE company SET clock_offset = greatest(clock_offset, least(:clock_offset, :offset_max)) FROM mine
WHERE company.id = mine.company_id AND company.ended_at IS NULL
RETURNING clock_offset
""",
        token=Uuid(),
        done=Text(),
        clock_offset=Interval(),
        offset_max=Interval(),
    )
)


async def move(
    database: Database, advance: Advance, offset: datetime.timedelta, offset_max: datetime.timedelta
) -> datetime.timedelta | None:
    """Stores what is done, and the company's offset unless it has a greater one. Returns the offset that it has then;
    None if the lease is lost."""
    moved: datetime.timedelta | None = await database.value(
        _MOVE, token=advance.token, done=_json(advance.done), clock_offset=offset, offset_max=offset_max
    )
    return moved


_MISS = Statement(
    sql(
        """
UPDATE advance SET missing = :service,
    missing_since = CASE WHEN missing = :service THEN missing_since ELSE clock_timestamp() END
WHERE lease_token = :token
""",
        token=Uuid(),
        service=Text(),
    )
)


async def miss(database: Database, advance: Advance, service: str) -> None:
    """Notes that the advance waits for a service."""
    await database.execute(_MISS, token=advance.token, service=service)


_FINISH = Statement(
    sql(
        """
WITH locked AS (
    SELECT c.id FROM advance AS a JOIN company AS c ON c.id = a.company_id WHERE a.lease_token = :token
    FOR NO KEY UPDATE OF c
), mine AS (
    UPDATE advance SET done = cast(:done AS jsonb), finished_at = clock_timestamp(), missing = NULL,
        missing_since = NULL FROM locked
    WHERE company_id = locked.id AND lease_token = :token AND finished_at IS NULL
    RETURNING company_id
)
UPDATE company SET version = version + 1 FROM mine WHERE company.id = mine.company_id
RETURNING company.*
""",
        token=Uuid(),
        done=Text(),
    )
)


async def finish(connection: Connection, advance: Advance) -> Record | None:
    """The company as its advance leaves it; None if the lease is lost."""
    return await connection.row(_FINISH, token=advance.token, done=_json(advance.done))


def _json(done: Mapping[str, Any]) -> str:
    return json.dumps(done, sort_keys=True)
