"""SessionsService: its RPCs are in the other modules of this package, by subject."""

from __future__ import annotations

from gateway.identity.accounts.sessions.service.links import LinkRpcs
from gateway.identity.accounts.sessions.service.passkeys import PasskeyRpcs
from gateway.identity.accounts.sessions.service.sessions import SessionRpcs
from gateway.identity.accounts.sessions.service.sign_in import SignInRpcs
from gateway.identity.accounts.sessions.service.tokens import TokenRpcs


class SessionsService(SignInRpcs, PasskeyRpcs, LinkRpcs, SessionRpcs, TokenRpcs):
    """Signs people in and out, and speaks for those who are signed in."""
