"""Helpers of tests that send: a client with configured addresses, and a resolver with scripted answers."""

import asyncio
from collections.abc import Sequence
from typing import Any

from svc_webhooks.http_client.client import HttpClient

from .receivers import HOST, Authority

URL = f"https://{HOST}/hook?a=b"
USER_AGENT = "Makeready-Webhooks/1"


def http_client(authority: Authority | None, override: dict[str, tuple[str, int]], **options: Any) -> HttpClient:
    return HttpClient(
        overrides=override, ca_file=authority.file if authority else None, user_agent=USER_AGENT, **options
    )


class Resolver:
    """Returns scripted answers and records the lookups."""

    def __init__(self, *answers: Sequence[str] | Exception | float) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, _party: int = 0) -> Sequence[str]:
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            return []
        return answer
