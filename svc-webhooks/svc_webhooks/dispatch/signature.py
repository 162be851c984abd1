"""The signature over the bytes of a request's body (spec 6.4)."""

import hashlib
import hmac


def service_signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header Service-Signature: HMAC-SHA256 over `<timestamp>.<body>`, in hex."""
    signed = b"%d." % timestamp + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"
