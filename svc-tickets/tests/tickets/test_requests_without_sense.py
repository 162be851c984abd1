"""Every context refuses an operator's impossible instants and audit filters, without a fault."""

from __future__ import annotations

import pytest

from chassis.auth.identity import OPERATOR, Identity
from chassis.refusals import Refusal
from makeready.common.v1.audit_pb2 import ListAuditRequest
from makeready.common.v1.sweeps_pb2 import RunScheduledSweepsRequest
from testkit.services import RunningService


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 253_402_300_800, -62_135_596_801, -1])
async def test_an_instant_that_no_sweep_can_have_is_refused(service: RunningService, seconds: int) -> None:
    request = RunScheduledSweepsRequest()
    request.now.seconds = seconds
    async with service.channel() as channel:
        with pytest.raises(Refusal) as refusal:
            await service.call(channel, request, Identity(OPERATOR, "operator"))
    assert (refusal.value.status, refusal.value.message) == (400, "now must lie in the years 1971 to 8999.")


async def test_nul_in_a_subject_of_the_audit_log_is_refused(service: RunningService) -> None:
    request = ListAuditRequest(subject="tick\0et", limit=1)
    async with service.channel() as channel:
        with pytest.raises(Refusal) as refusal:
            await service.call(channel, request, Identity(OPERATOR, "operator", 7))
    assert (refusal.value.status, refusal.value.message) == (400, "subject must not hold the character NUL.")
