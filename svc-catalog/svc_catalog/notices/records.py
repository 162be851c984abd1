"""A notice as the back office reads it, and the data of its public event (spec 6.1)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from chassis.records.shapes import Computed, Link, Shape, encode
from chassis.schedule.instants import printed
from svc_catalog.notices import rules
from svc_catalog.notices.tables import notice, units_of_notice
from svc_catalog.places.tables import property_


class Notice(msgspec.Struct, frozen=True, gc=False):
    """A notice. unit: whom it is for, in words. published_at: None while it is being composed."""

    id: int
    property_id: int
    property_name: str
    subject: str
    body: str
    when: str
    unit_ids: list[int]
    area: str | None
    unit: str
    url: str
    created_at: datetime.datetime
    updated_at: datetime.datetime
    published_at: datetime.datetime | None
    external_id: str | None
    source: str


class PublishedNotice(msgspec.Struct, frozen=True, gc=False):
    """The data of property.notice.published: exactly these keys."""

    subject: str
    property: str
    unit: str
    url: str
    created_at: str
    when: str


def _audience(area: str | None, unit_ids: Sequence[int], unit_name: str | None) -> str:
    return rules.audience(area, len(unit_ids), unit_name)


NOTICE = Shape(
    Notice,
    notice,
    property_name=property_.c.name,
    unit_ids=units_of_notice.c.ids,
    unit=Computed(_audience, notice.c.area, units_of_notice.c.ids, units_of_notice.c.name),
    url=Link("/notices/{id}"),
    version=notice.c.version,
)


def published(notice: Notice) -> bytes:
    """The data of a published notice's event."""
    assert notice.published_at is not None
    data = PublishedNotice(
        notice.subject, notice.property_name, notice.unit, notice.url, printed(notice.published_at), notice.when
    )
    return encode(data)
