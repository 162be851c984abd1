"""The signature over the bytes of a request's body (spec 6.4)."""

import hashlib
import hmac

SIGNATURE = "Service-Signature"


def service_signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header Service-Signature: HMAC-SHA256 over `<timestamp>.<body>`, in hex."""
    signed = b"%d." % timestamp + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def request_headers(signature: str, number: int, request_id: str, replay_id: int | None = None) -> dict[str, str]:
    """The headers of an attempt that do not depend on the connection. signature: empty for none; number: the
    attempt's; replay_id: of the replay that it is made for."""
    headers = {"Content-Type": "application/json"}
    if signature:
        headers[SIGNATURE] = signature
    headers["Service-Attempt"] = str(number)
    if replay_id is not None:
        headers["Service-Replay"] = str(replay_id)
    if request_id:
        headers["X-Request-Id"] = request_id
    return headers
