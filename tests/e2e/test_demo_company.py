"""The demo company covers the API: lists, snapshots, feeds, each enum value, each nullable field null and filled."""

from __future__ import annotations

import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from .system import Company, System

FETCHES_A_KEY = 90  # of the 120 a minute

_IMPORTED = "only imports make such records, and find them by their external_id"
_BY_NAME = "the parts of a property are made by their names, in the rows of its units"
# Nullable fields that the demo cannot have null, by schema name and field path, each with the reason.
NEVER_NULL = {
    "Ticket.ticket_number": "every ticket gets the next number of its property",
    "Ticket.assigned_vendor.external_id": _IMPORTED,
    **{
        f"{kind}.external_id": _IMPORTED
        for kind in ("Property", "Unit", "Asset", "Inspection", "Turn", "Meter", "Reading")
    },
    **{
        f"{kind}.property.external_id": _IMPORTED for kind in ("Ticket", "Unit", "Asset", "Inspection", "Turn", "Meter")
    },
    **{f"{kind}.unit.external_id": _IMPORTED for kind in ("Ticket", "Inspection", "Turn", "Meter")},
    "StaffMember.external_id": _IMPORTED,
}
NEVER_FILLED = {f"Unit.{part}.external_id": _BY_NAME for part in ("building", "floor", "floorplan")}
# Enum values that no record of the demo can have.
NEVER_SEEN: dict[tuple[str, str], str] = {
    ("Turn.source", "staff"): _IMPORTED,
}


@dataclass
class Seen:
    """The values found in the records, by path, and those that the schemas allow."""

    nullable: set[str] = field(default_factory=set)
    enums: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    null: set[str] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)
    values: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set))


class Contract:
    """The published document's schemas of records."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def lists(self) -> Iterator[tuple[str, str]]:
        """The path and the record schema of every list."""
        for path, verbs in self._document["paths"].items():
            if "get" not in verbs or path.startswith("/webhooks") or path in self.snapshots():
                continue
            content = verbs["get"]["responses"]["200"]["content"]["application/json"]["schema"]
            page = self._resolved(content)[1].get("properties", {})
            if "next_cursor" in page and "resume_cursor" not in page:
                yield path, self._resolved(page["data"]["items"])[0]

    def snapshots(self) -> list[str]:
        """The path of every snapshot."""
        return [path for path in self._document["paths"] if path.startswith("/snapshots/")]

    def feeds(self) -> list[str]:
        """The path of every feed of changes."""
        return [path for path in self._document["paths"] if path.startswith("/changes/")]

    def fetch_of(self, path: str) -> str | None:
        """The path for fetching a record of a list, without the id; None if there is none."""
        return path if any(other.startswith(f"{path}/{{") for other in self._document["paths"]) else None

    def declare(self, name: str, seen: Seen) -> None:
        """Records the values that a schema allows."""
        self._declare(name, self._document["components"]["schemas"][name], seen)

    def look(self, name: str, record: Any, seen: Seen) -> None:
        """Records the values of a record."""
        self._look(name, self._document["components"]["schemas"][name], record, seen)

    def _resolved(self, schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        name = schema.get("$ref", "").rpartition("/")[2]
        return name, self._document["components"]["schemas"][name] if name else schema

    def _choices(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        return [self._resolved(choice)[1] for choice in schema.get("anyOf", [schema])]

    def _declare(self, path: str, schema: dict[str, Any], seen: Seen) -> None:
        for choice in self._choices(schema):
            kinds = choice.get("type", [])
            if "null" in ([kinds] if isinstance(kinds, str) else kinds):
                seen.nullable.add(path)
            seen.enums[path] |= {value for value in choice.get("enum", []) if value is not None}
            for name, inner in choice.get("properties", {}).items():
                self._declare(f"{path}.{name}", inner, seen)

    def _look(self, path: str, schema: dict[str, Any], value: Any, seen: Seen) -> None:
        (seen.null if value is None else seen.filled).add(path)
        if isinstance(value, str):
            seen.values[path].add(value)
        for choice in self._choices(schema):
            if isinstance(value, dict):
                for name, inner in choice.get("properties", {}).items():
                    self._look(f"{path}.{name}", inner, value[name], seen)


def pages_of(demo: Company, path: str, key: str, limit: int = 200) -> Iterator[dict[str, Any]]:
    """The pages of a feed, from its beginning until nothing more waits."""
    query: dict[str, object] = {"limit": limit}
    while True:
        answer = demo.system.get(path, key, **query)
        assert answer.status == 200, answer
        page = answer.json
        yield page
        if page["next_cursor"] is None:
            return
        assert len(page["data"]) == limit and page["next_cursor"] == page["resume_cursor"]
        query["cursor"] = page["next_cursor"]


def by_kind(records: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The records of each list by the last word of its path, which its snapshot and its feed have, too. The list of
    staff has neither."""
    lists = {path.rpartition("/")[2]: list_records for path, list_records in records.items() if path != "/staff"}
    assert len(lists) == len(records) - 1
    return lists


@pytest.fixture(scope="module")
def demo(system: System) -> Company:
    system.makeready("wait")
    printed = system.demo
    keys = printed["keys"] | {"read": system.mint(printed["company_id"], "read", printed["administrator"]["email"])}
    return Company(system, printed["company_id"], printed["administrator"]["email"], keys)


@pytest.fixture(scope="module")
def contract(system: System) -> Contract:
    return Contract(system.get("/openapi.json").json)


@pytest.fixture(scope="module")
def records(demo: Company, contract: Contract) -> dict[str, list[dict[str, Any]]]:
    """Every record of every list, by the list's path."""
    by_path: dict[str, list[dict[str, Any]]] = {}
    for path, _ in sorted(contract.lists(), key=lambda listed: listed[0].count("/")):
        parent, brace, below_parent = path.partition("/{")
        if not brace:
            by_path[path] = list(demo.walk(path))
            continue
        below = below_parent.partition("}")[2]
        by_path[path] = [
            record
            for parent_record in by_path[parent]
            for record in demo.walk(f"{parent}/{parent_record['entity_id']}{below}")
        ]
    return by_path


@pytest.fixture(scope="module")
def seen(contract: Contract, records: dict[str, list[dict[str, Any]]]) -> Seen:
    noted = Seen()
    for path, schema in contract.lists():
        contract.declare(schema, noted)
        for record in records[path]:
            contract.look(schema, record, noted)
    return noted


def test_no_list_is_empty(records: dict[str, list[dict[str, Any]]]) -> None:
    assert {"/tickets", "/properties", "/units", "/assets", "/vendors"} <= records.keys()
    assert [path for path, rows in records.items() if not rows] == []


def test_every_enum_value_is_there(seen: Seen) -> None:
    assert len(seen.enums["Ticket.category"]) == 21 and len(seen.enums["Unit.unit_status"]) == 5
    missing = {(path, value) for path, values in seen.enums.items() for value in values - seen.values[path]}
    assert missing == set(NEVER_SEEN)


def test_every_nullable_field_is_null_somewhere_and_filled_somewhere(seen: Seen) -> None:
    assert seen.nullable - seen.null == set(NEVER_NULL)
    assert seen.nullable - seen.filled == set(NEVER_FILLED)


def test_every_record_is_fetched_as_it_is_listed(
    demo: Company, contract: Contract, records: dict[str, list[dict[str, Any]]]
) -> None:
    fetched, key = 0, ""
    for path, rows in records.items():
        if contract.fetch_of(path) is None:
            continue
        for record in rows:
            if fetched % FETCHES_A_KEY == 0:
                key = demo.system.mint(demo.company_id, "read", demo.email)
            fetched += 1
            answer = demo.system.get(f"{path}/{record['entity_id']}", key)
            assert answer.status == 200 and answer.json == record, path
    assert fetched > 400


def test_every_snapshot_has_the_records_of_its_list(
    demo: Company, contract: Contract, records: dict[str, list[dict[str, Any]]]
) -> None:
    listed, key = by_kind(records), demo.system.mint(demo.company_id, "read", demo.email)
    snapshots = {path.rpartition("/")[2]: path for path in contract.snapshots()}
    assert snapshots.keys() == listed.keys()
    for kind, path in snapshots.items():
        answer = demo.system.get(path, key)
        assert answer.status == 200 and [json.loads(line) for line in answer.body.splitlines()] == listed[kind], path
        last = "after_meter_id=1&after_id" if kind == "readings" else "after_id"
        assert demo.system.get(f"{path}?{last}={2**63 - 1}", key).status == 200, path


def test_every_feed_has_the_records_of_its_list_and_no_other(
    demo: Company, contract: Contract, records: dict[str, list[dict[str, Any]]]
) -> None:
    listed, key = by_kind(records), demo.system.mint(demo.company_id, "read", demo.email)
    feeds = {path.rpartition("/")[2]: path for path in contract.feeds()}
    assert feeds.keys() == listed.keys()
    for kind, path in feeds.items():
        changes = [change for page in pages_of(demo, path, key) for change in page["data"]]
        by_id = {change["entity_id"]: change["record"] for change in changes}
        assert len(by_id) == len(changes)
        # Nothing is gone for one who begins: the demo company's walks that are not served were never seen.
        assert not any(change["gone"] for change in changes), path
        assert by_id == {record["entity_id"]: record for record in listed[kind]}, path


def test_the_events_are_numbered_without_a_gap(demo: Company) -> None:
    pages = list(pages_of(demo, "/events", demo.system.mint(demo.company_id, "read", demo.email), limit=10))
    numbers = [number for page in pages for number in page["positions"]]
    assert len(pages) > 1 and numbers == list(range(1, len(numbers) + 1))
    ids = [[event["event_id"] for event in page["data"]] for page in pages]
    assert [len(page_ids) for page_ids in ids] == [len(page["positions"]) for page in pages]
    assert len(set().union(*ids)) == len(numbers)


def test_of_the_inspections_only_those_of_operations_are_served(
    demo: Company, records: dict[str, list[dict[str, Any]]]
) -> None:
    inspections = {record["external_id"]: record for record in records["/inspections"]}
    titles = {str(record["title"]) for record in inspections.values()}
    assert not any("confidential" in title for title in titles)
    assert any("Acceptance walk" in title for title in titles)
    legacy = inspections["I-001"]
    assert (legacy["status"], legacy["title"], legacy["inspection_number"]) == ("Completed", None, None)
    assert legacy in demo.walk("/inspections", status="Completed")


def test_the_words_of_the_residents_arrive_as_they_wrote_them(records: dict[str, list[dict[str, Any]]]) -> None:
    everything = json.dumps(records, ensure_ascii=False)
    names = {unicodedata.name(character, "") for character in set(everything)}
    for script in ("CJK", "HIRAGANA", "ARABIC", "HEBREW", "DEVANAGARI", "HANGUL", "THAI", "CYRILLIC", "GREEK"):
        assert any(name.startswith(script) for name in names), script
    assert {"COMBINING ACUTE ACCENT", "RIGHT-TO-LEFT OVERRIDE", "ZERO WIDTH JOINER", "ZERO WIDTH SPACE"} <= names
    tickets = records["/tickets"]
    assert max(len(ticket["title"]) for ticket in tickets) == 150
    assert max(len(ticket["description"] or "") for ticket in tickets) > 5000
    assert any("<script>alert('hello')</script>" in (ticket["description"] or "") for ticket in tickets)
    assert any("\r\n" in (ticket["description"] or "") for ticket in tickets)
