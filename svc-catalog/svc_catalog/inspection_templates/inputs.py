"""The fields of an inspection template in requests."""

from __future__ import annotations

from typing import Annotated

import msgspec

from chassis.records.bodies import Between, Text
from svc_catalog.field_types import ShortText
from svc_catalog.inspection_templates import rules

Label = Annotated[str, Text(longest=rules.LABEL_POINTS_MAX, blank=False)]
Name = Annotated[str, Text(longest=rules.NAME_POINTS_MAX, blank=False)]


class NewTemplate(msgspec.Struct, kw_only=True):
    """A template to add."""

    name: Name
    inspection_type: ShortText | None = None
    is_default: bool = False
    rows: Annotated[list[Label], Between(1, rules.ROWS_MAX)]


class TemplateChange(msgspec.Struct, kw_only=True):
    """What is to change in a template. No rows: they stay."""

    name: Name | None = None
    inspection_type: ShortText | None = None
    is_default: bool | None = None
    rows: Annotated[list[Label], Between(0, rules.ROWS_MAX)] = []
