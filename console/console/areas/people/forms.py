"""Forms in which administrators add and change members of staff."""

from __future__ import annotations

from aiohttp import web

from console.areas.people.pages import GET, HERE, PATH
from console.kit import lists
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form
from console.kit.sending import send
from console.kit.texts import _
from makeready.identity.v1 import staff_commands_pb2 as pb

ADD = "identity.StaffCommandsService/AddStaff"
UPDATE = "identity.StaffCommandsService/UpdateStaff"
NAME = {"maxlength": "200"}
FIELDS = (
    Field("name", "Name", required=True, more=NAME),
    Field("title", "Title", "For example Maintenance technician.", more=NAME),
    Field("email", "E-mail", _("Needed to invite them to sign in."), more=NAME),
    Field("external_id", _("External ID"), _("Imports match the record by it."), more=NAME),
)
PARTS = (("", (("name",), ("title",), ("email",), ("external_id",))),)


async def show_add(context: PageContext) -> web.StreamResponse:
    return _new(context, Form(pb.AddStaffRequest(), FIELDS))


async def add(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddStaffRequest(), FIELDS)
    if form.read(context.form) and (added := await send(context, ADD, form)):
        invite = " " + _("You can invite them to sign in.") if form.message.email else ""
        return context.redirect(
            f"{PATH}/{added.staff.staff_id}", _("%(name)s added.") % {"name": form.message.name} + invite
        )
    return _new(context, form, form.status)


def _new(context: PageContext, form: Form, status: int = 200) -> web.Response:
    return context.render(
        "form.html", status, here=HERE, form=form, title=_("Add staff member"), path=f"{PATH}/new", parts=PARTS,
        sub=_("You can assign work to them."), crumbs=[("Staff", PATH), ("Add", "")], words=_("Add staff member"),
        back=PATH, suggestions={},
    )  # fmt: skip


async def show_edit(context: PageContext) -> web.StreamResponse:
    staff = await _staff(context)
    return _changed(context, staff, _form(staff))


async def edit(context: PageContext) -> web.StreamResponse:
    staff = await _staff(context)
    form = _form(staff)
    if form.read(context.form) and (not form.changed or await send(context, UPDATE, form)):
        return context.redirect(f"{PATH}/{staff.staff_id}", form.summary(_("Staff member updated.")))
    return _changed(context, staff, form, form.status)


async def _staff(context: PageContext) -> pb.Staff:
    response: pb.GetStaffResponse = await lists.record(
        context.rpcs.call(GET, pb.GetStaffRequest(staff_id=context.number("staff_id")))
    )
    staff: pb.Staff = response.staff
    return staff


def _form(staff: pb.Staff) -> Edit:
    request = pb.UpdateStaffRequest(staff_id=staff.staff_id, name=staff.name)
    for name in ("title", "email", "external_id"):
        if staff.HasField(name):
            setattr(request, name, getattr(staff, name))
    return Edit(request, FIELDS)


def _changed(context: PageContext, staff: pb.Staff, form: Edit, status: int = 200) -> web.Response:
    record_path = f"{PATH}/{staff.staff_id}"
    sub = _("They also sign in with this e-mail address.") if staff.invited else ""
    return context.render(
        "form.html", status, here=HERE, form=form, title=_("Edit staff member"), path=f"{record_path}/edit",
        parts=PARTS, sub=sub, crumbs=[("Staff", PATH), (staff.name, record_path), ("Edit", "")], words=_("Save"),
        back=record_path, suggestions={},
    )  # fmt: skip
