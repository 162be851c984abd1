"""Which history of which server a database is in, as SQL: numbers that are given in one mean nothing in another."""

from __future__ import annotations

# The same for a server and its standbys; another one after a dump was restored elsewhere.
SERVER = "(pg_control_system()).system_identifier"
# Another one after a failover or a recovery to a point in time, at once: pg_control_checkpoint() says it late.
TIMELINE = "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"
