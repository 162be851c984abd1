"""The filter of a subscription: of which properties, categories and priorities it hears. Pure."""

from collections.abc import Sequence
from typing import Literal, get_args

from chassis.refusals import invalid_request

# Those of a ticket, as svc-tickets has them.
Category = Literal[
    "HVAC",
    "Plumbing",
    "Electrical",
    "Mechanical",
    "Life Safety",
    "Elevator",
    "Appliance",
    "Doors/Windows",
    "Flooring",
    "Painting",
    "Roofing",
    "Leak",
    "Pest Control",
    "Structural",
    "Grounds",
    "Parking Garage",
    "Pool",
    "Security",
    "Common Area",
    "General",
    "Other",
]
Priority = Literal["Low", "Medium", "High", "Emergency"]
CATEGORIES: tuple[str, ...] = get_args(Category)
PRIORITIES: tuple[str, ...] = get_args(Priority)
PROPERTIES_MAX = 1000


def property_set(ids: Sequence[int] | None) -> list[int] | None:
    """The ids, sorted and each once; None: no filter. Raises Refusal 422. Whether a property has an id is not known
    here."""
    if ids is None:
        return None
    _check_not_empty(ids, "property_ids")
    if not all(ids):
        raise invalid_request("property_ids may hold only ids of properties.", "property_ids", status=422)
    if len(ids) > PROPERTIES_MAX:
        message = f"property_ids may hold {PROPERTIES_MAX:,} ids at most."
        raise invalid_request(message, "property_ids", status=422)
    return sorted(set(ids))


def label_set(labels: Sequence[str] | None, allowed: Sequence[str], name: str) -> list[str] | None:
    """The labels in the order of `allowed`, each once; None: no filter. Raises Refusal 422."""
    if labels is None:
        return None
    _check_not_empty(labels, name)
    return [label for label in allowed if label in labels]


def _check_not_empty(values: Sequence[object], name: str) -> None:
    if not values:
        message = f"{name} must hold at least one entry; leave it out, or send null, for no filter."
        raise invalid_request(message, name, status=422)
