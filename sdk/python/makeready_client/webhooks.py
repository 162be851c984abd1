"""Signatures of deliveries."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from makeready_client.errors import SignatureInvalid
from makeready_client.events import decoded
from makeready_client.models import Event

TOLERANCE_SECONDS = 300
# 32 bytes in standard base64.
STANDARD_SECRET = re.compile("whsec_[A-Za-z0-9+/]{43}=")


class HeaderItems(Protocol):
    """The headers of a request, as most frameworks have them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


Headers: TypeAlias = HeaderItems | Iterable[tuple[str, str] | tuple[bytes, bytes]]
"""A mapping, or pairs of text or of bytes, as ASGI has them."""


def verify(
    body: bytes, headers: Headers | str | None, secret: str | Sequence[str], *, now: float | None = None
) -> Event:
    """The event of a delivery.

    body: the raw bytes as they came, never JSON that was read and written again. headers: the request's, of which
    Service-Signature is verified, or those of Standard Webhooks where it is missing; or the value of Service-Signature
    alone. secret: the subscription's, `whsec_…`; several while it is rotated. now: seconds since 1970; the clock's if
    left out. Raises errors.SignatureInvalid if it was not signed with a secret in the 300 seconds before or after.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError("body must be the raw bytes of the request")
    body = bytes(body)
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not all(secrets) or not secrets:
        raise ValueError("no secret")
    signature = _read(headers)
    if abs((time.time() if now is None else now) - int(signature.timestamp)) > TOLERANCE_SECONDS:
        raise SignatureInvalid("The delivery was signed more than 300 seconds ago, or this machine's clock is wrong.")
    right = [digest for key in secrets if (digest := signature.digest(body, key))]
    received = [digest.encode(errors="replace") for digest in signature.digests]
    if not any(hmac.compare_digest(expected.encode(), digest) for expected in right for digest in received):
        raise SignatureInvalid("The signature is not that of these bytes with this secret.")
    return decoded(body)


@dataclass(frozen=True, slots=True)
class _Signature:
    """What the headers say: by Service-Signature where webhook_id is None, else by Standard Webhooks."""

    timestamp: str
    digests: list[str]
    webhook_id: str | None = None

    def digest(self, body: bytes, secret: str) -> str | None:
        """The right one; None where the secret has no key for the scheme."""
        if self.webhook_id is None:
            return _digest(self.timestamp, body, secret)
        return _standard(self.webhook_id, self.timestamp, body, secret)


def _read(headers: Headers | str | None) -> _Signature:
    if headers is None or isinstance(headers, str):
        return _ours(headers or "")
    values = _by_name(headers)
    if service_signature := values.get("service-signature"):
        return _ours(service_signature)
    webhook_id, timestamp = values.get("webhook-id"), values.get("webhook-timestamp", "")
    if not webhook_id or not re.fullmatch("[0-9]{1,12}", timestamp):
        raise SignatureInvalid("The request has no signature.")
    signatures = values.get("webhook-signature", "").split(" ")
    return _Signature(timestamp, [text[3:] for text in signatures if text.startswith("v1,")], webhook_id)


def _by_name(headers: Headers) -> dict[str, str]:
    """The values by their names in lower case. Raises SignatureInvalid for what is no headers."""
    try:
        pairs = list(headers.items() if hasattr(headers, "items") else headers)
        return {_text(name).lower(): _text(value) for name, value in pairs}
    except (TypeError, ValueError, AttributeError):
        raise SignatureInvalid("The headers are neither a mapping nor a list of pairs.") from None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _ours(header: str) -> _Signature:
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]):
        raise SignatureInvalid("Service-Signature is missing or has no timestamp.")
    return _Signature(times[0], [value for name, _, value in parts if name == "v1"])


def new_secret() -> str:
    """A secret as subscriptions have them."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def signed(body: bytes, secret: str, event_id: str, *, now: float | None = None) -> dict[str, str]:
    """The headers that sign a delivery: Service-Signature, and those of the Standard Webhooks.

    A secret that is not `whsec_` and standard Base64 signs for the first alone; see `new_secret`.
    """
    timestamp = str(int(time.time() if now is None else now))
    headers = {"Service-Signature": f"t={timestamp},v1={_digest(timestamp, body, secret)}"}
    if standard := _standard(event_id, timestamp, body, secret):
        headers |= {"webhook-id": event_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{standard}"}
    return headers


def _digest(timestamp: str, body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _standard(event_id: str, timestamp: str, body: bytes, secret: str) -> str | None:
    """The digest of Standard Webhooks; None for a secret of before 2026-11-23, which has no key for it."""
    if not STANDARD_SECRET.fullmatch(secret):
        return None
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return base64.b64encode(hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, "sha256")).decode()
