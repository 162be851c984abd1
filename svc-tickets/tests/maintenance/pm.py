"""Commands on preventive-maintenance tasks, for the tests."""

from __future__ import annotations

import json
import secrets
from typing import Any

from makeready.common.v1.documents_pb2 import ImportRow
from makeready.tickets.v1 import pm_tasks_pb2 as pb
from testkit.services import RunningService

from ..companies import Company


class Pm:
    """Calls the RPCs of PmTasksService, as a company's staff by default."""

    def __init__(self, service: RunningService, company: Company, who: Any = None) -> None:
        self.service = service
        self.company = company
        self.who = who or company.staff

    async def __call__(self, rpc: str, **fields: Any) -> Any:
        request = getattr(pb, f"{rpc}Request")(**fields)
        if hasattr(request, "idempotency_key") and not request.idempotency_key:
            request.idempotency_key = secrets.token_hex(8)
        async with self.service.channel() as channel:
            return await self.service.call(channel, request, self.who)

    async def add(self, **fields: Any) -> Any:
        whole = {"property_id": self.company.id, "task_name": "Filters", "due_date": "2040-03-05"} | fields
        return (await self("AddPmTask", **whole)).task

    async def update(self, pm_task_id: int, **fields: Any) -> Any:
        return (await self("UpdatePmTask", pm_task_id=pm_task_id, **fields)).task

    async def complete(self, pm_task_id: int, **fields: Any) -> Any:
        return (await self("CompletePmTask", pm_task_id=pm_task_id, **fields)).task

    async def cancel(self, pm_task_id: int, **fields: Any) -> Any:
        return (await self("CancelPmTask", pm_task_id=pm_task_id, **fields)).task

    async def tasks(self, **fields: Any) -> list[Any]:
        return list((await self("ListPmTasks", **fields)).tasks)

    async def bring(self, *rows: dict[str, Any], **fields: Any) -> list[Any]:
        """Imports rows, filled except for property, task_name and due_date; returns the outcome of each."""
        filled = {"property": "P", "task_name": "Filters", "due_date": "2040-03-05"}
        sent = [ImportRow(line=n, json=json.dumps(filled | row).encode()) for n, row in enumerate(rows, start=1)]
        operator = Pm(self.service, self.company, self.company.operator)
        return list((await operator("ImportPmTasks", rows=sent, **fields)).results)
