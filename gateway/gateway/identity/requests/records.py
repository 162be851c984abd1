"""The details of a logged request, as they are stored."""

from __future__ import annotations

import msgspec


class Details(msgspec.Struct, array_like=True, gc=False):
    """What nobody filters by. Fields may be added at the end, with a default."""

    ids: tuple[str, ...]
    """The ids in the path."""
    query: str
    message: str
    field: str
    milliseconds: float
    bytes_in: int
    bytes_out: int
    address: str
    user_agent: str
    idempotency_key_hash: str
    is_replay: bool
    entity_type: str
    entity_id: int
    trace_id: str


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Details).decode
