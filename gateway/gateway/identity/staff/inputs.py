"""The fields of a member of staff as a command sets them, and as a row of an import does."""

from __future__ import annotations

from typing import Annotated

import msgspec

from chassis.records.bodies import PastInstant, Text
from gateway.identity import rules


class MemberFields(msgspec.Struct, kw_only=True):
    """The fields that a command sets; an update names only those that change."""

    name: Annotated[str, Text(longest=rules.NAME_POINTS_MAX, blank=False)] | None = None
    email: Annotated[str, Text(longest=rules.EMAIL_POINTS_MAX)] | None = None
    title: Annotated[str, Text(longest=rules.NAME_POINTS_MAX)] | None = None
    external_id: Annotated[str, Text(longest=rules.EXTERNAL_ID_POINTS_MAX, blank=False)] | None = None


class StaffRow(msgspec.Struct, kw_only=True):
    """The row of a member of staff in an import."""

    external_id: Annotated[str, Text(longest=rules.EXTERNAL_ID_POINTS_MAX, blank=False)]
    name: Annotated[str, Text(longest=rules.NAME_POINTS_MAX, blank=False)]
    email: Annotated[str, Text(longest=rules.EMAIL_POINTS_MAX)] | None = None
    title: Annotated[str, Text(longest=rules.NAME_POINTS_MAX)] | None = None
    created_at: PastInstant | None = None
