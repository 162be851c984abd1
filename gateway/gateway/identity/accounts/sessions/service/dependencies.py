"""The dependencies that all RPCs of SessionsService share."""

from __future__ import annotations

from dataclasses import dataclass

from chassis.auth.identity import TokenSigner
from chassis.db.database import Database
from chassis.schedule.instants import Clock
from gateway.identity.accounts.attempts import Attempts
from gateway.identity.accounts.known_browsers import KnownBrowsers
from gateway.identity.accounts.passkeys import Passkeys
from gateway.identity.accounts.passwords import Passwords
from gateway.identity.accounts.people import AccountAudit
from gateway.identity.accounts.signed_texts import SignedTexts
from gateway.identity.accounts.totp import TotpSecrets


@dataclass(frozen=True, slots=True)
class Dependencies:
    """One per process."""

    database: Database
    issuer: TokenSigner
    audit: AccountAudit
    clock: Clock
    passwords: Passwords
    totp: TotpSecrets
    passkeys: Passkeys
    texts: SignedTexts
    attempts: Attempts
    browsers: KnownBrowsers
