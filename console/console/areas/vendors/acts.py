"""The acts on vendors, each with the page that asks for it and says what it will do."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence

from aiohttp import web

from chassis.refusals import Refusal
from console.areas.vendors.pages import GET, HERE, LAPSED, PATH, Row, row_of
from console.kit import times
from console.kit.calls import together
from console.kit.forms import Edit, Field, Form
from console.kit.visit import Visit
from makeready.catalog.v1 import vendor_commands_pb2 as pb
from makeready.catalog.v1 import vendor_details_pb2 as details_pb

ADD = "catalog.VendorCommandsService/AddVendor"
UPDATE = "catalog.VendorCommandsService/UpdateVendor"
HOLD = "catalog.VendorCommandsService/HoldVendor"
RELEASE = "catalog.VendorCommandsService/ReleaseVendor"
INSURE = "catalog.VendorCommandsService/RecordInsurance"

NAME_MAX, WEBSITE_MAX, ID_MAX, REASON_MAX = "200", "500", "200", "500"
WORKS_AT = (("all_properties", "All properties"), ("selected_properties", "Selected properties"))
_EDITED = ("name", "legal_name", "website", "property_visibility", "avg_rating", "rating_count", "external_id")


async def _row(visit: Visit) -> Row:
    response = await visit.call(GET, details_pb.GetVendorDetailsRequest(vendor_id=visit.number("vendor_id")))
    return row_of(response.vendor, visit.wall.now.date())


def _path(row: Row, suffix: str = "") -> str:
    return f"{PATH}/{row.vendor.vendor_id}{suffix}"


# Add and edit


def _fields(*, is_new: bool) -> Sequence[Field]:
    legal = "As its contract and its insurance have it. Vendors of one legal name are one business, with one website."
    empty = " Empty: the same as the name." if is_new else ""
    first = (
        Field("name", "Name", "What you call it.", required=True, more={"maxlength": NAME_MAX}),
        Field("legal_name", "Legal name", legal + empty, required=not is_new, more={"maxlength": NAME_MAX}),
        Field("website", "Website", more={"maxlength": WEBSITE_MAX, "placeholder": "https://"}),
        Field("property_visibility", "Works at", kind="radios", choices=WORKS_AT, required=True),
        Field("external_id", "External id", "Its id in a system of yours. Imports find it by this.",
              more={"maxlength": ID_MAX, "spellcheck": "false"}),
    )  # fmt: skip
    ratings = (
        Field("avg_rating", "Rating", "The average of its ratings, on your own scale up to 100."),
        Field("rating_count", "Number of ratings", required=not is_new),
    )
    return (*first, *ratings)


async def show_add(visit: Visit) -> web.StreamResponse:
    return visit.render("vendors/add.html", here=HERE, form=_add_form())


def _add_form() -> Form:
    return Form(pb.AddVendorRequest(property_visibility="all_properties"), _fields(is_new=True))


async def add(visit: Visit) -> web.StreamResponse:
    form = _add_form()
    if form.read(visit.form) and (added := await visit.send(ADD, form)):
        record = json.loads(added.document.json or b"{}")
        path = f"{PATH}/{record['entity_id']}" if "entity_id" in record else PATH
        return visit.redirect(path, "Added. Its insurance is not checked until you record it.")
    return visit.render("vendors/add.html", form.status, here=HERE, form=form)


def _edit_form(vendor: details_pb.VendorDetails) -> Edit:
    request = pb.UpdateVendorRequest(vendor_id=vendor.vendor_id)
    for name in _EDITED:
        if not vendor.DESCRIPTOR.fields_by_name[name].has_presence or vendor.HasField(name):  # type: ignore[arg-type]
            setattr(request, name, getattr(vendor, name))
    return Edit(request, _fields(is_new=False))


async def show_edit(visit: Visit) -> web.StreamResponse:
    row = await _row(visit)
    return visit.render("vendors/edit.html", here=HERE, row=row, form=_edit_form(row.vendor))


async def edit(visit: Visit) -> web.StreamResponse:
    row = await _row(visit)
    form = _edit_form(row.vendor)
    if form.read(visit.form) and (not form.changed or await visit.send(UPDATE, form)):
        return visit.redirect(_path(row), form.summary("The vendor is changed."))
    return visit.render("vendors/edit.html", form.status, here=HERE, row=row, form=form)


# Hold and release. A form has what its page has said of the hold: an act against another one is refused.


def _hold_stamp(row: Row) -> str:
    vendor = row.vendor
    return f"{vendor.held_at.ToJsonString()} {vendor.hold_reason}" if vendor.on_hold else ""


def _seen_hold(visit: Visit, row: Row) -> str:
    """What the form's page has said of the hold."""
    return visit.form.get("seen", _hold_stamp(row)).replace("\r\n", "\n")


def _moved(visit: Visit, row: Row) -> str:
    """What has become of the hold since the form was shown; empty if nothing has."""
    if _seen_hold(visit, row) == _hold_stamp(row):
        return ""
    if not row.vendor.on_hold:
        return "Meanwhile the hold was released."
    return f"Meanwhile it is on hold for this reason: {row.sentence}"


def _hold_form(row: Row) -> Form:
    hint = "Your colleagues read it wherever the vendor stands. Integrations do not get it."
    request = pb.HoldVendorRequest(vendor_id=row.vendor.vendor_id)
    if row.vendor.on_hold and row.vendor.hold_reason != LAPSED:
        request.reason = row.vendor.hold_reason
    return Form(request, [Field("reason", "Reason", hint, "area", required=True, more={"maxlength": REASON_MAX})])


async def show_hold(visit: Visit) -> web.StreamResponse:
    row = await _row(visit)
    return await _hold(visit, row, _hold_form(row))


async def _hold(visit: Visit, row: Row, form: Form, status: int = 200) -> web.Response:
    parts = [visit.include("/tickets/panel", vendor_id=row.vendor.vendor_id)]
    if not row.vendor.on_hold:
        parts.append(visit.include("/webhooks/panel", event="vendor.hold"))
    tickets, *endpoints = await together(*parts)
    return visit.render(
        "vendors/hold.html", status, here=HERE, row=row, form=form, seen=_hold_stamp(row), tickets=tickets,
        endpoints=endpoints, lapsed=LAPSED,
    )  # fmt: skip


async def hold(visit: Visit) -> web.StreamResponse:
    row = await _row(visit)
    form = _hold_form(row)
    if form.read(visit.form):
        form.message.idempotency_key = visit.act
        # The same form sent twice is one act, whose answer the RPC repeats.
        is_done = row.vendor.on_hold and row.vendor.hold_reason == form.message.reason
        form.fault = "" if is_done else _moved(visit, row)
        try:
            if not form.fault:
                await visit.call(HOLD, form.message)
                was_held = bool(_seen_hold(visit, row))
                message = "The reason of the hold is changed." if was_held else "It is on hold from now on."
                return visit.redirect(_path(row), message)
            form.fault += " Send the form again to replace that." if row.vendor.on_hold else " Send again to place it."
        except Refusal as refusal:
            form.refuse(refusal)
    return await _hold(visit, row, form, form.status)


async def show_release(visit: Visit) -> web.StreamResponse:
    return _release(visit, await _row(visit))


def _release(visit: Visit, row: Row, status: int = 200, error: str = "") -> web.Response:
    return visit.render(
        "vendors/release.html", status, here=HERE, row=row, seen=_hold_stamp(row), error=error, lapsed=LAPSED
    )


async def release(visit: Visit) -> web.StreamResponse:
    row = await _row(visit)
    if not row.vendor.on_hold:
        return visit.redirect(_path(row), "It is not on hold.")
    if moved := _moved(visit, row):
        return _release(visit, row, 422, moved + " Release it again if it may have work all the same.")
    request = pb.ReleaseVendorRequest(vendor_id=row.vendor.vendor_id, idempotency_key=visit.act)
    await visit.call(RELEASE, request)
    return visit.redirect(_path(row), "The hold is released. It may have new tickets.")


# Insurance


def _insurance_form(row: Row) -> Form:
    request = pb.RecordInsuranceRequest(vendor_id=row.vendor.vendor_id)
    if row.insured_until is not None:
        request.expires_on = row.vendor.insurance_expires_on
    hint = "The last day on which it is insured, as its certificate says."
    return Form(request, [Field("expires_on", "Insured until", hint, "date", required=True)])


async def show_insurance(visit: Visit) -> web.StreamResponse:
    row = await _row(visit)
    return _insurance(visit, row, _insurance_form(row))


def _insurance(visit: Visit, row: Row, form: Form, status: int = 200, past: str = "") -> web.Response:
    return visit.render(
        "vendors/insurance.html", status, here=HERE, row=row, form=form, past=past, lapsed=LAPSED,
        seen=row.vendor.insurance_expires_on,
    )  # fmt: skip


async def insure(visit: Visit) -> web.StreamResponse:
    """Asks again before it records a day that is past: the hourly check then places a hold."""
    row = await _row(visit)
    form = _insurance_form(row)
    has_none = "none" in visit.form
    if form.read(visit.form) or has_none:
        now = row.vendor.insurance_expires_on
        if has_none:
            form.message.ClearField("expires_on")
        day = "" if has_none else form.message.expires_on
        # Another day than the page showed, but not the one that this form has recorded when it is sent twice.
        if now not in (visit.form.get("seen", now), day):
            form.errors, form.fault = (
                {},
                "Meanwhile another day was recorded, which stands above. Send again to replace it.",
            )
            return _insurance(visit, row, form, 422)
        if day and datetime.date.fromisoformat(day) < visit.wall.now.date() and visit.form.get("sure") != day:
            return _insurance(visit, row, form, past=day)
        if await visit.send(INSURE, form):
            return visit.redirect(_path(row), _recorded(visit, row, day))
    return _insurance(visit, row, form, form.status)


def _recorded(visit: Visit, row: Row, day: str) -> str:
    if not day:
        return "Recorded: no insurance is on record."
    last = datetime.datetime.combine(datetime.date.fromisoformat(day), datetime.time(), visit.wall.zone)
    message = f"Recorded: insured until {times.day(last, visit.wall.now)}."
    ends = row.vendor.hold_reason == LAPSED and last.date() >= visit.wall.now.date()
    return f"{message} The hold has ended: the vendor may have new tickets." if ends else message


# The relationship


async def show_end(visit: Visit) -> web.StreamResponse:
    row = await _row(visit)
    tickets = await visit.include("/tickets/panel", vendor_id=row.vendor.vendor_id)
    return visit.render("vendors/end.html", here=HERE, row=row, tickets=tickets)


async def end(visit: Visit) -> web.StreamResponse:
    return await _work(visit, False, "Ended. It is no longer among the vendors that you work with.")


async def resume(visit: Visit) -> web.StreamResponse:
    return await _work(visit, True, "You work with it again.")


async def _work(visit: Visit, is_active: bool, message: str) -> web.StreamResponse:
    row = await _row(visit)
    request = pb.UpdateVendorRequest(vendor_id=row.vendor.vendor_id, is_active=is_active, idempotency_key=visit.act)
    await visit.call(UPDATE, request)
    return visit.redirect(_path(row), message)
