"""Counts what a write leaves behind: rows of every table, versions, events. Only the tables that other processes write
to meanwhile are named here."""

from collections import Counter
from collections.abc import Iterable, Mapping

from chassis.db.revisions import OF_MIGRATIONS

from .harness import Harness
from .writes import KINDS, Write

# Tables that messages from other services fill, at any time, and those that are filled beside the writes.
BY_OTHERS = {"inbox", "reconciled", "outbox_confirmation", "event", "delivery", "attempt", *OF_MIGRATIONS, "company"}
BY_OTHERS |= {"ticket_search", "party_search", "report_fact", "report_figure"}
BY_OTHERS |= {"changes_to_touch", "feed", "feed_entry", "property", "asset", "vendor", "staff"}

Effect = Counter[str]


async def counted(harness: Harness, service: str) -> Effect:
    """Rows by table, the sum of their versions, and events by subject."""
    tables = await harness.query(
        service,
        "SELECT c.relname AS name, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid"
        " AND a.attname = 'version') AS versioned FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')",
    )
    parts = []
    for table in tables:
        name = table["name"]
        if name not in BY_OTHERS:
            parts.append(f"SELECT '{name}' AS what, count(*) AS count FROM \"{name}\"")
            if table["versioned"]:
                parts.append(f"SELECT '{name}.version', coalesce(sum(version), 0) FROM \"{name}\"")
            if name == "outbox":
                parts.append("SELECT subject, count(*) FROM outbox GROUP BY subject")
    rows = await harness.query(service, " UNION ALL ".join(parts))
    return Counter({row["what"]: int(row["count"]) for row in rows})


async def counted_all(harness: Harness) -> dict[str, Effect]:
    return {service: await counted(harness, service) for service in sorted({kind.service for kind in KINDS.values()})}


def sum_of(writes: Iterable[Write], service: str, alone: Mapping[str, Effect]) -> Effect:
    """The effect of these writes on a service's database."""
    total: Effect = Counter()
    for write in writes:
        if KINDS[write.kind].service == service:
            total += alone[write.kind]
    return total


def since(before: Effect, after: Effect) -> Effect:
    """What was added, without zeros. Fails where a count fell: no write removes anything."""
    assert all(after[name] >= count for name, count in before.items()), (before, after)
    return Counter({name: count - before[name] for name, count in after.items() if count != before[name]})
