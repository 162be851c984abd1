"""What is sent: the envelope's exact bytes (spec 6.2) and the signature over them (spec 6.4)."""

import hashlib
import hmac

import msgspec

_encode = msgspec.json.Encoder().encode


def envelope(*, event_id: str, event: str, occurred_at: str, company_id: int, data: bytes, change: bytes) -> bytes:
    """The seven keys in their order. `data` and `change` are laid in byte for byte, an empty change as null.

    Built once, when the event is stored: every attempt sends the same bytes.
    """
    return b"".join(
        (
            b'{"schema_version":1,"event_id":',
            _encode(event_id),
            b',"event":',
            _encode(event),
            b',"occurred_at":',
            _encode(occurred_at),
            b',"company_id":',
            _encode(company_id),
            b',"data":',
            data,
            b',"change":',
            change or b"null",
            b"}",
        )
    )


def service_signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header Service-Signature: HMAC-SHA256 over `<timestamp>.<body>`, in hex."""
    signed = b"%d." % timestamp + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"
