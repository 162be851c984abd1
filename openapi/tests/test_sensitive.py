"""No field that may say who somebody is can be added without the mark by which the log of requests redacts it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reference.document import made
from svc_occupancy.residencies.queries import NOTICE_WORDS
from svc_occupancy.residencies.tables import PERSONAL
from svc_tickets.tickets.rules import texts

SCHEMAS = made()["components"]["schemas"]
# What says who somebody is, in the schemas that have it; forgetting a person removes it. Comments come with a change of
# status.
FORGOTTEN = {
    "Assignee": {"name"},
    "StaffMember": {"name", "external_id"},
    "Party": {*PERSONAL},
    "PartyCreate": {*PERSONAL},
    "Ticket": {*texts.FIELDS},
    "TicketCreate": {*texts.FIELDS},
    "CommentCreate": {"text"},
    "TicketComment": {"text"},
    "FoundRecord": {"external_id"},
    "StatusChange": {"note", "cancellation_notes"},
    "NoticeCreate": set(NOTICE_WORDS),
}
# The other texts of schemas that have a sensitive field.
HARMLESS = {
    "MoveInCreate": {"provider"},
    "NewSubscription": {"destination_url", "secret_prefix"},
    "NoticeCreate": {"provider"},
    "OccupancyRecord": {"occupancy_source"},
    "StaffMember": {"source"},
    "Ticket": {"external_id", "photo_url", "room", "room_instance", "subcategory", "unit_number"},
    "Turn": {"occupancy_source"},
    "WebhookAttemptAnswer": {"error"},
}
CONTACT = re.compile("e?mail|phone|mobile|fax|contact|(first|last|middle|full|sur|given|family)_?name|birth|secret$")


def texts_of(schema: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """The fields that take any text, and whether they are sensitive."""
    for name, field in schema.get("properties", {}).items():
        types = field.get("type", ())
        is_text = "string" in ([types] if isinstance(types, str) else types)
        if is_text and not field.keys() & {"const", "enum"} and field.get("format") in (None, "email"):
            yield name, field.get("x-sensitive", False)


def test_what_forgetting_a_person_removes_is_sensitive() -> None:
    for schema, names in FORGOTTEN.items():
        fields = dict(texts_of(SCHEMAS[schema]))
        there = names & fields.keys()
        assert there and all(fields[name] for name in there), (schema, fields)


def test_a_schema_with_a_sensitive_field_has_no_other_text_that_nobody_has_looked_at() -> None:
    for schema, properties in SCHEMAS.items():
        fields = dict(texts_of(properties))
        if any(fields.values()):
            others = {name for name, is_sensitive in fields.items() if not is_sensitive}
            assert others == HARMLESS.get(schema, set()), schema


def test_a_field_whose_name_says_that_it_is_a_contact_or_a_secret_is_sensitive() -> None:
    for schema, properties in SCHEMAS.items():
        for name, is_sensitive in texts_of(properties):
            assert is_sensitive or not CONTACT.search(name), (schema, name)
