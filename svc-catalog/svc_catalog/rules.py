"""What a property, a unit and an asset may be (spec 2.4, 2.5, 2.7). Pure."""

from __future__ import annotations

from typing import Literal, get_args

AssetStatus = Literal["Active", "Needs Service", "Out of Service", "Retired"]
UnitStatus = Literal["Occupied", "Notice", "Vacant Not Ready", "Vacant Ready", "Down"]
# Where an asset may stand besides a unit. "unit" is the location_type of a unit, which has a table of its own.
OtherLocationType = Literal["mechanical_room", "common_area", "amenity", "parking", "storage", "exterior", "other"]
LocationType = Literal["unit", "mechanical_room", "common_area", "amenity", "parking", "storage", "exterior", "other"]
Source = Literal["staff", "import"]

ASSET_STATUSES: tuple[str, ...] = get_args(AssetStatus)
UNIT_STATUSES: tuple[str, ...] = get_args(UnitStatus)
OTHER_LOCATION_TYPES: tuple[str, ...] = get_args(OtherLocationType)
SOURCES: tuple[str, ...] = get_args(Source)

DEFAULT_ASSET_STATUS: AssetStatus = "Active"

EXTERNAL_ID_POINTS_MAX = 200
NAME_POINTS_MAX = 200
UNIT_NUMBER_POINTS_MAX = 50
ADDRESS_POINTS_MAX = 500
COUNT_MAX = 10_000_000
YEAR_MIN, YEAR_MAX = 1000, 2999
ROOMS_MAX = 1000
LIFE_YEARS_MAX = 1000
