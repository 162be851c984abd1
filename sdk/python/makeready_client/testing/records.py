"""Records, events and deliveries for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from makeready_client import webhooks
from makeready_client.answers import Envelope, Model
from makeready_client.events import decoded
from makeready_client.models import Event
from makeready_client.testing.contract import example

SECRET = "whsec_dGVzdHMtb2YtaW50ZWdyYXRvcnMtaGF2ZS10aGlzLTE="  # noqa: S105 - of tests
"""A signing secret."""

M = TypeVar("M", bound=Model)


def record(model: type[M], **overrides: Any) -> M:
    """The contract's example of a record or event, with other values: `record(models.Ticket, title="Tap")`.

    An object in it keeps what is not named: `property={"id": 3}`. Raises TypeError for a field that it does not have,
    and msgspec.ValidationError for a value of another type.
    """
    name = model.__name__
    fields = _merged(example(name), overrides, name)
    raw = msgspec.json.encode(fields)
    typed_record: Any = decoded(raw) if issubclass(model, Envelope) else msgspec.json.decode(raw, type=model)
    return typed_record  # type: ignore[no-any-return]


def _merged(fields: dict[str, Any], overrides: Mapping[str, Any], within: str) -> dict[str, Any]:
    for name, value in overrides.items():
        key = name.removesuffix("_") if name not in fields else name  # `from_`, as the models have it
        if key not in fields:
            raise TypeError(f"{within} has no field {name}; it has {', '.join(fields)}")
        inner = fields[key]
        if isinstance(value, Mapping) and isinstance(inner, dict):
            fields[key] = _merged(inner, value, f"{within}.{key}")
        else:
            fields[key] = value
    return fields


class Delivery(NamedTuple):
    """A request as subscriptions' URLs get it: POST `body` with `headers`."""

    body: bytes
    headers: dict[str, str]


def signed(event: Event, secret: str = SECRET, *, now: float | None = None, attempt: int = 1) -> Delivery:
    """The delivery of an event, as `webhooks.verify` accepts it with the secret.

    now: when it is signed, in seconds since 1970; the clock's if left out. More than 300 seconds ago is refused.
    """
    body = event.raw or msgspec.json.encode(event)
    headers = {"Content-Type": "application/json", "User-Agent": "Makeready-Webhooks/1"}
    headers["Service-Attempt"] = str(attempt)
    return Delivery(body, headers | webhooks.signed(body, secret, event.event_id, now=now))
