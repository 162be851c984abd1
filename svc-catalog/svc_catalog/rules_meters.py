"""What a meter and a reading may be (spec 2.11). Pure."""

from __future__ import annotations

from typing import Literal, get_args

UtilityType = Literal["electric", "gas", "water", "sewer", "trash", "other"]
Scope = Literal["master", "common_area", "unit"]

UTILITY_TYPES: tuple[str, ...] = get_args(UtilityType)
SCOPES: tuple[str, ...] = get_args(Scope)

UNIT_OF_MEASURE_POINTS_MAX = 50
# Within it, each of the fifteen digits that a double keeps comes back as it was sent.
AMOUNT_MAX = 10**15
