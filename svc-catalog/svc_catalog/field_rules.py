"""Rules for fields that several kinds of record share: sources and maximum lengths. Pure."""

from __future__ import annotations

from typing import Literal, get_args

Source = Literal["staff", "import"]
SOURCES: tuple[str, ...] = get_args(Source)

EXTERNAL_ID_POINTS_MAX = 200
NAME_POINTS_MAX = 200
COUNT_MAX = 10_000_000
