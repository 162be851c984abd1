"""The name of the record in an event's body."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_webhooks.administration.subjects import CHARACTERS_MAX, about
from svc_webhooks.rules.events import STORED_EVENTS

EXAMPLES = Path(__file__).resolve().parents[3] / "openapi" / "examples"


@pytest.mark.parametrize(
    ("event", "example", "name"),
    [
        ("ticket.created", "Ticket", "#318 Kitchen tap drips"),
        ("turn.status_changed", "Turn", "Maple Court 204"),
        ("turn.task.stale", "StaleTurnTask", "Maple Court 204: Paint"),
        ("pm.stale", "StalePmTask", "Test the fire pump"),
        ("inspection.stale", "Inspection", "#14 Spring walk, east building"),
        ("property.notice.published", "PropertyNotice", "Water off on Thursday"),
        ("vendor.hold", "Vendor", "Lakeside Plumbing"),
    ],
)
def test_each_record_of_the_contract_has_a_name(event: str, example: str, name: str) -> None:
    data = json.loads((EXAMPLES / f"{example}.json").read_text())
    assert about(event, json.dumps({"event": event, "data": data}).encode()) == name


@given(st.sampled_from(STORED_EVENTS), st.dictionaries(st.sampled_from(["title", "unit", "name", "subject"]), st.none()
       | st.integers() | st.text() | st.lists(st.text()) | st.dictionaries(st.just("name"), st.text())))  # fmt: skip
def test_any_body_has_a_name_or_none(event: str, data: dict[str, Any]) -> None:
    assert len(about(event, json.dumps({"data": data}).encode())) <= CHARACTERS_MAX


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"data": []}', b'{"data": {}}', b"[" * 100_000])
def test_a_body_without_a_record_has_no_name(body: bytes) -> None:
    assert about("ticket.created", body) == ""
