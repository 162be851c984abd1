"""Shared by all tables of the database `gateway`: the MetaData, the platform's own tables, helpers for columns."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, MetaData, text

from chassis.changes.tables import withdrawn_table
from chassis.imports.tables import import_table
from chassis.messaging.outbox import outbox_table
from chassis.writes.audit import audit_table
from chassis.writes.idempotency import ledger

metadata = MetaData()

outbox = outbox_table(metadata)
idempotency = ledger(metadata)
audit = audit_table(metadata, "ended_at IS NOT NULL")
import_batch = import_table(metadata)
withdrawn_record = withdrawn_table(metadata)


def instant(name: str) -> Column[object]:
    """A timestamptz that defaults to the instant of the insert."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()"))
