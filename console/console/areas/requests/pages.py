"""The pages of requests: what the company's keys asked in the last 30 days, and the answer to each."""

from __future__ import annotations

from aiohttp import web

from chassis.refusals import Refusal
from console.kit import filters, links
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.names import RPC as NAMES
from console.kit.names import names_of
from console.kit.texts import _
from makeready.identity.v1 import identity_pb2
from makeready.identity.v1 import requests_pb2 as pb

HERE = "API requests"
PATH = "/requests"
LIST = "identity.RequestLogService/ListRequests"
GET = "identity.RequestLogService/GetRequest"
KEYS = "identity.KeysService/ListKeys"
SHOWS, OF_ONE = (LIST, KEYS, NAMES), (GET, NAMES)
FILTERS = ("status", "code", "route", "key", "request_id")
STATUSES = (("4xx", "refused (4xx)"), ("5xx", "failed (5xx)"), ("2xx", _("succeeded (2xx)")), ("429", "too many (429)"))


async def list_requests(context: PageContext) -> web.StreamResponse:
    chosen = filters.texts(context.query, FILTERS)
    if chosen["request_id"]:
        return context.redirect(links.with_query("/events", {"request_id": chosen["request_id"]}), "")
    request = pb.ListRequestsRequest(
        company_id=context.session.person.company_id,
        status=chosen["status"],
        code=chosen["code"],
        route=chosen["route"],
        key_id=filters.number(chosen["key"]),
        before_id=filters.number(context.query.get("before", "")),
    )
    error, page = "", pb.ListRequestsResponse()
    try:
        page = await context.rpcs.call(LIST, request)
    except Refusal as refusal:
        if refusal.status != 422:
            raise
        error = refusal.message
    has_more = page.HasField("next_before_id")
    keys, names = await together(
        context.rpcs.panel(KEYS, identity_pb2.ListKeysRequest(company_id=request.company_id)),
        names_of(context.rpcs, (f"api_key:{logged.key_id}" for logged in page.requests)),
    )
    choices = {str(key.id): key.name or key.prefix for key in (keys.keys if keys.ok else ())}
    if chosen["key"]:
        choices.setdefault(chosen["key"], chosen["key"])
    return context.render(
        "requests/list.html", here=HERE, requests=page.requests, filters=chosen, statuses=STATUSES, error=error,
        names=names, keys=choices,
        older=links.with_query(PATH, {**chosen, "before": page.next_before_id}) if has_more else "",
        newest=links.with_query(PATH, chosen), is_later=request.HasField("before_id"),
    )  # fmt: skip


async def panel(context: PageContext) -> web.StreamResponse:
    """The request with an id, on the page of what it did."""
    request_id = context.query.get("request_id", "")
    response = await context.rpcs.call(GET, pb.GetRequestRequest(request_id=request_id))
    names = await names_of(context.rpcs, [f"api_key:{response.request.key_id}"])
    return context.render("requests/panel.html", request=response.request, names=names)
