"""Walks over the whole route table: every route with every kind of key, every verb, every foreign id."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from chassis.auth.access import OPENED_BY
from gateway.http.routes import OPERATIONS, OWN_SERVICE, PUBLIC, Operation, resource_of
from testkit.gateways import Operator
from testkit.raw_http import Api, Response
from testkit.stub_contexts import RECORDS, Contexts, first_id

# All routes that need a key; test_reference.py tests the public one.
ROUTES = {
    f"{operation.route.method} {operation.route.path}": operation
    for operation in OPERATIONS
    if operation.scope != PUBLIC
}
every_route = pytest.mark.parametrize("operation", ROUTES.values(), ids=ROUTES)
VERBS = (
    "GET HEAD OPTIONS TRACE POST PUT PATCH DELETE PROPFIND COPY LOCK MKCOL MOVE PURGE REPORT SEARCH LINK NOTIFY QUERY "
    "FOOBAR GETS get Post PRI HTTP M-SEARCH x !#$%&'*+-.^_`|~09"
).split()
SCHEMES = ("Bearer", "bearer", "BEARER")
# Malformed headers; none may be accepted as a key.
HEADERS = {
    "empty": "",
    "scheme alone": "Bearer",
    "scheme and space": "Bearer ",
    "another scheme": "Basic {key}",
    "no scheme": "{key}",
    "two spaces": "Bearer  {key}",
    "a tab": "Bearer\t{key}",
    "quoted": 'Bearer "{key}"',
    "more behind it": "Bearer {key} x",
    "two keys": "Bearer {key},{key}",
    "one character more": "Bearer {key}x",
    "one character less": "Bearer {shorter}",
    "another key": "Bearer mk_0000000000000000000000000000000000000000000",
    "not a key": "Bearer secret",
}


# The bodies of writes that the gateway answers by itself.
BODIES = {"/sandbox/clock": b'{"advance_by": "PT0S"}'}


def is_open(operation: Operation, response: Response) -> bool:
    """Whether the route was answered. A trigger needs contexts with records: the walks come to its body. The gateway
    itself has no request with a stub's id. An advance of another walk may be under way."""
    if operation.route.path == "/sandbox/triggers":
        return response.status == 400 and b"event is required." in response.body
    if operation.route.path == "/requests/{request_id}":
        return response.status == 404 and b"No logged request" in response.body
    return response.status in (200, 201, 202, 204) or response.code == "clock_advancing"


def path_of(operation: Operation, entity_id: object) -> str:
    """With the id of a record at the first place of one, and 1 at the others, and what the query must have."""
    path = operation.route.path.replace("{" + operation.id_field + "}", str(entity_id))
    path = "/".join("1" if part.startswith("{") else part for part in path.split("/"))
    required = "&".join(f"{parameter.name}=x" for parameter in operation.filters if parameter.points_max)
    return f"{path}?{required}" if required else path


def with_query(path: str, query: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{query}"


async def ask(api: Api, operation: Operation, key: str | None, entity_id: object = 1, **headers: str) -> Response:
    method = operation.route.method
    body = BODIES.get(operation.route.path, b"{}") if operation.kind == "write" else None
    if operation.kind == "write":
        # A key that was used for one operation is used up for all.
        headers.setdefault("Idempotency_Key", f"walk {OPERATIONS.index(operation)}")
    return await api.request(method, path_of(operation, entity_id), key, body, **headers)


@dataclass(frozen=True)
class Keys:
    company_id: int
    by_scope: dict[str, str]
    by_scheme: dict[tuple[str, str], str]
    """By scheme and scope: the routes are more than a key's requests a minute, three times over."""
    revoked: str
    inactive: dict[str, str]


@pytest.fixture(scope="module")
async def keys(operator: Operator) -> Keys:
    company_id = await operator.sandbox()  # its keys open the paths of sandboxes, too
    closed = await operator.company("Closed Inc")
    key_id, revoked = await operator.minted(company_id)
    await operator.revoke(key_id)
    minted = Keys(
        company_id,
        {scope: await operator.key(company_id, scope) for scope in OPENED_BY["any"]},
        {(scheme, scope): await operator.key(company_id, scope) for scheme in SCHEMES for scope in OPENED_BY["any"]},
        revoked,
        {scope: await operator.key(closed, scope) for scope in OPENED_BY["any"]},
    )
    await operator.set_active(closed, False)
    await asyncio.sleep(0.5)
    return minted


def test_every_operation_allows_callers_and_no_path_is_named_twice() -> None:
    assert len({(operation.route.method, operation.route.path) for operation in OPERATIONS}) == len(OPERATIONS)
    sentences = [operation.route.key_sentence for operation in OPERATIONS if operation.kind == "write"]
    assert len(set(sentences)) == len(sentences)
    for sentence in sentences:
        assert "Idempotency-Key" in sentence and sentence.endswith(".") and ". " not in sentence


@every_route
async def test_without_key_nothing_opens(api: Api, operation: Operation, keys: Keys, contexts: Contexts) -> None:
    bare = await ask(api, operation, None)
    assert (bare.status, bare.code, bare.header("RateLimit")) == (401, "unauthorized", None)
    key = keys.by_scope["write"]
    for form in HEADERS.values():
        response = await ask(api, operation, None, Authorization=form.format(key=key, shorter=key[:-1]))
        assert response.without_id() == bare.without_id(), form
    twice = await ask(api, operation, key, authorization=f"Bearer {key}")
    assert twice.without_id() == bare.without_id()
    assert not contexts.seen


@every_route
async def test_a_key_is_read_from_the_header_alone(api: Api, operation: Operation, keys: Keys) -> None:
    key = keys.by_scope["write"]
    response = await ask(api, operation, None, Cookie=f"key={key}; session=1", X_Api_Key=key, Api_Key=key)
    assert (response.status, response.code) == (401, "unauthorized")
    path = with_query(path_of(operation, 1), f"key={key}&access_token={key}&api_key={key}")
    response = await api.request(operation.route.method, path, Idempotency_Key="walk")
    assert (response.status, response.code) == (401, "unauthorized")


@every_route
async def test_a_revoked_key_is_answered_key_revoked(
    api: Api, operation: Operation, keys: Keys, contexts: Contexts
) -> None:
    response = await ask(api, operation, keys.revoked)
    assert (response.status, response.code) == (401, "key_revoked")
    assert not contexts.seen


@every_route
@pytest.mark.parametrize("scope", sorted(OPENED_BY["any"]))
async def test_an_inactive_company_opens_nothing(
    api: Api, operation: Operation, keys: Keys, scope: str, contexts: Contexts
) -> None:
    response = await ask(api, operation, keys.inactive[scope])
    assert (response.status, response.code) == (403, "company_inactive")
    assert not contexts.seen


@every_route
@pytest.mark.parametrize("scope", sorted(OPENED_BY["any"]))
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_scope_opens_its_routes_and_no_other(
    api: Api, operation: Operation, keys: Keys, scope: str, scheme: str, contexts: Contexts
) -> None:
    authorization = f"{scheme} {keys.by_scheme[scheme, scope]}"
    response = await ask(api, operation, None, first_id(keys.company_id), Authorization=authorization)
    assert response.header("RateLimit-Policy") == '"key";q=120;w=60'
    if scope in operation.opened_by:
        assert is_open(operation, response)
        assert bool(contexts.seen) == (operation.service not in ("", OWN_SERVICE))
    else:
        assert (response.status, response.code) == (403, "insufficient_scope")
        assert not contexts.seen


# The table of spec 5.4, written out again so that it does not follow from the code.
READ = set("/tickets /properties /units /assets /vendors /inspections /turns /meters /webhooks /whoami".split())
# Beyond the specification.
READ |= {"/changes", "/snapshots", "/events", "/reports", "/requests", "/sandbox", "/search", "/staff"}
# What a `webhook_only` key opens (spec 5.4, 5.5): these operations "only".
WEBHOOK_ONLY = {"GET /whoami", "GET /webhooks", "POST /webhooks", "DELETE /webhooks/{sub_id}"}


@every_route
def test_the_table_says_what_the_contract_says(operation: Operation) -> None:
    route = operation.route
    assert "/" + route.path.split("/")[1] in READ
    expected = {"read", "write"} if route.method == "GET" else {"write"}
    if f"{route.method} {route.path}" in WEBHOOK_ONLY:
        expected.add("webhook_only")
    assert operation.opened_by == expected


# Spec 7, written out again; a read-only path allows GET.
SPEC_ALLOWS = {
    "/tickets": "GET, POST",
    "/tickets/1": "GET, PATCH",
    "/tickets/1/photos": "POST",
    "/tickets/1/assignment": "PUT",
    "/tickets/1/comments": "POST",
    "/units/1/notice": "POST",
    "/units/1/move-in": "POST",
    "/webhooks": "GET, POST",
    "/webhooks/1": "DELETE",
    "/webhooks/1/filter": "GET, PUT",
    "/search": "GET",
    "/staff": "GET",
    "/units": "GET",
    "/units/1": "GET",
    "/turns/1": "GET",
    "/meters/1/readings": "GET, POST",
    "/changes/tickets": "GET",
    "/snapshots/tickets": "GET",
    "/whoami": "GET",
    "/openapi.json": "GET",
}


@pytest.mark.parametrize(("path", "allowed"), SPEC_ALLOWS.items())
async def test_verbs_are_those_of_the_contract_and_a_browser_is_allowed_none(
    api: Api, keys: Keys, path: str, allowed: str
) -> None:
    preflight = {"Origin": "https://app.test", "Access_Control_Request_Method": "POST"}
    for verb in set(VERBS) - set(allowed.split(", ")):
        response = await api.request(verb, path, keys.by_scope["write"], None, **preflight)
        assert (response.status, response.header("Allow")) == (405, allowed), verb
    for verb in allowed.split(", "):
        response = await api.request(verb, path, None, b"{}", **preflight)
        assert response.status == (200 if path == "/openapi.json" else 401)  # no CORS header: all responses are checked


@pytest.mark.parametrize("path", sorted({operation.route.path for operation in OPERATIONS}))
async def test_any_other_verb_is_answered_with_the_allowed_ones(api: Api, keys: Keys, path: str) -> None:
    allowed = [operation.route.method for operation in OPERATIONS if operation.route.path == path]
    concrete = "/".join("1" if part.startswith("{") else part for part in path.split("/"))
    resource = resource_of("/api/v1" + concrete)
    assert resource is not None and list(resource[0].operations) == allowed
    for verb in [verb for verb in VERBS if verb not in allowed]:
        for key in (None, keys.by_scope["read"], "mk_nonsense"):
            response = await api.request(verb, concrete, key)
            assert (response.status, response.header("Allow")) == (405, ", ".join(allowed)), verb
            if verb != "HEAD":
                assert response.code == "method_not_allowed"


@every_route
async def test_an_unknown_query_key_is_refused_everywhere(
    api: Api, operation: Operation, operator: Operator, contexts: Contexts
) -> None:
    key = await operator.key(await operator.sandbox())
    for query in ("nonsense=1", "Limit=1", "limit%20=1", "x", "x=", "%ff=1", "_=1", "page=2"):
        response = await api.request(
            operation.route.method, with_query(path_of(operation, 1), query), key, b"{}", Idempotency_Key="k"
        )
        assert (response.status, response.code) == (400, "invalid_request"), query
    for query in ("limit=1", "cursor=x"):
        if operation.kind not in ("list", "feed"):
            response = await api.request(operation.route.method, with_query(path_of(operation, 1), query), key)
            assert (response.status, response.code) == (400, "invalid_request"), query
    assert not contexts.seen


@every_route
async def test_an_empty_query_is_no_query(api: Api, operation: Operation, operator: Operator) -> None:
    company_id = await operator.sandbox()
    key = await operator.key(company_id)
    body = BODIES.get(operation.route.path, b"{}")
    for query in ("", "&", "#fragment"):
        path = with_query(path_of(operation, first_id(company_id)), query)
        response = await api.request(operation.route.method, path, key, body, Idempotency_Key="k")
        assert is_open(operation, response)


IDS = {name: operation for name, operation in ROUTES.items() if operation.id_field and operation.service != OWN_SERVICE}


@pytest.mark.parametrize("operation", IDS.values(), ids=IDS)
async def test_another_companys_record_answers_as_an_unknown_one(
    api: Api, operation: Operation, operator: Operator
) -> None:
    mine, theirs = await operator.company(), await operator.company()
    key = await operator.key(mine)
    answer = await ask(api, operation, key, first_id(mine))
    assert answer.status in (200, 201, 204)
    nobodys = await ask(api, operation, key, 900_000_000)
    assert (nobodys.status, nobodys.code) == (404, "not_found")
    foreign = [first_id(theirs), first_id(theirs) + RECORDS - 1]
    impossible = ["0", "-1", "+1", "1.0", "1e2", "0x1", "abc", "%20", "1%20", "1;2", "٣", "%00", "9" * 19, "9" * 5000]
    for entity_id in [*foreign, *impossible, 2**63 - 1, 2**63, 2**64]:
        text = str(entity_id).encode().decode("latin-1") if str(entity_id).isascii() else "%D9%A3"
        response = await ask(api, operation, key, text)
        assert response.without_id() == nobodys.without_id(), entity_id
    # The response as a whole reveals no more: the same headers, in the same order.
    assert [name for name, _ in (await ask(api, operation, key, foreign[0])).headers] == [
        name for name, _ in nobodys.headers
    ]
