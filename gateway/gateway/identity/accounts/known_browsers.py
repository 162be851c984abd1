"""Browsers in which a person has signed in before. The failures of others do not make such a browser wait.

A browser keeps a text for each of its last people. It says that the browser is one of this account, until when, and
nothing else: it signs nobody in. It is bound to the account's password, so it is over when that changes. Failures in
such a browser are counted for it alone.
"""

from __future__ import annotations

import datetime
import secrets
import struct

from asyncpg import Record

from gateway.identity.accounts.signed_texts import SignedTexts, unverified

KNOWN_FOR = datetime.timedelta(days=90)
PEOPLE_MAX = 5
"""How many people one browser is known for; a desk that more share knows the last ones."""
_PURPOSE = "known browser"
_SEPARATOR = "."
# The account, the browser's random id, and the end in seconds since 1970.
_CONTENT = struct.Struct(">q16sQ")


class KnownBrowsers:
    """Writes and reads the text that a browser keeps: one part for each person, the last one first."""

    def __init__(self, texts: SignedTexts) -> None:
        self._texts = texts

    def browser_of(self, text: str, account: Record, now: datetime.datetime) -> bytes | None:
        """The id of the browser that brings this text, if it is known for this account."""
        for part in _parts(text):
            content = self._texts.content(_PURPOSE, part, _bound_to(account))
            if content is not None and len(content) == _CONTENT.size:
                account_id, browser, ends_at = _CONTENT.unpack(content)
                if account_id == account["account_id"] and now.timestamp() < ends_at:
                    return bytes(browser)
        return None

    def text_for(self, text: str, account: Record, now: datetime.datetime) -> str:
        """The text that the browser keeps from now on: it is known for this account, and for others as before."""
        browser = self.browser_of(text, account, now) or secrets.token_bytes(16)
        ends_at = int((now + KNOWN_FOR).timestamp())
        account_part = self._texts.sign(
            _PURPOSE, _CONTENT.pack(account["account_id"], browser, ends_at), _bound_to(account)
        )
        others = [part for part in _parts(text) if _account_id(part) not in (None, account["account_id"])]
        return _SEPARATOR.join([account_part, *others][:PEOPLE_MAX])


def _parts(text: str) -> list[str]:
    return text.split(_SEPARATOR, PEOPLE_MAX)[:PEOPLE_MAX]


def _account_id(part: str) -> int | None:
    content = unverified(part)
    return int(_CONTENT.unpack(content)[0]) if len(content) == _CONTENT.size else None


def _bound_to(account: Record) -> str:
    """What changes with the account's password, and with nothing else."""
    changed_at = account["password_changed_at"]
    return "" if changed_at is None else str(changed_at.timestamp())
