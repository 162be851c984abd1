"""A peer on aiohttp and asyncpg by hand, in one process."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable

import uvloop
from aiohttp import web

from peer.by_hand import ByHand

Handler = Callable[[web.Request], Awaitable[web.Response]]


def application() -> web.Application:
    routes = ByHand()

    def handler(name: str, *, has_body: bool = False) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            body = await request.read() if has_body else b""
            ticket_id = request.match_info.get("ticket_id", "")
            status, reply, headers = await routes.answer(name, request.headers, ticket_id, request.query, body)
            return web.Response(body=reply, status=status, headers=headers)

        return handle

    async def opened(_app: web.Application) -> AsyncIterator[None]:
        await routes.open()
        yield
        await routes.close()

    app = web.Application()
    app.cleanup_ctx.append(opened)
    app.router.add_get("/api/v1/tickets", handler("list"))
    app.router.add_get("/api/v1/tickets/{ticket_id}", handler("get"))
    app.router.add_post("/api/v1/tickets", handler("create", has_body=True))
    app.router.add_patch("/api/v1/tickets/{ticket_id}", handler("change", has_body=True))
    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    web.run_app(
        application(), host=options.host, port=options.port, print=None, access_log=None, loop=uvloop.new_event_loop()
    )


if __name__ == "__main__":
    main()
