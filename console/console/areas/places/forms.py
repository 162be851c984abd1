"""Forms in which administrators add and change properties, units and assets."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from console.areas.places.places import ASSET_STATUSES, fetched
from console.kit import lists, pickers
from console.kit.context import PageContext
from console.kit.forms import Edit, Field, Form, filled
from console.kit.records import Record
from console.kit.sending import send
from console.kit.texts import _
from makeready.catalog.v1 import place_commands_pb2 as pb
from makeready.catalog.v1 import place_search_pb2, places_pb2

COMMANDS = "catalog.PlaceCommandsService/"
ADD_PROPERTY, UPDATE_PROPERTY = f"{COMMANDS}AddProperty", f"{COMMANDS}UpdateProperty"
ADD_UNIT, UPDATE_UNIT = f"{COMMANDS}AddUnit", f"{COMMANDS}UpdateUnit"
ADD_ASSET, UPDATE_ASSET = f"{COMMANDS}AddAsset", f"{COMMANDS}UpdateAsset"
GET_PROPERTY = "catalog.PropertiesService/GetProperty"
GET_UNIT = "catalog.UnitsService/GetUnit"
GET_ASSET = "catalog.AssetsService/GetAsset"
PARTS = "catalog.PlaceSearchService/ListPlacesOf"
NAME = {"maxlength": "200"}
OWN_ID = Field("external_id", _("External ID"), _("Imports match the record by it."), more=NAME)

# Properties

PROPERTY_FIELDS = (
    Field("name", "Name", required=True, more=NAME),
    Field("address", "Street and number", required=True, more={"maxlength": "500"}),
    Field("city", "City", more=NAME),
    Field("state", "State", more=NAME),
    Field("postal_code", "Postal code", more=NAME),
    Field("building_type", _("Property type"), "For example Garden or Mid-rise.", more=NAME),
    Field("construction_type", _("Construction"), "For example Wood frame.", more=NAME),
    Field("unit_count", "Units", _("As on your records.")),
    Field("year_built", "Year built", more={"maxlength": "4"}),
    Field("latitude", "Latitude", "In degrees, for example 43.66."),
    Field("longitude", "Longitude", "In degrees, for example -70.26."),
    OWN_ID,
)
PROPERTY_PARTS = (
    ("", (("name",), ("address",), ("city", "state", "postal_code"))),
    (_("Building"), (("building_type", "construction_type"), ("unit_count", "year_built"))),
    (_("Location and IDs"), (("latitude", "longitude"), ("external_id",))),
)


async def show_add_property(context: PageContext) -> web.StreamResponse:
    return _new_property(context, Form(pb.AddPropertyRequest(), PROPERTY_FIELDS))


async def add_property(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddPropertyRequest(), PROPERTY_FIELDS)
    if form.read(context.form) and (added := await send(context, ADD_PROPERTY, form)):
        message = _("“%(name)s” added. Add its units next.") % {"name": form.message.name}
        return context.redirect(f"/properties/{added.document.entity_id}", message)
    return _new_property(context, form, form.status)


def _new_property(context: PageContext, form: Form, status: int = 200) -> web.Response:
    return context.render(
        "form.html", status, here="Properties", form=form, title=_("Add property"), path="/properties/new",
        sub=_("A community or site with its buildings and units."), crumbs=[("Properties", "/properties"), ("Add", "")],
        parts=PROPERTY_PARTS, words=_("Add property"), back="/properties", suggestions={},
    )  # fmt: skip


async def show_edit_property(context: PageContext) -> web.StreamResponse:
    record = await _property(context)
    return _changed_property(context, record, _property_form(record))


async def edit_property(context: PageContext) -> web.StreamResponse:
    record = await _property(context)
    form = _property_form(record)
    if form.read(context.form) and (not form.changed or await send(context, UPDATE_PROPERTY, form)):
        return context.redirect(f"/properties/{record['entity_id']}", form.summary(_("Property updated.")))
    return _changed_property(context, record, form, form.status)


async def _property(context: PageContext) -> Record:
    return await fetched(
        context, GET_PROPERTY, places_pb2.GetPropertyRequest(property_id=context.number("property_id"))
    )


def _property_form(record: Record) -> Edit:
    request = pb.UpdatePropertyRequest(property_id=record["entity_id"])
    return Edit(filled(request, {field.name: record[field.name] for field in PROPERTY_FIELDS}), PROPERTY_FIELDS)


def _changed_property(context: PageContext, record: Record, form: Edit, status: int = 200) -> web.Response:
    record_path = f"/properties/{record['entity_id']}"
    return context.render(
        "form.html", status, here="Properties", form=form, title=_("Edit property"), path=f"{record_path}/edit",
        sub=_("The change shows wherever the property is named."), parts=PROPERTY_PARTS, words="Save", back=record_path,
        suggestions={}, crumbs=[("Properties", "/properties"), (record["name"], record_path), ("Edit", "")],
    )  # fmt: skip


# Units

UNIT_FIELDS = (
    Field("name", "Name", "For example Maple Court 204.", required=True, more=NAME),
    Field("unit_number", _("Unit number"), more={"maxlength": "50"}),
    Field("building", "Building", more={**NAME, "list": "known-building"}),
    Field("floor", "Floor", more={**NAME, "list": "known-floor"}),
    Field("floorplan", "Floorplan", more={**NAME, "list": "known-floorplan"}),
    Field("bedrooms", "Bedrooms", "0 is a studio."),
    Field("bathrooms", "Bathrooms", "For example 1.5."),
    Field("square_feet", "Square feet"),
    OWN_ID,
)
UNIT_PARTS = (
    ("", (("name", "unit_number"), ("building", "floor"))),
    (_("Floor plan (applies to all units with it)"), (("floorplan",),
     ("bedrooms", "bathrooms", "square_feet"))),
    ("", (("external_id",),)),
)  # fmt: skip
OF_PROPERTY = Field("property_id", "Property", kind="picker", required=True)


async def show_add_unit(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddUnitRequest(), (OF_PROPERTY, *UNIT_FIELDS))
    form.preset(context.query, "property_id")
    return await _new_unit(context, form)


async def add_unit(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddUnitRequest(), (OF_PROPERTY, *UNIT_FIELDS))
    if form.read(context.form) and (added := await send(context, ADD_UNIT, form)):
        path = f"/properties/{form.message.property_id}/units/{added.document.entity_id}"
        return context.redirect(path, _("“%(name)s” added.") % {"name": form.message.name})
    return await _new_unit(context, form, form.status)


async def _new_unit(context: PageContext, form: Form, status: int = 200) -> web.Response:
    await pickers.fill(context, form)
    property_id = form.message.property_id
    return context.render(
        "form.html", status, here="Units", form=form, title=_("Add unit"), path="/units/new",
        sub=_("A new building, floor or floor plan is added with it."),
        crumbs=[("Units", "/units"), ("Add", "")], parts=[("", [("property_id",)]), *UNIT_PARTS], words=_("Add unit"),
        back=f"/properties/{property_id}" if property_id else "/units",
        suggestions=await _names_in_use(context, property_id),
    )  # fmt: skip


async def _names_in_use(context: PageContext, property_id: int) -> dict[str, Sequence[str]]:
    """The names of buildings, floors and floorplans that the property has."""
    if not property_id:
        return {}
    response = await context.rpcs.panel(PARTS, place_search_pb2.ListPlacesOfRequest(property_id=property_id))
    if not response.ok:
        return {}
    several = {"building": response.buildings, "floor": response.floors, "floorplan": response.floorplans}
    return {name: list(dict.fromkeys(row.name for row in rows)) for name, rows in several.items()}


async def show_edit_unit(context: PageContext) -> web.StreamResponse:
    record = await _unit(context)
    return await _changed_unit(context, record, _unit_form(record))


async def edit_unit(context: PageContext) -> web.StreamResponse:
    record = await _unit(context)
    form = _unit_form(record)
    if form.read(context.form) and (not form.changed or await send(context, UPDATE_UNIT, form)):
        return context.redirect(_unit_path(record), form.summary(_("Unit updated.")))
    return await _changed_unit(context, record, form, form.status)


async def _unit(context: PageContext) -> Record:
    """The unit of the property in the address."""
    record = await fetched(context, GET_UNIT, places_pb2.GetUnitRequest(unit_id=context.number("unit_id")))
    if record["property"]["id"] != context.number("property_id"):
        raise web.HTTPNotFound
    return record


def _unit_path(record: Record) -> str:
    return f"/properties/{record['property']['id']}/units/{record['entity_id']}"


def _unit_form(record: Record) -> Edit:
    plan = record["floorplan"] or {}
    values = {name: record[name] for name in ("name", "unit_number", "external_id")}
    values |= {name: (record[name] or {}).get("name") for name in ("building", "floor", "floorplan")}
    values |= {name: plan.get(name) for name in ("bedrooms", "bathrooms", "square_feet")}
    return Edit(filled(pb.UpdateUnitRequest(unit_id=record["entity_id"]), values), UNIT_FIELDS)


async def _changed_unit(context: PageContext, record: Record, form: Edit, status: int = 200) -> web.Response:
    place, record_path = record["property"], _unit_path(record)
    return context.render(
        "form.html", status, here="Units", form=form, title=_("Edit unit"), path=f"{record_path}/edit", words="Save",
        back=record_path, sub=_("Change its status on the turn board."), parts=UNIT_PARTS,
        crumbs=[("Properties", "/properties"), (place["name"], f"/properties/{place['id']}"),
                (record["name"], record_path), ("Edit", "")],
        suggestions=await _names_in_use(context, place["id"]),
    )  # fmt: skip


# Assets

STATUS = Field("status", "Status", choices=[(status, status) for status in ASSET_STATUSES], required=True)
LOCATIONS = ("mechanical_room", "common_area", "amenity", "parking", "storage", "exterior", "other")
ASSET_FIELDS = (
    Field("property_id", "Property", kind="picker", required=True),
    Field("name", "Name", "For example Water heater WH-102.", required=True, more=NAME),
    Field("category", _("Category"), _("For example Plumbing."), required=True, more=NAME),
    Field("sub_category", _("Subcategory"), "For example Water heater.", more=NAME),
    Field("make", "Make", required=True, more=NAME),
    Field("model", "Model", required=True, more=NAME),
    Field("serial_number", "Serial number", more=NAME),
    Field("asset_tag", _("Asset tag"), more=NAME),
    Field("unit_id", _("Unit"), kind="picker"),
    Field("location", _("Or other location"), "For example Boiler room.", more=NAME),
    Field(
        "location_type", _("Location type"), choices=[(location, location.replace("_", " ")) for location in LOCATIONS]
    ),
    STATUS,
    Field("year", "Year made", more={"maxlength": "4"}),
    Field("installed_on", "Installed on", kind="date"),
    Field("warranty_expires_on", "Warranty ends on", kind="date"),
    Field("expected_life_years", _("Expected life (years)")),
    OWN_ID,
)
ASSET_PARTS = (
    ("", (("name",), ("category", "sub_category"), ("make", "model"), ("serial_number", "asset_tag"))),
    (_("Location"), (("property_id",), ("unit_id",), ("location", "location_type"))),
    (_("Life and warranty"), (("status", "year"), ("installed_on", "warranty_expires_on", "expected_life_years"))),
    ("", (("external_id",),)),
)
PLACE = ("unit_id", "location", "location_type")
TWO_PLACES = _("Choose a unit or enter another location, not both.")


async def show_add_asset(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddAssetRequest(status=places_pb2.ASSET_STATUS_ACTIVE), ASSET_FIELDS)
    form.preset(context.query, "property_id", "unit_id")
    return await _new_asset(context, form)


async def add_asset(context: PageContext) -> web.StreamResponse:
    form = Form(pb.AddAssetRequest(), ASSET_FIELDS)
    if form.read(context.form) and _is_one_place(form) and (added := await send(context, ADD_ASSET, form)):
        return context.redirect(
            f"/assets/{added.document.entity_id}", _("“%(name)s” added.") % {"name": form.message.name}
        )
    return await _new_asset(context, form, form.status)


def _is_one_place(form: Form) -> bool:
    if form.values["unit_id"] and form.values["location"]:
        form.errors["location"] = TWO_PLACES
    elif form.values["location"] and not form.values["location_type"]:
        form.errors["location_type"] = _("Choose the location type.")
    return not form.errors


async def _new_asset(context: PageContext, form: Form, status: int = 200) -> web.Response:
    await pickers.fill(context, form)
    return context.render(
        "form.html", status, here="Assets", form=form, title=_("Add asset"), path="/assets/new", back=_back(context),
        sub=_("Equipment you maintain, such as a water heater."), parts=ASSET_PARTS,
        crumbs=[("Assets", "/assets"), ("Add", "")], words=_("Add asset"), suggestions={},
    )  # fmt: skip


def _back(context: PageContext) -> str:
    property_id = lists.number(context.query, "property_id")
    return f"/properties/{property_id}" if property_id else "/assets"


async def show_edit_asset(context: PageContext) -> web.StreamResponse:
    record = await _asset(context)
    return await _changed_asset(context, record, _asset_form(record))


async def edit_asset(context: PageContext) -> web.StreamResponse:
    record = await _asset(context)
    form = _asset_form(record)
    if form.read(context.form) and _is_moved(form) and (not form.changed or await send(context, UPDATE_ASSET, form)):
        return context.redirect(f"/assets/{record['entity_id']}", form.summary(_("Asset updated.")))
    return await _changed_asset(context, record, form, form.status)


async def set_asset_status(context: PageContext) -> web.StreamResponse:
    """The short form on the asset's page."""
    record = await _asset(context)
    form = Form(pb.UpdateAssetRequest(asset_id=record["entity_id"]), [STATUS])
    if form.read(context.form) and await send(context, UPDATE_ASSET, form):
        return context.redirect(
            f"/assets/{record['entity_id']}", _("Status set to %(status)s.") % {"status": form.values["status"]}
        )
    whole = _asset_form(record)
    whole.fault = form.errors.get("status", form.fault)
    return await _changed_asset(context, record, whole, form.status)


async def _asset(context: PageContext) -> Record:
    return await fetched(context, GET_ASSET, places_pb2.GetAssetRequest(asset_id=context.number("asset_id")))


def _asset_form(record: Record) -> Edit:
    place = record["location"] or {}
    is_unit = place.get("location_type") == "unit"
    values = {field.name: record[field.name] for field in ASSET_FIELDS if field.name not in ("property_id", *PLACE)}
    values |= {"property_id": record["property"]["id"], "unit_id": place.get("id") if is_unit else None}
    values |= {} if is_unit else {"location": place.get("name"), "location_type": place.get("location_type")}
    return Edit(filled(pb.UpdateAssetRequest(asset_id=record["entity_id"]), values), ASSET_FIELDS)


def _is_moved(form: Edit) -> bool:
    """Writes the whole new place into the request, if it differs: a unit replaces a location, and the reverse. Returns
    whether it is one place."""
    changed = form.changed & set(PLACE)
    if not changed:
        return True
    unit, location = form.values["unit_id"], form.values["location"]
    if unit and location and not changed & {"location", "location_type"}:
        location = form.values["location"] = form.values["location_type"] = ""
    elif unit and location and "unit_id" not in changed:
        unit = form.values["unit_id"] = ""
    if not _is_one_place(form):
        return False
    kept = [name for name in form.message.clear if name not in PLACE]
    for name in (*PLACE, "clear"):
        form.message.ClearField(name)
    if unit:
        filled(form.message, {"unit_id": int(unit)})
    elif location:
        filled(form.message, {"location": location, "location_type": form.values["location_type"]})
    form.message.clear.extend(kept if unit or location else [*kept, "unit_id"])
    return True


async def _changed_asset(context: PageContext, record: Record, form: Edit, status: int = 200) -> web.Response:
    await pickers.fill(context, form)
    record_path = f"/assets/{record['entity_id']}"
    return context.render(
        "form.html", status, here="Assets", form=form, title=_("Edit asset"), path=f"{record_path}/edit", words="Save",
        sub=_("Set the status to Retired when it is no longer in use; its history is kept."), parts=ASSET_PARTS,
        back=record_path, crumbs=[("Assets", "/assets"), (record["name"], record_path), ("Edit", "")], suggestions={},
    )  # fmt: skip
