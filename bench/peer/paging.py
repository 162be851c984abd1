"""Signed cursors, bound to company and filters."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from peer import settings
from peer.refusals import ApiError


def _signature(company_id: int, last_id: int, filters: str) -> str:
    signed = f"{company_id}/{last_id}/{filters}".encode()
    return hmac.new(settings.CURSOR_KEY, signed, hashlib.sha256).hexdigest()[:32]


def make_cursor(company_id: int, last_id: int, filters: str) -> str:
    text = f"{last_id}.{_signature(company_id, last_id, filters)}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def read_cursor(company_id: int, cursor: str | None, filters: str) -> int:
    """The id after which the page starts."""
    if cursor is None:
        return 0
    try:
        last_id, _, signature = base64.urlsafe_b64decode(cursor).decode().partition(".")
        if hmac.compare_digest(signature, _signature(company_id, int(last_id), filters)):
            return int(last_id)
    except (ValueError, binascii.Error):
        pass
    raise ApiError(400, "invalid_cursor", "The cursor was not issued by this service for this list.")
