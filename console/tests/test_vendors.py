"""Acts on vendors and the composer of notices: what their forms say, send and refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chassis.refusals import Refusal
from console.areas.notices.composing import UNITS_SHOWN, Audience
from makeready.catalog.v1 import notices_pb2, place_search_pb2, vendor_commands_pb2, vendor_details_pb2
from makeready.common.v1.documents_pb2 import Document

from .browsing import Browser
from .samples_vendors import day, notices, vendors
from .stubs import Stubs, ago

COMMANDS = "catalog.VendorCommandsService"
NOTICES = "catalog.NoticesService"


def sent(stubs: Stubs, rpc: str) -> Any:
    """The only request of this RPC."""
    (request,) = stubs.called(rpc)
    assert request.idempotency_key
    return request


def change(stubs: Stubs, vendor_id: int, **values: Any) -> None:
    """Another person has changed a vendor."""
    vendor = next(other for other in vendors() if other.vendor_id == vendor_id)
    for name, value in values.items():
        if value is None:
            vendor.ClearField(name)  # type: ignore[arg-type]
        elif name == "held_at":
            vendor.held_at.CopyFrom(value)
        else:
            setattr(vendor, name, value)
    stubs.answers["catalog.VendorDetailsService/GetVendorDetails"] = vendor_details_pb2.GetVendorDetailsResponse(
        vendor=vendor
    )


async def test_a_vendor_is_added_and_its_page_opens(administrator: Browser, stubs: Stubs) -> None:
    added = vendor_commands_pb2.AddVendorResponse(document=Document(json=b'{"entity_id": 2}'))
    stubs.answers[f"{COMMANDS}/AddVendor"] = added
    await administrator.get("/vendors/new")
    reply = await administrator.send("/vendors/new", name=" ")
    assert reply.status == 422 and "Name is required." in reply.words
    reply = await administrator.send("/vendors/new", name="Casco Roofing", avg_rating="4.5", external_id="")
    request = sent(stubs, f"{COMMANDS}/AddVendor")
    assert (request.name, request.avg_rating, request.property_visibility) == ("Casco Roofing", 4.5, "all_properties")
    assert not request.HasField("legal_name") and not request.HasField("external_id")
    assert "Insurance is not on file" in (await administrator.follow(reply)).words
    assert administrator.page and administrator.page.path == "/vendors/2"


async def test_an_edit_sends_what_was_changed_alone(administrator: Browser, stubs: Stubs) -> None:
    await administrator.get("/vendors/1/edit")
    reply = await administrator.send("/vendors/1/edit", name="Casco Lifts", website="", rating_count="31")
    assert reply.status == 303
    request = sent(stubs, f"{COMMANDS}/UpdateVendor")
    changed = {field.name for field, _ in request.ListFields()} - {"idempotency_key"}
    assert changed == {"vendor_id", "name", "clear"} and list(request.clear) == ["website"]
    stubs.calls.clear()
    await administrator.get("/vendors/1/edit")
    reply = await administrator.send("/vendors/1/edit")
    assert "No changes were made." in (await administrator.follow(reply)).words
    assert not stubs.called(f"{COMMANDS}/UpdateVendor")


async def test_a_hold_says_what_it_will_do_and_keeps_what_was_typed(administrator: Browser, stubs: Stubs) -> None:
    page = await administrator.get("/vendors/2/hold")
    assert "Its open tickets stay assigned" in page.words and "Subscribed endpoints" in page.words
    change(stubs, 2, on_hold=True, hold_reason="A complaint", held_at=ago(minutes=1))
    reply = await administrator.send("/vendors/2/hold", reason="Never came")
    assert reply.status == 422 and "Meanwhile the vendor is on hold: A complaint." in reply.words
    assert "Never came" in reply.text and not stubs.called(f"{COMMANDS}/HoldVendor")
    reply = await administrator.post("/vendors/2/hold", {**administrator.form("/vendors/2/hold"), "reason": "No show"})
    assert reply.status == 303 and sent(stubs, f"{COMMANDS}/HoldVendor").reason == "No show"
    assert "Hold reason updated." in (await administrator.follow(reply)).words


async def test_the_same_form_again_is_no_second_change(administrator: Browser, stubs: Stubs) -> None:
    """A double click: the second request finds what the first one did, and its answer says that."""
    await administrator.get("/vendors/2/hold")
    form = {**administrator.form("/vendors/2/hold"), "reason": "Never came"}
    change(stubs, 2, on_hold=True, hold_reason="Never came", held_at=ago(minutes=1))
    reply = await administrator.post("/vendors/2/hold", form)
    assert reply.status == 303 and "Vendor placed on hold" in (await administrator.follow(reply)).words
    assert sent(stubs, f"{COMMANDS}/HoldVendor").idempotency_key == form["act"], "the RPC repeats its answer"
    await administrator.get("/vendors/2/insurance")
    form = {**administrator.form("/vendors/2/insurance"), "expires_on": day(300)}
    change(stubs, 2, insurance_expires_on=day(300))
    assert (await administrator.post("/vendors/2/insurance", form)).status == 303
    assert sent(stubs, f"{COMMANDS}/RecordInsurance").idempotency_key == form["act"]
    await administrator.get("/notices/2/edit")
    seen = administrator.form("/notices/2/edit")
    texts = {name: seen[f"seen.{name}"] for name in ("subject", "when")}
    now = notices()[0]
    now.body, now.area = "Ours", "Garage"
    stubs.answers[f"{NOTICES}/GetNotice"] = notices_pb2.GetNoticeResponse(notice=now, event_data=b'{"created_at": ""}')
    form = {**seen, **texts, "body": "Ours", "for": "area", "area": "Garage"}
    assert (await administrator.post("/notices/2/edit", form)).status == 303
    assert not stubs.called(f"{NOTICES}/UpdateNotice")


async def test_a_release_is_of_the_hold_that_was_read(administrator: Browser, stubs: Stubs) -> None:
    page = await administrator.get("/vendors/1/release")
    assert "Insurance lapsed" in page.words and "Record insurance instead" in page.words
    assert "does not place another" in page.words
    change(stubs, 1, hold_reason="A lawsuit")
    reply = await administrator.send("/vendors/1/release")
    assert reply.status == 422 and "A lawsuit" in reply.words and not stubs.called(f"{COMMANDS}/ReleaseVendor")
    assert "does not place another" not in reply.words and "The next hourly check places a hold" in reply.words
    reply = await administrator.send("/vendors/1/release")
    assert reply.status == 303 and sent(stubs, f"{COMMANDS}/ReleaseVendor").vendor_id == 1
    stubs.calls.clear()
    change(stubs, 1, on_hold=False)
    await administrator.get("/vendors/1/release")
    assert "This vendor is not on hold." in administrator.page.words  # type: ignore[union-attr]


async def test_insurance_is_recorded_ends_a_lapse_and_asks_before_a_past_day(
    administrator: Browser, stubs: Stubs
) -> None:
    path, rpc = "/vendors/1/insurance", f"{COMMANDS}/RecordInsurance"
    assert "ends the hold" in (await administrator.get(path)).words
    reply = await administrator.send(path, expires_on=day(-2))
    assert reply.status == 200 and "That date is in the past." in reply.words and not stubs.called(rpc)
    reply = await administrator.send(path, expires_on=day(-1))
    assert "That date is in the past." in reply.words and not stubs.called(rpc), "another past day is asked for again"
    reply = await administrator.send(path, expires_on=day(-1))
    assert reply.status == 303 and sent(stubs, rpc).expires_on == day(-1)
    stubs.calls.clear()
    await administrator.get(path)
    reply = await administrator.send(path, expires_on=day(300))
    assert "The hold has ended" in (await administrator.follow(reply)).words
    assert sent(stubs, rpc).expires_on == day(300)
    stubs.calls.clear()
    await administrator.get(path)
    reply = await administrator.send(path, expires_on="", none="1")
    assert reply.status == 303 and not sent(stubs, rpc).HasField("expires_on")
    stubs.calls.clear()
    await administrator.get(path)
    change(stubs, 1, insurance_expires_on=day(90))
    reply = await administrator.send(path, expires_on=day(80))
    assert reply.status == 422 and "Meanwhile another date was recorded" in reply.words and not stubs.called(rpc)


async def test_staff_read_vendors_and_change_none(staff: Browser) -> None:
    for path in ("/vendors", "/vendors/1", "/vendors/6"):
        page = await staff.get(path)
        assert page.status == 200
        for act in ("new", "edit", "hold", "release", "insurance", "end", "resume"):
            assert f"/{act}" not in page.text, (path, act)


def test_an_audience_has_one_text() -> None:
    texts = {Audience().text, Audience("units", (1, 2)).text, Audience("units", (12,)).text, Audience("area").text}
    assert len(texts) == 4
    assert Audience("units").error and Audience("area").error and not Audience("whole", (), "x").error


async def test_a_notice_is_previewed_as_it_is_typed_and_then_saved(staff: Browser, stubs: Stubs) -> None:
    stubs.answers[f"{NOTICES}/ComposeNotice"] = notices_pb2.ComposeNoticeResponse(notice=notices()[0])
    page = await staff.get("/notices/new")
    assert "Alder Court" in page.words and "Continue" in page.words
    page = await staff.get("/notices/new?property_id=1&unit_id=12&unit_id=13")
    form = staff.form("/notices/new")
    assert form["for"] == "units" and "Alder Court 102, Alder Court 103" in page.words
    form |= {"subject": "Water off", "when": "At 9", "body": "Fill\r\na pot"}
    typed = [*form.items(), ("unit_id", "12")]
    page = await staff.post("/notices/new", [*typed, ("then", "preview")])
    assert page.status == 200 and not stubs.called(f"{NOTICES}/ComposeNotice")
    assert "Fill\na pot" in page.text and "&#34;subject&#34;: &#34;Water off&#34;" in page.text
    page = await staff.post("/notices/new", [pair for pair in typed if pair[0] not in ("when", "unit_id")])
    assert page.status == 422 and "When is required." in page.words and "Choose units." in page.words
    reply = await staff.post("/notices/new", typed)
    request = sent(stubs, f"{NOTICES}/ComposeNotice")
    assert (list(request.unit_id), request.body, request.property_id) == ([12, 13], "Fill\na pot", 1)
    assert "Draft saved." in (await staff.follow(reply)).words


async def test_units_of_a_large_property_are_found_by_words_and_stay_chosen(staff: Browser, stubs: Stubs) -> None:
    def search(request: Any, _who: Any) -> Any:
        all_units = [place_search_pb2.UnitRow(unit_id=n, name=f"Unit {n}") for n in range(100, 100 + request.limit)]
        fitting = [unit for unit in all_units if request.words in unit.name]
        return place_search_pb2.SearchUnitsResponse(units=fitting, next_after_id=None if request.words else 999)

    stubs.answers["catalog.PlaceSearchService/SearchUnits"] = search
    page = await staff.get("/notices/new?property_id=1&unit_id=12")
    assert page.text.count('name="unit_id"') == UNITS_SHOWN + 1 and "Find units" in page.words
    form = {**staff.form("/notices/new"), "words": "Unit 37", "then": "preview"}
    page = await staff.post("/notices/new", [*form.items(), ("unit_id", "377")])
    ids = re.findall(r'name="unit_id" value="(\d+)"( checked)?', page.text)
    assert ("12", " checked") in ids and ("377", " checked") in ids and ("371", "") in ids and len(ids) == 11
    assert not stubs.called(f"{NOTICES}/ComposeNotice")


async def test_the_body_that_is_shown_has_the_keys_of_the_contract(staff: Browser) -> None:
    page = await staff.get("/notices/2/publish")
    code = page.text[page.text.index('<pre class="code"') :]
    body = json.loads(code[code.index("{") : code.index("</pre>")].replace("&#34;", '"'))
    document = json.loads((Path(__file__).parents[2] / "gateway/gateway/pages/openapi.json").read_text())
    contract = document["webhooks"]["property.notice.published"]["post"]["requestBody"]["content"]["application/json"]
    schema = document["components"]["schemas"][contract["schema"]["$ref"].rpartition("/")[2]]
    assert list(body) == list(schema["properties"]) and set(body["data"]) == {
        "subject", "property", "unit", "url", "created_at", "when",
    }  # fmt: skip


async def test_an_edit_of_a_notice_sends_its_changes_with_what_was_read(staff: Browser, stubs: Stubs) -> None:
    await staff.get("/notices/2/edit")
    form = staff.form("/notices/2/edit")
    typed = {**form, "subject": "Elevator test", "when": form["seen.when"], "body": form["seen.body"]}
    assert (await staff.post("/notices/2/edit", typed)).status == 303
    request = sent(stubs, f"{NOTICES}/UpdateNotice")
    assert request.as_of == notices()[0].updated_at and request.subject == "Elevator test"
    assert not request.HasField("body") and not request.HasField("whole_property")
    stubs.calls.clear()
    await staff.get("/notices/2/edit")
    typed |= {"act": staff.form("/notices/2/edit")["act"], "for": "area", "area": "Garage"}
    await staff.post("/notices/2/edit", typed)
    assert sent(stubs, f"{NOTICES}/UpdateNotice").area == "Garage"


async def test_what_another_person_did_to_a_draft_meanwhile_is_said(staff: Browser, stubs: Stubs) -> None:
    await staff.get("/notices/2/edit")
    form = staff.form("/notices/2/edit")
    typed = {**form, "when": form["seen.when"], "body": "Ours", "for": "area", "area": "Garage"}
    now = notices()[0]
    now.body, now.area = "Theirs", "East building"
    stubs.answers[f"{NOTICES}/GetNotice"] = notices_pb2.GetNoticeResponse(notice=now, event_data=b'{"created_at": ""}')
    page = await staff.post("/notices/2/edit", typed)
    assert page.status == 422 and not stubs.called(f"{NOTICES}/UpdateNotice")
    assert "“Theirs”" in page.words and "changed the recipients" in page.words and "Ours" in page.text
    again = {**staff.form("/notices/2/edit"), "body": "Ours", "when": now.when, "subject": now.subject, "for": "whole"}
    assert (await staff.post("/notices/2/edit", again)).status == 303
    request = sent(stubs, f"{NOTICES}/UpdateNotice")
    assert request.body == "Ours" and request.whole_property
    stubs.calls.clear()
    now.published_at.CopyFrom(ago(minutes=1))
    stubs.answers[f"{NOTICES}/GetNotice"] = notices_pb2.GetNoticeResponse(notice=now, event_data=b'{"created_at": ""}')
    page = await staff.post("/notices/2/edit", {**again, "body": "Mine"})
    assert page.status == 422 and "was published" in page.words and "Mine" in page.text
    assert not stubs.called(f"{NOTICES}/UpdateNotice")


async def test_what_is_published_is_what_was_read(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/notices/2/publish")
    assert "The elevator stops for two hours." in page.words and "Subscribed endpoints" not in page.words
    as_of = staff.form("/notices/2/publish")["as_of"]

    def moved(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_request", "It has changed.", "as_of")

    stubs.answers[f"{NOTICES}/PublishNotice"] = moved
    reply = await staff.send("/notices/2/publish")
    assert reply.status == 422 and "Meanwhile someone else changed it." in reply.words
    stubs.calls.clear()
    del stubs.answers[f"{NOTICES}/PublishNotice"]
    reply = await staff.send("/notices/2/publish")
    assert sent(stubs, f"{NOTICES}/PublishNotice").as_of.ToJsonString() == as_of and reply.status == 303
    stubs.calls.clear()
    await staff.get("/notices/2/publish")
    assert (await staff.send("/notices/2/publish", as_of="soon")).status == 422
    assert not stubs.called(f"{NOTICES}/PublishNotice")


@pytest.mark.parametrize("path", ["/notices/1/edit", "/notices/1/publish"])
async def test_a_published_notice_has_neither(staff: Browser, path: str) -> None:
    assert "Discard draft" not in (page := await staff.get("/notices/1")).words and "/edit" not in page.text
    assert "Discard draft" in (await staff.get("/notices/2")).words
    assert (await staff.get(path)).headers["Location"] == "/notices/1"


async def test_a_sheet_has_the_text_alone(staff: Browser) -> None:
    page = await staff.get("/notices/1/print")
    assert page.title == "Water off on Thursday" and "taps closed" in page.words and "Not published" not in page.words
    assert "22 November 2026" in page.words, "paper does not know what today is"
    assert "Draft Not published" in (await staff.get("/notices/2/print")).words
