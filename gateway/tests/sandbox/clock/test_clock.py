"""The clock of a sandbox: advances do what falls due in the order of time, once, whichever gateway is killed when."""

from __future__ import annotations

import asyncio
import datetime
import json
import signal
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from chassis.db.database import Database
from chassis.schedule import instants
from chassis.schedule.clocks import OFFSET_MAX
from gateway.sandbox.clock import queries
from gateway.sandbox.clock.rules import SERVICES
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.identity.v1 import identity_pb2, sandbox_pb2
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import eventually
from testkit.raw_http import Api, Response
from testkit.stub_clocks import StubClocks
from testkit.stub_contexts import Contexts

DAY = datetime.timedelta(days=1)
HOUR = datetime.timedelta(hours=1)
OCCUPANCY, CATALOG, TICKETS, WEBHOOKS = SERVICES


@dataclass
class Sandbox:
    api: Api
    key: str
    company_id: int
    clocks: StubClocks

    async def clock(self, api: Api | None = None) -> Any:
        response = await (api or self.api).get("/sandbox/clock", self.key)
        assert response.status == 200, response.body
        return response.json

    async def advance(self, idempotency_key: str = "", **body: Any) -> Response:
        headers = {"Idempotency_Key": idempotency_key or uuid.uuid4().hex}
        return await self.api.request("POST", "/sandbox/clock", self.key, json.dumps(body).encode(), **headers)

    async def ready(self, api: Api | None = None) -> Any:
        async def is_ready() -> bool:
            return bool((await self.clock(api))["status"] == "ready")

        await eventually(is_ready)
        return await self.clock(api)

    def falls_due(self, service: str, event: str, *after: datetime.timedelta) -> None:
        self.clocks.due[service, self.company_id] += [(instants.now() + each, event) for each in after]

    @property
    def offsets(self) -> set[datetime.timedelta]:
        return {self.clocks.offsets[service, self.company_id] for service in SERVICES}


@pytest.fixture
def clocks(contexts: Contexts) -> StubClocks:
    clocks = contexts.clocks
    for notes in (clocks.causes, clocks.done, clocks.calls, clocks.away, clocks.behind):
        notes.clear()
    return clocks


@pytest.fixture
async def sandbox(api: Api, operator: Operator, clocks: StubClocks) -> Sandbox:
    company_id = await operator.sandbox()
    return Sandbox(api, await operator.key(company_id), company_id, clocks)


@pytest.fixture
async def second(harness: GatewayHarness, gateway: Gateway) -> AsyncIterator[Gateway]:
    """Another gateway on the same database."""
    second = harness.gateway()
    yield second
    second.kill()
    harness.gateways.remove(second)


def instant(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


async def test_a_new_sandboxs_clock_is_the_real_one_and_says_what_falls_due(sandbox: Sandbox) -> None:
    clock = await sandbox.clock()
    assert list(clock) == ["now", "status", "start", "target", "done", "waiting", "next_due"]
    assert abs(instant(clock.pop("now")) - instants.now()) < HOUR
    nothing: dict[str, object] = {"start": None, "target": None, "done": {}, "waiting": None, "next_due": None}
    assert clock == {"status": "ready", **nothing}
    sandbox.falls_due(TICKETS, "ticket.stale", 3 * DAY, 2 * DAY)
    sandbox.falls_due(CATALOG, "inspection.stale", 2 * DAY - HOUR)
    ((first, _),) = sandbox.clocks.due[CATALOG, sandbox.company_id]
    assert (await sandbox.clock())["next_due"] == {"at": instants.printed(first), "event": "inspection.stale"}


async def test_an_advance_does_all_that_falls_due_in_the_order_of_time(sandbox: Sandbox) -> None:
    sandbox.falls_due(TICKETS, "ticket.stale", 3 * DAY, 6 * DAY, 6 * DAY, 11 * DAY)
    sandbox.falls_due(CATALOG, "inspection.stale", 2 * DAY, 5 * DAY)
    sandbox.falls_due(OCCUPANCY, "turn.begun", 5 * DAY, 1 * DAY)
    sandbox.clocks.causes["turn.begun"] = (TICKETS, HOUR, "pm.stale")
    response = await sandbox.advance(advance_by="P1WT72H")
    assert response.status == 202 and response.json["status"] == "advancing"
    clock = await sandbox.ready()
    start, target = instant(clock["start"]), instant(clock["target"])
    assert target - start == 10 * DAY and (clock["start"], clock["target"]) == (
        response.json["start"],
        response.json["target"],
    )
    assert abs(instant(clock["now"]) - instants.now() - 10 * DAY) < HOUR and instant(clock["now"]) >= target
    done = sandbox.clocks.done
    assert [each.due_at for each in done] == sorted(each.due_at for each in done)
    assert all(each.at >= each.due_at for each in done)
    assert [each.at for each in done] == sorted(each.at for each in done)
    counts = {"ticket.stale": 3, "inspection.stale": 2, "turn.begun": 2, "pm.stale": 2}
    assert Counter(each.event for each in done) == counts == clock["done"]
    assert clock["next_due"]["event"] == "ticket.stale"
    assert len(sandbox.offsets) == 1  # every context has the last one


async def test_each_step_asks_no_more_than_it_needs(sandbox: Sandbox) -> None:
    sandbox.falls_due(TICKETS, "ticket.stale", DAY, DAY, 2 * DAY)
    await sandbox.advance(advance_by="P3D")
    await sandbox.ready()
    ways = [(DAY, TICKETS), (2 * DAY, TICKETS)]
    calls = Counter(call for call in sandbox.clocks.calls if call[1] in ("SetClock", "DoDue", "Settle"))
    steps = len({each.at for each in sandbox.clocks.done})
    assert calls[TICKETS, "DoDue"] == steps and len(ways) <= steps <= 3
    assert {service for service, rpc in calls if rpc == "DoDue"} == {TICKETS}
    assert all(calls[service, "SetClock"] == steps + 1 for service in SERVICES)
    # At the beginning each settles; after that those alone that may have heard something.
    assert (calls[OCCUPANCY, "Settle"], calls[TICKETS, "Settle"], calls[WEBHOOKS, "Settle"]) == (1, 1, 1 + steps)


async def test_an_advance_by_nothing_does_what_is_due_already(sandbox: Sandbox) -> None:
    sandbox.falls_due(TICKETS, "ticket.stale", -HOUR)
    assert (await sandbox.advance(advance_by="PT0S")).status == 202
    clock = await sandbox.ready()
    assert clock["done"] == {"ticket.stale": 1} and clock["start"] == clock["target"]


async def test_an_advance_to_an_instant_does_what_falls_due_at_it(sandbox: Sandbox) -> None:
    sandbox.falls_due(TICKETS, "ticket.stale", 30 * HOUR)
    due = (await sandbox.clock())["next_due"]
    assert (await sandbox.advance(advance_to=due["at"])).status == 202
    clock = await sandbox.ready()
    assert (clock["done"], clock["target"], clock["next_due"]) == ({due["event"]: 1}, due["at"], None)


async def test_a_second_advance_waits_for_the_first(sandbox: Sandbox) -> None:
    sandbox.clocks.away.add(TICKETS)
    first = await sandbox.advance("one", advance_by="P1D")
    refused = await sandbox.advance("two", advance_by="P1D")
    assert (refused.status, refused.code) == (409, "clock_advancing")
    replay = await sandbox.advance("one", advance_by="P1D")
    assert (replay.status, replay.body, replay.header("X-Idempotent-Replay")) == (202, first.body, "1")
    other = await sandbox.advance("one", advance_by="P2D")
    assert (other.status, other.code) == (409, "idempotency_mismatch")
    sandbox.clocks.away.clear()
    before = await sandbox.ready()
    # The refused one has not used its key up, and a replay moves nothing.
    assert (await sandbox.advance("one", advance_by="P1D")).body == first.body
    assert (await sandbox.clock())["target"] == before["target"]
    assert (await sandbox.advance("two", advance_by="P1D")).status == 202
    assert instant((await sandbox.ready())["target"]) - instant(before["target"]) >= DAY


async def test_a_step_and_a_new_advance_lock_their_rows_in_one_order(sandbox: Sandbox, database: Database) -> None:
    """Otherwise each holds what the other waits for: the second one locks the company first."""
    sandbox.clocks.away.add(TICKETS)
    assert (await sandbox.advance(advance_by="P1D")).status == 202

    async def token() -> Any:
        async with database.connection() as connection:
            return await connection.raw.fetchval(
                "SELECT lease_token FROM advance WHERE company_id = $1", sandbox.company_id
            )

    await eventually(token)
    advance = queries.Advance(sandbox.company_id, instants.now() + DAY, await token())

    async def finish() -> None:
        async with database.transaction() as connection:
            await queries.finish(connection, advance)

    for step in (queries.move(database, advance, HOUR, OFFSET_MAX), finish()):
        async with database.connection() as connection, connection.raw.transaction():
            await connection.raw.execute("SELECT FROM company WHERE id = $1 FOR UPDATE", sandbox.company_id)
            task = asyncio.ensure_future(step)

            async def waits() -> Any:
                async with database.connection() as other:
                    return await other.raw.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")

            await eventually(waits)
            await connection.raw.execute(
                "SELECT FROM advance WHERE company_id = $1 FOR UPDATE NOWAIT", sandbox.company_id
            )
        await task
    sandbox.clocks.away.clear()
    assert (await sandbox.clock())["status"] == "ready"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "advance_to or advance_by"),
        ({"advance_to": None, "advance_by": None}, 400, "advance_to or advance_by"),
        ({"advance_by": "P1D", "advance_to": "2100-01-01T00:00:00Z"}, 400, "not both"),
        ({"advance_by": "P1M"}, 400, "years or months"),
        ({"advance_by": "a day"}, 400, "ISO 8601 duration"),
        ({"advance_by": 3600}, 400, "must be a string"),
        ({"advance_to": "2100-01-01T00:00:00"}, 400, "UTC offset"),
        ({"advance_to": "2100-01-01"}, 400, "UTC offset"),
        ({"advance_by": "P1D", "by": "P1D"}, 400, "these keys only"),
        ({"advance_by": "P401D"}, 422, "at most 400 days"),
        ({"advance_by": "P999999W"}, 422, "at most 400 days"),
        ({"advance_to": "9998-01-01T00:00:00Z"}, 422, "at most 400 days"),
        ({"advance_to": "2020-01-01T00:00:00Z"}, 422, "goes forward"),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(
    sandbox: Sandbox, body: dict[str, Any], status: int, words: str
) -> None:
    response = await sandbox.advance(**body)
    assert (response.status, response.code) == (status, "invalid_request") and words in response.message
    assert (await sandbox.clock())["target"] is None


async def test_a_clock_is_ten_years_ahead_at_most(sandbox: Sandbox) -> None:
    for _ in range(9):
        assert (await sandbox.advance(advance_by="P400D")).status == 202
        await sandbox.ready()
    refused = await sandbox.advance(advance_by="P51D")
    assert (refused.status, refused.code) == (422, "invalid_request") and "3650 days" in refused.message
    assert (await sandbox.advance(advance_by="P49D")).status == 202
    assert len(sandbox.offsets) == 1


async def test_a_live_companys_key_finds_no_clock_once_its_scope_is_checked(api: Api, operator: Operator) -> None:
    live = await operator.company()
    write, read, webhook_only = [await operator.key(live, scope) for scope in ("write", "read", "webhook_only")]
    for key in (write, read):
        response = await api.get("/sandbox/clock", key)
        assert (response.status, response.code) == (404, "not_found")
    # Before the query, the key and the body.
    response = await api.request("POST", "/sandbox/clock?x=1", write, b"no JSON")
    assert (response.status, response.code) == (404, "not_found")
    for verb, key in (("POST", read), ("POST", webhook_only), ("GET", webhook_only)):
        assert (await api.request(verb, "/sandbox/clock", key, b"{}")).code == "insufficient_scope"


async def test_an_advance_waits_for_a_service_and_says_so(sandbox: Sandbox, database: Database) -> None:
    sandbox.falls_due(CATALOG, "inspection.stale", HOUR)
    sandbox.clocks.away.add(CATALOG)
    await sandbox.advance(advance_by="P1D")

    async def is_noted() -> bool:
        async with database.connection() as connection:
            # A minute passes.
            return bool(
                await connection.raw.fetchval(
                    "UPDATE advance SET missing_since = missing_since - interval '1 minute' WHERE company_id = $1"
                    " RETURNING missing IS NOT NULL",
                    sandbox.company_id,
                )
            )

    await eventually(is_noted)
    clock = await sandbox.clock()
    assert clock["status"] == "advancing" and "service of catalog has not answered" in clock["waiting"]
    assert instant(clock["now"]) - instants.now() < HOUR  # it moves nothing without that service
    sandbox.clocks.away.clear()
    clock = await sandbox.ready()
    assert (clock["done"], clock["waiting"]) == ({"inspection.stale": 1}, None)
    sandbox.clocks.away.add(TICKETS)
    clock = await sandbox.clock()
    assert clock["next_due"] is None and "service of tickets does not answer" in clock["waiting"]


async def test_a_context_whose_clock_is_behind_is_waited_for(sandbox: Sandbox) -> None:
    sandbox.clocks.behind[TICKETS] = datetime.timedelta(seconds=2)
    sandbox.falls_due(TICKETS, "ticket.stale", DAY, 2 * DAY)
    await sandbox.advance(advance_by="P3D")
    assert (await sandbox.ready())["done"] == {"ticket.stale": 2}


@pytest.mark.parametrize("point", ["advance-moved", "advance-done", "advance-at-target"])
async def test_an_advance_goes_on_wherever_its_gateway_is_killed(
    sandbox: Sandbox, gateway: Gateway, second: Gateway, database: Database, point: str
) -> None:
    sandbox.falls_due(TICKETS, "ticket.stale", DAY, 3 * DAY, 5 * DAY)
    sandbox.falls_due(OCCUPANCY, "turn.begun", 2 * DAY, 4 * DAY)
    sandbox.clocks.causes["turn.begun"] = (TICKETS, HOUR, "pm.stale")
    second.launch(MAKEREADY_KILL_AT=point)
    await second.ready()
    through_second = Sandbox(Api(second.api_port), sandbox.key, sandbox.company_id, sandbox.clocks)
    assert (await through_second.advance("k", advance_by="P6D")).status == 202
    assert await asyncio.to_thread(second.wait) == -signal.SIGKILL
    await end_lease(database, sandbox)
    clock = await sandbox.ready()
    events = Counter(each.event for each in sandbox.clocks.done)
    assert events == {"ticket.stale": 3, "turn.begun": 2, "pm.stale": 2}
    done = sandbox.clocks.done
    assert [each.due_at for each in done] == sorted(each.due_at for each in done)
    assert instant(clock["now"]) >= instant(clock["target"]) and len(sandbox.offsets) == 1
    replay = await sandbox.advance("k", advance_by="P6D")
    assert (replay.status, replay.header("X-Idempotent-Replay")) == (202, "1")


async def test_a_gateway_that_was_frozen_changes_nothing_of_what_another_went_on_with(
    sandbox: Sandbox, second: Gateway, database: Database, tmp_path: Any
) -> None:
    strike = tmp_path / "strike"
    sandbox.falls_due(TICKETS, "ticket.stale", DAY, 2 * DAY)
    second.launch(MAKEREADY_STRIKE_FILE=str(strike))
    await second.ready()
    strike.write_text("advance-done hold")
    through_second = Sandbox(Api(second.api_port), sandbox.key, sandbox.company_id, sandbox.clocks)
    assert (await through_second.advance(advance_by="P3D")).status == 202

    async def is_held() -> bool:
        return not strike.exists()

    await eventually(is_held)
    await end_lease(database, sandbox)
    first = await sandbox.ready()
    assert (await sandbox.advance(advance_by="P1D")).status == 202
    last = await sandbox.ready()
    second.send(signal.SIGCONT)
    assert (await through_second.clock())["target"] == last["target"] != first["target"]
    await asyncio.sleep(0)
    assert [each.event for each in sandbox.clocks.done] == ["ticket.stale"] * 2
    assert await second.stop() == 0
    assert (await sandbox.clock())["status"] == "ready"


async def end_lease(database: Database, sandbox: Sandbox) -> None:
    """As if the time of the lease were over."""
    async with database.connection() as connection:
        await connection.raw.execute(
            "UPDATE advance SET leased_until = '-infinity' WHERE company_id = $1", sandbox.company_id
        )


async def test_the_offset_is_published_and_the_advance_is_on_record(
    sandbox: Sandbox, operator: Operator, database: Database
) -> None:
    administrator = await operator.administrators_identity(sandbox.company_id)
    request = sandbox_pb2.AdvanceSandboxClockRequest(idempotency_key="form", body=b'{"advance_by": "P1D"}')
    replies = [(await operator("AdvanceSandboxClock", request, who=administrator)).reply for _ in range(2)]
    assert [(reply.status, reply.replayed) for reply in replies] == [(202, False), (202, True)]
    clock = await sandbox.ready()
    document = await operator("GetSandboxClock", sandbox_pb2.GetSandboxClockRequest(), who=administrator)
    assert json.loads(document.document.json)["target"] == clock["target"]
    company = await operator("GetCompany", identity_pb2.GetCompanyRequest(company_id=sandbox.company_id))
    assert company.company.clock_offset.ToTimedelta() in sandbox.offsets
    async with database.connection() as connection:
        version = await connection.raw.fetchval("SELECT version FROM company WHERE id = $1", sandbox.company_id)
    assert version == 2
    (entry,) = (await operator("ListAudit", ListAuditRequest(limit=10), sandbox.company_id)).entries[:1]
    assert (entry.action, json.loads(entry.after)["to"]) == ("clock.advanced", clock["target"])
    live = await operator.administrators_identity(await operator.company())
    for rpc, refused in (
        ("GetSandboxClock", sandbox_pb2.GetSandboxClockRequest()),
        (
            "AdvanceSandboxClock",
            sandbox_pb2.AdvanceSandboxClockRequest(idempotency_key="k", body=b'{"advance_by":"P1D"}'),
        ),
    ):
        with pytest.raises(Exception, match="only a sandbox"):
            await operator(rpc, refused, who=live)
