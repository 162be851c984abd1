"""How attempts change their subscription's health, in any order of recording."""

import asyncio
import datetime
from collections.abc import Sequence

from chassis.db.database import Change, Database
from svc_webhooks.dispatch.queries import claims as queries
from svc_webhooks.dispatch.queries.claims import ClaimedDelivery
from svc_webhooks.dispatch.queries.recording import Attempt
from svc_webhooks.dispatch.recorder import Recorder
from svc_webhooks.http_client.client import Outcome
from svc_webhooks.rules import deliveries as rules

from ..dispatcher import happened, now, subscribed
from ..harness import Client

URL = "https://receiver.test/hook"
HOUR = datetime.timedelta(hours=1)


def ended(claimed: ClaimedDelivery, status: int, sweep: rules.SweepOfAttempt | None = None) -> Attempt:
    """The attempt of a claimed delivery to which the receiver responded with this status."""
    well = status == 200
    state, due_at = (rules.SUCCEEDED, None) if well else (rules.WAITING, now() + HOUR)
    after = rules.AfterAttempt(claimed.rung + 1, state, due_at)
    outcome = Outcome(status, "" if well else "status", b"", 1)
    return Attempt(claimed, rules.BY_SWEEP, "", now(), outcome, after, sweep=sweep)


async def claimed(database: Database, client: Client, many: int) -> Sequence[ClaimedDelivery]:
    (sub_id,) = await subscribed(database, client.company_id, [URL])
    await happened(database, client.company_id, many)
    rows = (await queries.claimed_deliveries(database, {sub_id: many}, now(), claim_seconds=60)).rows
    assert len(rows) == many
    return rows


async def health(database: Database) -> tuple[str, int]:
    async with database.connection() as connection:
        row = await connection.raw.fetchrow("SELECT health, failures_in_a_row FROM subscription")
    return row["health"], row["failures_in_a_row"]


async def test_a_success_recorded_after_a_failure_makes_healthy_though_both_were_claimed_from_a_healthy_subscription(
    client: Client, database: Database
) -> None:
    first, second, third = await claimed(database, client, 3)
    recorder = Recorder(database)
    assert await recorder.record(ended(first, 500), client.company_id)
    assert await health(database) == ("retrying", 1)
    assert await recorder.record(ended(second, 200), client.company_id)
    assert await health(database) == ("healthy", 0)
    assert await recorder.record(ended(third, 200), client.company_id)
    assert await health(database) == ("healthy", 0)


async def test_attempts_of_one_batch_count_in_their_order(client: Client, database: Database) -> None:
    rows = await claimed(database, client, 5)
    recorder = Recorder(database)
    statuses = (200, 500, 200, 500, 500)
    recorded = [
        recorder.record(ended(row, status), client.company_id) for row, status in zip(rows, statuses, strict=True)
    ]
    assert await asyncio.gather(*recorded) == [True] * 5
    assert await health(database) == ("retrying", 2)


async def failed_sweeps(database: Database) -> list[datetime.datetime]:
    async with database.connection() as connection:
        instants: list[datetime.datetime] = await connection.raw.fetchval("SELECT failed_sweeps FROM subscription")
    return instants


async def test_a_sweep_counts_once_and_not_at_all_if_a_delivery_arrived(client: Client, database: Database) -> None:
    """Whichever comes first, in one batch or in several: a success of a healthy subscription is noted nowhere else."""
    rows = iter(await claimed(database, client, 12))
    recorder = Recorder(database)
    sweeps = [rules.SweepOfAttempt(now() + hour * HOUR, now()) for hour in range(3)]

    async def record(sweep: rules.SweepOfAttempt, *statuses: int) -> None:
        batch = [ended(next(rows), status, sweep=sweep) for status in statuses]
        assert all(await asyncio.gather(*(recorder.record(outcome, client.company_id) for outcome in batch)))

    await record(sweeps[0], 500, 500)
    await record(sweeps[0], 500)
    assert (await health(database), await failed_sweeps(database)) == (("retrying", 3), [sweeps[0].now])
    await record(sweeps[1], 200)
    assert await health(database) == ("healthy", 0)
    await record(sweeps[1], 500)
    await record(sweeps[1], 500)
    assert (await health(database), await failed_sweeps(database)) == (("retrying", 2), [])
    await record(sweeps[2], 500)
    assert (await health(database), await failed_sweeps(database)) == (("retrying", 3), [sweeps[2].now])
    # The release before knows no sweeps: it writes these columns alone.
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE subscription SET health = 'healthy', failures_in_a_row = 0")
    assert await failed_sweeps(database) == []
    begun = rules.SweepOfAttempt(now() + 3 * HOUR, now())
    await record(begun, 200)  # of a healthy subscription
    await record(begun, 500, 500)
    assert (await health(database), await failed_sweeps(database)) == (("retrying", 2), [])
    # A success from before a sweep began is none of its own.
    await record(begun, 200)
    await record(rules.SweepOfAttempt(now() + 4 * HOUR, now()), 500)
    assert (await health(database), len(await failed_sweeps(database))) == (("retrying", 1), 1)


async def test_a_batch_makes_one_hint_a_subscription(client: Client, database: Database) -> None:
    rows = await claimed(database, client, 3)
    heard: list[Change] = []
    committed, database.committed = database.committed, heard.extend
    recorder = Recorder(database)
    await asyncio.gather(*(recorder.record(ended(row, 200), client.company_id) for row in rows))
    database.committed = committed
    assert heard == [(client.company_id, "webhook_subscription", rows[0].subscription_id)]


async def test_an_attempt_that_cannot_be_recorded_keeps_no_other_from_it(client: Client, database: Database) -> None:
    first, second, third = await claimed(database, client, 3)
    recorder = Recorder(database)
    impossible = ended(second._replace(attempts=(1 << 31) - 1), 200)
    outcomes = await asyncio.gather(
        recorder.record(ended(first, 200), client.company_id),
        recorder.record(impossible, client.company_id),
        recorder.record(ended(third, 500), client.company_id),
        return_exceptions=True,
    )
    assert [outcomes[0], outcomes[2]] == [True, True]
    assert isinstance(outcomes[1], Exception)
    assert await health(database) == ("retrying", 1)
    async with database.connection() as connection:
        assert await connection.raw.fetchval("SELECT count(*) FROM attempt") == 2
