"""`ticket.stale`: fires for residents' tickets that staff and vendors do not work on, and again while that lasts."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, text

from chassis.auth.identity import ADMINISTRATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from chassis.messaging.outbox import Outbox
from chassis.schedule import instants
from makeready.tickets.v1 import tickets_pb2 as pb
from svc_tickets import tables as t
from svc_tickets.tickets.queries.stale import _COUNTS, restart
from svc_tickets.tickets.records import TICKET
from svc_tickets.tickets.sweeps import StaleTickets
from testkit.patience import PATIENCE_SECONDS
from testkit.plans import statement_plan
from testkit.services import RunningService

from ..companies import Company, fired, import_filed, import_tickets, new_company, sweep, tell
from .changing import SENT, change, opened, refusal_of, served
from .commands import open_ticket, request_of, run_command

HOUR = datetime.timedelta(hours=1)
THRESHOLD = 72 * HOUR
# Far in the future, so that no real sweep of the service finds anything due.
OPENED = datetime.datetime(2040, 1, 1, 9, tzinfo=datetime.UTC)
FILED = {"source": "resident_portal"}


async def state_of(database: Database, company: Company) -> list[Any]:
    """(id, version, updated_at, quiet_since, stale_due_at) of the company's tickets."""
    columns = (t.ticket.c[name] for name in ("id", "version", "updated_at", "quiet_since", "stale_due_at"))
    rows = Statement(select(*columns).where(t.ticket.c.company_id == company.id).order_by(t.ticket.c.id))
    return [tuple(row) for row in await database.rows(rows)]


async def stale(database: Database, company: Company) -> list[Any]:
    return await fired(database, company, "ticket.stale")


async def test_it_fires_once_the_threshold_has_passed_with_the_ticket_as_it_is_served(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    await import_filed(client, database, company, OPENED, FILED | {"assignee": "S", "unit": "U"})
    before = await state_of(database, company)
    await sweep(service, OPENED + THRESHOLD - HOUR)
    assert await stale(database, company) == []
    assert (await sweep(service, OPENED + THRESHOLD))["ticket.stale"] >= 1
    (event,) = await stale(database, company)
    ((ticket_id, *_),) = before
    assert event.public.data == await served(client, ticket_id, company.caller)
    assert (event.public.entity_id, event.public.change) == (ticket_id, b"")
    assert event.occurred_at.ToDatetime(datetime.UTC) > OPENED
    ((_, *same, due),) = await state_of(database, company)
    assert (same, due) == ([*before[0][1:4]], OPENED + 2 * THRESHOLD)


async def test_it_fires_again_at_each_further_threshold_and_once_for_all_that_an_outage_missed(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    await import_filed(client, database, company, OPENED, FILED)
    fires_at = {72: 1, 143: 1, 144: 2, 145: 2, 500: 3, 503: 3, 504: 4}
    for hours, many in fires_at.items():
        for _ in range(2):
            await sweep(service, OPENED + hours * HOUR)
        assert len(await stale(database, company)) == many, hours


async def test_only_open_tickets_of_residents_fire(service: RunningService, client: Any, database: Database) -> None:
    company = await new_company(database)
    rows = [FILED | {"source": source} for source in ("api", "staff", "inspection", "import")]
    rows += [FILED | {"status": "Completed"}, FILED | {"status": "Cancelled"}]
    rows += [FILED | {"status": status, "title": status} for status in ("In Progress", "On Hold")]
    await import_filed(client, database, company, OPENED, *rows)
    await sweep(service, OPENED + THRESHOLD)
    statuses = {
        event.public.data.decode().split('"status":"')[1].split('"')[0] for event in await stale(database, company)
    }
    assert statuses == {"In Progress", "On Hold"} and len(await stale(database, company)) == 2


async def counts(client: Any, company: Company, hours: int | None = None) -> tuple[int, int]:
    """Tickets that are stale under a threshold, and those that it makes stale."""
    who = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=5)
    counts = await client("CountStaleTickets", pb.CountStaleTicketsRequest(stale_after_hours=hours), who)
    return counts.stale, counts.newly_stale


async def test_the_tickets_that_a_threshold_makes_stale_are_counted_before_and_announced_after(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    now = instants.now()
    ages = (1, 30, 40, 71, 100, 200)
    rows = [FILED | {"title": f"{hours} h"} for hours in ages]
    for hours, row in zip(ages, rows, strict=True):
        await import_filed(client, database, company, now - hours * HOUR, row)
    await import_filed(client, database, company, now - 50 * HOUR, FILED | {"source": "staff"})
    await sweep(service, now)
    announced = len(await stale(database, company))
    assert announced == 2
    assert await counts(client, company) == (2, 0)
    assert await counts(client, company, 72) == (2, 0)
    assert await counts(client, company, 35) == (4, 2)
    assert await counts(client, company, 8760) == (0, 0)
    assert await counts(client, await new_company(database), 1) == (0, 0)

    confirmed = int(time.time())
    who = Identity(ADMINISTRATOR, "gateway", company.id, administrator_id=5, stepped_up_at=confirmed)
    await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(stale_after_hours=35), who)
    await sweep(service, instants.now())
    assert len(await stale(database, company)) == announced + 2
    assert await counts(client, company) == (4, 0)
    # Their silence was announced: a lower threshold makes only the fifth one stale.
    assert await counts(client, company, 20) == (5, 1)


@pytest.mark.parametrize("hours", [0, -1, 8761])
async def test_a_threshold_out_of_bounds_counts_nothing(client: Any, database: Database, hours: int) -> None:
    refused = await refusal_of(counts(client, await new_company(database), hours))
    assert refused.status == 400 and "1 to 8760" in refused.message


@pytest.mark.plans
@pytest.mark.parametrize("analyzed", [False, True])
async def test_a_count_reads_the_open_tickets_of_residents_alone(
    client: Any, database: Database, analyzed: bool
) -> None:
    company = await new_company(database)
    rows = [FILED | {"status": status} for status in ("Open", "On Hold", "Completed", "Cancelled")]
    rows += [FILED | {"source": "staff"}] * 40
    await import_filed(client, database, company, OPENED, *rows)
    if analyzed:
        await database.execute(Statement(text("ANALYZE ticket")))
    values = {"hours_before": 72, "stale_after_hours": 1, "now": OPENED + THRESHOLD}
    plan = await statement_plan(database, _COUNTS.statement, company_id=company.id, **values)
    assert plan.indexes == ["ticket_stale_due"] and plan.rows_met <= 2 and not plan.whole_tables


async def test_a_change_of_status_over_the_api_ends_the_silence(client: Any, database: Database) -> None:
    company = await new_company(database)
    await import_tickets(client, company, FILED | {"created_at": "2020-01-01", "updated_at": "2020-01-01"})
    ((ticket_id, *_),) = await state_of(database, company)
    await change(client, ticket_id, SENT["In Progress"], who=company.caller)
    ((_, _, updated_at, quiet_since, due),) = await state_of(database, company)
    assert (quiet_since, due) == (updated_at, updated_at + THRESHOLD)
    # The same change again has no effect.
    await change(client, ticket_id, SENT["In Progress"], who=company.caller)
    assert (await state_of(database, company))[0][2:] == (updated_at, quiet_since, due)
    await change(client, ticket_id, SENT["Completed"], who=company.caller)
    assert (await state_of(database, company))[0][4] is None
    await change(client, ticket_id, SENT["Open"], who=company.caller)
    ((_, _, updated_at, quiet_since, due),) = await state_of(database, company)
    assert (quiet_since, due) == (updated_at, updated_at + THRESHOLD)


async def test_a_ticket_that_staff_opened_because_a_resident_asked_is_watched_throughout(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    ticket = await open_ticket(client, company.staff, property_id=company.id, by="OPENER_RESIDENT")
    ids = {"ticket_id": ticket["entity_id"]}
    await open_ticket(client, company.staff, property_id=company.id)
    # Each way on which a change sets the columns anew: over the API, and in the back office.
    await change(client, ids["ticket_id"], SENT["On Hold"], who=company.caller)
    await run_command(client, "AddTicketPhoto", company.staff, **ids, photo_url="https://photos.test/1.jpg")
    of_resident, of_staff = await state_of(database, company)
    assert of_resident[3:] == (of_resident[2], of_resident[2] + THRESHOLD) and of_staff[3:] == (None, None)
    await sweep(service, of_resident[2] + THRESHOLD)
    (event,) = await stale(database, company)
    assert event.public.data == await served(client, ids["ticket_id"], company.caller)
    assert json.loads(event.public.data)["source"] == "staff"
    note = "The valve is new and it holds"
    await run_command(client, "SetTicketStatus", company.staff, **ids, status="Completed", note=note)
    assert [row[4] for row in await state_of(database, company)] == [None, None]


async def test_a_ticket_that_no_resident_filed_keeps_no_watch(client: Any, database: Database) -> None:
    company = await new_company(database)
    ticket_id = await opened(client, company.caller, company.id)
    await change(client, ticket_id, SENT["On Hold"], who=company.caller)
    assert [row[3:] for row in await state_of(database, company)] == [(None, None)]


async def test_an_import_without_events_counts_stale_tickets_as_announced(client: Any, database: Database) -> None:
    company = await new_company(database)
    began = instants.now()
    await import_tickets(client, company, FILED | {"created_at": "2020-01-01", "updated_at": "2020-01-01"})
    ((_, _, _, quiet_since, due),) = await state_of(database, company)
    assert quiet_since == datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    assert began < due <= instants.now() + THRESHOLD
    assert (due - quiet_since) % THRESHOLD == datetime.timedelta()


PHASES = ("2020-01-01T00:00:00Z", "2021-06-30T13:14:15.000016Z", "2026-03-29T01:30:00Z")


async def imported_silently(client: Any, database: Database, company: Company) -> list[Any]:
    """(quiet_since, stale_due_at) of old open tickets of residents, in various phases, imported without events."""
    rows = [{"source": "resident_portal", "created_at": phase, "updated_at": phase} for phase in PHASES]
    await import_tickets(client, company, *rows)
    return [row[3:] for row in await state_of(database, company)]


async def test_old_tickets_of_a_file_keep_their_phase_and_fire_one_by_one(client: Any, database: Database) -> None:
    company = await new_company(database)
    began = instants.now()
    tickets = await imported_silently(client, database, company)
    assert [instants.printed(since) for since, _ in tickets] == [
        f"{phase[:19]}{phase[19:-1] or '.000000'}Z" for phase in PHASES
    ]
    for since, due in tickets:
        assert (due - since) % THRESHOLD == datetime.timedelta() and began < due <= instants.now() + THRESHOLD
    replica = _replica(database)
    await replica.sweep(instants.now())
    assert await stale(database, company) == []
    for fired_before, due in enumerate(sorted(due for _, due in tickets)):
        await replica.sweep(due - datetime.timedelta(microseconds=1))
        assert len(await stale(database, company)) == fired_before
        await replica.sweep(due)
        assert len(await stale(database, company)) == fired_before + 1
    # From then on each threshold, in the same phase.
    assert [row[4] for row in await state_of(database, company)] == [due + THRESHOLD for _, due in tickets]


@pytest.mark.parametrize("hours", [1, 24, 71, 96, 1000])
async def test_a_new_threshold_starts_no_storm_of_what_was_announced(
    client: Any, database: Database, hours: int
) -> None:
    """It counts from when the ticket became quiet, as always, but announces no multiple that is over."""
    company = await new_company(database)
    tickets, began = await imported_silently(client, database, company), instants.now()
    await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(stale_after_hours=hours), company.operator)
    for (since, _), row in zip(tickets, await state_of(database, company), strict=True):
        assert (row[4] - since) % (hours * HOUR) == datetime.timedelta()
        assert began < row[4] <= instants.now() + hours * HOUR
    before = [row[4] for row in await state_of(database, company)]
    await _replica(database).sweep(min(before) - datetime.timedelta(microseconds=1))
    assert await stale(database, company) == []


async def test_a_shorter_threshold_still_announces_a_silence_that_nobody_heard_of(
    client: Any, database: Database
) -> None:
    company = await new_company(database)
    since = instants.now() - 50 * HOUR
    stamps = {name: instants.printed(since) for name in ("created_at", "updated_at")}
    await import_tickets(client, company, {"source": "resident_portal"} | stamps)
    assert (await state_of(database, company))[0][4] == since + THRESHOLD
    await client("UpdateTicketPolicy", pb.UpdateTicketPolicyRequest(stale_after_hours=24), company.operator)
    assert (await state_of(database, company))[0][4] == since + 24 * HOUR
    await _replica(database).sweep(instants.now())
    assert len(await stale(database, company)) == 1
    assert (await state_of(database, company))[0][4] == since + 72 * HOUR


async def test_an_import_with_events_leaves_it_to_the_next_sweep(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    await import_tickets(client, company, {"source": "resident_portal", "created_at": "2020-01-01"}, events=True)
    now = instants.now()
    await sweep(service, now)
    assert len(await stale(database, company)) == 1
    await sweep(service, now)
    assert len(await stale(database, company)) == 1


async def test_a_file_ends_the_silence_where_it_brings_what_staff_did(client: Any, database: Database) -> None:
    company = await new_company(database)
    row = FILED | {"external_id": "X", "created_at": "2020-01-01", "updated_at": "2020-01-01"}
    await import_tickets(client, company, row)
    ((_, _, _, *quiet),) = await state_of(database, company)
    await import_tickets(client, company, row | {"title": "Lift stuck again"})
    assert [*(await state_of(database, company))[0][3:]] == quiet
    await import_tickets(client, company, row | {"assignee": "S"})
    ((_, _, updated_at, quiet_since, due),) = await state_of(database, company)
    assert (quiet_since, due) == (updated_at, updated_at + THRESHOLD)
    await import_tickets(client, company, row | {"source": "staff"})
    assert (await state_of(database, company))[0][3:] == (None, None)
    await import_tickets(client, company, row | {"source": "resident_portal"})
    ((_, _, _, quiet_since, due),) = await state_of(database, company)
    assert quiet_since is not None and due > instants.now()


async def test_a_new_threshold_counts_from_when_the_ticket_fell_quiet(
    service: RunningService, client: Any, database: Database
) -> None:
    company = await new_company(database)
    await import_filed(client, database, company, OPENED, FILED, FILED | {"status": "Completed"})
    async with database.transaction() as connection:
        await connection.raw.execute(
            "INSERT INTO ticket_policy (company_id, stale_after_hours) VALUES ($1, 24)", company.id
        )
        await restart(connection, company.id, 72, 24, instants.now())
    assert [row[4] for row in await state_of(database, company)] == [OPENED + 24 * HOUR, None]
    await sweep(service, OPENED + 60 * HOUR)
    await sweep(service, OPENED + 60 * HOUR)
    assert len(await stale(database, company)) == 1
    assert (await state_of(database, company))[0][4] == OPENED + 72 * HOUR


async def test_the_policy_of_the_day_decides_under_the_lock(
    service: RunningService, client: Any, database: Database
) -> None:
    """After concurrent changes of the policy and the ticket, stale_due_at may still follow the old policy."""
    company = await new_company(database)
    await import_filed(client, database, company, OPENED, FILED)
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO ticket_policy (company_id, stale_after_hours) VALUES ($1, 100)", company.id
        )
    await sweep(service, OPENED + THRESHOLD)
    assert await stale(database, company) == []
    await sweep(service, OPENED + 100 * HOUR)
    assert len(await stale(database, company)) == 1


async def test_inactive_and_unknown_companies_have_no_sweeps(
    service: RunningService, client: Any, database: Database
) -> None:
    inactive, unknown = await new_company(database), await new_company(database, arrived=False)
    for company in (inactive, unknown):
        await import_filed(client, database, company, OPENED, FILED)
    await tell(database, inactive.id, 2, "UTC", active=False)
    await sweep(service, OPENED + THRESHOLD)
    assert await stale(database, inactive) == await stale(database, unknown) == []
    await tell(database, inactive.id, 3, "UTC")
    await tell(database, unknown.id, 1, "UTC")
    await sweep(service, OPENED + THRESHOLD)
    assert len(await stale(database, inactive)) == len(await stale(database, unknown)) == 1


def _replica(database: Database) -> StaleTickets:
    renderer = TICKET.renderer("https://app.test")
    return StaleTickets(database, Outbox("svc-tickets", t.outbox), renderer)


async def test_several_replicas_at_once_fire_each_once(client: Any, database: Database) -> None:
    company = await new_company(database)
    for _ in range(3):
        await import_filed(client, database, company, OPENED, *[FILED] * 120)
    replicas = [_replica(database) for _ in range(4)]
    done = await asyncio.gather(*(replica.sweep(OPENED + THRESHOLD) for replica in replicas))
    events = await stale(database, company)
    assert len({event.public.entity_id for event in events}) == len(events) == 360
    assert sum(counts["ticket.stale"] for counts in done) >= 360


@pytest.mark.parametrize("who", ["staff", "caller", "file"])
async def test_what_waited_while_it_fired_happened_after_it(
    service: RunningService, client: Any, database: Database, who: str
) -> None:
    company = await new_company(database)
    row = {"external_id": "X", "source": "resident_portal", "created_at": "2020-01-01"}
    await import_tickets(client, company, row, events=True)
    ((ticket_id, *_),) = await state_of(database, company)
    moving: dict[str, Callable[[], Any]] = {
        "staff": lambda: client(
            "SetTicketStatus", request_of("SetTicketStatus", ticket_id=ticket_id, status="In Progress"), company.staff
        ),
        "caller": lambda: change(client, ticket_id, SENT["In Progress"], who=company.caller),
        "file": lambda: import_tickets(client, company, row | {"status": "In Progress"}, events=True),
    }
    async with database.transaction() as connection:
        await connection.raw.execute(f"SELECT FROM ticket WHERE id = {ticket_id} FOR UPDATE")
        waiting = []
        for act in (sweep(service, instants.now()), moving[who]()):
            waiting.append(asyncio.create_task(act))
            await waits(database, len(waiting))
    await asyncio.gather(*waiting)
    fired_at = [(await fired(database, company, f"ticket.{name}"))[0] for name in ("stale", "status_changed")]
    # The order of the instants is the order of the commits.
    assert [json.loads(event.public.data)["status"] for event in fired_at] == ["Open", "In Progress"]
    assert fired_at[0].occurred_at.ToNanoseconds() < fired_at[1].occurred_at.ToNanoseconds()


async def waits(database: Database, count: int) -> None:
    """Waits until this many transactions wait for a row's lock."""
    waiting = Statement(
        text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await database.value(waiting) < count:  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.02)


async def test_what_a_sweep_costs_grows_with_what_is_stale(database: Database, client: Any) -> None:
    """The cost grows neither with the table nor with the companies' other tickets."""
    company = await new_company(database)
    await import_filed(client, database, company, OPENED, *[FILED] * 5)
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO ticket (company_id, ticket_number, title, category, priority, status, property_id,"
            " permission_to_enter, created_at, updated_at, source, quiet_since, stale_due_at)"
            " SELECT $1, n, 'x', 'Leak', 'Low', 'Open', $1, false, at, at, 'resident_portal', at,"
            " CASE WHEN n % 2 = 0 THEN at + interval '9000 days' END"
            " FROM generate_series(1001, 11000) n, (SELECT $2::timestamptz AS at) began",
            company.id,
            OPENED,
        )
    companies = await database.value(Statement(text("SELECT count(*) FROM company WHERE active AND version > 0")))
    find: Any = _replica(database)._overdue._find
    values = {"zones": ["UTC"], "days": [OPENED.date()], "first_company_id": company.id, "rows": 100}
    plan = await statement_plan(database, find, **values, now=OPENED + THRESHOLD)
    assert plan.returned == 5
    assert "ticket_stale_due" in plan.indexes and "ticket" not in plan.whole_tables
    assert plan.rows_met <= 5 + 2 * companies
    following: Any = _replica(database)._overdue._next._find
    plan = await statement_plan(database, following, company_id=company.id)
    assert plan.rows_met <= 2 and "ticket_stale_due" in plan.indexes  # the company, and the ticket that is due first


pytestmark = pytest.mark.usefixtures("places")
