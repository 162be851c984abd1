"""The envelope of an event: the exact bytes that every attempt sends (spec 6.2)."""

import msgspec

_encode = msgspec.json.Encoder().encode


def envelope(*, event_id: str, event: str, occurred_at: str, company_id: int, data: bytes, change: bytes) -> bytes:
    """The seven keys in their order. `data` and `change` go in byte for byte; an empty change becomes null.

    The envelope is built once, when the event is stored, so every attempt sends the same bytes.
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
