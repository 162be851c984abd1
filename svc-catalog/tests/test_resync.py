"""Resync of the unit columns that svc-occupancy owns: by version, or overwritten after the owner restored a backup."""

from __future__ import annotations

from typing import Any

import asyncpg
from google.protobuf.descriptor import FieldDescriptor

from chassis.auth.identity import OPERATOR, SERVICE, Identity
from makeready.events.v1 import replicas_pb2 as pb
from svc_catalog import consumers
from testkit.services import RunningService

ANYBODY = Identity(OPERATOR, "operator")
PUT_STATE = (
    "INSERT INTO unit_state (company_id, unit_id, version, unit_status, projected_ready_on)"
    " VALUES ($1, $2, $3, $4, $5::text::date) ON CONFLICT (company_id, unit_id) DO UPDATE SET"
    " version = EXCLUDED.version, unit_status = EXCLUDED.unit_status, projected_ready_on = EXCLUDED.projected_ready_on"
)


async def rebuild(service: RunningService, overwrite: bool = False) -> int:
    """Returns how many rows the owner has."""
    rows: int = 0
    request = pb.RebuildReplicasRequest(kind="unit_occupancies", overwrite=overwrite)
    async with service.channel() as channel:
        while True:
            page = await service.call(channel, request, ANYBODY)
            rows += page.rows
            if not page.HasField("next"):
                return rows
            request.after.CopyFrom(page.next)


async def test_units_are_served_again_as_their_owner_has_them(
    company: Any, elm: dict[str, Any], service: RunningService, occupancy: RunningService
) -> None:
    assert await company.put("units", {"external_id": "U1", "property": "P1", "name": "Unit 1"}) == ["created"]
    (unit,) = await company.list("units")
    key = company.id, unit["entity_id"]
    owner = await asyncpg.connect(occupancy.database_url)
    try:
        # svc-occupancy may have received both by now.
        await owner.execute(
            "INSERT INTO property (id, company_id, version, name) VALUES ($1, $2, 1, 'P') ON CONFLICT DO NOTHING",
            elm["entity_id"],
            company.id,
        )
        await owner.execute(
            "INSERT INTO unit (id, company_id, version, name, property_id) VALUES ($1, $2, 1, 'U', $3)"
            " ON CONFLICT DO NOTHING",
            unit["entity_id"],
            company.id,
            elm["entity_id"],
        )

        async def shown() -> tuple[str | None, str | None]:
            (unit,) = await company.list("units")
            return unit["unit_status"], unit["projected_ready_on"]

        assert await shown() == (None, None)
        await owner.execute(PUT_STATE, *key, 3, "Vacant Not Ready", "2026-05-01")
        assert await rebuild(service) >= 1
        assert await shown() == ("Vacant Not Ready", "2026-05-01")
        # The owner has restored a backup: its versions are lower than the replica's.
        await owner.execute(PUT_STATE, *key, 1, "Occupied", None)
        await rebuild(service)
        assert await shown() == ("Vacant Not Ready", "2026-05-01")
        await rebuild(service, overwrite=True)
        assert await shown() == ("Occupied", None)
        # Later versions then count from there.
        await owner.execute(PUT_STATE, *key, 2, "Notice", "2026-06-01")
        await rebuild(service)
        assert await shown() == ("Notice", "2026-06-01")

        async with occupancy.channel() as channel:
            request = pb.ListReferencesRequest(
                kind="unit_occupancies", after=pb.Place(company_id=key[0], id=key[1] - 1)
            )
            asking = Identity(SERVICE, "svc-catalog")
            answer = await occupancy.call(channel, request, asking)
        served = answer.references.unit_occupancies[0]
        fields = [field.name for field in served.DESCRIPTOR.fields if field.type != FieldDescriptor.TYPE_BOOL]
        assert fields == [field.name for field, _ in served.ListFields()] and (served.company_id, served.id) == key
    finally:
        await owner.close()


async def test_every_replicated_kind_is_listed_with_its_owner(service: RunningService) -> None:
    async with service.channel() as channel:
        answer = await service.call(channel, pb.ListReplicasRequest(), ANYBODY)
    assert {kind.kind: kind.owner for kind in answer.kinds} == consumers.OWNERS
    assert set(consumers.OWNERS.values()) == set(consumers.SUBJECTS)
