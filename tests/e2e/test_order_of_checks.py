"""A request that fails several checks gets the error of the first: path, verb, bearer, company, rate, scope, sandbox,
query, Idempotency-Key, body, the key's earlier use, administrator, record, rules. (test_retries.py checks the place of
the vault in this order, with a system without one.)"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from testkit.patience import until

from .system import Answer, Company, System
from .writes import NOBODYS, TICKET, WRITES, House, Target, Write, new_key

FRESH_SECONDS = 50  # a key stays exhausted for a minute after the first of its requests


@dataclass(frozen=True)
class Draft:
    """A request to be sent. traits: the faults of its API key."""

    method: str
    path: str
    body: bytes
    query: str = ""
    idempotency_key: str | None = field(default_factory=new_key)
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Check:
    """A check: its name, its answer, and a function that makes a request fail it (None if this write cannot)."""

    name: str
    status: int
    code: str
    fail: Callable[[Draft, Write, Scene], Draft | None]


@dataclass
class Scene:
    """A sandbox, an inactive company, a live one, and API keys with any combination of faults, minted on demand."""

    house: House
    closed: Company
    live: Company
    used: dict[str, tuple[str, Target]] = field(default_factory=dict)
    keys: dict[frozenset[str], tuple[str, float]] = field(default_factory=dict)

    def key(self, traits: frozenset[str]) -> str:
        """An API key with these traits: revoked, inactive, exhausted, read, live, nobody."""
        if not traits:
            return self.house.key()
        key, minted_at = self.keys.get(traits, ("", 0.0))
        # An exhausted key recovers within the minute, so it is replaced in time. All others are reused.
        if not key or ("exhausted" in traits and time.monotonic() - minted_at > FRESH_SECONDS):
            minted_at = time.monotonic()  # on a slow machine its requests take a good part of the minute
            key = self._made(traits)
            self.keys[traits] = key, minted_at
        return key

    def _made(self, traits: frozenset[str]) -> str:
        system, company = self.house.system, self.live if "live" in traits else self.house.company
        company = self.closed if "inactive" in traits else company
        words = ["--scope", "read" if "read" in traits else "write"]
        words += [] if "nobody" in traits else ["--administrator", company.email]
        if "exhausted" in traits and company is self.closed:
            self._set_active(True)
        minted = system.makeready("key", "mint", str(company.company_id), *words)
        key: str = minted["key"]
        if "exhausted" in traits:
            while system.get("/whoami", key).status != 429:
                pass
        if company is self.closed:
            self._set_active(False)
        if "revoked" in traits:
            system.makeready("key", "revoke", str(minted["key_id"]))
            until(lambda: system.get("/whoami", key).code == "key_revoked")
        return key

    def _set_active(self, active: bool) -> None:
        system, company = self.house.system, self.closed
        system.makeready("company", "update", str(company.company_id), "--active" if active else "--inactive")
        until(lambda: system.get("/whoami", company.keys["read"]).status == (200 if active else 403))

    def send(self, draft: Draft) -> Answer:
        key = self.key(draft.traits)
        headers = {} if draft.idempotency_key is None else {"Idempotency-Key": draft.idempotency_key}
        return self.house.system.call(draft.method, draft.path + draft.query, key, draft.body, headers)


def _with(**changes: Any) -> Callable[[Draft, Write, Scene], Draft]:
    return lambda draft, _write, _scene: replace(draft, **changes)


def _trait(name: str) -> Callable[[Draft, Write, Scene], Draft]:
    return lambda draft, _write, _scene: replace(draft, traits=draft.traits | {name})


def _changed(change: dict[str, Any], draft: Draft) -> Draft:
    """The body with a change; a body that is not valid JSON stays as it is."""
    try:
        document = json.loads(draft.body)
    except ValueError:
        return draft
    return replace(draft, body=json.dumps(document | change).encode())


def _malformed(draft: Draft, write: Write, _scene: Scene) -> Draft:
    return _changed(write.malformed, draft)


def _refused(draft: Draft, write: Write, _scene: Scene) -> Draft | None:
    status, change = write.refused
    return _changed(change, draft) if status == 422 else None


def _used(draft: Draft, write: Write, scene: Scene) -> Draft | None:
    """Uses an Idempotency-Key that was already used for another request."""
    if write.name not in scene.used:
        target, key = write.target(scene.house), new_key()
        api_key = scene.house.another_key()
        assert write.send(scene.house, target, key, api_key).status == write.status
        scene.keys[frozenset({f"used by {write.name}"})] = api_key, 0.0
        scene.used[write.name] = key, target
    key, target = scene.used[write.name]
    return replace(draft, idempotency_key=key, traits=draft.traits | {f"used by {write.name}"})


def _nobody(draft: Draft, write: Write, _scene: Scene) -> Draft | None:
    return replace(draft, traits=draft.traits | {"nobody"}) if write.needs_administrator else None


def _live(draft: Draft, write: Write, _scene: Scene) -> Draft | None:
    return replace(draft, traits=draft.traits | {"live"}) if "/sandbox/" in write.name else None


def _unknown_record(draft: Draft, write: Write, _scene: Scene) -> Draft | None:
    if write is TICKET:
        return _changed({"unit_id": NOBODYS}, draft)
    return replace(draft, path=write.path_of(NOBODYS)) if write.of_a_record else None


def _unfit(draft: Draft, write: Write, _scene: Scene) -> Draft | None:
    return None if write.unfit is None else _changed(write.unfit[1], draft)


CHECKS = (
    Check("path", 404, "not_found", lambda draft, _w, _s: replace(draft, path=f"/nowhere{draft.path}")),
    Check("verb", 405, "method_not_allowed", _with(method="DELETE")),
    Check("bearer", 401, "key_revoked", _trait("revoked")),
    Check("company", 403, "company_inactive", _trait("inactive")),
    Check("rate", 429, "rate_limited", _trait("exhausted")),
    Check("scope", 403, "insufficient_scope", _trait("read")),
    Check("sandbox", 404, "not_found", _live),
    Check("query", 400, "invalid_request", _with(query="?nonsense=1")),
    Check("key", 400, "idempotency_key_required", _with(idempotency_key=None)),
    Check("body", 400, "invalid_request", _malformed),
    Check("enum", 422, "", _refused),
    Check("use", 409, "idempotency_mismatch", _used),
    Check("administrator", 422, "created_by_missing", _nobody),
    Check("record", 404, "not_found", _unknown_record),
    Check("rules", 422, "", _unfit),
)
OF_API_KEYS = ("bearer", "company", "rate", "scope", "sandbox", "administrator")
NEIGHBOURS = tuple(itertools.pairwise(OF_API_KEYS))


@pytest.fixture(scope="module")
def scene(system: System) -> Scene:
    house = House(system, system.company("Order of checks", "--sandbox"))
    house.fill()
    return Scene(house, system.company("Closed"), system.company("Live"))


def refusal(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_of_two_checks_that_fail_the_earlier_answers(scene: Scene, write: Write) -> None:
    target = write.target(scene.house)
    whole = Draft(write.method, target.path, json.dumps(target.body).encode())
    told_by = {}
    for check in CHECKS:
        draft = check.fail(whole, write, scene)
        if draft is not None:
            told_by[check.name] = refusal(scene.send(draft))
            assert told_by[check.name] == (check.status, check.code or told_by[check.name][1]), check.name
    pairs = [pair for pair in itertools.combinations(CHECKS, 2) if {check.name for check in pair} <= told_by.keys()]
    walked = 0
    for earlier, later in pairs:
        if not _can_meet(earlier.name, later.name):
            continue
        second = later.fail(whole, write, scene)
        draft = earlier.fail(second, write, scene) if second is not None else None
        assert draft is not None
        assert refusal(scene.send(draft)) == told_by[earlier.name], f"{earlier.name} before {later.name}"
        walked += 1
    assert walked > 40
    write.target(scene.house)  # waits until another advance may begin
    # The refused requests left nothing behind: the valid one succeeds with the same Idempotency-Key.
    answer = scene.send(whole)
    assert answer.status == write.status and "X-Idempotent-Replay" not in answer.headers


def _can_meet(earlier: str, later: str) -> bool:
    """Whether the test tries a request that fails both checks."""
    met = {earlier, later}
    if met == {"body", "enum"}:
        return False  # one check: it reports the first fault in the order of the fields
    # Of the checks on the API key only neighbours are tried, and the rest follows: minting such a key takes long.
    if (earlier, later) in itertools.combinations(OF_API_KEYS, 2) and (earlier, later) not in NEIGHBOURS:
        return False
    # The API key of an earlier use is valid, so it cannot fail a check on the API key.
    return "use" not in met or met.isdisjoint(OF_API_KEYS)
