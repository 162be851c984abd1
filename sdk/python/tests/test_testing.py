"""What integrators' tests are given: records, signed deliveries, and an API without a network."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any

import msgspec
import pytest

from makeready_client import AsyncMakeready, Makeready, Mirror, errors, models, webhooks
from makeready_client.answers import Answer, Envelope, Model
from makeready_client.testing import SECRET, FakeApi, record, signed

UNIT = {"unit_id": 4, "title": "Tap", "category": "Leak"}


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def client(api: FakeApi) -> Makeready:
    return Makeready("mk_any", base_url=api.base_url, transport=api)


RECORDS = [
    model
    for _, model in inspect.getmembers(models, inspect.isclass)
    if issubclass(model, Answer | Envelope) and model not in (Answer, Envelope, models.UnknownEvent)
]


@pytest.mark.parametrize("model", RECORDS)
def test_every_answer_and_event_has_an_example(model: type[Model]) -> None:
    example = record(model)
    assert type(example) is model and msgspec.json.decode(example.to_json(), type=model) == example


def test_a_record_has_what_is_named_and_else_the_example() -> None:
    ticket = record(models.Ticket, title="Tap", property={"name": "Elm Court"}, unit=None)
    assert (ticket.title, ticket.property.name, ticket.property.id, ticket.unit) == ("Tap", "Elm Court", 1, None)
    event = record(models.TicketStatusChangedEvent, data={"entity_id": 3}, change={"from_": "On Hold"})
    assert (event.data.entity_id, event.change.from_) == (3, "On Hold")
    with pytest.raises(TypeError, match=r"Ticket\.property has no field nam"):
        record(models.Ticket, property={"nam": "x"})
    with pytest.raises(msgspec.ValidationError, match="entity_id"):
        record(models.Ticket, entity_id="17")


@pytest.mark.parametrize("model", models.EVENTS.values())
def test_a_signed_delivery_is_verified_by_both_signatures_and_for_300_seconds(model: Any) -> None:
    event = record(model)
    body, headers = signed(event)
    assert webhooks.verify(body, headers, SECRET) == event
    assert webhooks.verify(body, {key: headers[key] for key in headers if key.startswith("webhook-")}, SECRET) == event
    with pytest.raises(errors.SignatureInvalid):
        webhooks.verify(body, headers, webhooks.new_secret())
    old = signed(event, now=time.time() - 301)
    with pytest.raises(errors.SignatureInvalid):
        webhooks.verify(old.body, old.headers, SECRET)


def test_what_is_written_is_read_again(api: FakeApi, client: Makeready) -> None:
    unit = record(models.Unit, entity_id=9, name="Loft", property={"id": 7, "name": "Elm Court"})
    api.add(unit)
    ticket = client.tickets.create(**UNIT | {"unit_id": 9}, idempotency_key="one")  # type: ignore[arg-type]
    assert (ticket.title, ticket.status, ticket.unit.name, ticket.property.id) == ("Tap", "Open", "Loft", 7)  # type: ignore[union-attr]
    again = client.tickets.create(**UNIT | {"unit_id": 9}, idempotency_key="one")  # type: ignore[arg-type]
    assert again == ticket and again.replayed
    done = client.tickets.change_status(ticket.entity_id, status="Completed", note="A new washer is in now")
    assert done.completed_at and client.tickets.get(ticket.entity_id) == done
    assert client.tickets.change_status(ticket.entity_id, status="Open").completed_at is None
    assert [listed.entity_id for listed in client.tickets.list(unit_id=9)] == [ticket.entity_id]
    subscription = client.webhooks.create(destination_url="https://you.example/hooks", events=["vendor.hold"])
    assert subscription.secret and "secret" not in next(iter(client.webhooks.list())).to_dict()
    client.webhooks.delete(subscription.entity_id)
    with pytest.raises(errors.NotFound):
        client.webhooks.delete(subscription.entity_id)


def test_lists_have_pages_and_mirrors_copies(api: FakeApi, client: Makeready) -> None:
    for number in range(100, 107):
        api.add(record(models.Unit, entity_id=number))
    assert [len(page.data) for page in client.units.list(limit=3).pages()] == [3, 3, 2]
    copy: dict[int, bytes | None] = {}
    mirror = Mirror(client, lambda batch: copy.update((c.entity_id, c.record) for c in batch.changes), kinds=["units"])
    mirror.run()
    assert len(copy) == 8
    api.add(record(models.Unit, entity_id=107))
    api.remove(record(models.Unit, entity_id=100))
    assert mirror.run() == {"units": 2} and copy[100] is None and copy[107]
    events = client.events.follow()
    assert [event.event for _, event in zip(range(10), events, strict=False)] == list(models.EVENTS)


def test_refusals_are_those_of_the_contract(api: FakeApi, client: Makeready) -> None:
    for code in ("vault_unavailable", "rate_limited"):
        api.refuse_next(code)
    assert client.with_options(retries=1).whoami() and len(api.requests) == 3
    api.refuse_next("created_by_missing")
    with pytest.raises(errors.CreatedByMissing):
        client.tickets.create(**UNIT)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no such code"):
        api.refuse_next("nonsense")
    scoped = FakeApi(keys={"mk_read": "read"})
    reader = Makeready("mk_read", base_url=scoped.base_url, transport=scoped)
    assert reader.whoami().key.scope == "read"
    with pytest.raises(errors.InsufficientScope):
        reader.tickets.create(**UNIT)  # type: ignore[arg-type]
    with pytest.raises(errors.Unauthorized):
        Makeready("mk_other", base_url=scoped.base_url, transport=scoped).whoami()


def test_coroutines_have_the_same_api(api: FakeApi) -> None:
    async def titles() -> list[str]:
        async with AsyncMakeready("mk_any", base_url=api.base_url, transport=api) as client:
            return [ticket.title async for ticket in client.tickets.list()]

    assert asyncio.run(titles()) == ["Kitchen tap drips"]
