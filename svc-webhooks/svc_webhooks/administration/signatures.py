"""Why a Service-Signature header is genuine or not (spec 6.4). Pure."""

import hmac
import json
import re

from svc_webhooks.dispatch.signature import service_signature

SIGNATURE_SECONDS_MAX = 300  # spec 6.4
CHECKED_BYTES_MAX = 1024 * 1024

VERDICTS = ("genuine", "stale", "reserialized", "wrong_secret", "other_body", "malformed")
GENUINE, STALE, RESERIALIZED, WRONG_SECRET, OTHER_BODY, MALFORMED = VERDICTS

_SIGNATURE = re.compile(r"t=(0|[1-9]\d{0,11}),v1=([0-9a-f]{64})")


def signed_at(signature: str) -> int | None:
    """The Unix time in a Service-Signature header; None if the header is malformed."""
    match = _SIGNATURE.fullmatch(signature.strip())
    return None if match is None else int(match[1])


def event_id_in(body: bytes) -> str:
    """The event_id that a body names; empty if it names none."""
    document = _json(body)
    event_id = document.get("event_id") if isinstance(document, dict) else None
    return event_id if isinstance(event_id, str) else ""


def verdict_of(signature: str, body: bytes, stored: bytes | None, secret: str, now: float) -> str:
    """stored: the body that was sent, if the subscription has a delivery of that event."""
    at = signed_at(signature)
    if at is None:
        return MALFORMED

    def signs(text: bytes) -> bool:
        return hmac.compare_digest(service_signature(secret, at, text), signature.strip())

    if signs(body):
        return GENUINE if abs(now - at) <= SIGNATURE_SECONDS_MAX else STALE
    if stored is None or not signs(stored):
        return WRONG_SECRET
    return RESERIALIZED if _json(body) == _json(stored) else OTHER_BODY


def _json(body: bytes) -> object:
    """None if it is no JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
