"""Residencies in words and as bars of time. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from markupsafe import Markup

from console.areas.board.cards import date_of
from console.kit.texts import _
from makeready.occupancy.v1 import parties_pb2, residencies_pb2, resident_search_pb2, turn_board_pb2

AnyParty = (
    residencies_pb2.Party
    | turn_board_pb2.Resident
    | parties_pb2.GetPartyResponse
    | parties_pb2.SameAddress
    | resident_search_pb2.FoundResident
)

# What changed a unit's status, as the end of a sentence.
CAUSES = {
    turn_board_pb2.UNIT_STATUS_CAUSE_NOTICE: _("notice to vacate"),
    turn_board_pb2.UNIT_STATUS_CAUSE_MOVE_IN: _("move-in"),
    turn_board_pb2.UNIT_STATUS_CAUSE_BOARD: _("set on the turn board"),
    turn_board_pb2.UNIT_STATUS_CAUSE_NOTICE_CANCELLED: _("notice cancelled"),
    turn_board_pb2.UNIT_STATUS_CAUSE_VACATED: _("morning after move-out"),
    turn_board_pb2.UNIT_STATUS_CAUSE_IMPORT: _("import"),
    turn_board_pb2.UNIT_STATUS_CAUSE_TURN_CANCELLED: _("turn cancelled"),
    turn_board_pb2.UNIT_STATUS_CAUSE_MOVE_IN_CHANGED: _("move-in rescheduled"),
}
WIDTH, LEAST = 640, 3
OPEN_DAYS = datetime.timedelta(days=60)
"""How long the bar of a planned residency without a move-out date is at least."""


def party_name(party: AnyParty) -> str:
    """The name as it was sent; "Forgotten", or the role, for a party without one."""
    name = " ".join(part for part in (party.first_name, party.last_name) if part.strip())
    if isinstance(party, residencies_pb2.Party) and party.HasField("forgotten_at"):
        return "Forgotten"
    role = "" if isinstance(party, parties_pb2.SameAddress) else party.role
    return name or role.capitalize() or _("No name")


def name_of(residency: residencies_pb2.Residency) -> str:
    """The leaseholders' names; what is known instead if there are none."""
    names = [party_name(party) for party in residency.parties if party.role != "guarantor"]
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more"
    return ", ".join(names) or _("No names on file")


def bars(residencies: Sequence[residencies_pb2.Residency], today: datetime.date) -> Sequence[Markup]:
    """A bar for each, all on one scale: from the first move-in that is shown to the last day that any of them names. A
    residency without a move-in date begins with the scale, one without a move-out date ends with it."""
    spans = [(date_of(residency.move_in_date), date_of(residency.move_out_date)) for residency in residencies]
    dates = [date for span in spans for date in span if date] + [today]
    coming = [came for residency, (came, _) in zip(residencies, spans, strict=True) if residency.is_planned and came]
    start, end = min(dates), max([*dates, *(min(came, datetime.date.max - OPEN_DAYS) + OPEN_DAYS for came in coming)])
    scale = WIDTH / max((end - start).days, 1)
    now = round((today - start).days * scale, 1)
    drawings = []
    for residency, (came, move_out) in zip(residencies, spans, strict=True):
        # Of a cancelled one, the dates did not come true.
        tone = "ahead" if residency.is_planned else {"Active": "tone", "Completed": "ok"}.get(residency.status, "soft")
        first = ((came or start) - start).days * scale
        wide = max(((move_out or end) - (came or start)).days * scale, LEAST)
        first = min(first, WIDTH - wide) if wide < WIDTH else 0.0
        words = f"{_words(came) or 'before'} to {_words(move_out) or 'now'}"
        if residency.is_planned:
            words = _("scheduled %(day)s to %(end)s") if move_out else _("scheduled from %(day)s")
            words %= {"day": _words(came), "end": _words(move_out)}
        drawings.append(
            Markup(
                '<svg class="bars life" viewBox="0 0 {} 18" preserveAspectRatio="none" role="img" aria-label="{}">'
                '<rect class="soft" x="0" y="7" width="{}" height="4" rx="2"/>'
                '<rect class="{}" x="{}" y="3" width="{}" height="12" rx="3"/>'
                '<line class="today" x1="{}" y1="0" x2="{}" y2="18"/></svg>'
            ).format(WIDTH, words, WIDTH, tone, round(first, 1), round(wide, 1), now, now)
        )
    return drawings


def _words(date: datetime.date | None) -> str:
    return f"{date.day} {date:%B %Y}" if date else ""
