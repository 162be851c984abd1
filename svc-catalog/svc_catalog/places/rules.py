"""Rules for properties, units and assets, and for where they can be (spec 2.4, 2.5, 2.7). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from chassis.refusals import invalid_request

AssetStatus = Literal["Active", "Needs Service", "Out of Service", "Retired"]
UnitStatus = Literal["Occupied", "Notice", "Vacant Not Ready", "Vacant Ready", "Down"]
# The kinds of location other than a unit. Units have the location_type "unit" and a table of their own.
OtherLocationType = Literal["mechanical_room", "common_area", "amenity", "parking", "storage", "exterior", "other"]
LocationType = Literal["unit", "mechanical_room", "common_area", "amenity", "parking", "storage", "exterior", "other"]

ASSET_STATUSES: tuple[str, ...] = get_args(AssetStatus)
UNIT_STATUSES: tuple[str, ...] = get_args(UnitStatus)
OTHER_LOCATION_TYPES: tuple[str, ...] = get_args(OtherLocationType)

DEFAULT_ASSET_STATUS: AssetStatus = "Active"

UNIT_NUMBER_POINTS_MAX = 50
ADDRESS_POINTS_MAX = 500
YEAR_MIN, YEAR_MAX = 1000, 2999
ROOMS_MAX = 1000
LIFE_YEARS_MAX = 1000


FLOORPLAN_MEASURES = ("bedrooms", "bathrooms", "square_feet")
PLACE = ("unit_id", "location", "location_type")


def check_measures(values: Mapping[str, object], has_floorplan: bool) -> None:
    """Raises Refusal 400 if a measure is set without a floorplan. has_floorplan: whether the stored unit has one."""
    has_floorplan = values["floorplan"] is not None if "floorplan" in values else has_floorplan
    for name in FLOORPLAN_MEASURES:
        if name in values and not has_floorplan:
            raise invalid_request(f"{name} belongs to a floorplan; name it in floorplan.", name)


def check_place(values: Mapping[str, object]) -> None:
    """Raises Refusal 400 if an asset would be in two places, or in a place without location_type."""
    in_unit, named, typed = (values.get(name) is not None for name in PLACE)
    if in_unit and (named or typed):
        raise invalid_request("An asset stands in one place: give unit_id, or location with location_type.", "location")
    if named and not typed:
        raise invalid_request("A location that is no unit needs location_type.", "location_type")
    if typed and not named:
        raise invalid_request("location_type describes a location; name it in location.", "location_type")


def check_asset_moves(values: Mapping[str, object], property_id: int, has_place: bool) -> None:
    """Raises Refusal 400 if an asset that has a place moves from property_id to another without a new place."""
    moves = values.get("property_id", property_id) != property_id
    if moves and has_place and not any(name in values for name in PLACE):
        raise invalid_request("The asset moves to another property; give its location there.", "location")
