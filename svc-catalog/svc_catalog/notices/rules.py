"""The audience of a notice, and how long a notice can be changed. Pure."""

from __future__ import annotations

import datetime

from chassis.refusals import Refusal, invalid_request

SUBJECT_POINTS_MAX = 200
WHEN_POINTS_MAX = 200
AREA_POINTS_MAX = 200
UNITS_MAX = 2000
WHOLE_PROPERTY = "All units"
EVENT = "property.notice.published"
# The content that residents read. It cannot change once the notice is published.
CONTENT = ("property_id", "subject", "body", "when", "area")


def audience(area: str | None, unit_count: int, unit_name: str | None) -> str:
    """The audience of a notice, in words. unit_name: the unit's name if the notice is for one unit."""
    if area is not None:
        return area
    if unit_count == 0:
        return WHOLE_PROPERTY
    return unit_name if unit_count == 1 and unit_name is not None else f"{unit_count} units"


def check_audience(has_units: bool, has_area: bool, is_whole: bool = False) -> None:
    """Raises Refusal 400 if a request names more than one audience."""
    if has_units + has_area + is_whole > 1:
        raise invalid_request("A notice is for units, for an area or for the whole property; name one of them.", "area")


def check_composing(published_at: datetime.datetime | None) -> None:
    """Raises Refusal 422 if the notice is published: residents who have read it would not see a change."""
    if published_at is not None:
        raise published()


def check_unchanged(updated_at: datetime.datetime, as_of: datetime.datetime | None) -> None:
    """Raises Refusal 422 if the notice has changed since the request's author has read it."""
    if as_of is not None and updated_at > as_of:
        raise invalid_request("Another person has changed the notice meanwhile; read it again.", "as_of", status=422)


def published() -> Refusal:
    return invalid_request("The notice is published and stays as it is; compose another.", status=422)
