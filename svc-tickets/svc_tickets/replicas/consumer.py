"""Writes references of other contexts to the replicas."""

from __future__ import annotations

from chassis.replicas.tables import Replica, Replicas
from svc_tickets import schema

# The owner of each kind of replica row; parents precede their children.
OWNERS = {
    "companies": "gateway",
    "staff": "gateway",
    "properties": "svc-catalog",
    "units": "svc-catalog",
    "assets": "svc-catalog",
    "vendors": "svc-catalog",
}

REPLICAS = Replicas(
    {
        "companies": Replica(schema.company),
        "properties": Replica(schema.property_),
        "units": Replica(schema.unit, {"property_id": schema.property_}),
        "assets": Replica(schema.asset, {"property_id": schema.property_}),
        "vendors": Replica(schema.vendor),
        "staff": Replica(schema.staff),
    },
    OWNERS,
)
put_references = REPLICAS.put
