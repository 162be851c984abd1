"""Records by the company's own identifiers, of all services that own some."""

from __future__ import annotations

import asyncio
from typing import get_args

from chassis.http.replies import Reply
from gateway.http import filters, replies
from gateway.http.answers.records_found import FoundRecord, RecordKind, SearchResults, encode
from gateway.http.answers.requests import ApiRequest
from gateway.http.calls import Calls
from gateway.http.routes import OWN_SERVICE
from makeready.common.v1 import lookup_pb2 as pb

LABELS: dict[int, RecordKind] = dict(enumerate(get_args(RecordKind), start=1))
OWNERS: dict[str, tuple[pb.RecordKind.ValueType, ...]] = {
    "svc-catalog": (
        pb.RECORD_KIND_PROPERTY,
        pb.RECORD_KIND_UNIT,
        pb.RECORD_KIND_ASSET,
        pb.RECORD_KIND_VENDOR,
        pb.RECORD_KIND_INSPECTION,
        pb.RECORD_KIND_METER,
        pb.RECORD_KIND_READING,
    ),
    "svc-tickets": (pb.RECORD_KIND_TICKET,),
    "svc-occupancy": (pb.RECORD_KIND_TURN,),
    OWN_SERVICE: (pb.RECORD_KIND_STAFF,),
}
"""The services that own records with an external_id, and their kinds."""


class Searches:
    """The search, which asks each owner of the wanted kinds once."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def answer(self, request: ApiRequest) -> Reply:
        operation = request.operation
        texts = filters.pairs(request.query, operation.allowed_query, operation.may_be_empty)
        message = pb.FindRecordsRequest(**filters.read_filters(operation.filters, texts))
        owners = [name for name, kinds in OWNERS.items() if not message.HasField("kind") or message.kind in kinds]
        answers = await asyncio.gather(
            *(self._calls.call(operation, message, request.caller, request.http.id, service=owner) for owner in owners)
        )
        rows = [row for answer in answers for row in answer.records]
        records = [FoundRecord(1, LABELS[row.kind], row.entity_id, message.external_id) for row in rows]
        return replies.read(encode(SearchResults(records)))
