"""The same companies, keys and tickets on both sides: imported into Makeready, and copied from there to the peer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from harness import data
from harness.sides import Ours
from makeready.identity.v1 import identity_pb2 as pb
from makeready_cli.calls import Operator

SCOPES = {"read": pb.SCOPE_READ, "write": pb.SCOPE_WRITE}
ADMINISTRATOR = "bench@example.com"
STAFF, VENDORS = 12, 8
# Tables of svc-tickets that the peer has too, ordered by their foreign keys.
COPIED = ("company", "property", "unit", "asset", "staff", "vendor", "ticket", "ticket_number", "ticket_policy")


@dataclass(frozen=True)
class Sizes:
    """The number of rows, and of keys: each key may send 120 requests a minute."""

    companies: int = 5
    buildings: int = 20
    units_a_building: int = 20
    tickets_measured: int = 3000
    tickets_elsewhere: int = 2000
    keys: int = 256


@dataclass(frozen=True)
class Key:
    """One API key, the same on both sides."""

    key_id: int
    company_id: int
    scope: str
    key: str


@dataclass(frozen=True)
class Seeded:
    """The seeded rows. measured: the company for reads; written: the company for writes."""

    measured: int
    written: int
    keys: list[Key]
    ticket_ids: list[int]
    unit_ids: list[int]
    statuses: dict[int, str]
    """By id, the statuses of the tickets of the company for writes."""

    def of(self, company_id: int, scope: str) -> list[str]:
        return [key.key for key in self.keys if key.company_id == company_id and key.scope == scope]


async def fill_ours(ours: Ours, sizes: Sizes, folder: Path) -> Seeded:
    """Imports companies, buildings and tickets with the command line; mints keys with the operator's RPC."""
    companies = []
    for number in range(1, sizes.companies + 1):
        company_id = (await ours.command("company", "create", f"Company {number}"))["company_id"]
        companies.append(company_id)
        measured = number == 1
        many = sizes.tickets_measured if measured else sizes.tickets_elsewhere
        files: Mapping[str, Iterable[data.Row]] = {
            "properties": data.properties(sizes.buildings),
            "units": data.units(sizes.buildings, sizes.units_a_building),
            "tickets": data.tickets(number, many, sizes.buildings, sizes.units_a_building),
        }
        for kind, rows in files.items():
            file = folder / f"{kind}-{number}.jsonl"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            await ours.command("import", str(company_id), kind, str(file))
    first, second = companies[0], companies[min(1, len(companies) - 1)]
    keys = []
    for company_id, scope in ((first, "read"), (second, "write")):
        await ours.command("administrator", "create", str(company_id), f"{company_id}.{ADMINISTRATOR}")
        keys += await _mint(ours, company_id, scope, sizes.keys)
    await ours.command("wait")
    async with asyncpg.create_pool(tickets_url(ours), min_size=1, max_size=1) as connection:
        await _assign(connection, first)
        await connection.execute("VACUUM ANALYZE")
        return Seeded(
            first,
            second,
            keys,
            await _ids(connection, "ticket", first),
            await _ids(connection, "unit", second),
            await _statuses(connection, second),
        )


def tickets_url(ours: Ours) -> str:
    """The database of svc-tickets, as administrator."""
    return ours.database_url.rpartition("/")[0] + "/tickets"


async def _ids(connection: Any, table: str, company_id: int) -> list[int]:
    rows = await connection.fetch(f"SELECT id FROM {table} WHERE company_id = $1 ORDER BY id", company_id)  # noqa: S608
    return [row["id"] for row in rows]


async def _statuses(connection: Any, company_id: int) -> dict[int, str]:
    rows = await connection.fetch("SELECT id, status FROM ticket WHERE company_id = $1", company_id)
    return {row["id"]: row["status"] for row in rows}


async def _mint(ours: Ours, company_id: int, scope: str, many: int) -> list[Key]:
    async with Operator(ours.runtime) as operator:
        request = pb.MintKeyRequest(
            company_id=company_id,
            scope=SCOPES[scope],
            administrator_email=f"{company_id}.{ADMINISTRATOR}",
            name="bench",
        )
        minted = [await operator.call("gateway", request, pb.MintKeyResponse) for _ in range(many)]
    return [Key(reply.key_id, company_id, scope, reply.key) for reply in minted]


async def _assign(connection: Any, company_id: int) -> None:
    """Sets assignees and vendors of the measured tickets: no route or file sets them yet; real tickets have them."""
    chance = random.Random(7)  # noqa: S311 - the same rows at every run
    for table, many, title in (("staff", STAFF, "Technician"), ("vendor", VENDORS, "Contractor")):
        rows = [(n, company_id, f"{title} {n}", 1) for n in range(1, many + 1)]
        await connection.executemany(
            f"INSERT INTO {table} (id, company_id, name, version) VALUES ($1, $2, $3, $4)",  # noqa: S608
            rows,
        )
    ids = await _ids(connection, "ticket", company_id)
    people = [
        (
            ticket_id,
            chance.randint(1, STAFF) if chance.random() < 0.7 else None,
            chance.randint(1, VENDORS) if chance.random() < 0.3 else None,
        )
        for ticket_id in ids
    ]
    await connection.executemany("UPDATE ticket SET assignee_id = $2, vendor_id = $3 WHERE id = $1", people)


async def fill_peer(ours: Ours, peer_url: str, seeded: Seeded) -> None:
    """Copies the rows with their ids into the tables that the peer made at its start."""
    source, target = await asyncio.gather(asyncpg.connect(tickets_url(ours)), asyncpg.connect(peer_url))
    try:
        for name in COPIED:
            columns = await _columns(target, name)
            rows = await source.fetch(f"SELECT {', '.join(columns)} FROM {name}")  # noqa: S608
            await target.copy_records_to_table(name, records=[tuple(row) for row in rows], columns=columns)
        records = [
            (key.key_id, key.company_id, hashlib.sha256(key.key.encode()).hexdigest(), key.scope, 1)
            for key in seeded.keys
        ]
        columns = ["id", "company_id", "digest", "scope", "administrator_id"]
        await target.copy_records_to_table("api_key", records=records, columns=columns)
        await target.execute(
            "SELECT setval('ticket_id', $1)", await source.fetchval("SELECT last_value FROM ticket_id")
        )
        await target.execute("VACUUM ANALYZE")
    finally:
        await source.close()
        await target.close()


async def _columns(connection: Any, table: str) -> list[str]:
    rows = await connection.fetch("SELECT column_name FROM information_schema.columns WHERE table_name = $1", table)
    return [row["column_name"] for row in rows]
