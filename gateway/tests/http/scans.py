"""How often gateways read the table of keys."""

from __future__ import annotations

from chassis.db.database import Database

# A process of PostgreSQL reports what it has read when it ends, and else up to ten seconds later.
_END_ALL = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
WHERE datname = current_database() AND starts_with(application_name, 'gateway') AND pid <> pg_backend_pid()
"""
_SCANS = "SELECT coalesce(idx_scan, 0) + coalesce(seq_scan, 0) FROM pg_stat_user_tables WHERE relname = 'api_key'"


async def scans_of_keys(database: Database) -> int:
    """Ends the gateways' connections: they trust no cached key until their listeners are back."""
    async with database.connection() as connection:
        await connection.raw.execute(_END_ALL)
        await connection.raw.execute("SELECT pg_stat_clear_snapshot()")
        scans: int = await connection.raw.fetchval(_SCANS)
        return scans
