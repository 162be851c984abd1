"""The messages of tickets, counts and timelines."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence

from chassis.writes.audit import without
from makeready.tickets.v1 import ticket_views_pb2 as pb
from svc_tickets.search.queries import AUDIT, CHANGES, COMMENTS, OPENED, Event, Summary, Whole
from svc_tickets.tickets.queries.texts import Comment, TicketTexts
from svc_tickets.tickets.rules import texts as rules
from svc_tickets.tickets.rules.fields import PHOTO

# The names of a timeline's values that the audit log stores as ids, by field: the field that people read.
NAMED = {
    "assignee_id": "assignee",
    "vendor_id": "vendor",
    "property_id": "property",
    "unit_id": "unit",
    "asset_id": "asset",
}
KINDS_OF_SOURCES = {
    OPENED: (pb.TIMELINE_KIND_OPENED,),
    COMMENTS: (pb.TIMELINE_KIND_COMMENT, pb.TIMELINE_KIND_PHOTO),
    CHANGES: (pb.TIMELINE_KIND_STATUS,),
    AUDIT: (pb.TIMELINE_KIND_CHANGE,),
}


def summary(row: Summary, stale_after: datetime.timedelta, now: datetime.datetime) -> pb.TicketSummary:
    """stale_after: the company's threshold."""
    stale_from = None if row.quiet_since is None else row.quiet_since + stale_after
    is_stale = stale_from is not None and stale_from <= now
    message = pb.TicketSummary(**row._asdict(), is_stale=is_stale)
    if stale_from is not None:
        message.stale_from.FromDatetime(stale_from)
    return message


def photos(ticket: Whole) -> list[pb.TicketPhoto]:
    """The first one first, each address once. One that came with the ticket is the first."""
    served_url = ticket.details.photo_url
    by_url: dict[str, pb.TicketPhoto] = {}
    for photo in reversed(ticket.photos):
        actor = photo.actor or (f"caller:{photo.api_key_id}" if photo.api_key_id is not None else "")
        message = pb.TicketPhoto(photo_url=photo.photo_url, author=photo.author or "", actor=actor)
        message.added_at.FromDatetime(photo.added_at)
        by_url.setdefault(photo.photo_url, message)
    if served_url and served_url not in by_url:
        message = pb.TicketPhoto(photo_url=served_url)
        message.added_at.FromDatetime(ticket.summary.created_at)
        by_url = {served_url: message, **by_url}
    if served_url:
        by_url[served_url].is_shown = True
    return list(by_url.values())


def changes_of(event: Event) -> dict[str, tuple[object, object]]:
    """The values of an audit entry before and after, by field."""
    before, after = (json.loads(side) if side else {} for side in (event.before, event.after))
    return {
        name: (before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    }


def entry(event: Event, names: Mapping[str, Mapping[int, str]]) -> pb.TimelineEntry:
    """names: those of assignees, vendors and places, by the values of NAMED and by id."""
    actor = event.actor or (f"caller:{event.api_key_id}" if event.api_key_id is not None else "")
    message = pb.TimelineEntry(
        actor=actor,
        author=event.author or "",
        request_id=event.request_id or "",
        from_status=event.from_status or "",
        to_status=event.to_status or "",
        cancellation_reason_code=event.cancellation_reason_code or "",
    )
    message.occurred_at.FromDatetime(event.occurred_at)
    if event.kind == OPENED:
        message.kind, message.source = pb.TIMELINE_KIND_OPENED, event.text or ""
    elif event.kind == "status":
        message.kind, message.text = pb.TIMELINE_KIND_STATUS, event.text or ""
    elif event.kind == "ticket.photo_removed":
        message.kind = pb.TIMELINE_KIND_CHANGE
        message.changes.add(field="photo", before=json.loads(event.after or "{}").get("removed_photo", ""))
    elif event.before is not None:
        message.kind = pb.TIMELINE_KIND_CHANGE
        for name, (before, after) in changes_of(event).items():
            names_of_field = names.get(NAMED.get(name, ""), {})
            message.changes.add(
                field=NAMED.get(name, name), before=_text(before, names_of_field), after=_text(after, names_of_field)
            )
    else:
        message.kind = pb.TIMELINE_KIND_PHOTO if event.kind == PHOTO else pb.TIMELINE_KIND_COMMENT
        message.text = event.text or ""
    return message


def _text(value: object, names: Mapping[int, str]) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and value in names:
        return names[value]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def has_texts(event: Event) -> bool:
    """Whether it is an entry of the audit log that quotes a ticket's free texts."""
    return event.before is not None and any(name in rules.FIELDS for name in changes_of(event))


def without_removed_texts(event: Event, removed_at: datetime.datetime | None) -> Event:
    """An entry without what was removed from the ticket after it. The audit log itself is never changed.

    removed_at: of the last removal.
    """
    if not (rules.is_removed(event.occurred_at, removed_at) and has_texts(event)):
        return event
    before, after = (without(side or "{}", rules.FIELDS) for side in (event.before, event.after))
    return event._replace(before=before, after=after)


def texts(ticket: TicketTexts, comments: Sequence[Comment]) -> pb.TicketTexts:
    """A ticket's texts that are not empty and not removed yet."""
    message = pb.TicketTexts(
        ticket_id=ticket.id, ticket_number=ticket.ticket_number, title=ticket.title, status=ticket.status
    )
    message.created_at.FromDatetime(ticket.created_at)
    values = ticket._asdict()
    for name in rules.removal(values, rules.FIELDS):
        message.texts.add(name=rules.name_of(ticket.id, name), field=name, text=values[name])
    for comment in comments:
        if comment.body == rules.REMOVED:
            continue
        name = rules.name_of(ticket.id, rules.COMMENT, comment.id)
        text = message.texts.add(name=name, field=rules.COMMENT, text=comment.body, author=comment.author or "")
        text.written_at.FromDatetime(comment.created_at)
    return message
