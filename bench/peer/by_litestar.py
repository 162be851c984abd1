"""A peer on Litestar and asyncpg by hand, in one process; uvicorn serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Litestar, Request, Response, get, patch, post

from peer.by_hand import ByHand

AnyRequest = Request[Any, Any, Any]
_routes = ByHand()


async def _answer(name: str, request: AnyRequest, ticket_id: str = "", body: bytes = b"") -> Response[bytes]:
    status, reply, headers = await _routes.answer(name, request.headers, ticket_id, request.query_params, body)
    return Response(reply, status_code=status, headers=headers, media_type=headers.pop("Content-Type"))


@get("/tickets")
async def list_tickets(request: AnyRequest) -> Response[bytes]:
    return await _answer("list", request)


@get("/tickets/{ticket_id:str}")
async def get_ticket(request: AnyRequest, ticket_id: str) -> Response[bytes]:
    return await _answer("get", request, ticket_id)


@post("/tickets")
async def create_ticket(request: AnyRequest) -> Response[bytes]:
    return await _answer("create", request, body=await request.body())


@patch("/tickets/{ticket_id:str}")
async def change_status(request: AnyRequest, ticket_id: str) -> Response[bytes]:
    return await _answer("change", request, ticket_id, await request.body())


@asynccontextmanager
async def lifespan(_app: Litestar) -> AsyncIterator[None]:
    await _routes.open()
    yield
    await _routes.close()


app = Litestar(
    [list_tickets, get_ticket, create_ticket, change_status], path="/api/v1", lifespan=[lifespan], openapi_config=None
)
