"""Every write can be retried (spec 4.13): replays, mismatches, and requests that store no key."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from testkit.patience import until
from testkit.prepared import prepare_state

from .receiver import Receiver
from .system import Answer, System
from .writes import FILTER, NOBODYS, REPLAY, SUBSCRIPTION, TEST, TICKET, WRITES, House, Write, new_key, respelled

REQUESTS_MAX = 30  # of one test


@pytest.fixture(autouse=True)
def one_key(request: pytest.FixtureRequest) -> None:
    """Another API key is another scope of idempotency keys: no test changes its key half way."""
    if "house" in request.fixturenames:
        request.getfixturevalue("house").company.keep_key(REQUESTS_MAX)


every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


@pytest.fixture(scope="module")
def house(system: System) -> House:
    house = House(system, system.company("Retries", "--sandbox"))
    house.fill()
    return house


def replayed(answer: Answer) -> bool:
    """Whether the replay header is set; its only value is 1."""
    assert answer.headers["X-Idempotent-Replay"] in (None, "1")
    return "X-Idempotent-Replay" in answer.headers


def kept(answer: Answer) -> bytes:
    """The body of a first answer as replays repeat it: without a signing secret."""
    return re.sub(rb',"secret":"[^"]+"\}$', b"}", answer.body)


def test_each_write_of_the_document_is_held_to_these_tests(system: System) -> None:
    assert system.contract is not None
    paths = system.contract.document["paths"]
    asking = {
        f"{method.upper()} {path}"
        for path, item in paths.items()
        for method, operation in item.items()
        if any(parameter.get("$ref", parameter.get("name", "")).endswith(("Idempotency-Key", "IdempotencyKey"))
               for parameter in operation.get("parameters", []))
    }  # fmt: skip
    assert asking == set(WRITES)


# Replays


@every_write
def test_a_replay_is_the_first_answer_to_the_byte(house: House, write: Write) -> None:
    target, key = write.target(house), new_key()
    first = write.send(house, target, key)
    assert first.status == write.status and not replayed(first)
    for _ in range(3):
        again = write.send(house, target, key)
        assert (again.status, again.body) == (first.status, kept(first)) and replayed(again)


@every_write
def test_the_same_json_in_other_bytes_is_the_same_request(house: House, write: Write) -> None:
    target, key = write.target(house), new_key()
    first = write.send(house, target, key)
    for spelled in respelled(target.body):
        again = write.send(house, target, key, body=spelled)
        assert (again.status, again.body) == (first.status, kept(first)), spelled
        assert replayed(again)


def test_another_order_or_repetition_of_events_is_the_same_subscription(house: House) -> None:
    target, key = SUBSCRIPTION.target(house), new_key()
    first = SUBSCRIPTION.send(house, target, key)
    for events in (["pm.stale", "vendor.hold"], ["vendor.hold", "pm.stale", "vendor.hold"]):
        again = SUBSCRIPTION.send(house, target, key, body=target.body | {"events": events})
        assert again.body == kept(first) and replayed(again)


def test_a_replay_of_a_subscription_never_contains_the_secret(house: House) -> None:
    target, key = SUBSCRIPTION.target(house), new_key()
    first = SUBSCRIPTION.send(house, target, key).json
    assert list(first)[-1] == "secret" and first["secret"].startswith(first["secret_prefix"])
    again = SUBSCRIPTION.send(house, target, key)
    assert "secret" not in again.json and first["secret"].encode() not in again.body


def test_a_replay_depends_on_nothing_that_has_changed_since(house: House) -> None:
    system, company_id = house.system, str(house.company.company_id)
    writes = [(write, write.target(house), new_key()) for write in WRITES.values()]
    key = house.another_key()
    firsts = [write.send(house, target, idempotency_key, key) for write, target, idempotency_key in writes]

    house.company.import_rows("properties", [{"external_id": "P1", "name": "Oak Court", "address": "2 Elm St"}])
    units = [{"external_id": f"U{n}", "property": "P1", "name": f"Renamed {n}"} for n in range(120)]
    house.company.import_rows("units", units)
    system.makeready("wait")
    system.makeready("company", "update", company_id, "--photo-required")
    for (write, target, _), first in zip(writes, firsts, strict=True):
        if write is SUBSCRIPTION:
            gone = system.call("DELETE", f"/webhooks/{first.json['entity_id']}", house.key())
            assert gone.status == 204
        elif write in (TEST, REPLAY, FILTER):
            gone = system.call("DELETE", target.path.rpartition("/")[0], house.key())
            assert gone.status == 204
            assert write.send(house, target, new_key()).status == 404
        elif write.name == "PATCH /tickets/{ticket_id}":
            assert write.send(house, target, new_key(), body={"status": "On Hold"}).status == 200
            # The same change in a new request would now be refused.
            assert write.send(house, target, new_key()).status == 422
    for state, status in (("--inactive", 403), ("--active", 200)):
        system.makeready("company", "update", company_id, state)
        until(lambda status=status: system.get("/whoami", house.key("read")).status == status)  # type: ignore[misc]

    for (write, target, idempotency_key), first in zip(writes, firsts, strict=True):
        again = write.send(house, target, idempotency_key, key)
        assert (again.status, again.body) == (first.status, kept(first)) and replayed(again), write.name
    system.makeready("company", "update", company_id, "--no-photo-required")


# Other requests with the same key


def is_mismatch(answer: Answer) -> bool:
    return (answer.status, answer.status == 409 and answer.code) == (409, "idempotency_mismatch")


@pytest.mark.parametrize("write", [write for write in WRITES.values() if write.others], ids=lambda write: write.name)
def test_another_body_is_a_mismatch(house: House, write: Write) -> None:
    target, key = write.target(house), new_key()
    first = write.send(house, target, key)
    for other in write.others:
        assert is_mismatch(write.send(house, target, key, body=target.body | other)), other
    assert write.send(house, target, key).body == kept(first)


@pytest.mark.parametrize(
    "write", [write for write in WRITES.values() if write.of_a_record], ids=lambda write: write.name
)
def test_another_record_is_a_mismatch_whether_it_is_there_or_not(house: House, write: Write) -> None:
    target, key = write.target(house), new_key()
    assert write.send(house, target, key).status == write.status
    assert is_mismatch(write.send(house, write.target(house), key))
    nobodys = house.system.call(
        write.method, write.path_of(NOBODYS), house.key(), target.body, {"Idempotency-Key": key}
    )
    assert is_mismatch(nobodys)


@every_write
def test_a_used_key_is_a_mismatch_for_every_other_operation(house: House, write: Write) -> None:
    key, api_key = new_key(), house.another_key()
    target = write.target(house)
    first = write.send(house, target, key, api_key)
    assert first.status == write.status
    for other in WRITES.values():
        if other is write:
            continue
        unused = other.target(house)
        assert is_mismatch(other.send(house, unused, key, api_key)), other.name
        # The body is checked before the key.
        assert other.send(house, unused, key, api_key, b"{").code == "invalid_request"
        assert other.send(house, unused, new_key()).status == other.status, "a mismatch has no effect"
    again = write.send(house, target, key, api_key)
    assert again.body == kept(first) and replayed(again)


@every_write
def test_another_api_key_of_the_company_is_another_scope(house: House, write: Write) -> None:
    idempotency_key = new_key()
    target = write.target(house)
    first = write.send(house, target, idempotency_key)
    second = write.send(house, write.target(house), idempotency_key, house.another_key())
    assert second.status == write.status and not replayed(second)
    assert second.body != first.body
    assert write.send(house, target, idempotency_key).body == kept(first)


# Invalid keys, and requests that store no key


@every_write
def test_a_write_without_a_key_has_an_error_of_its_own(house: House, write: Write) -> None:
    target = write.target(house)
    sentences = set()
    for missing in (None, "", "   "):
        answer = write.send(house, target, missing)
        assert (answer.status, answer.code) == (400, "idempotency_key_required")
        sentences.add(answer.json["error"]["message"])
    (sentence,) = sentences
    assert "Idempotency-Key" in sentence
    for other in WRITES.values():
        if other is not write:
            refused = other.send(house, other.target(house), None)
            assert refused.json["error"]["message"] != sentence


@every_write
def test_a_key_is_1_to_64_printable_ascii_characters(house: House, write: Write) -> None:
    target = write.target(house)

    def send(*values: str | bytes) -> Answer:
        headers = dict(zip(("Idempotency-Key", "idempotency-key"), values, strict=False))
        return house.system.call(write.method, target.path, house.key(), target.body, headers)  # type: ignore[arg-type]

    bad = ("k" * 65, "k" * 4000, "clé".encode(), "clé".encode("latin-1"), "a\tb", b"a\x7fb", b"\xff" * 8)
    for bad_key in bad:
        answer = send(bad_key)
        assert (answer.status, answer.code) == (400, "invalid_request"), bad_key
    for two in (("a", "a"), ("a", "b"), ("", "")):
        answer = send(*two)
        assert answer.status == 400 and answer.code in ("invalid_request", "idempotency_key_required")
    longest = new_key().ljust(64, "~")
    assert send(longest).status == write.status
    assert replayed(send(f"  {longest}  ")), "blanks around a header's value are not of it"


@every_write
def test_a_refusal_holds_no_key(house: House, write: Write) -> None:
    target, key = write.target(house), new_key()
    api_key = house.another_key()
    status, refused = write.refused
    assert write.send(house, target, key, api_key, b"{").status == 400
    assert write.send(house, target, key, api_key, target.body | write.malformed).status == 400
    assert write.send(house, target, key, api_key, target.body | refused).status == status
    if write.unfit is not None:
        status, unfit = write.unfit
        assert write.send(house, target, key, api_key, target.body | unfit).status == status
    if write.of_a_record:
        headers = {"Idempotency-Key": key}
        nobodys = house.system.call(write.method, write.path_of(NOBODYS), api_key, target.body, headers)
        assert (nobodys.status, nobodys.code) == (404, "not_found")
    if write is TICKET:
        assert write.send(house, target, key, api_key, target.body | {"unit_id": NOBODYS}).status == 404
    answer = write.send(house, target, key, api_key)
    assert answer.status == write.status and not replayed(answer)


@every_write
def test_a_refusal_leaves_the_key_to_every_other_operation(house: House, write: Write) -> None:
    api_key, target = house.another_key(), write.target(house)
    status, refused = write.refused
    refusals = [(400, b"{"), (400, target.body | write.malformed), (status, target.body | refused)]
    if write.unfit is not None:
        status, unfit = write.unfit
        refusals.append((status, target.body | unfit))
    others = itertools.cycle(other for other in WRITES.values() if other.context != write.context)
    for (status, body), other in zip(refusals, others, strict=False):
        key = new_key()
        assert write.send(house, target, key, api_key, body).status == status
        answer = other.send(house, other.target(house), key, api_key)
        assert answer.status == other.status and not replayed(answer), other.name
        assert is_mismatch(write.send(house, target, key, api_key))


@every_write
def test_a_key_without_administrator_writes_nothing_but_what_is_about_webhooks(house: House, write: Write) -> None:
    nobody = house.system.mint(house.company.company_id, "write")
    target, key = write.target(house), new_key()
    if not write.needs_administrator:
        assert write.send(house, target, key, nobody).status == write.status
        return
    for body, code in (
        (target.body, "created_by_missing"),
        (target.body | {"unit_id": NOBODYS} if write is TICKET else target.body, "created_by_missing"),
        (target.body | write.malformed, "invalid_request"),
    ):
        assert write.send(house, target, key, nobody, body).code == code
    if write.of_a_record:
        path = write.path_of(NOBODYS)
        answer = house.system.call(write.method, path, nobody, target.body, {"Idempotency-Key": key})
        assert (answer.status, answer.code) == (422, "created_by_missing")
    assert write.send(house, target, key).status == write.status


# Restarts and expiry


@pytest.fixture
def own_house(receiver: Receiver, states: Path) -> Iterator[House]:
    """A separate system: the test restarts it with other settings and sweeps as of later times."""
    settings = {
        "WEBHOOKS_EGRESS_HOSTS": f"receiver.test=127.0.0.1:{receiver.port}",
        "WEBHOOKS_EGRESS_CA_FILE": str(receiver.authority_file),
    }
    prepare_state(states / "retries")
    system = System(states / "retries", MAKEREADY_DEMO="0", **settings)
    try:
        system.start()
        house = House(system, system.company("Retries", "--sandbox"))
        house.fill()
        yield house
    finally:
        system.stop()


def later(instant: datetime, days: int, seconds: int) -> str:
    return (instant + timedelta(days=days, seconds=seconds)).isoformat()


@pytest.mark.slow
def test_a_key_is_kept_for_30_days_whatever_starts_anew(own_house: House) -> None:
    house, system = own_house, own_house.system
    began = datetime.now(UTC)
    sent = {write.name: (write, write.target(house), new_key()) for write in WRITES.values()}
    firsts = {name: write.send(house, target, key) for name, (write, target, key) in sent.items()}
    assert {name: first.status for name, first in firsts.items()} == {w.name: w.status for w in WRITES.values()}

    # First the destination's name has no public address any more, then the vault is missing as well.
    _, target, key = sent[SUBSCRIPTION.name]
    egress = {name: system.settings.pop(name) for name in list(system.settings) if name.startswith("WEBHOOKS_")}
    system.stop()
    system.start()
    again = SUBSCRIPTION.send(house, target, key)
    assert again.body == kept(firsts[SUBSCRIPTION.name]) and replayed(again)
    assert SUBSCRIPTION.send(house, target, new_key()).code == "invalid_destination_url"
    assert is_mismatch(SUBSCRIPTION.send(house, target, key, body=target.body | {"events": ["pm.stale"]}))
    system.stop()
    system.start(WEBHOOKS_VAULT_KEYS="")
    for body in (target.body, target.body | {"events": []}, b"{", b""):
        answer = SUBSCRIPTION.send(house, target, key, body=body)
        assert (answer.status, answer.code) == (503, "vault_unavailable"), body
    assert SUBSCRIPTION.send(house, target, None, body=b"{").code == "idempotency_key_required"
    assert SUBSCRIPTION.send(house, target, "k" * 65, body=b"{").code == "invalid_request"
    assert SUBSCRIPTION.send(house, target, key, house.key("read")).code == "insufficient_scope"
    system.stop()
    system.settings |= egress
    system.start()

    ahead = ("sweep", "retention", "--yes-for-all-companies", "--now")
    almost = system.makeready(*ahead, later(began, 30, -1))
    assert list(almost) == ["now", "idempotency_keys", "days"]  # the demo company's own keys may expire here
    assert almost["now"] == later(began, 30, -1).replace("+00:00", "Z")
    for name, (write, target, key) in sent.items():
        again = write.send(house, target, key)
        assert again.body == kept(firsts[name]) and replayed(again)

    assert system.makeready(*ahead, later(datetime.now(UTC), 30, 1))["idempotency_keys"] >= len(sent)
    for write, target, key in sent.values():
        answer = write.send(house, write.target(house), key)
        assert answer.status == write.status and not replayed(answer), write.name
        assert is_mismatch(write.send(house, target, key))
    assert "0 idempotency keys forgotten, 0 days" in system.run("sweep", "retention").stdout
    # Today's events expire 30 days after the end of today.
    assert system.makeready(*ahead, later(datetime.now(UTC), 31, 0))["days"] >= 1
