"""What subscribers are told of a notice (spec 6.1)."""

from __future__ import annotations

import msgspec


class PublishedNotice(msgspec.Struct, frozen=True, gc=False):
    """The data of property.notice.published: exactly these keys."""

    subject: str
    property: str
    unit: str
    url: str
    created_at: str
    when: str
