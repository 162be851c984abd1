"""The RPCs of TurnTemplatesService: administrators keep templates, and people add a template's tasks to a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from asyncpg import UniqueViolationError

from chassis.auth import identity
from chassis.db.database import Connection, Database
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import no_such
from makeready.occupancy.v1 import turn_templates_pb2 as pb
from svc_occupancy.replicas import queries as replica_queries
from svc_occupancy.replicas.fetch import ReplicaFetcher
from svc_occupancy.turn_tasks import queries as task_queries
from svc_occupancy.turn_tasks.commands import PEOPLE, add_tasks, turn_with_work
from svc_occupancy.turn_templates import queries, records, rules
from svc_occupancy.turn_templates.inputs import NewTemplate, TemplateChange, TemplateTask
from svc_occupancy.turn_templates.tables import StoredTemplate, StoredTemplateTask

_CHANGED = ("name", "property_id", "floorplan")


class TurnTemplatesService:
    """Adds, changes, removes, lists and applies templates."""

    def __init__(self, database: Database, commands: CommandRunner, fetcher: ReplicaFetcher) -> None:
        self.database = database
        self.commands = commands
        self.fetcher = fetcher

    async def AddTurnTemplate(
        self, request: pb.AddTurnTemplateRequest, call: identity.Call
    ) -> pb.AddTurnTemplateResponse:
        new = bodies.check(NewTemplate, fields(request, *_CHANGED) | {"tasks": _sent_tasks(request)})
        await self._find(call, new.property_id, new.tasks)

        async def work(command: Command) -> pb.AddTurnTemplateResponse:
            rules.check_number(await queries.count(command.connection, command.company_id))
            await _check_property(command, new.property_id)
            named = (new.name, new.property_id, new.floorplan)
            template = StoredTemplate(command.company_id, 0, 1, *named, command.now, command.now)
            try:
                template_id = await queries.add_template(command.connection, template)
            except UniqueViolationError as fault:
                raise _name_taken(fault) from fault
            template = msgspec.structs.replace(template, id=template_id)
            tasks = _stored(template, new.tasks)
            await queries.save_tasks(command.connection, command.company_id, template_id, tasks)
            await command.audit(
                "turn_template.added", "turn_template", template_id, {}, records.audited(template, tasks)
            )
            (message,) = await _messages(command.connection, command.company_id, [template])
            return pb.AddTurnTemplateResponse(template=message)

        return await self.commands.run(call, request, pb.AddTurnTemplateResponse, work)

    async def UpdateTurnTemplate(
        self, request: pb.UpdateTurnTemplateRequest, call: identity.Call
    ) -> pb.UpdateTurnTemplateResponse:
        sent = fields(request, *_CHANGED)
        change = bodies.check(TemplateChange, sent | {"tasks": _sent_tasks(request)})
        if "name" in sent and change.name is None:
            raise invalid_request("name can't be cleared.", "name")
        await self._find(call, change.property_id, change.tasks)

        async def work(command: Command) -> pb.UpdateTurnTemplateResponse:
            template, before = await _locked(command, request.template_id)
            rules.check_version(request.version if request.HasField("version") else None, template.version)
            await _check_property(command, change.property_id)
            after = msgspec.structs.replace(template, **{name: getattr(change, name) for name in sent})
            tasks = _stored(template, change.tasks) if change.tasks else before
            if (after, tasks) != (template, before):
                at = command.next_instant(template.updated_at)
                try:
                    await queries.save_template(command.connection, after, at)
                except UniqueViolationError as fault:
                    raise _name_taken(fault) from fault
                if tasks != before:
                    await queries.save_tasks(command.connection, command.company_id, template.id, tasks)
                sides = records.audited(template, before), records.audited(after, tasks)
                await command.audit("turn_template.changed", "turn_template", template.id, *sides)
                after = msgspec.structs.replace(after, version=template.version + 1, updated_at=at)
            (message,) = await _messages(command.connection, command.company_id, [after])
            return pb.UpdateTurnTemplateResponse(template=message)

        return await self.commands.run(call, request, pb.UpdateTurnTemplateResponse, work)

    async def RemoveTurnTemplate(
        self, request: pb.RemoveTurnTemplateRequest, call: identity.Call
    ) -> pb.RemoveTurnTemplateResponse:
        async def work(command: Command) -> pb.RemoveTurnTemplateResponse:
            template, tasks = await _locked(command, request.template_id)
            (message,) = await _messages(command.connection, command.company_id, [template])
            await queries.remove_template(command.connection, command.company_id, template.id)
            before = records.audited(template, tasks)
            await command.audit("turn_template.removed", "turn_template", template.id, before, {})
            return pb.RemoveTurnTemplateResponse(template=message)

        return await self.commands.run(call, request, pb.RemoveTurnTemplateResponse, work)

    async def ListTurnTemplates(
        self, _request: pb.ListTurnTemplatesRequest, call: identity.Call
    ) -> pb.ListTurnTemplatesResponse:
        company_id = identity.company_id(call)
        templates = await queries.templates(self.database, company_id)
        return pb.ListTurnTemplatesResponse(templates=await _messages(self.database, company_id, templates))

    async def ApplyTurnTemplate(
        self, request: pb.ApplyTurnTemplateRequest, call: identity.Call
    ) -> pb.ApplyTurnTemplateResponse:
        async def work(command: Command) -> pb.ApplyTurnTemplateResponse:
            turn = await turn_with_work(command, request.turn_id)
            connection, company_id = command.connection, command.company_id
            if await queries.template_for_use(connection, company_id, request.template_id) is None:
                raise no_such("template")
            tasks = (await queries.tasks(connection, company_id, [request.template_id]))[request.template_id]
            stored = await task_queries.tasks(connection, company_id, turn.id)
            present = rules.Present((task.task_type, task.status) for task in stored)
            missing = [task for task in tasks if not present.has(task.task_type)]
            vendors = (
                await replica_queries.people(connection, company_id, (), [task.vendor_id for task in missing])
            ).vendors
            held = {vendor_id: vendor.name for vendor_id, vendor in vendors.items() if vendor.on_hold}
            today = await replica_queries.today(connection, company_id, self.commands.clocks)
            several = [
                {
                    "task_type": task.task_type,
                    "scheduled_date": rules.scheduled_on(turn.move_out_date, task.days_after_move_out, today),
                    "assignee_id": task.assignee_id,
                    "vendor_id": None if task.vendor_id in held else task.vendor_id,
                }
                for task in missing
            ]
            return pb.ApplyTurnTemplateResponse(
                tasks=await add_tasks(command, turn, several),
                present=[task.task_type for task in tasks if present.has(task.task_type)],
                vendors_on_hold=sorted(held.values()),
            )

        return await self.commands.run(call, request, pb.ApplyTurnTemplateResponse, work)

    async def _find(self, call: identity.Call, property_id: int | None, tasks: Sequence[TemplateTask]) -> None:
        """Stores records that the replicas lack. Raises Refusal 404 for a person that the company does not have."""
        company_id = identity.company_id(call)
        if property_id is not None:
            await self.fetcher.fetch_property(company_id, property_id)
        named = {
            name: [person_id for task in tasks if (person_id := getattr(task, name)) is not None] for name in PEOPLE
        }
        await self.fetcher.find_people(company_id, named)


def _sent_tasks(request: Any) -> list[dict[str, Any]]:
    names = TemplateTask.__struct_fields__
    rules.check_tasks([task.task_type for task in request.tasks])
    return [fields(task, *names) for task in request.tasks]


def _stored(template: StoredTemplate, tasks: Sequence[TemplateTask]) -> list[StoredTemplateTask]:
    return [
        StoredTemplateTask(template.company_id, template.id, position, *msgspec.structs.astuple(task))
        for position, task in enumerate(tasks, start=1)
    ]


async def _locked(command: Command, template_id: int) -> tuple[StoredTemplate, list[StoredTemplateTask]]:
    template = await queries.template_for_update(command.connection, command.company_id, template_id)
    if template is None:
        raise no_such("template")
    tasks = await queries.tasks(command.connection, command.company_id, [template_id])
    return template, tasks[template_id]


async def _check_property(command: Command, property_id: int | None) -> None:
    if property_id is not None and not await replica_queries.has_property(
        command.connection, command.company_id, property_id
    ):
        raise Refusal(404, "not_found", "The company has no property with that id; check the id.", "property_id")


async def _messages(
    connection: Connection | Database, company_id: int, templates: Sequence[StoredTemplate]
) -> list[pb.TurnTemplate]:
    tasks = await queries.tasks(connection, company_id, [template.id for template in templates])
    names = await queries.property_names(connection, company_id, templates)
    pairs = [(task.assignee_id, task.vendor_id) for several in tasks.values() for task in several]
    people = await replica_queries.people(
        connection, company_id, [assignee for assignee, _ in pairs], [vendor for _, vendor in pairs]
    )
    return [
        records.turn_template(template, names.get(template.property_id or 0), tasks[template.id], people)
        for template in templates
    ]


def _name_taken(fault: UniqueViolationError) -> Exception:
    """The refusal if another template has the name for the same units; else the fault itself."""
    if fault.constraint_name != "turn_template_named":
        return fault
    message = "A template of that name exists for the same property and floorplan; use another name."
    return invalid_request(message, "name", status=422)
