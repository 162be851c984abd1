"""The public shape of a member of staff."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from chassis.records.bodies import SENSITIVE
from chassis.records.shapes import Shape
from gateway.identity.tables.staff import staff


class StaffMember(msgspec.Struct, frozen=True, gc=False):
    """A member of the company's staff, to whom tickets can be assigned."""

    schema_version: Literal[1]
    entity_type: Literal["staff"]
    entity_id: int
    name: Annotated[str, SENSITIVE]
    """The person's name."""
    is_active: bool
    """Whether the person still works for the company. Those who have left stay in the list, with their work."""
    created_at: str
    external_id: Annotated[str | None, SENSITIVE]
    source: str
    """How the record was created, for example `import`."""


MEMBER = Shape(StaffMember, staff, is_active=staff.c.active)
