"""Types of fields that several kinds of record share, in import rows and requests."""

from __future__ import annotations

from typing import Annotated

from chassis.records.bodies import Between, Text
from svc_catalog import field_rules

ExternalId = Annotated[str, Text(longest=field_rules.EXTERNAL_ID_POINTS_MAX, blank=False)]
Name = Annotated[str, Text(longest=field_rules.NAME_POINTS_MAX, blank=False)]
ShortText = Annotated[str, Text(longest=field_rules.NAME_POINTS_MAX)]
Count = Annotated[int, Between(0, field_rules.COUNT_MAX)]
