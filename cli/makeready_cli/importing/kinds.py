"""What can be imported: each kind's columns, and the RPC that takes its rows.

The owner of a kind decides on its rows; the columns stand here so that a mistyped one is told before the first
row is sent. A test offers every column to the owners.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from makeready.catalog.v1 import inspections_pb2 as inspections
from makeready.catalog.v1 import meters_pb2 as meters
from makeready.catalog.v1 import notices_pb2 as notices
from makeready.catalog.v1 import places_pb2 as catalog
from makeready.catalog.v1 import vendors_pb2 as vendors
from makeready.catalog.v1.inspections_pb2_grpc import InspectionsServiceStub
from makeready.catalog.v1.meters_pb2_grpc import MetersServiceStub
from makeready.catalog.v1.notices_pb2_grpc import NoticesServiceStub
from makeready.catalog.v1.places_pb2_grpc import AssetsServiceStub, PropertiesServiceStub, UnitsServiceStub
from makeready.catalog.v1.vendors_pb2_grpc import VendorsServiceStub
from makeready.common.v1 import documents_pb2 as common
from makeready.identity.v1 import staff_pb2 as staff
from makeready.identity.v1.staff_pb2_grpc import StaffServiceStub
from makeready.occupancy.v1 import turn_tasks_pb2 as turn_tasks
from makeready.occupancy.v1 import turns_pb2 as occupancy
from makeready.occupancy.v1.turn_tasks_pb2_grpc import TurnTasksServiceStub
from makeready.occupancy.v1.turns_pb2_grpc import TurnsServiceStub
from makeready.tickets.v1 import pm_tasks_pb2 as pm_tasks
from makeready.tickets.v1 import tickets_pb2 as tickets
from makeready.tickets.v1.pm_tasks_pb2_grpc import PmTasksServiceStub
from makeready.tickets.v1.tickets_pb2_grpc import TicketsServiceStub


class ImportResponse(Protocol):
    """What every import RPC answers."""

    @property
    def results(self) -> Iterable[common.ImportResult]: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of record. required: the columns without which no row can be taken."""

    name: str
    service: str
    rpc: Callable[[grpc.aio.Channel], Callable[..., Awaitable[ImportResponse]]]
    request: Any
    required: tuple[str, ...]
    optional: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)

    def request_of(self, rows: Iterable[common.ImportRow], dry_run: bool, events: bool) -> Any:
        """The RPC's request; kinds that fire no public event on import know no `events`."""
        request = self.request(rows=rows, dry_run=dry_run)
        if events and "events" in request.DESCRIPTOR.fields_by_name:
            request.events = True
        return request


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "staff",
            "gateway",
            lambda channel: StaffServiceStub(channel).ImportStaff,
            staff.ImportStaffRequest,
            ("external_id", "name"),
            ("email", "title", "created_at"),
        ),
        Kind(
            "properties",
            "svc-catalog",
            lambda channel: PropertiesServiceStub(channel).ImportProperties,
            catalog.ImportPropertiesRequest,
            ("external_id", "name", "address"),
            (
                "city",
                "state",
                "postal_code",
                "building_type",
                "construction_type",
                "unit_count",
                "year_built",
                "latitude",
                "longitude",
                "created_at",
            ),
        ),
        Kind(
            "units",
            "svc-catalog",
            lambda channel: UnitsServiceStub(channel).ImportUnits,
            catalog.ImportUnitsRequest,
            ("external_id", "property", "name"),
            (
                "unit_number",
                "building",
                "floor",
                "floorplan",
                "bedrooms",
                "bathrooms",
                "square_feet",
                "created_at",
            ),
        ),
        Kind(
            "assets",
            "svc-catalog",
            lambda channel: AssetsServiceStub(channel).ImportAssets,
            catalog.ImportAssetsRequest,
            ("external_id", "property", "name", "category", "make", "model"),
            (
                "location",
                "location_type",
                "sub_category",
                "asset_tag",
                "serial_number",
                "status",
                "year",
                "installed_on",
                "warranty_expires_on",
                "expected_life_years",
                "created_at",
            ),
        ),
        Kind(
            "vendors",
            "svc-catalog",
            lambda channel: VendorsServiceStub(channel).ImportVendors,
            vendors.ImportVendorsRequest,
            ("external_id", "name"),
            (
                "legal_name",
                "website",
                "avg_rating",
                "rating_count",
                "is_active",
                "property_visibility",
                "onboarded_at",
                "retired_at",
                "last_compliance_state",
                "insurance_expires_on",
            ),
        ),
        Kind(
            "inspections",
            "svc-catalog",
            lambda channel: InspectionsServiceStub(channel).ImportInspections,
            inspections.ImportInspectionsRequest,
            ("external_id", "property"),
            (
                "unit",
                "title",
                "inspection_type",
                "inspection_number",
                "status",
                "result",
                "scheduled_date",
                "completed_date",
                "assignee",
                "is_compliance_inspection",
                "compliance_type",
                "kind",
                "engagement",
                "created_at",
            ),
        ),
        Kind(
            "meters",
            "svc-catalog",
            lambda channel: MetersServiceStub(channel).ImportMeters,
            meters.ImportMetersRequest,
            ("external_id", "property", "name", "utility_type"),
            ("scope", "unit", "meter_number", "unit_of_measure", "is_active", "created_at"),
        ),
        Kind(
            "readings",
            "svc-catalog",
            lambda channel: MetersServiceStub(channel).ImportReadings,
            meters.ImportReadingsRequest,
            ("external_id", "meter", "period_start", "period_end", "consumption"),
            ("unit_of_measure", "cost", "is_estimated", "created_at"),
        ),
        Kind(
            "notices",
            "svc-catalog",
            lambda channel: NoticesServiceStub(channel).ImportNotices,
            notices.ImportNoticesRequest,
            ("external_id", "property", "subject", "body", "when"),
            ("unit", "area", "created_at", "published_at"),
        ),
        Kind(
            "tickets",
            "svc-tickets",
            lambda channel: TicketsServiceStub(channel).ImportTickets,
            tickets.ImportTicketsRequest,
            ("external_id", "property", "title", "category"),
            (
                "unit",
                "asset",
                "description",
                "subcategory",
                "priority",
                "status",
                "unit_number",
                "room",
                "room_instance",
                "permission_to_enter",
                "preferred_access_time",
                "assignee",
                "assigned_vendor",
                "photo_url",
                "created_at",
                "updated_at",
                "completed_at",
                "cancelled_at",
                "cancellation_reason_code",
                "source",
            ),
        ),
        Kind(
            "pm-tasks",
            "svc-tickets",
            lambda channel: PmTasksServiceStub(channel).ImportPmTasks,
            pm_tasks.ImportPmTasksRequest,
            ("external_id", "property", "task_name", "due_date"),
            (
                "unit",
                "area",
                "asset",
                "repeat_days",
                "repeat_months",
                "status",
                "completed_at",
                "cancelled_at",
                "created_at",
            ),
        ),
        Kind(
            "turns",
            "svc-occupancy",
            lambda channel: TurnsServiceStub(channel).ImportTurns,
            occupancy.ImportTurnsRequest,
            ("external_id", "unit"),
            (
                "status",
                "move_out_date",
                "move_in_date",
                "projected_ready_on",
                "occupancy_source",
                "occupancy_fed_at",
                "unit_status",
                "created_at",
                "updated_at",
            ),
        ),
        Kind(
            "turn-tasks",
            "svc-occupancy",
            lambda channel: TurnTasksServiceStub(channel).ImportTurnTasks,
            turn_tasks.ImportTurnTasksRequest,
            ("external_id", "turn", "task_type"),
            ("scheduled_date", "status", "completed_at", "cancelled_at", "created_at", "updated_at"),
        ),
    )
}
