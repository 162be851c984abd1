"""Lists, counts and the search of places for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest

from chassis.auth.identity import INTEGRATION, SERVICE, Identity
from chassis.db.database import Database
from chassis.refusals import Refusal
from makeready.catalog.v1 import meter_search_pb2, place_commands_pb2, place_search_pb2

from .conftest import Ask, asks, people, set_statuses

Wait = Callable[[], Awaitable[None]]
RPCS = [
    rpc
    for contract in (place_search_pb2, meter_search_pb2)
    for service in contract.DESCRIPTOR.services_by_name.values()
    for rpc in service.methods
]
NAMES = ["Unit 1", "Unit 2", "Unit 9", "Unit 10", "Unit 100", "Unit A"]
STATUSES = ["Occupied", "Vacant Ready", "Occupied", None, "Vacant Not Ready", "Vacant Ready"]
BOILER = {"category": "HVAC", "make": "Bosch", "model": "Condens 4300"}


@pytest.fixture
async def court(company: Any, database: Database) -> Any:
    """Alder Court (P1) with six units, the property 桜コート (P2) with one, and assets."""
    await company.put(
        "properties",
        {
            "external_id": "P1",
            "name": "Alder Court",
            "address": "12 Elm St",
            "city": "Portland",
            "postal_code": "04101",
        },
        {"external_id": "P2", "name": "桜コート", "address": "東京都港区", "city": "東京"},
    )
    parts: list[tuple[Any, ...]] = [
        ("A", "1", "B2"),
        ("A", "1", "B2"),
        ("A", "2", "B2"),
        ("B", "1", "C1"),
        (None, None, None),
        ("B", "1", "C1"),
    ]
    await company.put(
        "units",
        *(
            {"external_id": f"U{place}", "property": "P1", "name": name, "unit_number": name.removeprefix("Unit ")}
            | ({"building": part[0], "floor": part[1], "floorplan": part[2], "bedrooms": "2"} if part[0] else {})
            for place, (name, part) in enumerate(zip(NAMES, parts, strict=True))
        ),
        {"external_id": "V1", "property": "P2", "name": "301号室"},
    )
    await set_statuses(database, company.id, {f"U{place}": status for place, status in enumerate(STATUSES)})
    await company.put(
        "assets",
        {"external_id": "A1", "property": "P1", "name": "Boiler 2", **BOILER, "warranty_expires_on": "2027-01-10"},
        {"external_id": "A2", "property": "P1", "name": "Boiler 10", **BOILER, "warranty_expires_on": "2026-12-01"},
        {"external_id": "A3", "property": "P1", "name": "Water heater", "category": "Plumbing", "make": "Rheem",
         "model": "X", "location": "U0", "serial_number": "SN-48/213", "status": "Needs Service"},
        {"external_id": "A4", "property": "P2", "name": "エレベーター", "category": "Elevator", "make": "三菱",
         "model": "Y", "location": "機械室", "location_type": "mechanical_room", "status": "Retired",
         "warranty_expires_on": "2026-12-24"},
    )  # fmt: skip
    await company.put(
        "meters",
        {"external_id": "M1", "property": "P1", "name": "Court water", "utility_type": "water", "meter_number": "W-77"},
    )
    return company


@pytest.fixture
async def ids(court: Any) -> dict[str, int]:
    """The ids of records by external_id."""
    ids_by_name: dict[str, int] = {}
    for kind in ("properties", "units", "assets", "meters"):
        ids_by_name |= {name: record["entity_id"] for name, record in (await court.by_external_id(kind)).items()}
    return ids_by_name


def names(rows: Any) -> list[str]:
    return [row.name for row in rows]


async def test_units_are_in_the_order_of_their_names_and_numbers(court: Any, ask: Ask, ids: dict[str, int]) -> None:
    every = await ask("SearchUnits")
    assert names(every.units) == ["301号室", *NAMES] and not every.HasField("next_after_id")
    paged, after = [], 0
    for _ in range(4):
        page = await ask("SearchUnits", limit=2, after_id=after)
        paged += names(page.units)
        after = page.next_after_id
        # What is added before the page's place shifts nothing.
        await court.put("units", {"external_id": f"N{after}", "property": "P1", "name": "0 new"})
    assert paged == ["301号室", *NAMES] and after == 0
    unit = next(unit for unit in every.units if unit.name == "Unit 9")
    assert (unit.building.name, unit.floor.name, unit.floorplan.name, unit.bedrooms) == ("A", "2", "B2", 2)
    assert (unit.property.id, unit.property.name) == (ids["P1"], "Alder Court")


async def test_units_are_filtered_by_property_status_and_words(
    court: Any, ask: Ask, ids: dict[str, int], searched: Wait
) -> None:
    async def names_of(**fields: Any) -> list[str]:
        return names((await ask("SearchUnits", **fields)).units)

    assert await names_of(property_id=ids["P2"]) == ["301号室"]
    assert await names_of(unit_status=["Vacant Ready", "Vacant Not Ready"]) == ["Unit 2", "Unit 100", "Unit A"]
    assert await names_of(property_id=ids["P1"], unit_status=["Occupied"]) == ["Unit 1", "Unit 9"]
    assert await names_of(unit_status=[""]) == ["301号室", "Unit 10"]
    await searched()
    assert await names_of(words="alder 1") == ["Unit 1", "Unit 10", "Unit 100"]
    assert await names_of(words="alder 1", unit_status=["Occupied"], property_id=ids["P1"]) == ["Unit 1"]
    assert await names_of(words="alder 1", property_id=ids["P2"]) == []
    assert await names_of(words="号室") == ["301号室"] and await names_of(words="---") == []
    page = await ask("SearchUnits", words="unit", limit=4)
    second = await ask("SearchUnits", words="unit", limit=4, after_id=page.next_after_id)
    assert names(page.units) + names(second.units) == NAMES
    with pytest.raises(Refusal, match="unit_status may be Occupied"):
        await names_of(unit_status=["Burning"])


async def test_assets_are_filtered_by_status_kind_warranty_and_place(
    court: Any, ask: Ask, ids: dict[str, int], searched: Wait
) -> None:
    await searched()

    async def names_of(**fields: Any) -> list[str]:
        return names((await ask("SearchAssets", **fields)).assets)

    assert await names_of() == ["Boiler 2", "Boiler 10", "Water heater", "エレベーター"]
    assert await names_of(unit_id=ids["U0"]) == ["Water heater"]
    assert (
        await names_of(unit_id=ids["U0"], status=["Active"])
        == []
        == await names_of(unit_id=ids["U0"], after_id=ids["A3"])
    )
    assert await names_of(property_id=ids["P1"], status=["Active", "Retired"]) == ["Boiler 2", "Boiler 10"]
    assert await names_of(status=["Needs Service", "Retired"]) == ["Water heater", "エレベーター"]
    assert await names_of(category="HVAC") == ["Boiler 2", "Boiler 10"] and await names_of(category="hvac") == []
    assert await names_of(warranty_by="2027-01-10") == ["Boiler 10", "エレベーター", "Boiler 2"]
    assert await names_of(warranty_by="2027-01-10", after_id=ids["A2"]) == ["エレベーター", "Boiler 2"]
    assert await names_of(warranty_from="2026-12-02", warranty_by="2026-12-31") == ["エレベーター"]
    assert await names_of(warranty_by="2027-01-10", property_id=ids["P1"], unit_id=ids["U0"]) == []
    assert await names_of(words="sn48") == await names_of(words="rheem unit 1") == ["Water heater"]
    assert await names_of(words="機械室") == ["エレベーター"]
    (heater,) = (await ask("SearchAssets", unit_id=ids["U0"])).assets
    assert (heater.unit.id, heater.unit.name, heater.location.id) == (ids["U0"], "Unit 1", 0)
    (lift,) = (await ask("SearchAssets", status=["Retired"])).assets
    assert (lift.location.name, lift.warranty_expires_on) == ("機械室", "2026-12-24")
    for fields in ({"status": ["Lost"]}, {"warranty_by": "soon"}, {"warranty_from": "2026-1-1"}, {"limit": 201}):
        with pytest.raises(Refusal):
            await ask("SearchAssets", **fields)


async def test_properties_have_their_units_by_status(court: Any, ask: Ask, ids: dict[str, int], searched: Wait) -> None:
    alder, sakura = (await ask("SearchProperties")).properties
    assert (alder.name, alder.city, alder.address) == ("Alder Court", "Portland", "12 Elm St")
    counts = {count.status: count.count for count in alder.units}
    assert counts == {"": 1, "Occupied": 2, "Vacant Ready": 2, "Vacant Not Ready": 1}
    assert [(count.status, count.count, count.is_more) for count in sakura.units] == [("", 1, False)]
    first = await ask("SearchProperties", limit=1)
    assert names((await ask("SearchProperties", after_id=first.next_after_id)).properties) == ["桜コート"]
    await searched()
    assert names((await ask("SearchProperties", words="04101 elm")).properties) == ["Alder Court"]
    assert names((await ask("SearchProperties", words="港区")).properties) == ["桜コート"]


async def test_a_property_is_summarized_with_its_parts(court: Any, ask: Ask, ids: dict[str, int]) -> None:
    summary = await ask("SummarizeProperty", property_id=ids["P1"])
    assert {count.status: count.count for count in summary.assets} == {"Active": 2, "Needs Service": 1}
    assert {count.status: count.count for count in summary.units}["Occupied"] == 2 and summary.meters == 1
    places = await ask("ListPlacesOf", property_id=ids["P1"])
    assert [(part.name, part.units) for part in places.buildings] == [("A", 3), ("B", 2)]
    assert sorted((part.name, part.units) for part in places.floors) == [("1", 2), ("1", 2), ("2", 1)]
    assert [(part.name, part.units, part.bedrooms) for part in places.floorplans] == [("B2", 3, 2), ("C1", 2, 2)]
    (room,) = (await ask("ListPlacesOf", property_id=ids["P2"])).locations
    assert (room.name, room.location_type, room.assets) == ("機械室", "mechanical_room", 1)


async def test_counts_are_of_the_company_and_end_at_a_thousand(court: Any, ask: Ask, database: Database) -> None:
    counts = await ask("CountPlaces", warranty_from="2026-12-01", warranty_by="2026-12-31")
    assert (counts.properties.count, counts.meters.count, counts.warranties.count) == (2, 1, 1)
    assert {count.status: count.count for count in counts.units} == {
        "": 2, "Occupied": 2, "Vacant Ready": 2, "Vacant Not Ready": 1,
    }  # fmt: skip
    async with database.connection() as connection:
        await connection.raw.execute(
            "INSERT INTO unit (company_id, property_id, name, unit_status, created_at, source, searched_version)"
            " SELECT $1, (SELECT min(id) FROM property WHERE company_id = $1), n::text, 'Down', now(), 'import', 1"
            " FROM generate_series(1, 1001) n",
            court.id,
        )
    counts = await ask("CountPlaces", warranty_from="2026-12-01", warranty_by="2026-12-31")
    (down,) = (count for count in counts.units if count.status == "Down")
    assert down.count == 1000 and down.is_more


async def test_a_search_finds_places_of_every_kind_in_any_script(
    court: Any, ask: Ask, ids: dict[str, int], searched: Wait
) -> None:
    await searched()
    response = await ask("SearchPlaces", words="Alder")
    assert (
        names(response.properties) == ["Alder Court"]
        and names(response.units) == NAMES
        and names(response.meters) == ["Court water"]
    )
    assert names(response.assets) == ["Boiler 2", "Boiler 10", "Water heater"] and not response.exact
    few = await ask("SearchPlaces", words="unit", limit=2)
    assert names(few.units) == NAMES[:2] and "unit" in few.more
    # A whole word comes before a longer one.
    assert names((await ask("SearchPlaces", words="unit 100")).units) == ["Unit 100"]
    assert names((await ask("SearchPlaces", words="10")).units) == ["Unit 10", "Unit 100"]
    japanese = await ask("SearchPlaces", words="桜コート")
    assert names(japanese.properties) == ["桜コート"] and names(japanese.assets) == ["エレベーター"]
    assert names((await ask("SearchPlaces", words="号室")).units) == ["301号室"]
    assert list((await ask("SearchPlaces", words="sn-48/213")).exact) == [f"asset {ids['A3']}"]
    assert list((await ask("SearchPlaces", words=" u4 ")).exact) == [f"unit {ids['U4']}"]
    # A unit by its number and its property; one wrong letter where nothing is spelled so.
    assert names((await ask("SearchPlaces", words="#100 alder")).units) == ["Unit 100"] and not response.is_close
    close = await ask("SearchPlaces", words="Aldre cuort")
    assert close.is_close and names(close.properties) == ["Alder Court"] and names(close.units) == NAMES
    inside = await ask("SearchPlaces", words="301", property_id=ids["P1"])
    assert not inside.units and not inside.properties
    assert not (await ask("SearchPlaces", words="'\\ | ! &")).ListFields()


async def test_a_new_name_is_found_in_everything_that_lies_there(
    court: Any, ask: Ask, ids: dict[str, int], searched: Wait
) -> None:
    await searched()
    await court.command(place_commands_pb2, "UpdateProperty", property_id=ids["P1"], name="Résidence du Port")
    await court.command(place_commands_pb2, "UpdateUnit", unit_id=ids["U0"], name="Penthouse")
    await searched()
    response = await ask("SearchPlaces", words="residence penthouse")
    assert names(response.units) == ["Penthouse"] and names(response.assets) == ["Water heater"]
    assert not (await ask("SearchPlaces", words="alder")).ListFields()
    assert len((await ask("SearchPlaces", words="residence")).units) == 6


async def test_people_of_another_company_find_nothing(
    court: Any, other: Any, ids: dict[str, int], searched: Wait
) -> None:
    await searched()
    ask = asks(other)
    for rpc in ("SearchUnits", "SearchAssets", "SearchProperties", "SearchMeters"):
        filters: dict[str, Any]
        for filters in ({}, {"words": "alder"}, {"after_id": ids["U0"]}):
            assert not (await ask(rpc, **filters)).ListFields()
    assert not (await ask("SearchPlaces", words="alder")).ListFields()
    for rpc, fields in (
        ("SearchUnits", {"property_id": ids["P1"]}),
        ("SearchAssets", {"unit_id": ids["U0"]}),
        ("SearchPlaces", {"words": "alder", "property_id": ids["P1"]}),
    ):
        assert not (await ask(rpc, **fields)).ListFields()
    messages = set()
    for rpc in ("SummarizeProperty", "ListPlacesOf"):
        for property_id in (ids["P1"], 2**62):
            with pytest.raises(Refusal) as refused:
                await ask(rpc, property_id=property_id)
            messages.add((refused.value.status, refused.value.message))
    assert len(messages) == 1 and next(iter(messages))[0] == 404


@pytest.mark.parametrize("rpc", RPCS, ids=[rpc.name for rpc in RPCS])
async def test_each_is_open_to_people_alone(company: Any, ask: Ask, rpc: Any) -> None:
    for who in people(company.id):
        try:
            await ask(rpc.name, who)
        except Refusal as refused:
            assert refused.status in (400, 404)
    for who in (company.caller, Identity(SERVICE, "svc-tickets", company.id), Identity(INTEGRATION, "gateway")):
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await ask(rpc.name, who)
        assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
