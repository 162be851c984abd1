"""What holds of a field that several kinds of record have: where records come from, how long texts are. Pure."""

from __future__ import annotations

from typing import Literal, get_args

Source = Literal["staff", "import"]
SOURCES: tuple[str, ...] = get_args(Source)

EXTERNAL_ID_POINTS_MAX = 200
NAME_POINTS_MAX = 200
COUNT_MAX = 10_000_000
