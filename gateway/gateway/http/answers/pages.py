"""What lists and feeds share: their query, and what their cursors are bound to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from chassis.refusals import Refusal
from gateway.http import filters
from gateway.http.answers.requests import ApiRequest
from gateway.http.bearer import Caller


class PageRequest(NamedTuple):
    """The RPC's request for a page, complete but for the position at which the page begins."""

    message: Any
    texts: dict[str, str]
    """The query's values by key."""
    bound_to: bytes
    """See `bound_to`."""


def page_request(request: ApiRequest) -> PageRequest:
    """The ids, the limit and the filters of a request for a page. Raises Refusal."""
    operation = request.operation
    message = operation.request()
    filters.set_ids(message, operation.ids, request.ids)
    texts = filters.pairs(request.query, operation.allowed_query, operation.may_be_empty)
    message.limit = filters.limit(texts.get("limit"))
    values = filters.read_filters(operation.filters, texts)
    for name, value in values.items():
        if isinstance(value, int | str):
            setattr(message, name, value)
        else:
            getattr(message, name).CopyFrom(value)
    path = operation.route.path
    for name in operation.ids:
        path = path.replace(f"{{{name}}}", str(getattr(message, name)))
    return PageRequest(message, texts, bound_to(path, request.caller, values))


def bound_to(path: str, caller: Caller, values: Mapping[str, Any]) -> bytes:
    """What a cursor is bound to: the company, the path with the id of the record that owns the list, the filters."""
    return f"{caller.identity.company_id} {path}?{filters.canonical(values)}".encode()


def no_cursor() -> Refusal:
    return Refusal(
        400,
        "invalid_cursor",
        "cursor was not issued for this list with these filters; start again without a cursor.",
    )
