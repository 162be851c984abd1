"""The rows of a file in an import, and the same fields as people say them."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from chassis.records.bodies import Text
from gateway.identity import rules


class MemberFields(msgspec.Struct, kw_only=True):
    """What people say of a member of staff, of which a change may leave out anything."""

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
    created_at: datetime.datetime | None = None
