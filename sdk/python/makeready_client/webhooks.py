"""Signatures of deliveries."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time

from makeready_client.errors import SignatureInvalid
from makeready_client.events import decoded
from makeready_client.models import Event

TOLERANCE_SECONDS = 300


def verify(body: bytes, header: str | None, secret: str, *, now: float | None = None) -> Event:
    """The event of a delivery.

    body: the raw bytes as they came, never JSON that was read and written again. header: the value of
    Service-Signature. secret: the subscription's, `whsec_…`. now: seconds since 1970; the clock's if left out. Raises
    errors.SignatureInvalid if it was not signed with the secret in the 300 seconds before or after.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError("body must be the raw bytes of the request")
    body = bytes(body)
    parts = [part.strip().partition("=") for part in (header or "").split(",")]
    times = [value for name, _, value in parts if name == "t"]
    digests = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]):
        raise SignatureInvalid("Service-Signature is missing or has no timestamp.")
    if abs((time.time() if now is None else now) - int(times[0])) > TOLERANCE_SECONDS:
        raise SignatureInvalid("The delivery was signed more than 300 seconds ago, or this machine's clock is wrong.")
    right = _digest(times[0], body, secret).encode()
    if not any(hmac.compare_digest(right, digest.encode(errors="replace")) for digest in digests):
        raise SignatureInvalid("The signature is not that of these bytes with this secret.")
    return decoded(body)


def new_secret() -> str:
    """A secret as subscriptions have them."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def signed(body: bytes, secret: str, event_id: str, *, now: float | None = None) -> dict[str, str]:
    """The headers that sign a delivery: Service-Signature, and those of the Standard Webhooks.

    A secret that is not `whsec_` and standard Base64 signs for the first alone; see `new_secret`.
    """
    timestamp = str(int(time.time() if now is None else now))
    headers = {"Service-Signature": f"t={timestamp},v1={_digest(timestamp, body, secret)}"}
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        return headers
    standard = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, "sha256")
    return headers | {
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(standard).decode()}",
    }


def _digest(timestamp: str, body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
