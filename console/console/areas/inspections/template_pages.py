"""The pages of inspection templates: the list, and one template."""

from __future__ import annotations

from aiohttp import web

from console.areas.inspections import fields
from console.areas.inspections.actions import TEMPLATES, does
from console.areas.inspections.pages import HERE
from console.kit.context import PageContext
from console.kit.forms import Form
from console.kit.texts import _
from makeready.catalog.v1 import inspection_templates_pb2 as pb

ADD = "catalog.InspectionTemplatesService/AddInspectionTemplate"
UPDATE = "catalog.InspectionTemplatesService/UpdateInspectionTemplate"
REMOVE = "catalog.InspectionTemplatesService/RemoveInspectionTemplate"
LIST_PATH = "/inspection-templates"


async def show_list(context: PageContext) -> web.StreamResponse:
    answer = await context.rpcs.call(TEMPLATES, pb.ListInspectionTemplatesRequest())
    return context.render(
        "inspections/templates.html", here=HERE, templates=answer.templates,
        may_change=context.navigation.opens(f"{LIST_PATH}/new"),
    )  # fmt: skip


async def show_new(context: PageContext) -> web.StreamResponse:
    return _page(context, fields.template_form())


async def add(context: PageContext) -> web.StreamResponse:
    form = fields.template_form()
    if await does(context, form, ADD) is None:
        return _page(context, form, form.status)
    return context.redirect(LIST_PATH, _("Template added."))


async def show_one(context: PageContext) -> web.StreamResponse:
    template = await _template(context)
    return _page(context, fields.template_form(template), template=template)


async def change(context: PageContext) -> web.StreamResponse:
    template = await _template(context)
    form = fields.template_form(template)
    if not form.read(context.form):
        return _page(context, form, form.status, template)
    if not form.values["inspection_type"] and template.HasField("inspection_type"):
        form.message.clear.append("inspection_type")
    # A box that is not ticked says so, too.
    form.message.is_default = bool(form.values["is_default"])
    if await does(context, form, UPDATE) is None:
        return _page(context, form, form.status, template)
    return context.redirect(LIST_PATH, _("Template updated."))


async def remove(context: PageContext) -> web.StreamResponse:
    request = pb.RemoveInspectionTemplateRequest(
        idempotency_key=context.form_token, template_id=context.number("template_id")
    )
    await context.rpcs.call(REMOVE, request)
    return context.redirect(LIST_PATH, _("Template removed. Inspections keep its items."))


async def _template(context: PageContext) -> pb.InspectionTemplate:
    template_id = context.number("template_id")
    answer = await context.rpcs.call(TEMPLATES, pb.ListInspectionTemplatesRequest())
    template: pb.InspectionTemplate | None = next(
        (template for template in answer.templates if template.template_id == template_id), None
    )
    if template is None:
        raise web.HTTPNotFound
    return template


def _page(
    context: PageContext, form: Form, status: int = 200, template: pb.InspectionTemplate | None = None
) -> web.Response:
    return context.render("inspections/template.html", status, here=HERE, form=form, template=template)
