"""The SQL that records attempts as far as the fences allow, and updates the health of subscriptions."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Integer,
    Interval,
    LargeBinary,
    SmallInteger,
    Text,
    exists,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from chassis.db.database import Connection
from chassis.db.rows import array_rows
from chassis.db.statements import Statement, param, sql
from svc_webhooks.dispatch.queries.claims import ClaimedDelivery
from svc_webhooks.http_client.client import Outcome
from svc_webhooks.rules.deliveries import TEST, AfterAttempt, SweepOfAttempt
from svc_webhooks.rules.subscriptions import SubscriptionHealth
from svc_webhooks.schema import Instant, Uuid, as_list
from svc_webhooks.tables.deliveries import attempt
from svc_webhooks.tables.subscriptions import subscription


class Attempt(NamedTuple):
    """An attempt that was made, and its delivery after it.

    actor: the person or process that requested it; empty if the ladder did. answered: receivers whose first 2xx this
    is, see hosts.py. sweep: that made it; None if a person requested the attempt. Its instants are those of the
    company's clock.
    """

    delivery: ClaimedDelivery
    cause: str
    actor: str
    started_at: datetime.datetime
    outcome: Outcome
    after: AfterAttempt
    answered: tuple[str, ...] = ()
    sweep: SweepOfAttempt | None = None

    @property
    def subscription_id(self) -> int:
        return self.delivery.subscription_id

    @property
    def ended_at(self) -> datetime.datetime:
        return self.started_at + datetime.timedelta(milliseconds=self.outcome.duration_milliseconds)

    @property
    def key(self) -> tuple[uuid.UUID, int]:
        """The delivery's: event and subscription."""
        return self.delivery.event_id, self.delivery.subscription_id

    @property
    def replay_id(self) -> int | None:
        """The replay that it was made for."""
        return self.delivery.replay_id if self.after.replay_id is None else None


# `alive` and the delete of a subscription wait for each other, so no attempt outlives its subscription. The delivery is
# found as `same_delivery` says.
_RECORD_ATTEMPTS = Statement(
    sql(
        """
        WITH alive AS (
            SELECT id, failures_in_a_row FROM subscription WHERE id = ANY(:subscription_id) FOR KEY SHARE
        ),
        moved AS (
            UPDATE delivery SET
                state = new_attempt.state,
                due_at = new_attempt.due_at,
                attempts = new_attempt.number,
                rung = new_attempt.rung,
                leased_until = NULL,
                settled_at = CASE
                    WHEN new_attempt.state <> 'waiting' THEN coalesce(delivery.settled_at, new_attempt.ended_at)
                END,
                requested_by = NULL,
                replay_id = new_attempt.replay_after,
                resumes_at = new_attempt.resumes_after
            FROM alive, unnest(
                :event_id, :subscription_id, :fence, :state_before, :number, :rung, :state, :due_at, :cause, :actor,
                :started_at, :duration_milliseconds, :connect_milliseconds, :tls_milliseconds,
                :first_byte_milliseconds, :address, :status, :error, :response_excerpt, :replay_id, :replay_after,
                :resumes_after, :ended_at, :clock_offset
            ) AS new_attempt(
                event_id, subscription_id, fence, state_before, number, rung, state, due_at, cause, actor,
                started_at, duration_milliseconds, connect_milliseconds, tls_milliseconds,
                first_byte_milliseconds, address, status, error, response_excerpt, replay_id, replay_after,
                resumes_after, ended_at, clock_offset
            )
            WHERE alive.id = new_attempt.subscription_id
              AND delivery.event_id >= new_attempt.event_id
              AND (delivery.event_id, delivery.subscription_id) >= (new_attempt.event_id, new_attempt.subscription_id)
              AND (delivery.subscription_id, delivery.event_id) >= (new_attempt.subscription_id, new_attempt.event_id)
              AND delivery.event_id <= new_attempt.event_id
              AND (delivery.event_id, delivery.subscription_id) <= (new_attempt.event_id, new_attempt.subscription_id)
              AND (delivery.subscription_id, delivery.event_id) <= (new_attempt.subscription_id, new_attempt.event_id)
              AND delivery.fence = new_attempt.fence
              AND delivery.attempts = new_attempt.number - 1
              AND delivery.state = new_attempt.state_before
            RETURNING new_attempt.*, alive.failures_in_a_row > 0 AS has_failures
        ),
        recorded AS (
            INSERT INTO attempt (
                event_id, subscription_id, number, cause, actor, started_at, duration_milliseconds,
                connect_milliseconds, tls_milliseconds, first_byte_milliseconds, address, status, error,
                response_excerpt, replay_id, clock_offset, state, due_at
            )
            SELECT
                event_id, subscription_id, number, cause, actor, started_at, duration_milliseconds,
                connect_milliseconds, tls_milliseconds, first_byte_milliseconds, address, status, error,
                response_excerpt, replay_id, clock_offset, state, due_at
            FROM moved
        )
        SELECT event_id, subscription_id, has_failures FROM moved
        """,
        event_id=ARRAY(Uuid),
        subscription_id=ARRAY(BigInteger),
        fence=ARRAY(BigInteger),
        state_before=ARRAY(Text),
        number=ARRAY(Integer),
        rung=ARRAY(SmallInteger),
        state=ARRAY(Text),
        due_at=ARRAY(Instant),
        cause=ARRAY(Text),
        actor=ARRAY(Text),
        started_at=ARRAY(Instant),
        duration_milliseconds=ARRAY(Integer),
        connect_milliseconds=ARRAY(Integer),
        tls_milliseconds=ARRAY(Integer),
        first_byte_milliseconds=ARRAY(Integer),
        address=ARRAY(Text),
        status=ARRAY(SmallInteger),
        error=ARRAY(Text),
        response_excerpt=ARRAY(LargeBinary),
        replay_id=ARRAY(BigInteger),
        replay_after=ARRAY(BigInteger),
        resumes_after=ARRAY(Instant),
        ended_at=ARRAY(Instant),
        clock_offset=ARRAY(Interval),
    )
)
_HEALTHS = Statement(
    select(
        subscription.c.id,
        subscription.c.health,
        subscription.c.failures_in_a_row,
        as_list(subscription.c.failed_sweeps),
        subscription.c.delivering_sweep,
    )
    .where(subscription.c.id == func.any(param("ids", ARRAY(BigInteger))))
    .order_by(subscription.c.id)
    .with_for_update(key_share=True)
)
# The sweeps are one text a row: unnest would flatten an array of arrays. If the count of failures has not grown, a
# success interrupted it within these attempts, and the row of failures began anew.
_SAVE_HEALTHS = Statement(
    sql(
        """
        UPDATE subscription SET
            health = moved.health,
            failures_in_a_row = moved.failures_in_a_row,
            failing_since = CASE
                WHEN moved.failures_in_a_row = 0 THEN NULL
                WHEN moved.failures_in_a_row > subscription.failures_in_a_row
                    THEN coalesce(subscription.failing_since, moved.failed_at)
                ELSE moved.failed_at
            END,
            failed_sweeps = CAST(moved.failed_sweeps AS timestamptz[]),
            delivering_sweep = moved.delivering_sweep
        FROM unnest(:id, :health, :failures_in_a_row, :failed_sweeps, :delivering_sweep, :failed_at)
            AS moved(id, health, failures_in_a_row, failed_sweeps, delivering_sweep, failed_at)
        WHERE subscription.id >= moved.id AND subscription.id <= moved.id
        """,
        id=ARRAY(BigInteger),
        health=ARRAY(Text),
        failures_in_a_row=ARRAY(Integer),
        failed_sweeps=ARRAY(Text),
        delivering_sweep=ARRAY(Instant),
        failed_at=ARRAY(Instant),
    )
)


_sweep_made = array_rows("sweep_made", {"subscription_id": BigInteger, "now": Instant, "since": Instant})
_DELIVERING_SWEEPS = Statement(
    select(_sweep_made.c.subscription_id, _sweep_made.c.now).where(
        exists().where(
            attempt.c.subscription_id == _sweep_made.c.subscription_id,
            attempt.c.started_at >= _sweep_made.c.since,
            attempt.c.error == text("''"),
            attempt.c.cause != text(f"'{TEST}'"),
        )
    )
)


async def attempts_recorded(connection: Connection, attempts: Sequence[Attempt]) -> dict[tuple[uuid.UUID, int], bool]:
    """Records the attempts that the fences allow. Returns by (event_id, subscription_id) whether the subscription has
    failures."""
    deliveries = [attempt.delivery for attempt in attempts]
    outcomes = [attempt.outcome for attempt in attempts]
    afters = [attempt.after for attempt in attempts]
    rows = await connection.rows(
        _RECORD_ATTEMPTS,
        event_id=[delivery.event_id for delivery in deliveries],
        subscription_id=[delivery.subscription_id for delivery in deliveries],
        fence=[delivery.fence for delivery in deliveries],
        state_before=[delivery.state for delivery in deliveries],
        number=[delivery.attempts + 1 for delivery in deliveries],
        rung=[after.rung for after in afters],
        state=[after.state for after in afters],
        due_at=[after.due_at for after in afters],
        cause=[attempt.cause for attempt in attempts],
        actor=[attempt.actor for attempt in attempts],
        started_at=[attempt.started_at for attempt in attempts],
        duration_milliseconds=[outcome.duration_milliseconds for outcome in outcomes],
        connect_milliseconds=[outcome.connect_milliseconds for outcome in outcomes],
        tls_milliseconds=[outcome.tls_milliseconds for outcome in outcomes],
        first_byte_milliseconds=[outcome.first_byte_milliseconds for outcome in outcomes],
        address=[outcome.address for outcome in outcomes],
        status=[outcome.status for outcome in outcomes],
        error=[outcome.error for outcome in outcomes],
        response_excerpt=[outcome.excerpt for outcome in outcomes],
        replay_id=[attempt.replay_id for attempt in attempts],
        replay_after=[after.replay_id for after in afters],
        resumes_after=[after.resumes_at for after in afters],
        ended_at=[attempt.ended_at for attempt in attempts],
        clock_offset=[delivery.clock_offset for delivery in deliveries],
    )
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


async def save_healths(
    connection: Connection, healths: dict[int, SubscriptionHealth], failed_at: Mapping[int, datetime.datetime]
) -> None:
    """failed_at: by subscription, when an attempt ended, in case that its failures begin now."""
    await connection.execute(
        _SAVE_HEALTHS,
        id=list(healths),
        health=[health.health for health in healths.values()],
        failures_in_a_row=[health.failures_in_a_row for health in healths.values()],
        failed_sweeps=[
            "{" + ",".join(sweep.isoformat() for sweep in health.failed_sweeps) + "}" for health in healths.values()
        ],
        delivering_sweep=[health.delivering_sweep for health in healths.values()],
        failed_at=[failed_at[sub_id] for sub_id in healths],
    )
