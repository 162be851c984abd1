"""The SQL that records attempts as far as the fences allow, and updates the health of subscriptions."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Collection, Sequence

from sqlalchemy import (
    BigInteger,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
    case,
    cast,
    exists,
    func,
    literal_column,
    null,
    select,
    text,
    type_coerce,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.types import NullType

from chassis.db.database import Connection
from chassis.db.rows import array_rows, columns_of_tuples
from chassis.db.statements import Statement, param
from svc_webhooks.by_index import same_delivery
from svc_webhooks.rules.deliveries import TEST, Attempt, SweepOfAttempt
from svc_webhooks.rules.subscriptions import SubscriptionHealth
from svc_webhooks.schema import Instant, Uuid
from svc_webhooks.tables.deliveries import attempt, delivery
from svc_webhooks.tables.subscriptions import subscription


def _record_attempts() -> Statement:
    new_attempt = array_rows(
        "new_attempt",
        {
            "event_id": Uuid,
            "subscription_id": BigInteger,
            "fence": BigInteger,
            "state_before": Text,
            "number": Integer,
            "rung": SmallInteger,
            "state": Text,
            "due_at": Instant,
            "cause": Text,
            "actor": Text,
            "started_at": Instant,
            "duration_milliseconds": Integer,
            "connect_milliseconds": Integer,
            "tls_milliseconds": Integer,
            "first_byte_milliseconds": Integer,
            "address": Text,
            "status": SmallInteger,
            "error": Text,
            "response_excerpt": LargeBinary,
            "replay_id": BigInteger,
            "replay_after": BigInteger,
            "resumes_after": Instant,
        },
    )
    # This and the delete of a subscription wait for each other, so no attempt outlives its subscription.
    alive = (
        select(subscription.c.id, subscription.c.failures_in_a_row)
        .where(subscription.c.id == func.any(param("subscription_id", ARRAY(BigInteger))))
        .with_for_update(read=True, key_share=True)
        .cte("alive")
    )
    columns = (
        "event_id", "subscription_id", "number", "cause", "actor", "started_at", "duration_milliseconds",
        "connect_milliseconds", "tls_milliseconds", "first_byte_milliseconds", "address", "status", "error",
        "response_excerpt", "replay_id", "state", "due_at",
    )  # fmt: skip
    moved = (
        update(delivery)
        .where(
            alive.c.id == new_attempt.c.subscription_id,
            same_delivery(delivery, new_attempt),
            delivery.c.fence == new_attempt.c.fence,
            delivery.c.attempts == new_attempt.c.number - literal_column("1"),
            delivery.c.state == new_attempt.c.state_before,
        )
        .values(
            state=new_attempt.c.state,
            due_at=new_attempt.c.due_at,
            attempts=new_attempt.c.number,
            rung=new_attempt.c.rung,
            leased_until=null(),
            settled_at=case((text("new_attempt.state <> 'waiting'"), func.coalesce(delivery.c.settled_at, func.now()))),
            requested_by=null(),
            replay_id=new_attempt.c.replay_after,
            resumes_at=new_attempt.c.resumes_after,
        )
        .returning(
            *(new_attempt.c[name] for name in columns),
            (alive.c.failures_in_a_row > literal_column("0")).label("has_failures"),
        )
        .cte("moved")
    )
    record = insert(attempt).from_select(columns, select(*(moved.c[name] for name in columns)), include_defaults=False)
    returned = (moved.c.event_id, moved.c.subscription_id, moved.c.has_failures)
    return Statement(select(*returned).add_cte(record.cte("recorded")))


_RECORD_ATTEMPTS = _record_attempts()
_HEALTHS = Statement(
    select(
        subscription.c.id,
        subscription.c.health,
        subscription.c.failures_in_a_row,
        type_coerce(subscription.c.failed_sweeps, NullType()).label("failed_sweeps"),  # keeps asyncpg's own list
        subscription.c.delivering_sweep,
    )
    .where(subscription.c.id == func.any(param("ids", ARRAY(BigInteger))))
    .order_by(subscription.c.id)
    .with_for_update(key_share=True)
)
# The sweeps as one text a row: unnest would flatten an array of arrays.
_moved = array_rows(
    "moved",
    {
        "id": BigInteger,
        "health": Text,
        "failures_in_a_row": Integer,
        "failed_sweeps": Text,
        "delivering_sweep": Instant,
    },
)
_SAVE_HEALTHS = Statement(
    update(subscription)
    .where(subscription.c.id >= _moved.c.id, subscription.c.id <= _moved.c.id)
    .values(
        health=_moved.c.health,
        failures_in_a_row=_moved.c.failures_in_a_row,
        failed_sweeps=cast(_moved.c.failed_sweeps, ARRAY(Instant)),
        delivering_sweep=_moved.c.delivering_sweep,
        # If the count of failures has not grown, a success interrupted it within these attempts: the row began anew.
        failing_since=case(
            (_moved.c.failures_in_a_row == literal_column("0"), null()),
            (
                _moved.c.failures_in_a_row > subscription.c.failures_in_a_row,
                func.coalesce(subscription.c.failing_since, func.now()),
            ),
            else_=func.now(),
        ),
    )
)


_asked = array_rows("asked", {"subscription_id": BigInteger, "now": Instant, "since": Instant})
_DELIVERING_SWEEPS = Statement(
    select(_asked.c.subscription_id, _asked.c.now).where(
        exists().where(
            attempt.c.subscription_id == _asked.c.subscription_id,
            attempt.c.started_at >= _asked.c.since,
            attempt.c.error == text("''"),
            attempt.c.cause != text(f"'{TEST}'"),
        )
    )
)


async def attempts_recorded(connection: Connection, attempts: Sequence[Attempt]) -> dict[tuple[uuid.UUID, int], bool]:
    """Records the attempts that the fences allow. Returns by (event_id, subscription_id) whether the subscription has
    failures."""
    columns = columns_of_tuples(attempts)
    del columns["is_internal_fault"], columns["answered"], columns["sweep"]
    rows = await connection.rows(_RECORD_ATTEMPTS, **columns)
    return {(row["event_id"], row["subscription_id"]): row["has_failures"] for row in rows}


async def healths_for_update(connection: Connection, ids: Sequence[int]) -> dict[int, SubscriptionHealth]:
    """Locks the rows in the order of ids; fan-outs proceed meanwhile."""
    rows = await connection.rows(_HEALTHS, ids=ids)
    return {
        row["id"]: SubscriptionHealth(
            row["health"], row["failures_in_a_row"], tuple(row["failed_sweeps"]), row["delivering_sweep"]
        )
        for row in rows
    }


async def delivering_sweeps(
    connection: Connection, sweeps: Collection[tuple[int, SweepOfAttempt]]
) -> list[tuple[int, datetime.datetime]]:
    """Those of some subscriptions' sweeps since whose beginning an attempt has succeeded."""
    rows = await connection.rows(
        _DELIVERING_SWEEPS,
        subscription_id=[sub_id for sub_id, _ in sweeps],
        now=[sweep.now for _, sweep in sweeps],
        since=[sweep.since for _, sweep in sweeps],
    )
    return [(row["subscription_id"], row["now"]) for row in rows]


async def save_healths(connection: Connection, healths: dict[int, SubscriptionHealth]) -> None:
    await connection.execute(
        _SAVE_HEALTHS,
        id=list(healths),
        health=[health.health for health in healths.values()],
        failures_in_a_row=[health.failures_in_a_row for health in healths.values()],
        failed_sweeps=[
            "{" + ",".join(sweep.isoformat() for sweep in health.failed_sweeps) + "}" for health in healths.values()
        ],
        delivering_sweep=[health.delivering_sweep for health in healths.values()],
    )
