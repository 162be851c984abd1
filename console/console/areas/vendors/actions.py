"""The actions on vendors, each with the page that asks for it and says what it will do."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.vendors.pages import GET, HERE, LAPSED, PATH, Row, row_of
from console.kit import times
from console.kit.calls import together
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form
from console.kit.panels import include
from console.kit.sending import send
from console.kit.texts import _
from makeready.catalog.v1 import vendor_commands_pb2 as pb
from makeready.catalog.v1 import vendor_details_pb2 as details_pb

ADD = "catalog.VendorCommandsService/AddVendor"
UPDATE = "catalog.VendorCommandsService/UpdateVendor"
HOLD = "catalog.VendorCommandsService/HoldVendor"
RELEASE = "catalog.VendorCommandsService/ReleaseVendor"
INSURE = "catalog.VendorCommandsService/RecordInsurance"

NAME_MAX, WEBSITE_MAX, ID_MAX, REASON_MAX = "200", "500", "200", "500"
WORKS_AT = (("all_properties", _("All properties")), ("selected_properties", _("Selected properties")))
_EDITED = ("name", "legal_name", "website", "property_visibility", "avg_rating", "rating_count", "external_id")


async def _row(context: PageContext) -> Row:
    response = await context.rpcs.call(GET, details_pb.GetVendorDetailsRequest(vendor_id=context.number("vendor_id")))
    return row_of(response.vendor, context.wall.now.date())


def _path(row: Row, suffix: str = "") -> str:
    return f"{PATH}/{row.vendor.vendor_id}{suffix}"


# Add and edit


def _fields(*, is_new: bool) -> Sequence[Field]:
    legal = _("As on its contract and insurance. Vendors with the same legal name share one website.")
    empty = " " + _("Leave blank to use the name.") if is_new else ""
    first = (
        Field("name", _("Name"), _("As you call this vendor."), required=True, more={"maxlength": NAME_MAX}),
        Field("legal_name", _("Legal name"), legal + empty, required=not is_new, more={"maxlength": NAME_MAX}),
        Field("website", _("Website"), more={"maxlength": WEBSITE_MAX, "placeholder": "https://"}),
        Field("property_visibility", _("Properties"), kind="radios", choices=WORKS_AT, required=True),
        Field("external_id", _("External ID"), _("Its ID in another system. Imports match vendors by it."),
              more={"maxlength": ID_MAX, "spellcheck": "false"}),
    )  # fmt: skip
    ratings = (
        Field("avg_rating", _("Rating"), _("Average rating, on your own scale up to 100.")),
        Field("rating_count", _("Number of ratings"), required=not is_new),
    )
    return (*first, *ratings)


async def show_add(context: PageContext) -> web.StreamResponse:
    return context.render("vendors/add.html", here=HERE, form=_add_form())


def _add_form() -> Form:
    return Form(pb.AddVendorRequest(property_visibility="all_properties"), _fields(is_new=True))


async def add(context: PageContext) -> web.StreamResponse:
    form = _add_form()
    if form.read(context.form) and (added := await send(context, ADD, form)):
        record = json.loads(added.document.json or b"{}")
        path = f"{PATH}/{record['entity_id']}" if "entity_id" in record else PATH
        return context.redirect(path, _("Vendor added. Insurance is not on file: record it to track it."))
    return context.render("vendors/add.html", form.status, here=HERE, form=form)


def _edit_form(vendor: details_pb.VendorDetails) -> Edit:
    request = pb.UpdateVendorRequest(vendor_id=vendor.vendor_id)
    for name in _EDITED:
        if not vendor.DESCRIPTOR.fields_by_name[name].has_presence or vendor.HasField(name):  # type: ignore[arg-type]
            setattr(request, name, getattr(vendor, name))
    return Edit(request, _fields(is_new=False))


async def show_edit(context: PageContext) -> web.StreamResponse:
    row = await _row(context)
    return context.render("vendors/edit.html", here=HERE, row=row, form=_edit_form(row.vendor))


async def edit(context: PageContext) -> web.StreamResponse:
    row = await _row(context)
    form = _edit_form(row.vendor)
    if form.read(context.form) and (not form.changed or await send(context, UPDATE, form)):
        return context.redirect(_path(row), form.summary(_("Vendor updated.")))
    return context.render("vendors/edit.html", form.status, here=HERE, row=row, form=form)


# Hold and release. A form has what its page has said of the hold: an action against another one is refused.


def _hold_stamp(row: Row) -> str:
    vendor = row.vendor
    return f"{vendor.held_at.ToJsonString()} {vendor.hold_reason}" if vendor.on_hold else ""


def _seen_hold(context: PageContext, row: Row) -> str:
    """What the form's page has said of the hold."""
    return context.form.get("seen", _hold_stamp(row)).replace("\r\n", "\n")


def _moved(context: PageContext, row: Row) -> str:
    """What has become of the hold since the form was shown; empty if nothing has."""
    if _seen_hold(context, row) == _hold_stamp(row):
        return ""
    if not row.vendor.on_hold:
        return _("Meanwhile the hold was released.")
    return _("Meanwhile the vendor is on hold: %(reason)s") % {"reason": row.sentence}


def _hold_form(row: Row) -> Form:
    hint = _("Shown to your team. Not sent to integrations.")
    request = pb.HoldVendorRequest(vendor_id=row.vendor.vendor_id)
    if row.vendor.on_hold and row.vendor.hold_reason != LAPSED:
        request.reason = row.vendor.hold_reason
    return Form(request, [Field("reason", _("Reason"), hint, "area", required=True, more={"maxlength": REASON_MAX})])


async def show_hold(context: PageContext) -> web.StreamResponse:
    row = await _row(context)
    return await _hold(context, row, _hold_form(row))


async def _hold(context: PageContext, row: Row, form: Form, status: int = 200) -> web.Response:
    parts = [include(context, "/tickets/panel", vendor_id=row.vendor.vendor_id)]
    if not row.vendor.on_hold:
        parts.append(include(context, "/webhooks/panel", event="vendor.hold"))
    tickets, *endpoints = await together(*parts)
    return context.render(
        "vendors/hold.html", status, here=HERE, row=row, form=form, seen=_hold_stamp(row), tickets=tickets,
        endpoints=endpoints, lapsed=LAPSED,
    )  # fmt: skip


async def hold(context: PageContext) -> web.StreamResponse:
    row = await _row(context)
    form = _hold_form(row)
    if form.read(context.form):
        form.message.idempotency_key = context.form_token
        # The same form sent twice is one action, whose answer the RPC repeats.
        is_done = row.vendor.on_hold and row.vendor.hold_reason == form.message.reason
        form.fault = "" if is_done else _moved(context, row)
        try:
            if not form.fault:
                await context.rpcs.call(HOLD, form.message)
                was_held = bool(_seen_hold(context, row))
                message = _("Hold reason updated.") if was_held else _("Vendor placed on hold.")
                return context.redirect(_path(row), message)
            form.fault += (
                " " + _("Submit again to replace that.")
                if row.vendor.on_hold
                else " " + _("Submit again to place the hold.")
            )
        except Refusal as refusal:
            form.refuse(refusal)
    return await _hold(context, row, form, form.status)


async def show_release(context: PageContext) -> web.StreamResponse:
    return _release(context, await _row(context))


def _release(context: PageContext, row: Row, status: int = 200, error: str = "") -> web.Response:
    return context.render(
        "vendors/release.html", status, here=HERE, row=row, seen=_hold_stamp(row), error=error, lapsed=LAPSED
    )


async def release(context: PageContext) -> web.StreamResponse:
    row = await _row(context)
    if not row.vendor.on_hold:
        return context.redirect(_path(row), _("The vendor is not on hold."))
    if moved := _moved(context, row):
        return _release(context, row, 422, moved + " " + _("Submit again to release it."))
    request = pb.ReleaseVendorRequest(vendor_id=row.vendor.vendor_id, idempotency_key=context.form_token)
    await context.rpcs.call(RELEASE, request)
    return context.redirect(_path(row), _("Hold released. The vendor can get new tickets."))


# Insurance


def _insurance_form(row: Row) -> Form:
    request = pb.RecordInsuranceRequest(vendor_id=row.vendor.vendor_id)
    if row.insured_until is not None:
        request.expires_on = row.vendor.insurance_expires_on
    hint = _("The last insured day on its certificate.")
    return Form(request, [Field("expires_on", _("Insured until"), hint, "date", required=True)])


async def show_insurance(context: PageContext) -> web.StreamResponse:
    row = await _row(context)
    return _insurance(context, row, _insurance_form(row))


def _insurance(context: PageContext, row: Row, form: Form, status: int = 200, past: str = "") -> web.Response:
    return context.render(
        "vendors/insurance.html", status, here=HERE, row=row, form=form, past=past, lapsed=LAPSED,
        seen=row.vendor.insurance_expires_on,
    )  # fmt: skip


async def insure(context: PageContext) -> web.StreamResponse:
    """Asks again before it records a day that is past: the hourly check then places a hold."""
    row = await _row(context)
    form = _insurance_form(row)
    has_none = "none" in context.form
    if form.read(context.form) or has_none:
        now = row.vendor.insurance_expires_on
        if has_none:
            form.message.ClearField("expires_on")
        day = "" if has_none else form.message.expires_on
        # Another day than the page showed, but not the one that this form has recorded when it is sent twice.
        if now not in (context.form.get("seen", now), day):
            form.errors, form.fault = (
                {},
                _("Meanwhile another date was recorded, shown above. Submit again to replace it."),
            )
            return _insurance(context, row, form, 422)
        if day and datetime.date.fromisoformat(day) < context.wall.now.date() and context.form.get("sure") != day:
            return _insurance(context, row, form, past=day)
        if await send(context, INSURE, form):
            return context.redirect(_path(row), _recorded(context, row, day))
    return _insurance(context, row, form, form.status)


def _recorded(context: PageContext, row: Row, day: str) -> str:
    if not day:
        return _("Recorded: no insurance on file.")
    last = datetime.datetime.combine(datetime.date.fromisoformat(day), datetime.time(), context.wall.zone)
    message = _("Recorded: insured until %(day)s.") % {"day": times.day(last, context.wall.now)}
    ends = row.vendor.hold_reason == LAPSED and last.date() >= context.wall.now.date()
    return f"{message} " + _("The hold has ended: the vendor can get new tickets.") if ends else message


# The relationship


async def show_end(context: PageContext) -> web.StreamResponse:
    row = await _row(context)
    tickets = await include(context, "/tickets/panel", vendor_id=row.vendor.vendor_id)
    return context.render("vendors/end.html", here=HERE, row=row, tickets=tickets)


async def end(context: PageContext) -> web.StreamResponse:
    return await _work(context, False, _("Vendor deactivated."))


async def resume(context: PageContext) -> web.StreamResponse:
    return await _work(context, True, _("Vendor reactivated."))


async def _work(context: PageContext, is_active: bool, message: str) -> web.StreamResponse:
    row = await _row(context)
    request = pb.UpdateVendorRequest(
        vendor_id=row.vendor.vendor_id, is_active=is_active, idempotency_key=context.form_token
    )
    await context.rpcs.call(UPDATE, request)
    return context.redirect(_path(row), message)
