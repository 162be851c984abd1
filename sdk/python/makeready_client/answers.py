"""What the answers of the API have beside their own fields."""

from __future__ import annotations

import msgspec


class Answer(msgspec.Struct, dict=True):
    """The record that a call returns. In a page, only the page has these properties."""

    @property
    def request_id(self) -> str | None:
        """Names the request in the logs of the API; quote it when you ask for help."""
        return self.__dict__.get("_request_id")

    @property
    def replayed(self) -> bool:
        """Whether an earlier request with the same Idempotency-Key had the effect, and this is its answer again."""
        return bool(self.__dict__.get("_replayed", False))


class Envelope(msgspec.Struct, dict=True):
    """An event, as deliveries and `GET /events` carry it."""

    @property
    def raw(self) -> bytes:
        """The bytes that the envelope was read from."""
        return bytes(self.__dict__.get("_raw", b""))
