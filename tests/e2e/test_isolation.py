"""Two companies: each sees only its own records; another company's id answers like one that does not exist."""

from __future__ import annotations

from typing import Any

import pytest

from testkit.patience import until

from .system import Answer, Company, System

NOBODYS = 9_000_000_000_000


@pytest.fixture(scope="module")
def companies(system: System) -> tuple[Company, Company]:
    created = []
    for name in ("Mine", "Theirs"):
        company = system.company(name)
        company.import_rows("properties", [{"external_id": "P1", "name": name, "address": "1 Elm St"}])
        company.import_rows("units", [{"external_id": "U1", "property": "P1", "name": f"{name} 1"}])
        asset = {"external_id": "A1", "property": "P1", "name": "Boiler", "category": "HVAC", "make": "x", "model": "y"}
        company.import_rows("assets", [asset])
        company.import_rows("vendors", [{"external_id": "V1", "name": name, "legal_name": "Ace Inc."}])
        company.import_rows("inspections", [{"external_id": "I1", "property": "P1", "unit": "U1"}])
        ticket = {"external_id": "T1", "property": "P1", "unit": "U1", "title": "Cold", "category": "HVAC"}
        company.import_rows("tickets", [ticket])
        company.import_rows("turns", [{"external_id": "T1", "unit": "U1"}])
        created.append(company)
    system.makeready("wait")  # a unit's status comes from another service, and a test reads units twice
    return created[0], created[1]


def compared(answer: Answer) -> tuple[int, bytes, dict[str, str]]:
    """An answer without the headers that differ between any two answers."""
    differing = {"X-Request-Id", "Date", "RateLimit"}
    return answer.status, answer.body, {k: v for k, v in answer.headers.items() if k not in differing}


@pytest.mark.parametrize("path", ["/tickets", "/properties", "/units", "/assets", "/vendors", "/inspections", "/turns"])
def test_anothers_record_answers_as_an_unknown_one(
    system: System, companies: tuple[Company, Company], path: str
) -> None:
    mine, theirs = companies
    (their_record,) = theirs.walk(path)
    (my_record,) = mine.walk(path)
    assert my_record["entity_id"] != their_record["entity_id"]
    other = system.get(f"{path}/{their_record['entity_id']}", mine.keys["read"])
    nobody = system.get(f"{path}/{NOBODYS}", mine.keys["read"])
    assert compared(other) == compared(nobody) and other.status == 404


@pytest.mark.parametrize("name", ["property_id", "unit_id"])
def test_filtering_by_anothers_id_is_an_empty_page(
    system: System, companies: tuple[Company, Company], name: str
) -> None:
    mine, theirs = companies
    (their_ticket,) = theirs.walk("/tickets")
    their_id = their_ticket[name.removesuffix("_id")]["id"]
    answers = [system.get("/tickets", mine.keys["read"], **{name: entity_id}) for entity_id in (their_id, NOBODYS)]
    assert compared(answers[0]) == compared(answers[1]) and answers[0].json["data"] == []


def test_a_ticket_can_not_be_opened_on_anothers_unit_or_asset(
    system: System, companies: tuple[Company, Company]
) -> None:
    mine, theirs = companies
    (my_unit,), (their_unit,), (their_asset,) = mine.walk("/units"), theirs.walk("/units"), theirs.walk("/assets")
    body = {"unit_id": their_unit["entity_id"], "title": "x", "category": "HVAC"}
    answers = [
        system.post("/tickets", mine.keys["write"], body | {"unit_id": unit_id}, f"unit {unit_id}")
        for unit_id in (their_unit["entity_id"], NOBODYS)
    ]
    assert compared(answers[0]) == compared(answers[1]) and answers[0].status == 404
    body["unit_id"] = my_unit["entity_id"]
    answers = [
        system.post("/tickets", mine.keys["write"], body | {"asset_id": asset_id}, f"asset {asset_id}")
        for asset_id in (their_asset["entity_id"], NOBODYS)
    ]
    assert compared(answers[0]) == compared(answers[1]) and answers[0].status == 404


DATES = {"move_in_date": "2026-10-01", "lease_start_date": "2026-10-01"}
MOVE_IN = {**DATES, "provider": "feed", "parties": [{"first_name": "A", "last_name": "B", "role": "leaseholder"}]}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/tickets/{ticket}", {"status": "On Hold"}),
        ("PUT", "/tickets/{ticket}/assignment", {}),
        ("POST", "/tickets/{ticket}/comments", {"text": "Mine"}),
        ("POST", "/tickets/{ticket}/photos", {"photo_url": "https://photos.test/1.jpg"}),
        ("POST", "/units/{unit}/notice", {"move_out_date": "2026-09-30", "provider": "feed"}),
        ("POST", "/units/{unit}/move-in", MOVE_IN),
        ("POST", "/units/{unit}/move-in", MOVE_IN | {"predecessor_transition_id": 1}),
    ],
)
def test_a_write_to_anothers_record_answers_as_one_to_an_unknown_record(
    system: System, companies: tuple[Company, Company], method: str, path: str, body: dict[str, Any]
) -> None:
    mine, theirs = companies
    collection = "/" + path.split("/")[1]
    (their_record,) = theirs.walk(collection)
    answers = []
    for entity_id in (their_record["entity_id"], NOBODYS):
        headers = {"Idempotency-Key": f"write {method} {path} {entity_id}"[:64]}
        answers.append(
            system.call(method, path.format(ticket=entity_id, unit=entity_id), mine.keys["write"], body, headers)
        )
    assert compared(answers[0]) == compared(answers[1]) and (answers[0].status, answers[0].code) == (404, "not_found")
    assert list(theirs.walk(collection)) == [their_record]


def test_anothers_turn_is_no_predecessor_and_neither_is_an_unknown_one(
    system: System, companies: tuple[Company, Company]
) -> None:
    mine, theirs = companies
    (their_turn,), (my_unit,), turns = theirs.walk("/turns"), mine.walk("/units"), list(mine.walk("/turns"))
    answers = [
        system.post(
            f"/units/{my_unit['entity_id']}/move-in",
            mine.keys["write"],
            MOVE_IN | {"predecessor_transition_id": turn_id},
            f"predecessor {turn_id}"[:64],
        )
        for turn_id in (their_turn["entity_id"], NOBODYS, 0, -1, 2**63, 10**100)
    ]
    for answer in answers[1:]:
        assert compared(answer) == compared(answers[0])
    assert (answers[0].status, answers[0].code) == (422, "invalid_request")
    assert list(theirs.walk("/turns")) == [their_turn] and list(mine.walk("/turns")) == turns


def test_anothers_subscription_has_no_deliveries_tests_or_replays(
    system: System, companies: tuple[Company, Company]
) -> None:
    mine, theirs = companies
    body = {"destination_url": "https://receiver.test/isolated", "events": ["vendor.hold"]}
    sub_id = system.post("/webhooks", theirs.keys["write"], body, "isolated").json["entity_id"]
    key, range_ = theirs.keys["write"], {"since": "2026-01-01T00:00:00Z"}
    replay = system.post(f"/webhooks/{sub_id}/replay", key, range_, "isolated replay")
    assert replay.status == 202, replay
    fetched = f"/replays/{replay.json['entity_id']}"
    assert system.get(f"/webhooks/{sub_id}{fetched}", key).json["matched"] == replay.json["matched"]
    paths = ("/deliveries", f"/deliveries/{'0' * 8}-0000-7000-8000-{'0' * 12}", fetched, "/filter")
    for path in paths:
        answers = [
            system.get(f"/webhooks/{subscription_id}{path}", mine.keys["read"]) for subscription_id in (sub_id, NOBODYS)
        ]
        assert compared(answers[0]) == compared(answers[1]) and answers[0].status == 404
    for path, sent in (("/test", {}), ("/replay", range_)):
        answers = [
            system.post(
                f"/webhooks/{subscription_id}{path}", mine.keys["write"], sent, f"isolated {subscription_id}{path}"
            )
            for subscription_id in (sub_id, NOBODYS)
        ]
        assert compared(answers[0]) == compared(answers[1]) and answers[0].status == 404
    answers = [
        system.call(
            "PUT",
            f"/webhooks/{subscription_id}/filter",
            mine.keys["write"],
            {"priorities": ["Low"]},
            {"Idempotency-Key": f"isolated {subscription_id} filter"},
        )
        for subscription_id in (sub_id, NOBODYS)
    ]
    assert compared(answers[0]) == compared(answers[1]) and answers[0].status == 404
    assert system.get(f"/webhooks/{sub_id}/filter", key).json["priorities"] is None
    assert system.call("DELETE", f"/webhooks/{sub_id}", key).status == 204


def test_a_search_finds_the_companys_own_records_alone(system: System, companies: tuple[Company, Company]) -> None:
    for company in companies:
        key = company.key_for(scope="read")
        for external_id, paths in (
            ("T1", ("/tickets", "/turns")),
            ("P1", ("/properties",)),
            ("U1", ("/units",)),
            ("A1", ("/assets",)),
            ("V1", ("/vendors",)),
            ("I1", ("/inspections",)),
        ):
            matches = system.get("/search", key, external_id=external_id).json["data"]
            ids = [next(iter(company.walk(path)))["entity_id"] for path in paths]
            assert [record["entity_id"] for record in matches] == ids, external_id
            assert {record["external_id"] for record in matches} == {external_id}
            kind = matches[-1]["entity_type"]
            assert system.get("/search", key, external_id=external_id, kind=kind).json["data"] == matches[-1:]
    assert system.get("/search", companies[0].key_for(scope="read"), external_id="t1").json["data"] == []


def test_a_cursor_of_another_company_is_refused(system: System, companies: tuple[Company, Company]) -> None:
    mine, theirs = companies
    for company in companies:
        rows = [{"external_id": f"P{n}", "name": f"P{n}", "address": "x"} for n in range(2, 5)]
        company.import_rows("properties", rows)
    cursor = system.get("/properties", theirs.keys["read"], limit=1).json["next_cursor"]
    assert system.get("/properties", theirs.keys["read"], limit=1, cursor=cursor).status == 200
    assert system.get("/properties", mine.keys["read"], limit=1, cursor=cursor).code == "invalid_cursor"
    assert system.get("/units", theirs.keys["read"], cursor=cursor).code == "invalid_cursor"


def feed(company: Company, path: str) -> dict[str, Any]:
    page: dict[str, Any] = company.system.get(path, company.key_for(scope="read")).json
    return page


def test_feeds_hold_the_companys_own_records_and_take_its_own_cursors(
    system: System, companies: tuple[Company, Company]
) -> None:
    mine, theirs = companies
    assert system.contract is not None
    kinds = [path for path in system.contract.document["paths"] if path.startswith("/changes/")]
    assert "/changes/tickets" in kinds
    for path in kinds:
        for company in companies:
            listed = path.removeprefix("/changes")
            entity_ids = [] if listed == "/readings" else [record["entity_id"] for record in company.walk(listed)]
            # Behind the horizon: another transaction of the server may be under way.
            count = len(entity_ids)
            until(lambda path=path, company=company, count=count: len(feed(company, path)["data"]) >= count)  # type: ignore[misc]
            page = feed(company, path)
            assert sorted(item["entity_id"] for item in page["data"]) == entity_ids, path
        cursor = page["resume_cursor"]  # of the other company
        assert system.get(path, theirs.keys["read"], cursor=cursor).status == 200
        refused = system.get(path, mine.keys["read"], cursor=cursor)
        assert (refused.status, refused.code) == (400, "invalid_cursor"), path
