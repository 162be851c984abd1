"""The application: routes, error envelope, and the headers of every response."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from peer import changes, errors, tickets
from peer.database import engine


class EveryResponse:
    """X-Request-Id and Cache-Control. Plain ASGI: the decorator form costs several times as much."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = scope["request_id"] = uuid.uuid4().hex

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["Cache-Control"] = "no-store"
            await send(message)

        await self.app(scope, receive, with_headers)


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)
app.add_middleware(EveryResponse)
app.include_router(tickets.router, prefix="/api/v1")
app.include_router(changes.router, prefix="/api/v1")
errors.install(app)


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}
