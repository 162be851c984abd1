"""The browser's secret: a cookie from which the keys of one person, in one company, in one browser are made.

One key binds the person's forms (`kit.form_tokens`), another one seals what the browser stores of them. The cookie
stays for a day after the session has ended, so that the same person can go on after a new sign-in; signing out deletes
it, and all that was made with it is void. Nobody makes a key from the cookie alone: the console's own key is part of
each.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from makeready.identity.v1 import sessions_pb2

COOKIE = "__Host-makeready-forms"
AFTER_SESSION = datetime.timedelta(days=1)
EXACT_SECONDS = 3600
"""The end of a cookie may be so much earlier than it should be: it is not set anew with every page."""
_SEALED = re.compile(r"([A-Za-z0-9_-]{43})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class BrowserSecret:
    """text: 256 random bits; ends_at: in seconds since 1970."""

    text: str
    ends_at: int

    def sealed(self, site_key: bytes) -> str:
        """The cookie's value. site_key: the console's own."""
        seal = hmac.digest(site_key, f"browser\0{self.text}.{self.ends_at}".encode(), hashlib.sha256)
        return f"{self.text}.{self.ends_at}.{_encoded(seal)}"

    def key(self, site_key: bytes, purpose: str, who: sessions_pb2.Session | None) -> bytes:
        """32 bytes for one purpose. who: the person and their company; None: whoever is not signed in."""
        person = "" if who is None else f"{who.company_id} {who.actor}"
        return hmac.digest(site_key, f"{purpose}\0{self.text}\0{person}".encode(), hashlib.sha256)


def read(cookie: str, site_key: bytes, now: datetime.datetime) -> BrowserSecret | None:
    """The secret of a cookie; None if this console did not make it, or it is over."""
    match = _SEALED.fullmatch(cookie)
    if match is None:
        return None
    secret = BrowserSecret(match[1], int(match[2]))
    is_own = hmac.compare_digest(secret.sealed(site_key), cookie)
    return secret if is_own and secret.ends_at > now.timestamp() else None


def renewed(secret: BrowserSecret | None, who: sessions_pb2.Session | None, now: datetime.datetime) -> BrowserSecret:
    """The secret that the browser has from now on: the same one, with an end that follows the session's."""
    at = int(now.timestamp())
    ends_at = at if who is None else max(at, min(who.idle_ends_at.seconds or who.ends_at.seconds, who.ends_at.seconds))
    ends_at += int(AFTER_SESSION.total_seconds())
    if secret is None or (who is None and secret.ends_at - at < EXACT_SECONDS):
        return BrowserSecret(secrets.token_urlsafe(32), ends_at)
    is_exact = ends_at - EXACT_SECONDS < secret.ends_at <= ends_at
    if is_exact or (who is None and secret.ends_at < ends_at):
        return secret
    return BrowserSecret(secret.text, ends_at)


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
