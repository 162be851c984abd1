"""The request log: every answered request once, nothing of the caller's own, bounded, and nothing waits for it."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import json
from importlib import resources
from typing import Any

import pytest

from chassis.db.database import Database, DatabaseUnavailable
from chassis.http.replies import Reply
from chassis.refusals import Refusal
from gateway.http import request_log
from gateway.http.replies import FAULT, error, read
from gateway.http.request_log import Answered, RequestLog
from gateway.http.routes import operation_at
from gateway.identity.requests import queries, records, rules
from gateway.identity.requests.service import RequestLogService
from makeready.identity.v1 import requests_pb2 as pb
from testkit.gateways import GatewayHarness, Operator
from testkit.patience import eventually
from testkit.raw_http import Api

from .test_key_usage import caller

DAY = datetime.timedelta(days=1)
DOCUMENT = (resources.files("gateway") / "pages" / "openapi.json").read_bytes()
EVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
GET_TICKET = operation_at("GET", "/tickets/{ticket_id}")
_companies = iter(range(3 * 10**9, 4 * 10**9))


def answered(company_id: int, number: int = 0, status: int = 200, **more: Any) -> Answered:
    values: dict[str, Any] = {
        "requested_at": datetime.datetime.now(datetime.UTC).timestamp(),
        "api_key_id": 7,
        "company_id": company_id,
        "request_id": f"{company_id:012x}{number:012x}",
        "method": "GET",
        "operation": GET_TICKET,
        "ids": ("41",),
        "query": "",
        "field": "",
        "status": status,
        "seconds": 0.0042,
        "bytes_in": "",
        "bytes_out": 900,
        "reply_begins": b"",
        "is_replay": False,
        "address": "10.1.2.3",
        "user_agent": "test",
        "idempotency_key": "",
        "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
    }
    return Answered(**values | more)


async def no_caller(_key: str) -> None:
    return None


def new_log(database: Database, find: Any = no_caller) -> RequestLog:
    return RequestLog(database, "all", b"s" * 32, DOCUMENT, find)


@pytest.fixture
def company() -> int:
    return next(_companies)


@pytest.fixture
async def log(database: Database) -> RequestLog:
    today = datetime.datetime.now(datetime.UTC).date()
    await queries.DAYS.make_days(database, [today, today + DAY], 30)
    return new_log(database)


async def stored(database: Database, company_id: int, **more: Any) -> list[Any]:
    filters = queries.Filters(company_id, None, (0, 999), "", "", EVER)._replace(**more)
    return (await queries.newest(database, filters, 2**62, 5000)).rows


async def listed(operator: Operator, company_id: int, **fields: Any) -> list[pb.LoggedRequest]:
    """All pages."""
    requests: list[pb.LoggedRequest] = []
    before: dict[str, Any] = {}
    while True:
        request = pb.ListRequestsRequest(company_id=company_id, limit=200, **fields, **before)
        answer = await operator("ListRequests", request)
        requests += answer.requests
        if not answer.HasField("next_before_id"):
            return requests
        before = {"before_id": answer.next_before_id}


async def test_two_gateways_and_a_restart_log_every_answered_request_once(
    harness: GatewayHarness, operator: Operator, company_id: int
) -> None:
    gateways = [harness.gateway(), harness.gateway()]
    for gateway in gateways:
        gateway.start()
    ids: list[str] = []
    keys = [(await operator.minted(company_id, "read"))[1] for _ in range(4)]

    async def load(port: int, key: str) -> None:
        api = Api(port)
        hostile = ("/tickets/secret@example.com", "/tickets?cursor=ada@example.com", "/ada@example.com/%FF?q=ada")
        for path in ("/whoami", *hostile, "/whoami") * 5:
            ids.append((await api.get(path, key)).header("X-Request-Id") or "")

    for _ in range(2):
        for gateway in gateways:
            await gateway.ready()
        await asyncio.gather(*(load(gateways[n % 2].api_port, key) for n, key in enumerate(keys)))
        assert await gateways[0].stop() == 0
        gateways[0].start()
    await gateways[0].ready()
    for gateway in gateways:
        assert await gateway.stop() == 0
    requests = await listed(operator, company_id)
    assert len(ids) == 200 and sorted(request.request_id for request in requests) == sorted(ids)
    refused = await listed(operator, company_id, status="4xx")
    assert len(refused) == 120 and all(request.message.endswith(".") for request in refused)
    assert len(await listed(operator, company_id, status="400", code="invalid_cursor", route="/tickets")) == 40
    assert "example.com" not in str(requests)
    request = (await operator("GetRequest", pb.GetRequestRequest(request_id=ids[0]))).request
    assert (request.method, request.route, request.path, request.status) == ("GET", "/whoami", "/whoami", 200)
    stranger = await operator.administrators_identity(await operator.company())
    with pytest.raises(Refusal):
        await operator("GetRequest", pb.GetRequestRequest(request_id=ids[0]), who=stranger)
    with pytest.raises(Refusal):
        await operator("ListRequests", pb.ListRequestsRequest(company_id=company_id), who=stranger)


@pytest.mark.parametrize(("setting", "statuses"), [("off", []), ("refused", [404]), ("writes", [404])])
async def test_a_setting_says_which_requests_are_logged(
    harness: GatewayHarness, operator: Operator, company_id: int, setting: str, statuses: list[int]
) -> None:
    gateway = harness.gateway(MAKEREADY_REQUEST_LOG=setting)
    gateway.start()
    await gateway.ready()
    _, key = await operator.minted(company_id, "read")
    for path in ("/whoami", "/tickets/x"):
        await Api(gateway.api_port).get(path, key)
    assert await gateway.stop() == 0
    assert [request.status for request in await listed(operator, company_id)] == statuses


def test_a_write_is_logged_unless_only_refusals_are() -> None:
    assert [rules.keeps(kept, 201, "POST") for kept in ("all", "writes", "refused", "off")] == [
        True,
        True,
        False,
        False,
    ]
    assert [rules.keeps(kept, 409, "POST") for kept in ("all", "writes", "refused", "off")] == [True, True, True, False]


async def test_nothing_of_the_callers_own_is_stored(log: RequestLog, database: Database, company: int) -> None:
    operation = operation_at("GET", "/tickets")
    query = "status=Open&property_id=5&updated_since=2026-01-31T08:00:00Z&cursor=ada%40example.com&ada@example.com=Ada"
    query += "&updated_since=%2B1 303 555-0142"
    log._waiting.append(answered(company, operation=operation, ids=(), query=query, idempotency_key="Ada-17"))
    log._waiting.append(answered(company, 1, ids=("ada@example.com",)))
    route = operation_at("GET", "/requests")
    for number, value in enumerate(("5550100123", "2026-01-31", "%2B1 555 0100")):
        log._waiting.append(answered(company, 2 + number, operation=route, ids=(), query=f"request_id={value}"))
    await log.store()
    rows = await stored(database, company)
    texts = " ".join(row["details"] for row in rows)
    assert "status=Open&property_id=5&updated_since=2026-01-31T08:00:00Z&cursor=~" in texts
    assert "request_id=~" in texts and "request_id=5" not in texts and "request_id=2" not in texts
    assert len(rows) == 5 and "ada" not in texts.lower() and "example" not in texts and "555" not in texts


async def test_the_record_of_a_write_comes_from_its_answer(log: RequestLog, database: Database, company: int) -> None:
    begins = b'{"schema_version":1,"entity_type":"ticket","entity_id":9007,"ticket_number":3'
    log._waiting.append(answered(company, method="POST", reply_begins=begins))
    await log.store()
    assert '"ticket",9007' in (await stored(database, company))[0]["details"]


async def test_the_writes_to_a_record_are_found(
    log: RequestLog, database: Database, operator: Operator, company_id: int
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    writes: list[tuple[str, int, str, int]] = [
        ("PATCH", 200, "ticket", 17), ("PATCH", 422, "ticket", 17), ("GET", 200, "ticket", 17),
        ("PATCH", 200, "ticket", 170), ("POST", 201, "turn", 17), ("PATCH", 200, "ticket", 17),
    ]  # fmt: skip
    for number, (method, status, kind, record_id) in enumerate(writes):
        begins = b'{"schema_version":1,"entity_type":"%s","entity_id":%d,' % (kind.encode(), record_id)
        at = (now + datetime.timedelta(seconds=number)).timestamp()
        log._waiting.append(answered(company_id, number, status, method=method, reply_begins=begins, requested_at=at))
    await log.store()

    async def numbers(**fields: Any) -> list[int]:
        return [int(row.request_id[12:], 16) for row in await listed(operator, company_id, writes=True, **fields)]

    assert await numbers() == [5, 4, 3, 0]
    assert await numbers(entity_type="ticket") == [5, 3, 0]
    assert await numbers(entity_type="ticket", entity_id=17) == [5, 0]
    assert await numbers(request_id=f"{company_id:012x}{3:012x}") == [3] and await numbers(key_id=8) == []
    between = pb.ListRequestsRequest()
    between.since.FromDatetime(now + datetime.timedelta(seconds=1))
    between.until.FromDatetime(now + datetime.timedelta(seconds=5))
    assert await numbers(since=between.since, until=between.until) == [4, 3]


async def test_a_part_whose_answer_was_lost_is_stored_once(
    log: RequestLog, database: Database, company: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = queries.store

    async def store_and_lose_the_answer(*part: Any) -> None:
        await store(*part)
        raise DatabaseUnavailable("the connection was lost")

    log._waiting.extend(answered(company, number) for number in range(3))
    monkeypatch.setattr(queries, "store", store_and_lose_the_answer)
    with pytest.raises(DatabaseUnavailable):
        await log.store()
    monkeypatch.setattr(queries, "store", store)
    log._waiting.append(answered(company, 3))
    await log.store()
    rows = await stored(database, company)
    assert len(rows) == 4 and len({row["id"] for row in rows}) == 4


async def test_stores_of_several_gateways_take_ids_in_the_order_in_which_they_become_visible(
    log: RequestLog, database: Database, company: int
) -> None:
    logs = [new_log(database) for _ in range(4)]
    for number, each in enumerate(logs):
        each._waiting.extend(answered(company, number * 1000 + row) for row in range(500))
    await asyncio.gather(*(each.store() for each in logs))
    rows = await stored(database, company)
    assert len({row["id"] for row in rows}) == 2000
    # A gateway's rows are next to each other: no store began before the one before was visible.
    gateways = [int(row["request_id"][12:], 16) // 1000 for row in rows]
    assert sum(before != after for before, after in itertools.pairwise(gateways)) == 3


class Asked:
    """The parts of a request that the log reads."""

    id, method, address, idle_seconds, limit_headers = "0" * 24, "GET", "10.1.2.3", 0.0, b"RateLimit: x"

    def __init__(self, caller: Any) -> None:
        self.caller, self.headers = caller, dict[str, str]()


async def test_under_pressure_requests_are_dropped_from_the_log_and_counted(
    log: RequestLog, database: Database, company: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "WAITING_MAX", 50)
    dropped = request_log.DROPPED._value.get()
    for _ in range(80):
        log.add(Asked(caller(company, 7)), GET_TICKET, ("41",), "", read(b"{}"), "", 0.001)  # type: ignore[arg-type]
    assert log.waiting == 50 and request_log.DROPPED._value.get() - dropped == 30

    async def fail(*part: Any) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as context, pytest.raises(DatabaseUnavailable):
        context.setattr(queries, "store", fail)
        await log.store()
    await log.store()
    assert len(await stored(database, company)) == 50


@pytest.mark.parametrize(("limit_headers", "reply"), [(b"RateLimit: x", error(429, "rate_limited", "Wait.")),
                                                      (b"", error(401, "key_revoked", "Stop."))])  # fmt: skip
async def test_a_key_that_asks_on_when_it_is_refused_does_not_fill_the_disk(
    log: RequestLog, database: Database, company: int, limit_headers: bytes, reply: Reply
) -> None:
    request = Asked(caller(company, 7))
    request.limit_headers = limit_headers
    log._clock = lambda: 1_800_000_000.0
    for _ in range(300):
        log.add(request, GET_TICKET, ("41",), "", reply, "", 0.001)  # type: ignore[arg-type]
    assert log.waiting == 120
    log.add(Asked(caller(company, 8)), GET_TICKET, ("41",), "", reply, "", 0.001)  # type: ignore[arg-type]
    log._clock = lambda: 1_800_000_060.0
    log.add(request, GET_TICKET, ("41",), "", reply, "", 0.001)  # type: ignore[arg-type]
    assert log.waiting == 122


@pytest.mark.parametrize(
    "reply",
    [FAULT, error(503, "internal_error", "Try later."), error(400, "invalid_request", "The body can't be read.")],
)
async def test_a_row_has_the_sentence_that_the_caller_got(
    log: RequestLog, database: Database, company: int, reply: Reply
) -> None:
    log.add(Asked(caller(company, 7)), GET_TICKET, ("41",), "", reply, "", 0.001)  # type: ignore[arg-type]
    await log.store()
    sent = json.loads(reply.body)["error"]
    (row,) = await stored(database, company)
    assert (row["status"], row["code"]) == (reply.status, sent["code"])
    assert records.decode(row["details"]).message == sent["message"]


async def test_a_header_of_any_bytes_is_logged(log: RequestLog, database: Database, company: int) -> None:
    log._waiting.append(answered(company, user_agent="a\udce9b\0", ids=("\udce9",), query="cursor=%ff\udce9"))
    await log.store()
    assert len(await stored(database, company)) == 1


async def test_days_are_made_ahead_and_dropped_thirty_days_after_their_end(
    log: RequestLog, database: Database, company: int
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    service = RequestLogService(database, lambda: now + 10 * DAY)
    making = asyncio.create_task(service.make_days())
    names = "SELECT relname FROM pg_class WHERE relnamespace = 'partitions'::regnamespace AND relkind = 'r'"

    async def days() -> set[str]:
        async with database.connection() as connection:
            return {row["relname"] for row in await connection.raw.fetch(names)}

    async def is_ahead() -> bool:
        return f"request_{now + 13 * DAY:%Y%m%d}" in await days()

    await eventually(is_ahead)
    making.cancel()
    log._waiting.append(answered(company))
    await log.store()
    await service.drop_days(now + 30 * DAY)
    assert len(await stored(database, company)) == 1
    await service.drop_days(now + 31 * DAY)
    assert await stored(database, company) == []
    assert f"request_{now:%Y%m%d}" not in await days()


async def test_a_day_that_is_not_made_loses_no_request(
    log: RequestLog, database: Database, company: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log._waiting.append(answered(company))
    async with database.connection() as connection:
        await connection.raw.execute("UPDATE request_end SET id = id + 400 * 86400000000")
    try:
        with pytest.raises(DatabaseUnavailable, match="partition"):
            await log.store()
    finally:
        async with database.connection() as connection:
            await connection.raw.execute("UPDATE request_end SET id = id - 400 * 86400000000")
    await log.store()
    assert len(await stored(database, company)) == 1


async def test_a_page_looks_at_a_bounded_number_of_requests(
    log: RequestLog, database: Database, company: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "SCANNED_MAX", 10)
    log._waiting.extend(
        answered(company, number, route_status) for number, route_status in enumerate([500] + [200] * 25)
    )
    await log.store()
    filters = queries.Filters(company, None, (200, 599), "", "", EVER)
    page = await queries.newest(database, filters._replace(code="x"), 2**62, 5)
    looks = 1
    while page.has_more:
        assert page.rows == []
        page = await queries.newest(database, filters._replace(code="x"), page.looked_to or 0, 5)
        looks += 1
    assert looks == 3
    assert len((await queries.newest(database, filters._replace(status=(500, 599)), 2**62, 5)).rows) == 1


@pytest.mark.parametrize("status", ["abc", "6xx", "4x", "4000", "4XX"])
def test_a_status_that_is_none_is_refused(status: str) -> None:
    with pytest.raises(Refusal) as refusal:
        rules.statuses(status)
    assert refusal.value.status == 422


def test_an_id_tells_its_day() -> None:
    day = datetime.date(2026, 11, 27)
    assert rules.day_of(rules.first_id(day)) == day
    assert rules.day_of(str(int(rules.first_id(day)) - 1)) == day - DAY


async def test_a_key_sees_its_own_requests_or_those_of_the_company(
    harness: GatewayHarness, operator: Operator, company_id: int
) -> None:
    gateway = harness.gateway()
    gateway.start()
    await gateway.ready()
    api = Api(gateway.api_port)
    read_id, reads = await operator.minted(company_id, "read")
    write_id, writes = await operator.minted(company_id, "write")
    _, hooks = await operator.minted(company_id, "webhook_only")
    _, strangers = await operator.minted(await operator.company(), "write")
    refused = await api.get("/tickets?cursor=x", reads)
    await api.get("/whoami", writes)

    async def page(query: str, key: str) -> Any:
        answer = await api.get(f"/requests?{query}", key)
        assert answer.status == 200, answer
        return answer.json

    # It waits for what is stored a second later.
    first = await page("wait=25&status=4xx", writes)
    assert [(row["key_id"], row["code"], row["request_id"]) for row in first["data"]] == [
        (read_id, "invalid_cursor", refused.header("X-Request-Id"))
    ]
    again = await page("", writes)
    assert {row["key_id"] for row in again["data"]} == {read_id, write_id}
    assert [row["entity_id"] for row in again["data"]] == sorted(row["entity_id"] for row in again["data"])
    assert {row["key_id"] for row in (await page("", reads))["data"]} == {read_id}
    assert (await page(f"key_id={write_id}", reads))["data"] == []
    assert {row["key_id"] for row in (await page(f"key_id={write_id}", writes))["data"]} == {write_id}
    request_id = refused.header("X-Request-Id")
    assert (await page(f"request_id={request_id}", strangers))["data"] == []
    assert (
        len((await page(f"request_id={request_id}&route=/tickets&code=invalid_cursor&status=400", writes))["data"]) == 1
    )
    assert (await page("since=2100-01-01T00:00:00Z", writes))["data"] == []
    following = await page("limit=1", writes)
    assert following["next_cursor"] == following["resume_cursor"]
    last = await page(f"cursor={following['next_cursor']}", writes)
    assert last["data"][0] == again["data"][1] and last["next_cursor"] is None
    for query, key, status in (("", hooks, 403), ("status=9xx", writes, 422), ("code=", writes, 400)):
        assert (await api.get(f"/requests?{query}", key)).status == status
    assert await gateway.stop() == 0
