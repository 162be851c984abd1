"""The free texts of a ticket, by which people can be recognised, and their removal. Pure.

A text's name is the ticket's id and the field, such as "41.description"; of a comment also its id, "41.comment.88".
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

REMOVED = "[removed]"
"""The text that takes the place of one that may not be empty, or whose absence would say something else."""
COMMENT = "comment"
# By field: its value after the removal.
FIELDS: Mapping[str, str | None] = {"title": REMOVED, "description": REMOVED, "preferred_access_time": None}
_ID_DIGITS_MAX = 18


def name_of(ticket_id: int, field_name: str, comment_id: int | None = None) -> str:
    """The name of a text. comment_id: of a comment."""
    return f"{ticket_id}.{field_name}" if comment_id is None else f"{ticket_id}.{field_name}.{comment_id}"


@dataclass(frozen=True, slots=True)
class Marked:
    """The texts of one ticket that are to be removed."""

    fields: set[str] = field(default_factory=set)
    comment_ids: set[int] = field(default_factory=set)


def marked(names: Iterable[str]) -> dict[int, Marked]:
    """The named texts by their ticket, in the order of the tickets. A name that no text can have is left out."""
    texts_of_tickets: dict[int, Marked] = {}
    for name in names:
        ticket_id, _, text_name = name.partition(".")
        field_name, _, comment_id = text_name.partition(".")
        if not _is_id(ticket_id):
            continue
        if text_name in FIELDS:
            texts_of_tickets.setdefault(int(ticket_id), Marked()).fields.add(text_name)
        elif field_name == COMMENT and _is_id(comment_id):
            texts_of_tickets.setdefault(int(ticket_id), Marked()).comment_ids.add(int(comment_id))
    return dict(sorted(texts_of_tickets.items()))


def removal(ticket: Mapping[str, object], fields: Iterable[str]) -> dict[str, str | None]:
    """The new values of those fields that have a text: empty ones stay, and so do removed ones."""
    return {name: FIELDS[name] for name in FIELDS if name in fields and ticket[name] and ticket[name] != FIELDS[name]}


def is_removed(written_at: datetime.datetime, removed_at: datetime.datetime | None) -> bool:
    """Whether an entry of the audit log was written before texts of its ticket were removed: nobody sees the texts that
    it quotes any more. removed_at: of the last removal."""
    return removed_at is not None and written_at <= removed_at


def in_words(fields: Iterable[str], comments: int) -> str:
    """What was removed, for the audit log: "title, 2 comments"."""
    words = [name.replace("_", " ") for name in FIELDS if name in fields]
    if comments:
        words.append("1 comment" if comments == 1 else f"{comments} comments")
    return ", ".join(words)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS_MAX
