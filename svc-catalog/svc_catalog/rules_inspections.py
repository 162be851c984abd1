"""What an inspection may be, and which of them are served (spec 2.9). Pure."""

from __future__ import annotations

from typing import Literal, get_args

# As published, and as stored: a plain checklist of old was finalized, not completed.
InspectionStatus = Literal["Scheduled", "In Progress", "Completed"]
StoredStatus = Literal["Scheduled", "In Progress", "Completed", "Finalized"]
InspectionResult = Literal["passed", "failed"]
# operations: the company's own. The walks are a consultant's through a property, and one that accepts a unit.
InspectionKind = Literal["operations", "consulting_walk", "acceptance_walk"]

INSPECTION_STATUSES: tuple[str, ...] = get_args(InspectionStatus)
STORED_STATUSES: tuple[str, ...] = get_args(StoredStatus)
INSPECTION_RESULTS: tuple[str, ...] = get_args(InspectionResult)
INSPECTION_KINDS: tuple[str, ...] = get_args(InspectionKind)

OPEN_STATUSES: tuple[InspectionStatus, ...] = ("Scheduled", "In Progress")
LEGACY_STATUS: StoredStatus = "Finalized"
LEGACY_PUBLISHED_AS: InspectionStatus = "Completed"
DEFAULT_STATUS: InspectionStatus = "Scheduled"
DEFAULT_KIND: InspectionKind = "operations"

# Far below the column's bound: the numbers that follow a given one must fit too.
NUMBER_MAX = 1_000_000_000


def is_served(kind: str, engagement: str | None) -> bool:
    """Operations' own inspections, and acceptance walks that stand alone. Walks of consultants are theirs."""
    return kind == "operations" or (kind == "acceptance_walk" and engagement is None)


def published_status(stored: str) -> str:
    return LEGACY_PUBLISHED_AS if stored == LEGACY_STATUS else stored


def is_numbered(stored_status: str) -> bool:
    """Whether an inspection has a number of its property's sequence; the legacy path gave none."""
    return stored_status != LEGACY_STATUS


def may_become_stale(status: str, kind: str, engagement: str | None) -> bool:
    """Whether it is told of, once, on the morning after its scheduled date: where it is still open, and served."""
    return status in OPEN_STATUSES and is_served(kind, engagement)
