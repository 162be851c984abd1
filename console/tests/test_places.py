"""The pages of properties, units, assets and meters."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from console.areas.meters.pages import Chart, notes
from console.areas.places.assets import life_of
from console.areas.places.places import levels_of
from console.kit import charts
from console.kit.times import amount
from console.pages import PAGES
from makeready.catalog.v1 import meter_commands_pb2, places_pb2
from makeready.catalog.v1 import meter_search_pb2 as meters_pb
from makeready.catalog.v1 import place_commands_pb2 as commands_pb2
from makeready.catalog.v1 import place_search_pb2 as pb
from makeready.common.v1.documents_pb2 import Document
from makeready.identity.v1 import staff_commands_pb2

from .browsing import Browser, Tags
from .samples_places import ALDER, units
from .stubs import NOW, PASSWORD, Stubs

SEARCH = "catalog.PlaceSearchService/"
METERS = "catalog.MeterSearchService/"


def fields(message: Any) -> dict[str, Any]:
    """The fields that a request sets; repeated ones as lists."""
    return {field.name: list(value) if field.is_repeated else value for field, value in message.ListFields()}


@pytest.mark.parametrize(
    ("path", "rpc", "values"),
    [
        (
            "/units?property_id=2&status=Vacant+Ready&q=10&after=17",
            f"{SEARCH}SearchUnits",
            {"property_id": 2, "unit_status": ["Vacant Ready"], "words": "10", "after_id": 17, "limit": 50},
        ),
        (
            "/units?status=vacant",
            f"{SEARCH}SearchUnits",
            {"unit_status": ["Vacant Not Ready", "Vacant Ready"], "limit": 50},
        ),
        ("/units?status=unknown", f"{SEARCH}SearchUnits", {"unit_status": [""], "limit": 50}),
        ("/units?status=Burning&property_id=x&after=-1", f"{SEARCH}SearchUnits", {"limit": 50}),
        (
            "/assets?status=Retired&kind=HVAC&warranty=30&unit_id=9&after=4",
            f"{SEARCH}SearchAssets",
            {
                **{"status": ["Retired"], "category": "HVAC", "unit_id": 9, "after_id": 4, "limit": 50},
                **{"warranty_from": "2026-11-22", "warranty_by": "2026-12-22"},
            },
        ),
        ("/assets?warranty=over", f"{SEARCH}SearchAssets", {"warranty_by": "2026-11-21", "limit": 50}),
        (
            "/meters?type=gas&state=inactive&scope=unit&property_id=1",
            f"{METERS}SearchMeters",
            {"utility_type": ["gas"], "is_active": False, "scope": "unit", "property_id": 1, "limit": 50},
        ),
        ("/meters/31?before=87", f"{METERS}ListReadingsSince", {"meter_id": 31, "before_id": 87, "limit": 50}),
        ("/properties?q=elm&after=2", f"{SEARCH}SearchProperties", {"words": "elm", "after_id": 2, "limit": 50}),
    ],
)
async def test_filters_in_the_address_are_those_of_the_list(
    staff: Browser, stubs: Stubs, path: str, rpc: str, values: dict[str, Any]
) -> None:
    reply = await staff.get(path)
    assert reply.status == 200
    assert values in [fields(request) for request in stubs.called(rpc)]
    for link in re.findall(r'href="(/(?:units|assets|meters)\?[^"]*)"', reply.text):
        assert (await staff.get(link.replace("&amp;", "&"))).status == 200


async def test_a_file_has_the_whole_list(staff: Browser, stubs: Stubs) -> None:
    pages = [units()[:3], units()[3:5]]

    def answer(request: Any, _who: Identity) -> pb.SearchUnitsResponse:
        return pb.SearchUnitsResponse(
            units=pages[bool(request.after_id)], next_after_id=None if request.after_id else 13
        )

    stubs.answers[f"{SEARCH}SearchUnits"] = answer
    reply = await staff.get("/units?csv=1&status=Occupied")
    assert (
        reply.headers["Content-Type"].startswith("text/csv")
        and 'filename="units.csv"' in reply.headers["Content-Disposition"]
    )
    rows = list(csv.DictReader(io.StringIO(reply.text.removeprefix("\ufeff"))))
    assert [row["id"] for row in rows] == ["11", "12", "13", "14", "15"]
    assert rows[1]["property"] == "Alder Court" and rows[1]["square_feet"] == "620"
    assert {request.limit for request in stubs.called(f"{SEARCH}SearchUnits")} == {200}
    for path in ("/properties?csv=1", "/assets?csv=1", "/meters?csv=1", "/meters/31?csv=1"):
        stubs.answers[f"{METERS}ListReadingsSince"] = meters_pb.ListReadingsSinceResponse()
        assert (await staff.get(path)).headers["Content-Type"].startswith("text/csv")


async def test_a_record_that_nobody_has_and_another_companys_are_one_page(
    signed_in: Callable[..., Browser], staff: Browser, stranger: Browser
) -> None:
    def bare(reply: Any) -> str:
        text = reply.text.replace("Other Homes", "Makeready Demo").replace("Olga Other", "Dana Adler")
        text = re.sub(r'data-owner="[^"]*"', "", text.replace('data-company="2"', 'data-company="1"'))
        return re.sub(r"(?<=<code>)[0-9a-f]{24}|(?<=name=\"act\" value=\")[^\"]+|OO<|DA<", "", text)

    dana = signed_in("dana@demo.example")
    for theirs, nobodys in (
        ("/properties/1", "/properties/404"),
        ("/properties/1/units/12", "/properties/1/units/404"),
        ("/properties/1/units/12", "/properties/2/units/12"),  # a unit of another property
        ("/assets/21", "/assets/404"),
        ("/meters/31", "/meters/404"),
        ("/meters/31?csv=1", "/meters/404"),
    ):
        assert (await dana.get(theirs)).status == 200
        foreign, two = await stranger.get(theirs), await dana.get(nobodys)
        assert (foreign.status, two.status) == (404, 404)
        assert bare(foreign) == bare(two), theirs
    assert "Alder" not in (await stranger.get("/units/panel?property_id=1")).text
    for path in ("/units/panel", "/assets/panel", "/meters/panel?unit_id=x"):
        assert (await staff.get(path)).status == 404


async def test_parts_that_do_not_answer_are_missing_alone(staff: Browser, stubs: Stubs) -> None:
    stubs.slow.update({f"{SEARCH}SummarizeProperty", f"{SEARCH}SearchAssets", f"{METERS}SumReadings"})
    property_page, meter_page = await staff.get("/properties/1"), await staff.get("/meters/31")
    assert property_page.status == meter_page.status == 200
    assert (
        property_page.words.lower().count("unavailable right now") == 2
        and "Alder Court house electric" in property_page.words
    )
    assert "Consumption: Unavailable right now." in meter_page.words and "reading-100" in meter_page.text


async def test_the_only_exact_hit_opens(staff: Browser, stubs: Stubs) -> None:
    unit = units()[1]
    for response, path in (
        (pb.SearchPlacesResponse(units=[unit], exact=["unit 12"]), "/properties/1/units/12"),
        (pb.SearchPlacesResponse(meters=[pb.FoundMeter(meter_id=31)], exact=["meter 31"]), "/meters/31"),
        (pb.SearchPlacesResponse(properties=[pb.PropertyRow(property_id=1)], exact=["property 1"]), "/properties/1"),
    ):
        stubs.answers[f"{SEARCH}SearchPlaces"] = response
        reply = await staff.get("/places/found?q=x")
        assert (reply.status, reply.headers["Location"]) == (303, path)
    stubs.answers[f"{SEARCH}SearchPlaces"] = pb.SearchPlacesResponse(units=[unit])
    assert (await staff.get("/places/found?q=102")).status == 200
    stubs.calls.clear()
    assert "<section" not in (await staff.get("/places/found?q=")).text.partition("<main")[2].replace("<section>", "")
    assert not stubs.called(f"{SEARCH}SearchPlaces")


async def test_a_meter_shows_its_months_gaps_and_jumps(staff: Browser) -> None:
    page = await staff.get("/meters/31")
    assert 'id="reading-100"' in page.text and 'id="reading-87"' in page.text
    for sentence in (
        "2.7 times the usual",
        "gap of 12 days before this reading",
        "overlaps the previous reading by 2 days",
    ):
        assert sentence in page.words
    assert (
        "Readings are missing in" in page.words and "1 reading in another unit of measure is not shown." in page.words
    )
    described = re.search(r'class="bars months"[^>]*role="img" aria-label="([^"]+)"', page.text)
    assert described is not None and described[1].startswith(
        "Consumption by month, December 2024 to November 2026. Most in"
    )
    assert 'fill="url(#estimated)"' in page.text and 'class="cost"' in page.text and "a year before" in page.text


async def test_a_unit_is_where_its_records_are(staff: Browser) -> None:
    page = await staff.get("/properties/1/units/12")
    is_there = any(line.path == "/units/{unit_id}/transitions" for line in PAGES)
    assert ('href="/units/12/transitions"' in page.text) == is_there
    for link in ("/properties/1", "/assets/21", "/meters/32", "/assets?unit_id=12"):
        assert f'href="{link}"' in page.text, link
    assert page.title == "Alder Court 102" and "1 bed · 1 bath · 620 sq ft" in page.words


def test_the_floor_plan_has_the_highest_floor_first_and_the_homeless_last() -> None:
    several = [*units()[:12], pb.UnitRow(unit_id=90, name="Shed", property=ALDER)]
    parts = pb.ListPlacesOfResponse(
        buildings=[pb.Building(building_id=1, name="North")],
        floors=[pb.Floor(floor_id=1, name="Floor 1"), pb.Floor(floor_id=2, name="Floor 2")],
    )
    assert [(level.building, level.floor, len(level.units)) for level in levels_of(several, parts)] == [
        ("North", "Floor 2", 6), ("North", "Floor 1", 6), ("", "", 1),
    ]  # fmt: skip


def test_a_life_begins_with_the_installation() -> None:
    today = datetime.date(2026, 11, 22)
    record = {"installed_on": "2016-11-22", "expected_life_years": 20, "warranty_expires_on": "2021-11-22"}
    life = life_of(record, today)
    assert life is not None and (round(life.today, 2), round(life.warranty, 2)) == (0.5, 0.25)
    assert life.sentence == "10 years old, of 20 expected."
    old = life_of({**record, "expected_life_years": 5}, today)
    assert (
        old is not None and old.is_old and old.today == 1 and old.sentence.endswith("5 years more than the 5 expected.")
    )
    young = life_of({**record, "installed_on": "2024-02-29", "expected_life_years": 1}, datetime.date(2024, 3, 30))
    assert young is not None and young.sentence == "1 month old, of 1 expected."
    assert young.expected_end == datetime.date(2025, 3, 1) and young.warranty == 0
    for missing in ({"installed_on": None}, {"installed_on": "2027-01-01"}):
        assert life_of({**record, **missing}, today) is None
    assert life_of({**record, "expected_life_years": None, "warranty_expires_on": None}, today) is None


def _sums(values: Sequence[float | None]) -> meters_pb.SumReadingsResponse:
    months = []
    for place, value in enumerate(values):
        number = 2026 * 12 + 10 - len(values) + 1 + place
        month = meters_pb.MonthOfReadings(month=f"{number // 12}-{number % 12 + 1:02}")
        if value is not None:
            month.consumption, month.readings, month.covered = value, 1, 1.0
        months.append(month)
    return meters_pb.SumReadingsResponse(months=months, unit_of_measure="kWh")


def test_a_chart_compares_with_the_year_before_and_names_gaps() -> None:
    rising = Chart(_sums([100.0] * 23 + [150.0] * 13), NOW)
    assert rising.change == "The last twelve months have 50 % more than the twelve before." and not rising.gaps
    assert rising.months[-1].label == "November 2026: 150 kWh, a year before 150"
    holes = Chart(_sums([None] * 15 + [10.0, None, 20.0] + [10.0] * 18), NOW)
    assert holes.gaps == ["April"] and not holes.change  # what lies before the first reading is no gap
    empty = Chart(_sums([None] * 36), NOW)
    assert not empty.has_values and empty.description == "No reading in the last 24 months."
    fed_back = charts.consumption([charts.Month("a", -5, before=3), charts.Month("b", 2, cost=1)], "d", "<kWh>", [])
    assert "&lt;kWh&gt;" in fed_back and 'height="-' not in fed_back and ">-5<" in fed_back
    assert charts.consumption([], "nothing", "", [])


def test_what_stands_out_is_said_in_words() -> None:
    end = Timestamp(seconds=86400)
    assert notes(meters_pb.ReadingRow(period_end=end)) == []
    assert notes(meters_pb.ReadingRow(times_usual=0.25)) == [("amber", "25 % of the usual")]
    assert notes(meters_pb.ReadingRow(times_usual=0)) == [("amber", "nothing of the usual")]
    assert [amount(value) for value in (0, 1234.5, 12345.678, -0.25, 100)] == ["0", "1,234.5", "12,346", "-0.25", "100"]


async def test_a_picker_lists_what_its_form_narrows(administrator: Browser, stubs: Stubs) -> None:
    async def part(query: str, path: str = "/places/pick") -> str:
        reply = await administrator.get(f"{path}?{query}", HX_Request_Type="partial")
        assert reply.status == 200
        return reply.text

    html = await part("name=property_id&property_id=2&required=1&below=1")
    assert '<option value="2" selected' in html and "桜コート Sakura Court, 東京" in html and "<label" not in html
    assert 'name="find" value="property_id"' in html
    html = await part("name=unit_id&inputs=property_id")
    assert "Choose a property first" in html and html.count("<option") == 1
    assert 'hx-trigger="change from:#f-property_id"' in html and 'hx-include="#f-property_id, #f-unit_id"' in html
    html = await part("name=unit_id&property_id=1&q.unit_id=201&unit_id=15&prefix=x-")
    assert html.count("Alder Court 201") == 1 and '<optgroup label="Current">' in html and "1 match" in html
    assert 'id="x-f-unit_id-q"' in html and "property_id=1" in html
    html = await part("name=unit_id&property_id=1&inputs=property_id&unit_id=3")
    assert 'value="3"' not in html, "a unit of another property is no choice"
    html = await part("name=asset_id&property_id=1&unit_id=12&inputs=property_id+unit_id")
    assert html.index("In the unit") < html.index("Water heater") < html.index("Elsewhere") < html.index("Elevator 1")
    assert "ボイラー" not in html, "a retired one is no choice"
    assert "ボイラー" in await part("name=asset_id&asset_id=23"), "but stays chosen"
    html = await part("name=vendor_id&vendor_id=6", "/vendors/pick")
    assert "Casco Elevator: on hold, insurance lapsed" in html and "Müller Roofing (inactive)" in html
    assert "(ended)" in await part("name=assignee_id&assignee_id=10", "/people/pick")
    for query in ("", "name=staff_id", "name=act", "name=unit_id&prefix=%22%3E", "name=unit_id&prefix=A"):
        assert (await administrator.get(f"/places/pick?{query}")).status == 404, query


async def test_a_place_is_added_from_its_form(administrator: Browser, stubs: Stubs) -> None:
    stubs.answers["catalog.PlaceCommandsService/AddUnit"] = commands_pb2.AddUnitResponse(
        document=Document(entity_id=99)
    )
    reply = await administrator.get("/units/new?property_id=1")
    assert '<option value="1" selected' in reply.text and '<option value="North">' in reply.text
    values = {"property_id": "1", "name": "Alder Court 404", "floor": "Floor 4", "bathrooms": "1.5"}
    reply = await administrator.send("/units/new", **values | {"find": "property_id", "name": ""})
    assert reply.status == 200 and "Floor 4" in reply.text and "is missing" not in reply.words
    assert not stubs.called("catalog.PlaceCommandsService/AddUnit"), "a button of a picker does nothing"
    reply = await administrator.send("/units/new", **values | {"bathrooms": "1,5"})
    assert reply.status == 422 and "Bathrooms must be a number like 1234.5." in reply.words
    reply = await administrator.send("/units/new", **values)
    assert (reply.status, reply.headers["Location"]) == (303, "/properties/1/units/99")
    (sent,) = stubs.called("catalog.PlaceCommandsService/AddUnit")
    assert (sent.property_id, sent.floor, sent.bathrooms, sent.HasField("building")) == (1, "Floor 4", 1.5, False)
    assert sent.idempotency_key

    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(400, "invalid_request", "year_built must be from 1000 to 2999.", "year_built")

    stubs.answers["catalog.PlaceCommandsService/UpdateProperty"] = refuse
    await administrator.get("/properties/1/edit")
    reply = await administrator.send("/properties/1/edit", year_built="12")
    assert reply.status == 422 and "“Year built” must be from 1000 to 2999." in reply.words
    assert 'value="12"' in reply.text


async def test_an_edit_sends_what_differs(administrator: Browser, staff: Browser, stubs: Stubs) -> None:
    update = "catalog.PlaceCommandsService/UpdateAsset"

    async def edit(path: str, **values: str) -> Any:
        stubs.calls.clear()
        await administrator.get(path)
        reply = await administrator.send(path, **values)
        assert reply.status == 303, reply.words
        return next(iter(stubs.called(update)), None)

    assert await edit("/assets/21/edit") is None, "nothing changed, so nothing is sent"
    sent = await edit("/assets/21/edit", year="2,020", asset_tag="")
    assert [field.name for field, _ in sent.ListFields()] == ["idempotency_key", "asset_id", "year", "clear"]
    assert (sent.year, list(sent.clear)) == (2020, ["asset_tag"])
    sent = await edit("/assets/21/edit", location="Roof", location_type="exterior")
    assert (sent.location, sent.HasField("unit_id"), list(sent.clear)) == ("Roof", False, []), "it leaves its unit"
    sent = await edit("/assets/22/edit", unit_id="12")
    assert (sent.unit_id, sent.HasField("location"), list(sent.clear)) == (12, False, [])
    assert list((await edit("/assets/21/edit", unit_id="")).clear) == ["unit_id"]
    await administrator.get("/assets/21")
    stubs.calls.clear()
    assert (await administrator.send("/assets/21/status", status="Retired")).status == 303
    assert stubs.called(update)[0].status == places_pb2.ASSET_STATUS_RETIRED
    assert "/assets/21/edit" not in (await staff.get("/assets/21")).text


async def test_staff_record_and_correct_readings_by_the_companys_clock(staff: Browser, stubs: Stubs) -> None:
    done = meter_commands_pb2.RecordReadingResponse(document=Document(entity_id=7))
    stubs.answers["catalog.MeterCommandsService/RecordReading"] = done
    reply = await staff.get("/meters/31/readings/new")
    assert 'value="2026-11-01T01:00"' in reply.text, "the new period begins where the last one ended"
    slip = await staff.send("/meters/31/readings/new", period_end="2026-12-01T00:00", consumption="290,000")
    assert slip.status == 422 and "290,000 kWh for this period is unusual" in slip.words
    assert not stubs.called("catalog.MeterCommandsService/RecordReading")
    reply = await staff.send("/meters/31/readings/new", consumption="1,250.5")
    assert reply.headers["Location"] == "/meters/31#reading-7"
    (sent,) = stubs.called("catalog.MeterCommandsService/RecordReading")
    assert (sent.period_start, sent.period_end) == ("2026-11-01T01:00:00-04:00", "2026-12-01T00:00:00-05:00")
    assert (sent.consumption, sent.unit_of_measure, sent.HasField("cost")) == (1250.5, "kWh", False)
    await staff.get("/meters/31/readings/100")
    assert (await staff.send("/meters/31/readings/100", cost="", is_estimated="1")).status == 303
    (sent,) = stubs.called("catalog.MeterCommandsService/CorrectReading")
    assert (sent.reading_id, sent.is_estimated, list(sent.clear)) == (100, True, ["cost"])
    assert not sent.HasField("consumption") and not sent.HasField("period_start")
    assert (await staff.get("/meters/31/readings/404")).status == 404


async def test_a_form_goes_on_while_the_other_context_is_away(apart: tuple[Stubs, Browser]) -> None:
    stubs, administrator = apart
    stubs.slow.add("catalog.PlaceSearchService/SearchProperties")
    reply = await administrator.get("/meters/new?property_id=1")
    assert reply.status == 200 and 'name="property_id" value="1" inputmode="numeric"' in reply.text
    assert "Enter the record’s number instead." in reply.words


async def test_a_member_of_staff_is_added_and_changed_after_a_confirmation(
    signed_in: Callable[..., Browser], staff: Browser, stubs: Stubs
) -> None:
    administrator = signed_in("dana@demo.example", confirmed=False)
    update, add = (f"identity.StaffCommandsService/{verb}Staff" for verb in ("Update", "Add"))
    stubs.answers[add] = staff_commands_pb2.AddStaffResponse(staff=staff_commands_pb2.Staff(staff_id=11))
    await administrator.get("/staff/8/edit")
    reply = await administrator.send("/staff/8/edit", title="", name="DeShawn W.")
    assert reply.status == 403 and 'name="seen.title"' in reply.text, "it bears the whole form along"
    reply = await administrator.send("/staff/8/edit", **{"confirm": "1", "confirm.password": PASSWORD})
    assert (reply.status, reply.headers["Location"]) == (303, "/staff/8")
    (sent,) = stubs.called(update)
    assert (sent.name, list(sent.clear), sent.HasField("email")) == ("DeShawn W.", ["title"], False)
    await administrator.get("/staff/new")
    reply = await administrator.send("/staff/new", name="Nia Cole", email="nia@demo.example")
    assert reply.headers["Location"] == "/staff/11" and stubs.called(add)[0].email == "nia@demo.example"
    assert (await staff.get("/staff/8/edit")).status == 403 and "/staff/8/edit" not in (
        await staff.get("/staff/8")
    ).text


async def test_a_picker_of_many_finds_by_words(administrator: Browser, stubs: Stubs) -> None:
    people = [
        staff_commands_pb2.Staff(staff_id=place + 1, name=f"Person {place + 1}", active=True) for place in range(200)
    ]

    def listed(request: Any, _who: Any) -> Any:
        fitting = [person for person in people if request.words.lower() in person.name.lower()][: request.limit]
        more = None if request.words else 200
        return staff_commands_pb2.ListStaffResponse(staff=fitting, next_after_id=more)

    stubs.answers["identity.StaffCommandsService/ListStaff"] = listed
    empty = (await administrator.get("/people/pick?name=staff_id", HX_Request_Type="partial")).text
    assert "Search above" in empty and empty.count("<option") == 1
    picker = (await administrator.get("/people/pick?name=staff_id&q.staff_id=17", HX_Request_Type="partial")).text
    fitting = sum("17" in person.name for person in people)
    assert picker.count("<option") == fitting + 1 and f"{fitting} matches" in picker


async def test_a_unit_s_address_opens_its_property_s_unit_status_view_at_the_unit(staff: Browser, stubs: Stubs) -> None:
    """Spec 2.5: a unit's `url` "opens the property's unit status view"."""
    page = await staff.get("/properties/1/units/13")
    (request,) = stubs.called("catalog.PlaceSearchService/SearchUnits")
    assert (request.property_id, request.after_id) == (1, 0)
    assert "Units of Alder Court by status" in page.words
    flats = [
        attributes
        for tag, attributes in Tags(page.text).found
        if tag == "a" and "flat" in str(attributes.get("class")).split()
    ]
    addresses = {str(flat["href"]): flat.get("aria-current") for flat in flats}
    assert len(addresses) > 5 and [path for path, current in addresses.items() if current] == ["/properties/1/units/13"]
    assert all(": " in str(flat["title"]) for flat in flats)  # each with its status, in words
    # Far down in a large property it shows the units around this one.
    stubs.answers["catalog.UnitsService/GetUnit"] = _renumbered(stubs.answers["catalog.UnitsService/GetUnit"], 13, 4013)
    stubs.calls.clear()
    assert (await staff.get("/properties/1/units/4013")).status == 200
    (request,) = stubs.called("catalog.PlaceSearchService/SearchUnits")
    assert request.after_id < 4013 <= request.after_id + request.limit
    # Without these parts the unit's own page stands.
    stubs.slow |= {"catalog.PlaceSearchService/SearchUnits", "catalog.PlaceSearchService/SummarizeProperty"}
    page = await staff.get("/properties/1/units/4013")
    assert page.status == 200 and "unavailable right now" in page.words.lower()


def _renumbered(plain: Any, before: int, after: int) -> Any:
    """The answer of a unit under another id."""

    def answer(request: Any, who: Any) -> Any:
        request.unit_id = before if request.unit_id == after else request.unit_id
        return plain(request, who)

    return answer


async def test_a_new_ticket_of_an_empty_company_leads_to_its_first_property(
    administrator: Browser, staff: Browser, stubs: Stubs
) -> None:
    stubs.answers["catalog.PlaceSearchService/SearchProperties"] = pb.SearchPropertiesResponse()
    page = await administrator.get("/tickets/new")
    assert 'href="/properties/new"' in page.text and 'href="/imports/new"' in page.text
    page = await staff.get("/tickets/new")
    assert "/properties/new" not in page.text and "An administrator has to add a property first." in page.words


async def test_tickets_of_a_place_are_those_of_that_place(administrator: Browser, stubs: Stubs) -> None:
    for path, name in (("/properties/1", "property"), ("/properties/1/units/15", "unit"), ("/assets/21", "asset")):
        page = await administrator.get(path)
        (link,) = set(re.findall(rf'href="(/tickets\?{name}=\d+)"', page.text))
        await administrator.get(link)
        assert getattr(stubs.called("tickets.TicketViewsService/SearchTickets")[-1], f"{name}_id") > 0
