"""Answers of svc-catalog's RPCs of places and meters: a company with two properties; another one without any."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from makeready.catalog.v1 import meter_search_pb2 as meters_pb
from makeready.catalog.v1 import meters_pb2, places_pb2
from makeready.catalog.v1 import place_search_pb2 as pb
from makeready.common.v1.documents_pb2 import Document, Page

from .samples_board import units as board_units
from .stubs import NOW, stamp

ALDER, SAKURA = pb.Place(id=1, name="Alder Court"), pb.Place(id=2, name="桜コート Sakura Court")
STATUSES = ("Occupied", "Occupied", "Notice", "Occupied", "Vacant Not Ready", "Occupied", "Vacant Ready", "Down")
PLANS = (("B2", 2, 1.5, 850), ("A1", 1, 1.0, 620), ("S", 0, 1.0, 430))
MADE = "2024-03-01T10:00:00.000000Z"


def units() -> list[pb.UnitRow]:
    rows: list[pb.UnitRow] = []
    for floor in (1, 2, 3):
        for door in (1, 2, 3, 4, 5, 6):
            place = len(rows)
            plan, bedrooms, bathrooms, feet = PLANS[place % 3]
            rows.append(
                pb.UnitRow(
                    unit_id=11 + place, name=f"Alder Court {floor}0{door}", unit_number=f"{floor}0{door}",
                    unit_status=STATUSES[place % len(STATUSES)], property=ALDER, building=pb.Place(id=1, name="North"),
                    floor=pb.Place(id=floor, name=f"Floor {floor}"), floorplan=pb.Place(id=place % 3 + 1, name=plan),
                    bedrooms=bedrooms, bathrooms=bathrooms, square_feet=feet, external_id=f"AC-{floor}0{door}",
                    projected_ready_on="2026-11-20" if STATUSES[place % len(STATUSES)] == "Vacant Not Ready" else "",
                )
            )  # fmt: skip
    return rows


def hostile_unit(text: str) -> pb.UnitRow:
    place = pb.Place(id=3, name=text)
    return pb.UnitRow(
        unit_id=3, name=text, unit_number=text, property=place, building=place, floor=place, floorplan=place,
        external_id=text,
    )  # fmt: skip


def assets(hostile: str) -> list[pb.AssetRow]:
    return [
        pb.AssetRow(
            asset_id=21, name="Water heater WH-102", category="Plumbing", sub_category="Water heater", asset_tag="T-9",
            make="Rheem", model="ProTerra 50", serial_number="SN-48/213", status="Needs Service", property=ALDER,
            unit=pb.Place(id=12, name="Alder Court 102"), year=2019, installed_on="2019-05-02",
            warranty_expires_on="2027-01-10", expected_life_years=12, external_id="WH-102",
        ),
        pb.AssetRow(
            asset_id=22, name="Elevator 1", category="Elevator", make="Schindler", model="3300", status="Active",
            property=ALDER, location=pb.Place(id=5, name="Machine room"), installed_on="2001-06-01",
            expected_life_years=25,
        ),
        pb.AssetRow(
            asset_id=23, name="ボイラー", category="HVAC", make="三菱", model="MB-2", status="Retired", property=SAKURA,
            warranty_expires_on="2025-01-01",
        ),
        pb.AssetRow(
            asset_id=3, name=hostile, category=hostile, sub_category=hostile, asset_tag=hostile, make=hostile,
            model=hostile, serial_number=hostile, status="Active", property=pb.Place(id=3, name=hostile),
            location=pb.Place(id=9, name=hostile), external_id=hostile,
        ),
    ]  # fmt: skip


def _day(text: str) -> Timestamp:
    return stamp(datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC))


def readings(hostile: str = "") -> list[meters_pb.ReadingRow]:
    """Newest first: a gap, an overlap, a jump, an estimated one."""
    rows = []
    for place in range(14):
        end = datetime.datetime(2026, 11, 1, 5, tzinfo=datetime.UTC) - datetime.timedelta(days=30 * place)
        rows.append(
            meters_pb.ReadingRow(
                reading_id=100 - place, period_start=stamp(end - datetime.timedelta(days=30)), period_end=stamp(end),
                consumption=412.5 + 40 * math.sin(place), unit_of_measure=hostile or "kWh", is_estimated=place == 2,
                created_at=stamp(end), external_id=hostile or f"R-{place}", source="import",
                cost=None if place == 4 else 61.2 + place,
            )
        )  # fmt: skip
    rows[1].gap_seconds, rows[3].gap_seconds, rows[0].times_usual = 12 * 86400, -2 * 86400, 2.7
    return rows


def meters(hostile: str) -> list[meters_pb.MeterRow]:
    return [
        meters_pb.MeterRow(
            meter_id=31, name="Alder Court house electric", utility_type="electric", scope="common_area",
            meter_number="E-4471", unit_of_measure="kWh", is_active=True, property=ALDER, last_reading=readings()[0],
        ),
        meters_pb.MeterRow(
            meter_id=32, name="Alder Court 102 water", utility_type="water", scope="unit", is_active=False,
            property=ALDER, unit=pb.Place(id=12, name="Alder Court 102"),
        ),
        meters_pb.MeterRow(
            meter_id=3, name=hostile, utility_type="gas", scope="master", meter_number=hostile, is_active=True,
            property=pb.Place(id=3, name=hostile), last_reading=readings(hostile)[0], external_id=hostile,
        ),
    ]  # fmt: skip


def _months(request: Any, hostile: str) -> meters_pb.SumReadingsResponse:
    months = []
    for place in range(request.months):
        number = NOW.year * 12 + NOW.month - request.months + place
        value = 400 + 160 * math.cos(number % 12 / 12 * 2 * math.pi) - (place < 12) * 60 + (place * 37 % 50)
        month = meters_pb.MonthOfReadings(
            month=f"{number // 12}-{number % 12 + 1:02}", consumption=value, covered=1.0, readings=1, cost=value * 0.15
        )
        if place == 20:
            month.estimated = value
        if place == 28:
            month.Clear()
            month.month = f"{number // 12}-{number % 12 + 1:02}"
        months.append(month)
    return meters_pb.SumReadingsResponse(months=months, unit_of_measure=hostile or "kWh", left_out=1)


def _counts(rows: Iterable[str]) -> list[pb.Count]:
    statuses = list(rows)
    return [pb.Count(status=status, count=statuses.count(status)) for status in dict.fromkeys(statuses)]


def _document(record: dict[str, Any]) -> Document:
    return Document(json=json.dumps(record).encode(), entity_id=record["entity_id"], version=1)


def _gone(noun: str) -> Refusal:
    return Refusal(404, "not_found", f"No {noun} with that id is visible to this key; check the id and the key.")


def _named(place: pb.Place) -> dict[str, Any] | None:
    return {"id": place.id, "name": place.name, "external_id": None} if place.id else None


def _property(property_id: int, hostile: str) -> dict[str, Any]:
    text = hostile if property_id == 3 else ""
    return {
        "entity_id": property_id, "name": text or (ALDER, SAKURA)[property_id - 1].name, "address": text or "12 Elm St",
        "city": text or "Portland", "state": text or "ME", "postal_code": text or "04101", "source": "import",
        "building_type": text or "Garden", "construction_type": text or "Wood frame", "unit_count": 20,
        "year_built": 1987, "latitude": 43.66, "longitude": -70.26, "created_at": MADE, "external_id": text or "P-1",
    }  # fmt: skip


def _unit(row: pb.UnitRow) -> dict[str, Any]:
    measures = {
        field.name: value for field, value in row.ListFields() if field.name in ("bedrooms", "bathrooms", "square_feet")
    }
    measures = dict.fromkeys(("bedrooms", "bathrooms", "square_feet")) | measures
    return {
        "entity_id": row.unit_id, "name": row.name, "unit_number": row.unit_number,
        "unit_status": row.unit_status or None, "property": _named(row.property),
        "floorplan": {**(_named(row.floorplan) or {}), **measures} if row.floorplan.id else None,
        "building": _named(row.building), "floor": _named(row.floor), "created_at": MADE, "source": "import",
        "external_id": row.external_id, "projected_ready_on": row.projected_ready_on or None,
    }  # fmt: skip


def _asset(row: pb.AssetRow) -> dict[str, Any]:
    place, kind = (row.unit, "unit") if row.unit.id else (row.location, "mechanical_room")
    texts = ("name", "category", "sub_category", "asset_tag", "make", "model", "serial_number", "status", "external_id")
    return {
        "entity_id": row.asset_id, **{name: getattr(row, name) or None for name in texts},
        "property": _named(row.property),
        "location": _named(place) and {**(_named(place) or {}), "location_type": kind},
        "year": row.year or None, "installed_on": row.installed_on or None, "source": "import",
        "warranty_expires_on": row.warranty_expires_on or None, "expected_life_years": row.expected_life_years or None,
        "created_at": MADE, "updated_at": MADE,
    }  # fmt: skip


def _meter(row: meters_pb.MeterRow) -> dict[str, Any]:
    texts = ("name", "utility_type", "scope", "meter_number", "unit_of_measure", "external_id")
    return {
        "entity_id": row.meter_id, **{name: getattr(row, name) or None for name in texts}, "is_active": row.is_active,
        "property": _named(row.property), "unit": _named(row.unit), "created_at": MADE, "updated_at": MADE,
        "source": "import",
    }  # fmt: skip


def place_answers(hostile: str) -> dict[str, Any]:
    """By RPC. Only company 1 has places; the records with the id 3 have hostile texts."""
    all_units, all_assets, all_meters = [*units(), hostile_unit(hostile)], assets(hostile), meters(hostile)
    by_unit = {row.unit_id: row for row in all_units}
    for row in board_units(hostile):  # the turn board has more of them
        place = pb.Place(id=row.property_id, name=row.property)
        by_unit.setdefault(row.unit_id, pb.UnitRow(unit_id=row.unit_id, name=row.name, property=place))
    by_asset = {row.asset_id: row for row in all_assets}
    by_meter = {row.meter_id: row for row in all_meters}
    rows = [
        pb.PropertyRow(property_id=1, name=ALDER.name, address="12 Elm St", city="Portland", state="ME",
                       external_id="P-1", units=_counts(row.unit_status for row in units())),
        pb.PropertyRow(property_id=2, name=SAKURA.name, address="港区 1-2", city="東京", units=[pb.Count(count=1)]),
        pb.PropertyRow(property_id=3, name=hostile, address=hostile, city=hostile),
    ]  # fmt: skip

    def of_company(company_answer: Callable[[Any], Any], empty: Callable[[], Any]) -> Callable[[Any, Identity], Any]:
        return lambda request, who: company_answer(request) if who.company_id == 1 else empty()

    def of_record(
        records: dict[int, Any], field: str, noun: str, response_of: Callable[[Any], Any]
    ) -> Callable[[Any, Identity], Any]:
        def answer(request: Any, who: Identity) -> Any:
            record = records.get(getattr(request, field)) if who.company_id == 1 else None
            if record is None:
                raise _gone(noun)
            return response_of(record)

        return answer

    properties = {number: number for number in range(1, 7)}
    own_units = [row for row in all_units if row.property.id == 1]
    search = "catalog.PlaceSearchService/"

    def units_of(request: Any) -> pb.SearchUnitsResponse:
        fitting = [row for row in all_units if not request.property_id or row.property.id == request.property_id]
        fitting = [row for row in fitting if request.words.lower() in row.name.lower()]
        listed = [row for row in fitting if not request.unit_status or row.unit_status in request.unit_status]
        return pb.SearchUnitsResponse(units=listed, next_after_id=None if request.limit > 200 else 28)

    def assets_of(request: Any) -> pb.SearchAssetsResponse:
        listed = [row for row in all_assets if not request.unit_id or row.unit.id == request.unit_id]
        return pb.SearchAssetsResponse(assets=listed)

    def meters_of(request: Any) -> meters_pb.SearchMetersResponse:
        listed = [row for row in all_meters if not request.unit_id or row.unit.id == request.unit_id]
        return meters_pb.SearchMetersResponse(meters=listed)

    def readings_page(request: Any, who: Identity) -> meters_pb2.ListReadingsResponse:
        """The next reading up to 100; of the hostile meter, one with hostile texts."""
        if who.company_id != 1 or request.meter_id not in by_meter:
            raise _gone("meter")
        if request.after_id >= 100:
            return meters_pb2.ListReadingsResponse(page=Page(data=b"[]"))
        text = hostile if request.meter_id == 3 else "kWh"
        reading = {
            "entity_id": max(request.after_id + 1, 87), "meter_id": request.meter_id,
            "period_start": "2026-10-01T04:00:00.000000Z",
            "period_end": "2026-11-01T04:00:00.000000Z", "consumption": 412.5, "unit_of_measure": text, "cost": 61.2,
            "is_estimated": False, "external_id": text, "source": "staff",
        }  # fmt: skip
        return meters_pb2.ListReadingsResponse(page=Page(data=json.dumps([reading]).encode()))

    parts = pb.ListPlacesOfResponse(
        buildings=[pb.Building(building_id=1, name="North", units=18)],
        floors=[pb.Floor(floor_id=place, name=f"Floor {place}", building_id=1, units=6) for place in (1, 2, 3)],
        floorplans=[
            pb.Floorplan(floorplan_id=place, name=name, bedrooms=rooms, bathrooms=baths, square_feet=feet, units=6)
            for place, (name, rooms, baths, feet) in enumerate(PLANS, start=1)
        ],
        locations=[pb.OtherLocation(location_id=5, name="Machine room", location_type="mechanical_room", assets=1),
                   pb.OtherLocation(location_id=9, name=hostile, location_type="other", assets=1)],
    )  # fmt: skip
    summary = pb.SummarizePropertyResponse(
        units=_counts(row.unit_status for row in own_units), assets=_counts(row.status for row in all_assets), meters=2
    )
    counts = pb.CountPlacesResponse(
        properties=pb.Count(count=3), units=[*summary.units, pb.Count(count=1000, is_more=True)],
        assets=summary.assets, meters=pb.Count(count=3), warranties=pb.Count(count=1),
    )  # fmt: skip
    places = pb.SearchPlacesResponse(
        properties=rows, units=[*units()[:3], all_units[-1]], assets=all_assets, more=["unit"],
        meters=[pb.FoundMeter(meter_id=row.meter_id, name=row.name, property=row.property) for row in all_meters],
    )  # fmt: skip
    nothing = pb.SearchPlacesResponse()
    return {
        # Its words are one letter, or part of a name.
        f"{search}SearchPlaces": of_company(
            lambda request: places if request.words in ("x", "alder", "script") else nothing, pb.SearchPlacesResponse
        ),
        f"{search}SearchProperties": of_company(
            lambda _: pb.SearchPropertiesResponse(properties=rows), pb.SearchPropertiesResponse
        ),
        f"{search}SearchUnits": of_company(units_of, pb.SearchUnitsResponse),
        f"{search}SearchAssets": of_company(assets_of, pb.SearchAssetsResponse),
        f"{search}CountPlaces": of_company(lambda _: counts, pb.CountPlacesResponse),
        f"{search}SummarizeProperty": of_record(properties, "property_id", "property", lambda _: summary),
        f"{search}ListPlacesOf": of_record(properties, "property_id", "property", lambda _: parts),
        "catalog.PropertiesService/GetProperty": of_record(
            properties, "property_id", "property",
            lambda number: places_pb2.GetPropertyResponse(document=_document(_property(number, hostile))),
        ),
        "catalog.UnitsService/GetUnit": of_record(
            by_unit, "unit_id", "unit", lambda row: places_pb2.GetUnitResponse(document=_document(_unit(row)))
        ),
        "catalog.AssetsService/GetAsset": of_record(
            by_asset, "asset_id", "asset", lambda row: places_pb2.GetAssetResponse(document=_document(_asset(row)))
        ),
        "catalog.MetersService/GetMeter": of_record(
            by_meter, "meter_id", "meter", lambda row: meters_pb2.GetMeterResponse(document=_document(_meter(row)))
        ),
        "catalog.MetersService/ListReadings": readings_page,
        "catalog.MeterSearchService/SearchMeters": of_company(meters_of, meters_pb.SearchMetersResponse),
        "catalog.MeterSearchService/ListReadingsSince": of_record(
            by_meter, "meter_id", "meter",
            lambda row: meters_pb.ListReadingsSinceResponse(
                readings=readings(hostile if row.meter_id == 3 else ""), next_before_id=87
            ),
        ),
        "catalog.MeterSearchService/SumReadings": lambda request, who: _months(
            request, hostile if request.meter_id == 3 else ""
        ),
    }  # fmt: skip
