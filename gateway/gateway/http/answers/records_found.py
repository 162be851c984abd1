"""What a search returns."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from chassis.records.bodies import SENSITIVE

RecordKind = Literal[
    "property",
    "unit",
    "asset",
    "vendor",
    "inspection",
    "utility_meter",
    "utility_reading",
    "ticket",
    "turn",
    "staff",
]


class FoundRecord(msgspec.Struct, frozen=True, gc=False):
    """A record that a search has found. Its fetch returns the rest."""

    schema_version: Literal[1]
    entity_type: RecordKind
    """What kind of record it is."""
    entity_id: int
    external_id: Annotated[str, SENSITIVE]
    """Your own identifier of the record, for which you searched."""


class SearchResults(msgspec.Struct, frozen=True, gc=False):
    """All that a search has found."""

    data: list[FoundRecord]
    """The records, one of a kind at most; `[]` where there are none. A feed may give several turns the same
    `external_id`: of these up to 100."""


encode = msgspec.json.Encoder().encode
