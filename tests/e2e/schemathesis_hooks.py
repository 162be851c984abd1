"""Hooks of the Schemathesis run: facts that no schema can express, and keys in turn, as each may send 120 requests a
minute.

Schemathesis loads this file in its own process; test_schemathesis.py passes the existing records in CONTRACT_WORLD.
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import unicodedata
from collections.abc import Iterable
from typing import Any

import schemathesis
from schemathesis import Case, GenerationMode, HookContext

WORLD: dict[str, Any] = json.loads(os.environ["CONTRACT_WORLD"])
KEYS = itertools.cycle(WORLD["keys"])
VACANT = iter(WORLD["vacant_unit_ids"])
SUBSCRIPTIONS = iter(WORLD["subscription_ids"])
TESTED = itertools.cycle(WORLD["tested_ids"])
REPLAYED = iter(WORLD["replayed_ids"])
LINES = "application/x-ndjson"
NEXT_YEAR = f"{datetime.date.today().year + 1}-01-01"


@schemathesis.hook
def before_load_schema(_context: HookContext, raw_schema: dict[str, Any]) -> None:
    """Makes an answer in lines the array that its document calls its content: see `lines`."""
    for item in raw_schema["paths"].values():
        answers = item["get"]["responses"]["200"]["content"] if "get" in item else {}
        if LINES in answers:
            answers[LINES] = {"schema": answers[LINES]["schema"]["contentSchema"]}


@schemathesis.deserializer(LINES)
def lines(_context: schemathesis.DeserializationContext, response: schemathesis.Response) -> list[Any]:
    return [json.loads(line) for line in response.content.splitlines()]


@schemathesis.auth(refresh_interval=None)
class InTurn:
    """Authenticates every case with the next key."""

    def get(self, _case: Case[Any], _context: schemathesis.AuthContext) -> str:
        return str(next(KEYS))

    def set(self, case: Case[Any], data: str, _context: schemathesis.AuthContext) -> None:
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def before_call(_context: HookContext, case: Case[Any], _kwargs: dict[str, Any]) -> None:
    """Makes well-formed requests valid: existing records, fields that fit. Intended faults stay."""
    body: Any = case.body
    if isinstance(body, dict) and str(body.get("destination_url", "")).lower().startswith("https://"):
        body["destination_url"] = WORLD["destination_url"]  # a host that exists
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    make_query_true(case.query or {}, case.path)
    if isinstance(body, dict):
        make_true(body, case.path)
    for name in case.path_parameters or {}:
        if case.path.endswith("/move-in"):
            case.path_parameters[name] = next(VACANT)
        elif case.path.endswith("/test"):
            case.path_parameters[name] = next(TESTED)
        elif case.path.endswith("/replay"):
            case.path_parameters[name] = next(REPLAYED)
        elif case.method == "DELETE" and case.meta.phase.name.value != "stateful":
            case.path_parameters[name] = next(SUBSCRIPTIONS, case.path_parameters[name])
        elif case.path.endswith("/notice") or (name in WORLD["ids"] and case.meta.phase.name.value != "stateful"):
            case.path_parameters[name] = WORLD["ids"][name]  # a record that exists; of units, one with a resident


def visible(value: Any) -> Any:
    """The value with a letter in each text that counts as blank, such as control characters alone."""
    if isinstance(value, dict):
        return {name: visible(member) for name, member in value.items()}
    if isinstance(value, list):
        return [visible(member) for member in value]
    if isinstance(value, str) and value and all(unicodedata.category(sign)[0] in "CMZ" for sign in value):
        return value[:-1] + "x"
    return value


def make_query_true(query: dict[str, Any], path: str) -> None:
    """Makes a well-formed query valid."""
    query.pop("cursor", None)  # only the API issues cursors
    query.pop("wait", None)  # a feed at its end would wait for as long
    if path.startswith("/reports/"):  # months in their order, and few of them by day
        query.update({name: "2026-01" for name in ("from_month", "to_month") if name in query})
    if "ticket_number" in query:
        query.setdefault("property_id", 1)
    if path == "/events" and query.keys() & {"entity_type", "entity_id"}:
        query.setdefault("entity_type", "ticket")
        query.setdefault("entity_id", WORLD["ids"]["ticket_id"])
    if path == "/snapshots/readings" and query:
        query.setdefault("after_meter_id", 0)
        query.setdefault("after_id", 0)


def make_true(body: dict[str, Any], path: str) -> None:
    """Makes a well-formed body valid."""
    if path == "/sandbox/clock":
        body.clear()
        body["advance_by"] = "PT0S"
    body.update(visible(body))
    set_apart(body.get("readings", ()))
    if "destination_url" in body:
        body["destination_url"] = WORLD["destination_url"]
    if "event" in body:  # which record goes with the event of a trigger, no schema says
        event = body.pop("event")
        body.clear()
        body["event"] = event
    if "photo_url" in body:  # a schema has no word for an absolute http or https address
        body["photo_url"] = "https://photos.test/1.jpg"
    if "unit_id" in body:
        body["unit_id"] = WORLD["ids"]["unit_id"]
        body.pop("asset_id", None)
    if "since" in body:
        body["since"] = "2026-01-01T00:00:00Z"
        if body.get("until"):
            body["until"] = "2026-02-01T00:00:00Z"
        if body.get("events"):
            body["events"] = WORLD["events"]
    if body.get("status"):
        fit_each_other(body)
    if "move_out_date" in body:  # after a date that is over, a sweep empties the unit, and nobody can give notice
        body["move_out_date"] = max(body["move_out_date"], NEXT_YEAR)
    if "parties" in body:
        body.pop("predecessor_transition_id", None)
        if body.get("lease_end_date"):
            body["lease_end_date"] = max(body["lease_end_date"], body["lease_start_date"])


def set_apart(readings: Iterable[dict[str, Any]]) -> None:
    """Gives each reading another period, which ends after it starts."""
    for number, reading in enumerate(readings):
        reading["period_start"] = f"2026-01-01T00:00:{number % 60:02}Z"
        reading["period_end"] = f"2026-02-01T00:{number // 60:02}:00Z"


def fit_each_other(change: dict[str, Any]) -> None:
    """Reduces a status change to the fields of its status, with notes of enough words."""
    fitted = dict(change)
    change.clear()
    change["status"] = fitted["status"]
    if fitted["status"] == "Completed":
        change["note"] = noted(fitted.get("note"))
    if fitted["status"] == "Cancelled":
        change["cancellation_reason_code"] = fitted.get("cancellation_reason_code") or "see_notes"
        if change["cancellation_reason_code"] == "see_notes":
            change["cancellation_notes"] = noted(fitted.get("cancellation_notes"))


def noted(text: str | None) -> str:
    return f"It was seen to today {text or ''}"[:20_000]


@schemathesis.hook
def after_call(_context: HookContext, case: Case[Any], response: Any) -> None:
    """Fails on a 429, which would test nothing."""
    assert response.status_code != 429, f"{case.method} {case.path}: too few keys"
