"""Forms in which meters are added and changed, and readings recorded and corrected."""

from __future__ import annotations

import datetime
import json
import statistics
from dataclasses import dataclass

from aiohttp import web

from console.areas.meters.pages import GET, HERE, READINGS, SCOPES, UTILITY_TYPES
from console.kit import lists, pickers
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form, filled
from console.kit.records import Record, record_of
from console.kit.sending import send
from console.kit.texts import _
from console.kit.times import amount
from makeready.catalog.v1 import meter_commands_pb2 as pb
from makeready.catalog.v1 import meter_search_pb2, meters_pb2

ADD = "catalog.MeterCommandsService/AddMeter"
UPDATE = "catalog.MeterCommandsService/UpdateMeter"
RECORD = "catalog.MeterCommandsService/RecordReading"
CORRECT = "catalog.MeterCommandsService/CorrectReading"
READING = "catalog.MetersService/ListReadings"
NAME = {"maxlength": "200"}
# How many readings say what is usual, how many at least, and how many times as much or as little is unusual.
USUAL_OF, USUAL_LEAST, UNUSUAL_TIMES = 12, 3, 5
DAY_SECONDS = 86400

METER_FIELDS = (
    Field("name", "Name", _("For example Maple Court house electric."), required=True, more=NAME),
    Field("utility_type", "Utility", choices=[(utility, utility) for utility in UTILITY_TYPES], required=True),
    Field("property_id", "Property", kind="picker", required=True),
    Field("unit_id", "Unit", _("Only for a meter of one unit."), kind="picker"),
    Field("scope", "Measures", _("Default: the unit if one is chosen, otherwise the whole property."),
          choices=tuple(SCOPES.items())),
    Field("meter_number", _("Meter number"), more=NAME),
    Field("unit_of_measure", _("Unit of measure"), "For example kWh or m³.", more={"maxlength": "50"}),
    Field("external_id", _("External ID"), _("Imports match the record by it."), more=NAME),
)  # fmt: skip
IN_USE = Field("is_active", _("Active"), _("An inactive meter keeps its readings."))
METER_PARTS = (
    ("", (("name",), ("utility_type", "unit_of_measure"), ("meter_number", "external_id"))),
    (_("What it measures"), (("property_id",), ("unit_id",), ("scope",))),
)
READING_FIELDS = (
    Field("period_start", "From", kind="datetime", required=True),
    Field("period_end", "To", kind="datetime", required=True),
    Field("consumption", "Consumption", _("Negative if more was exported than used."), required=True),
    Field("unit_of_measure", _("Unit of measure"), more={"maxlength": "50"}),
    Field("cost", "Cost", "In the company's currency."),
    Field("is_estimated", _("Estimated reading")),
)
READING_PARTS = (
    ("", (("period_start", "period_end"), ("consumption", "unit_of_measure"), ("cost",), ("is_estimated",))),
)


async def show_add(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddMeterRequest(), METER_FIELDS)
    form.preset(context.query, "property_id", "unit_id")
    return await _new(context, form)


async def add(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddMeterRequest(), METER_FIELDS)
    if form.read(context.form) and (added := await send(context, ADD, form)):
        return context.redirect(
            f"/meters/{added.document.entity_id}", _("“%(name)s” added.") % {"name": form.message.name}
        )
    return await _new(context, form, form.status)


async def _new(context: PageContext, form: Form, status: int = 200) -> web.Response:
    await pickers.fill(context, form)
    property_id = lists.number(context.query, "property_id")
    return context.render(
        "form.html", status, here=HERE, form=form, title=_("Add meter"), path="/meters/new", parts=METER_PARTS,
        sub=_("Track consumption and compare months."), crumbs=[("Meters", "/meters"), ("Add", "")],
        words=_("Add meter"), back=f"/properties/{property_id}" if property_id else "/meters", suggestions={},
    )  # fmt: skip


async def show_edit(context: PageContext) -> web.StreamResponse:
    record = await _meter(context)
    return await _changed(context, record, _form(record))


async def edit(context: PageContext) -> web.StreamResponse:
    record = await _meter(context)
    form = _form(record)
    if form.read(context.form) and (not form.changed or await send(context, UPDATE, form)):
        return context.redirect(f"/meters/{record['entity_id']}", form.summary(_("Meter updated.")))
    return await _changed(context, record, form, form.status)


async def _meter(context: PageContext) -> Record:
    request = meters_pb2.GetMeterRequest(meter_id=context.number("meter_id"))
    return record_of((await lists.record(context.rpcs.call(GET, request))).document)


def _form(record: Record) -> Edit:
    fields = (*METER_FIELDS, IN_USE)
    values = {
        field.name: record[field.name] for field in fields if not field.name.endswith("_id") or field.name in record
    }
    values |= {"property_id": record["property"]["id"], "unit_id": (record["unit"] or {}).get("id")}
    return Edit(filled(pb.UpdateMeterRequest(meter_id=record["entity_id"]), values), fields)


async def _changed(context: PageContext, record: Record, form: Edit, status: int = 200) -> web.Response:
    await pickers.fill(context, form)
    record_path = f"/meters/{record['entity_id']}"
    return context.render(
        "form.html", status, here=HERE, form=form, title=_("Edit meter"), path=f"{record_path}/edit", words="Save",
        back=record_path, sub=_("Its readings do not change."), parts=(*METER_PARTS, ("", (("is_active",),))),
        suggestions={}, crumbs=[("Meters", "/meters"), (record["name"], record_path), ("Edit", "")],
    )  # fmt: skip


# Readings


async def show_record(context: PageContext) -> web.StreamResponse:
    """The new period begins where the last one ended."""
    meter_id = context.number("meter_id")
    record = await _meter(context)
    last = await context.rpcs.panel(READINGS, meter_search_pb2.ListReadingsSinceRequest(meter_id=meter_id, limit=1))
    request = pb.RecordReadingRequest(meter_id=meter_id, unit_of_measure=record["unit_of_measure"])
    if last.ok and last.readings:
        request.period_start = last.readings[0].period_end.ToJsonString()
    return _new_reading(context, record, Form(request, READING_FIELDS, context.wall.zone))


async def record_reading(context: PageContext) -> web.StreamResponse:
    record = await _meter(context)
    form = Form(pb.RecordReadingRequest(meter_id=record["entity_id"]), READING_FIELDS, context.wall.zone)
    is_read = form.read(context.form)
    if is_read and (unusual := await _unusual(context, form.message)) and context.form.get("sure") != unusual.sure:
        form.fault = unusual.sentence
        return _new_reading(context, record, form, 422, sure=unusual.sure)
    if is_read and (recorded := await send(context, RECORD, form)):
        path = f"/meters/{record['entity_id']}#reading-{recorded.document.entity_id}"
        return context.redirect(path, _("Reading recorded."))
    return _new_reading(context, record, form, form.status)


@dataclass(frozen=True, slots=True)
class Unusual:
    """A reading far from the meter's others. sure: what a form bears whose person has read the sentence."""

    sentence: str
    sure: str


async def _unusual(context: PageContext, reading: pb.RecordReadingRequest) -> Unusual | None:
    """None where the reading is usual, or there are too few to tell. A slip of the keyboard is noticed before it is
    saved: what the page of the meter says of saved readings comes too late."""
    request = meter_search_pb2.ListReadingsSinceRequest(meter_id=reading.meter_id, limit=USUAL_OF)
    page = await context.rpcs.panel(READINGS, request)
    same = [row for row in page.readings if row.unit_of_measure == reading.unit_of_measure] if page.ok else []
    days = [(row.period_end.seconds - row.period_start.seconds) / DAY_SECONDS for row in same]
    rates = [row.consumption / length for row, length in zip(same, days, strict=True) if length > 0]
    start, end = (datetime.datetime.fromisoformat(text) for text in (reading.period_start, reading.period_end))
    length = (end - start).total_seconds() / DAY_SECONDS
    usual = statistics.median(rates) * length if len(rates) >= USUAL_LEAST else 0
    if usual <= 0 or 1 / UNUSUAL_TIMES < reading.consumption / usual < UNUSUAL_TIMES:
        return None
    words = _(
        "%(consumption)s %(unit)s for this period is unusual: about %(usual)s is usual. Check it, or submit again."
    )
    names = {"consumption": amount(reading.consumption), "unit": reading.unit_of_measure, "usual": amount(round(usual))}
    return Unusual(words % names, repr(reading.consumption))


def _new_reading(
    context: PageContext, record: Record, form: Form, status: int = 200, *, sure: str = ""
) -> web.Response:
    record_path = f"/meters/{record['entity_id']}"
    return context.render(
        "form.html", status, here=HERE, form=form, title=_("Record reading"), path=f"{record_path}/readings/new",
        back=record_path, sub=_("Consumption in one period, in the company's time zone."), parts=READING_PARTS,
        suggestions={}, words=_("Record reading"), hidden={"sure": sure} if sure else {},
        crumbs=[("Meters", "/meters"), (record["name"], record_path), (_("Record reading"), "")],
    )  # fmt: skip


async def show_correct(context: PageContext) -> web.StreamResponse:
    record, form = await _meter(context), await _reading_form(context)
    return _corrected(context, record, form)


async def correct(context: PageContext) -> web.StreamResponse:
    record, form = await _meter(context), await _reading_form(context)
    if form.read(context.form) and (not form.changed or await send(context, CORRECT, form)):
        message = form.summary(_("Reading corrected."))
        return context.redirect(f"/meters/{record['entity_id']}#reading-{context.number('reading_id')}", message)
    return _corrected(context, record, form, form.status)


async def _reading_form(context: PageContext) -> Edit:
    meter_id, reading_id = context.number("meter_id"), context.number("reading_id")
    request = meters_pb2.ListReadingsRequest(meter_id=meter_id, after_id=reading_id - 1, limit=1)
    page = (await lists.record(context.rpcs.call(READING, request))).page
    reading = next((reading for reading in json.loads(page.data) if reading["entity_id"] == reading_id), None)
    if reading is None:
        raise web.HTTPNotFound
    values = {field.name: reading[field.name] for field in READING_FIELDS}
    correction = pb.CorrectReadingRequest(meter_id=meter_id, reading_id=reading_id)
    return Edit(filled(correction, values), READING_FIELDS, context.wall.zone)


def _corrected(context: PageContext, record: Record, form: Edit, status: int = 200) -> web.Response:
    record_path = f"/meters/{record['entity_id']}"
    return context.render(
        "form.html", status, here=HERE, form=form, title=_("Correct reading"), words="Save", back=record_path,
        suggestions={}, path=f"{record_path}/readings/{context.number('reading_id')}", parts=READING_PARTS,
        sub=_("The audit log keeps the previous values."),
        crumbs=[("Meters", "/meters"), (record["name"], record_path), (_("Correct reading"), "")],
    )  # fmt: skip
