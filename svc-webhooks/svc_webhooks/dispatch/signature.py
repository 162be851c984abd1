"""The signatures over the bytes of a request's body: our own (spec 6.4), and that of Standard Webhooks next to it."""

import base64
import hashlib
import hmac
import re
import uuid
from collections.abc import Mapping

from chassis.runtime import traces
from svc_webhooks.vault.keyring import SECRET_MARK

SIGNATURE = "Service-Signature"
WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
# 32 bytes in standard base64. Secrets of earlier releases have 43 characters, some of them outside this alphabet.
_STANDARD_KEY = re.compile(re.escape(SECRET_MARK) + r"([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)")


def service_signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header Service-Signature: HMAC-SHA256 over `<timestamp>.<body>`, in hex."""
    signed = b"%d." % timestamp + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def standard_signature(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """The value of the header webhook-signature: HMAC-SHA256 over `<id>.<timestamp>.<body>`, in base64. Its key is what
    the secret's base64 encodes. Empty for a secret of an earlier release: libraries would decode another key of it."""
    match = _STANDARD_KEY.fullmatch(secret)
    if match is None:
        return ""
    digest = hmac.digest(base64.b64decode(match[1]), b"%b.%d.%b" % (event_id.encode(), timestamp, body), "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


def signature_headers(secret: str, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Every header that proves an attempt genuine: those of Standard Webhooks all together, or none of them."""
    headers = {SIGNATURE: service_signature(secret, timestamp, body)}
    if standard := standard_signature(secret, event_id, timestamp, body):
        headers |= {WEBHOOK_ID: event_id, WEBHOOK_TIMESTAMP: str(timestamp), WEBHOOK_SIGNATURE: standard}
    return headers


def traceparent_of(stored: str | None, event_id: uuid.UUID, subscription_id: int, number: int) -> str:
    """The traceparent of an attempt: in the event's trace, with a separate parent id, which is the same at each call.
    `stored` is that of the event; without one, the event's id is the trace's."""
    trace = stored or f"00-{event_id.hex}-{event_id.hex[:16]}-01"
    digest = hashlib.blake2b(f"{event_id}:{subscription_id}:{number}".encode(), digest_size=8)
    return traces.with_parent(trace, digest.hexdigest())


def request_headers(
    signatures: Mapping[str, str], number: int, request_id: str, traceparent: str, replay_id: int | None = None
) -> dict[str, str]:
    """The headers of an attempt that do not depend on the connection. signatures: empty for none; number, traceparent:
    the attempt's; replay_id: of the replay that it is made for."""
    headers = {"Content-Type": "application/json", **signatures, "Service-Attempt": str(number)}
    if replay_id is not None:
        headers["Service-Replay"] = str(replay_id)
    if request_id:
        headers["X-Request-Id"] = request_id
    headers[traces.HEADER] = traceparent
    return headers
