"""Writes that happen once: idempotency, audited commands, the audit log, retention."""
