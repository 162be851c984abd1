"""Positions in the order of changes: 32 bytes, made of an epoch, a transaction, a record's id, and the transaction at
which the reader began.

A transaction's number says when it began, not when it became visible. Below the horizon, the oldest transaction that is
still under way, all have ended: so what is below it never grows, and a reader who has passed it has missed nothing.
Numbers of transactions belong to one history of one server. The epoch tells histories apart: it is a hash over the
server, its timeline (another one after a failover or a recovery), the database's table and the row of changes_epoch,
which is written anew after a restore.

Records that were gone before a reader began are left out: the reader never had them. A record that a later transaction
removed has a number above that of the newest record that could be read then. That number is on disk, so no crash gives
it anew.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import sqlalchemy as sa

from chassis.changes.tables import XMAX, XMIN
from chassis.db.history import SERVER, TIMELINE
from chassis.db.statements import Expression
from chassis.refusals import Refusal

_FORMAT = struct.Struct(">qQQQ")
POSITION_BYTES = _FORMAT.size


class Position(NamedTuple):
    """All records whose last change is at or before this transaction, and this id in it, have been read."""

    epoch: int
    xid: int
    entity_id: int
    begun: int
    """The transaction of the newest record that could be read when the reader began."""

    def packed(self) -> bytes:
        return _FORMAT.pack(*self)


def unpacked(position: bytes) -> Position:
    """Raises Refusal 410 for anything but a packed position."""
    if len(position) != POSITION_BYTES:
        raise expired()
    return Position(*_FORMAT.unpack(position))


def expired() -> Refusal:
    """The refusal of a position from another history."""
    return Refusal(
        410,
        "cursor_expired",
        "The cursor is from before a restore of the service's records; take a snapshot and go on from its cursor.",
        "cursor",
    )


def horizon_columns(epoch: sa.Table) -> list[Expression]:
    """Columns of a SELECT from changes_epoch: epoch; the horizon: the oldest transaction that is under way (xmin), and
    the one that begins next (xmax); whether the stored numbers are this server's."""
    words: sa.ColumnElement[str] = sa.literal_column(
        f"concat_ws(' ', {epoch.name}.tableoid, {epoch.name}.epoch, {epoch.name}.system, {TIMELINE})"
    )
    is_own = epoch.c.system == sa.literal_column(SERVER, sa.BigInteger)
    return [
        sa.func.hashtextextended(words, sa.literal_column("0"), type_=sa.BigInteger).label("epoch"),
        XMIN.label("xmin"),
        XMAX.label("xmax"),
        is_own.label("is_own"),
    ]
