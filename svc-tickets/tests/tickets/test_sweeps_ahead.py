"""Sweeps ahead of the clock, against a running svc-tickets: confirmed, and recorded in every company's audit log."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Any

import pytest

from chassis.auth.identity import OPERATOR, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.common.v1.retention_pb2 import SweepRetentionRequest
from makeready.common.v1.sweeps_pb2 import RunScheduledSweepsRequest
from testkit.services import RunningService

from ..companies import new_company


@pytest.mark.parametrize(
    ("sweep", "make_request"), [("stale", RunScheduledSweepsRequest), ("retention", SweepRetentionRequest)]
)
async def test_one_that_is_confirmed_is_in_every_companys_log_with_its_operator(
    service: RunningService, database: Database, sweep: str, make_request: Any
) -> None:
    companies = [await new_company(database) for _ in range(2)]
    now = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=20)).replace(microsecond=0)
    request = make_request()
    request.now.FromDatetime(now)
    operator = Identity(OPERATOR, "operator")
    async with service.channel() as channel:

        async def entries() -> list[list[Any]]:
            request = ListAuditRequest(subject="company", limit=10)
            answers = await asyncio.gather(*(service.call(channel, request, company.operator) for company in companies))
            return [
                [(entry.actor, entry.action, entry.subject_id, json.loads(entry.after)) for entry in answer.entries]
                for answer in answers
            ]

        with pytest.raises(Refusal, match="only a request with yes_for_all_companies does it"):
            await service.call(channel, request, operator)
        assert await entries() == [[], []]
        request.yes_for_all_companies, request.requested_by = True, "ada"
        await service.call(channel, request, operator)
        after = {"sweep": sweep, "now": now.strftime("%Y-%m-%dT%H:%M:%S.000000Z"), "requested_by": "ada"}
        assert await entries() == [[("operator", "sweep.started_ahead", company.id, after)] for company in companies]
