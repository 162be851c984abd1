"""Calls of TicketViewsService, and tickets to look for."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

from makeready.tickets.v1 import ticket_views_pb2 as pb
from testkit.patience import PATIENCE_SECONDS
from testkit.services import RunningService


class Views:
    """Calls the RPCs of TicketViewsService as somebody."""

    def __init__(self, service: RunningService, who: Any) -> None:
        self.service, self.who = service, who

    async def __call__(self, rpc: str, **values: Any) -> Any:
        request = getattr(pb, f"{rpc}Request")(**values)
        async with self.service.channel() as channel:
            return await self.service.call(channel, request, self.who)

    async def titles(self, **values: Any) -> list[str]:
        """The titles of the first page."""
        return [ticket.title for ticket in (await self("SearchTickets", **values)).tickets]

    async def wait_for(self, many: int, **values: Any) -> None:
        """Until a search finds as many tickets, at most 200."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len((await self("SearchTickets", limit=200, **values)).tickets) != many:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def every(self, *, limit: int = 7, **values: Any) -> list[int]:
        """The ids of all pages, which are read forwards, and then backwards to check."""
        pages: list[list[int]] = []
        answer = await self("SearchTickets", limit=limit, **values)
        assert not answer.HasField("previous")
        while True:
            pages.append([ticket.ticket_id for ticket in answer.tickets])
            if not answer.HasField("next"):
                break
            answer = await self("SearchTickets", limit=limit, after=answer.next, **values)
        for page in reversed(pages[:-1]):
            answer = await self("SearchTickets", limit=limit, before=answer.previous, **values)
            assert [ticket.ticket_id for ticket in answer.tickets] == page
        assert not answer.HasField("previous")
        assert all(len(page) == limit for page in pages[:-1])
        return [ticket_id for page in pages for ticket_id in page]


def stamp(at: datetime.datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
