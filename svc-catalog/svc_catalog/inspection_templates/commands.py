"""The RPCs of InspectionTemplatesService: administrators keep templates, and all people read them."""

from __future__ import annotations

import msgspec
from asyncpg import UniqueViolationError

from chassis.auth import identity
from chassis.db.database import Database
from chassis.records import bodies
from chassis.refusals import Refusal, invalid_request
from chassis.writes.commands import Command, CommandRunner, fields
from chassis.writes.editing import no_such
from makeready.catalog.v1 import inspection_templates_pb2 as pb
from svc_catalog.inspection_templates import queries, rules
from svc_catalog.inspection_templates.inputs import NewTemplate, TemplateChange
from svc_catalog.inspection_templates.tables import DEFAULT, NAMED, StoredTemplate

_SET = ("name", "inspection_type", "is_default", "rows")
_KIND = "inspection_template"


class InspectionTemplatesService:
    """Adds, changes, removes and lists templates."""

    def __init__(self, database: Database, commands: CommandRunner) -> None:
        self._database, self._commands = database, commands

    async def AddInspectionTemplate(
        self, request: pb.AddInspectionTemplateRequest, call: identity.Call
    ) -> pb.AddInspectionTemplateResponse:
        new = bodies.check(NewTemplate, fields(request, *_SET) | {"rows": list(request.rows)})
        rules.check_default(new.inspection_type, is_default=new.is_default)

        async def work(command: Command) -> pb.AddInspectionTemplateResponse:
            rules.check_number(await queries.count(command.connection, command.company_id))
            values = msgspec.structs.asdict(new)
            try:
                template_id = await queries.add(command.connection, command.company_id, values, command.now)
            except UniqueViolationError as fault:
                raise _taken(fault) from fault
            await command.audit(f"{_KIND}.added", _KIND, template_id, {}, values)
            stored = StoredTemplate(command.company_id, template_id, 1, **values, created_at=command.now,
                                    updated_at=command.now)  # fmt: skip
            return pb.AddInspectionTemplateResponse(template=_message(stored))

        return await self._commands.run(call, request, pb.AddInspectionTemplateResponse, work)

    async def UpdateInspectionTemplate(
        self, request: pb.UpdateInspectionTemplateRequest, call: identity.Call
    ) -> pb.UpdateInspectionTemplateResponse:
        sent = fields(request, *_SET) | {"rows": list(request.rows)}
        change = bodies.check(TemplateChange, sent)
        for name in ("name", "is_default"):
            if name in sent and getattr(change, name) is None:
                raise invalid_request("clear may name inspection_type only.", "clear")

        async def work(command: Command) -> pb.UpdateInspectionTemplateResponse:
            stored = await _locked(command, request.template_id)
            changes = {name: getattr(change, name) for name in sent if name != "rows" or change.rows}
            after = msgspec.structs.replace(stored, **changes)
            rules.check_default(after.inspection_type, is_default=after.is_default)
            if after != stored:
                at = command.next_instant(stored.updated_at)
                try:
                    await queries.save(command.connection, command.company_id, stored.id, _values(after), at)
                except UniqueViolationError as fault:
                    raise _taken(fault) from fault
                await command.audit(f"{_KIND}.changed", _KIND, stored.id, _values(stored), _values(after))
                after = msgspec.structs.replace(after, version=stored.version + 1, updated_at=at)
            return pb.UpdateInspectionTemplateResponse(template=_message(after))

        return await self._commands.run(call, request, pb.UpdateInspectionTemplateResponse, work)

    async def RemoveInspectionTemplate(
        self, request: pb.RemoveInspectionTemplateRequest, call: identity.Call
    ) -> pb.RemoveInspectionTemplateResponse:
        async def work(command: Command) -> pb.RemoveInspectionTemplateResponse:
            stored = await _locked(command, request.template_id)
            await queries.remove(command.connection, command.company_id, stored.id)
            await command.audit(f"{_KIND}.removed", _KIND, stored.id, _values(stored), {})
            return pb.RemoveInspectionTemplateResponse(template=_message(stored))

        return await self._commands.run(call, request, pb.RemoveInspectionTemplateResponse, work)

    async def ListInspectionTemplates(
        self, _request: pb.ListInspectionTemplatesRequest, call: identity.Call
    ) -> pb.ListInspectionTemplatesResponse:
        templates = await queries.templates(self._database, identity.company_id(call))
        return pb.ListInspectionTemplatesResponse(templates=map(_message, templates))


async def _locked(command: Command, template_id: int) -> StoredTemplate:
    stored = await queries.template_for_update(command.connection, command.company_id, template_id)
    if stored is None:
        raise no_such("template")
    return stored


def _values(template: StoredTemplate) -> dict[str, object]:
    return {name: getattr(template, name) for name in _SET}


def _message(template: StoredTemplate) -> pb.InspectionTemplate:
    message = pb.InspectionTemplate(
        template_id=template.id, version=template.version, name=template.name,
        inspection_type=template.inspection_type, is_default=template.is_default, rows=template.rows,
    )  # fmt: skip
    message.created_at.FromDatetime(template.created_at)
    message.updated_at.FromDatetime(template.updated_at)
    return message


def _taken(fault: UniqueViolationError) -> Refusal | UniqueViolationError:
    """The refusal if another template has the name, or is the type's default; else the fault itself."""
    if fault.constraint_name == NAMED:
        return invalid_request("A template of that name exists; use another name.", "name", 422)
    if fault.constraint_name == DEFAULT:
        message = "Another template is the default of this type; take that from it first."
        return invalid_request(message, "is_default", 422)
    return fault
