"""What the RPCs of every subject stand on."""

from __future__ import annotations

from gateway.identity.accounts.sessions.service.attempts import SignInAttempts
from gateway.identity.accounts.sessions.service.dependencies import Dependencies
from gateway.identity.accounts.sessions.service.starts import SessionStarts


class Rpcs:
    """RPCs of SessionsService."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._attempts = SignInAttempts(dependencies)
        self._starts = SessionStarts(dependencies)
