"""RPCs that one page calls, as the person who is signed in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from chassis.auth.clients import ServiceUnavailable
from chassis.refusals import Refusal
from console.kit.browser_session import BrowserSession
from console.kit.calls import PANEL_SECONDS, Calls, Panel, panel

AGAIN_SECONDS = 0.1
"""Between two tries of an action whose same form is being processed."""


@dataclass(frozen=True, slots=True)
class PageRpcs:
    """allowed: those of the page's line in pages.py. seconds: how long each may take. is_queued: the browser sends
    an act that has waited for a network."""

    calls: Calls
    session: BrowserSession
    allowed: Collection[str]
    seconds: float
    is_queued: bool = False

    async def call(self, rpc: str, request: Message, *, service: str = "", deadline_seconds: float = 0.0) -> Any:
        """The response: `await context.rpcs.call("webhooks.DeliveriesService/GetDelivery", pb.…)`.

        service: which one to ask for an RPC of `common`. Raises Refusal and ServiceUnavailable; a page that catches
        neither shows the error's page.
        """
        assert rpc in self.allowed, f"pages.py does not list {rpc} for this page"
        seconds = deadline_seconds or self.seconds
        give_up = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                return await self.calls(self.session.text, rpc, request, service=service, deadline_seconds=seconds)
            except Refusal as refusal:
                # Without script a browser shows the answer to the last click of a double click: that of the first.
                is_late = asyncio.get_running_loop().time() + AGAIN_SECONDS > give_up
                if refusal.code != "idempotency_in_progress" or (is_late and not self.is_queued):
                    raise
                if self.is_queued:  # no refusal: it goes on waiting, and the browser sends it again
                    raise ServiceUnavailable(refusal.message) from refusal
            await asyncio.sleep(AGAIN_SECONDS)

    def panel(self, rpc: str, request: Message, *, service: str = "") -> Awaitable[Panel[Any]]:
        """As `call`, for a part of the page that may be missing."""
        return panel(self.call(rpc, request, service=service, deadline_seconds=PANEL_SECONDS))
