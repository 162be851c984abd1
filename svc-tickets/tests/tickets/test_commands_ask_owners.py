"""Back-office commands query the owner once for records that no replica has, and store them."""

from __future__ import annotations

import json
import secrets
from typing import Any

from sqlalchemy import text

from chassis.auth.identity import OPERATOR, Identity
from chassis.db.database import Database
from chassis.db.statements import Statement
from makeready.catalog.v1 import places_pb2, vendors_pb2
from makeready.common.v1.documents_pb2 import ImportRow
from makeready.identity.v1 import identity_pb2, staff_pb2

from .changing import served
from .commands import open_ticket, run_command


def row(**fields: Any) -> list[ImportRow]:
    return [ImportRow(line=2, json=json.dumps(fields).encode())]


async def id_of(url: str, table: str, external_id: str) -> int:
    database = Database(url, application="tests")
    await database.open()
    try:
        entity_id: int = await database.value(
            Statement(text(f"SELECT id FROM {table} WHERE external_id = '{external_id}'"))
        )
        return entity_id
    finally:
        await database.close()


async def test_a_ticket_is_opened_and_assigned_before_any_reference_has_come(client: Any, reached: Any) -> None:
    gateway, catalog = reached["gateway"], reached["svc-catalog"]
    tag = secrets.token_hex(4)
    async with gateway.channel() as channel:
        request = identity_pb2.CreateCompanyRequest(name=f"Fresh {tag}", timezone="UTC")
        company = (await gateway.call(channel, request, Identity(OPERATOR, "operator"))).company.id
        who = Identity(OPERATOR, "operator", company)
        people = staff_pb2.ImportStaffRequest(rows=row(external_id=f"S{tag}", name="Cy"))
        await gateway.call(channel, people, who)
    async with catalog.channel() as channel:
        places = places_pb2.ImportPropertiesRequest(rows=row(external_id=f"P{tag}", name="Oak", address="1 Oak"))
        await catalog.call(channel, places, who)
        units = places_pb2.ImportUnitsRequest(rows=row(external_id=f"U{tag}", property=f"P{tag}", name="Oak 1"))
        await catalog.call(channel, units, who)
        vendors = vendors_pb2.ImportVendorsRequest(rows=row(external_id=f"V{tag}", name="Fixers"))
        await catalog.call(channel, vendors, who)
    property_id = await id_of(catalog.database_url, "property", f"P{tag}")
    unit_id = await id_of(catalog.database_url, "unit", f"U{tag}")
    opened = await open_ticket(client, who, property_id=property_id, unit_id=unit_id)
    assert (opened["property"]["name"], opened["unit"]["name"]) == ("Oak", "Oak 1")
    assignee_id = await id_of(gateway.database_url, "staff", f"S{tag}")
    vendor_id = await id_of(catalog.database_url, "vendor", f"V{tag}")
    assigned = await run_command(
        client, "AssignTicket", who, ticket_id=opened["entity_id"], assignee_id=assignee_id, vendor_id=vendor_id
    )
    assert json.loads(assigned)["assignee"] == {"id": assignee_id, "name": "Cy"}
    assert json.loads(assigned)["assigned_vendor"]["name"] == "Fixers"
    integration = Identity("caller", "gateway", company, 1, "read", 3)
    assert await served(client, opened["entity_id"], integration) == assigned
