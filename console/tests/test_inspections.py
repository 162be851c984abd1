"""Actions on inspections and on upkeep: what the forms send, what they say when they are refused, and the walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chassis.refusals import Refusal
from console.areas.inspections.walking import next_row
from makeready.catalog.v1 import inspection_commands_pb2 as pb

from .browsing import Browser
from .stubs import Stubs

COMMANDS = "catalog.InspectionCommandsService"


@pytest.mark.parametrize(
    ("results", "here", "follows"),
    [
        ("....", 1, 2),
        ("p.pp", 1, 2),
        (".pp.", 4, 1),
        ("pfpp", 2, None),
        ("p.pp", 2, None),
        ("....", 0, 1),
        ("", 0, None),
        ("..", 9, 1),
    ],
)
def test_the_next_row_without_a_result_follows_round_the_list(results: str, here: int, follows: int | None) -> None:
    names = {"p": "passed", "f": "failed"}
    rows = [pb.InspectionRow(row_id=place, result=names.get(letter)) for place, letter in enumerate(results, start=1)]
    assert next_row(rows, here) == follows


async def test_an_inspection_is_planned_with_its_rows(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/inspections/new?property_id=1&unit_id=12&scheduled_date=2026-12-01")
    form = staff.form("/inspections/new")
    assert form["scheduled_date"] == "2026-12-01" and 'value="1" selected' in page.text
    values = {"title": "Fire 漏水", "property_id": "1", "row": "Door\r\n\r\n  Alarm \r\nRoof", "assignee_id": "7"}
    reply = await staff.send("/inspections/new", **values, is_compliance_inspection="1")
    assert (reply.status, reply.headers["Location"]) == (303, "/inspections/2")
    (sent,) = stubs.called(f"{COMMANDS}/ScheduleInspection")
    assert (list(sent.row), sent.title, sent.assignee_id) == (["Door", "Alarm", "Roof"], "Fire 漏水", 7)
    assert sent.is_compliance_inspection and sent.unit_id == 12 and not sent.HasField("external_id")
    assert sent.idempotency_key == form["act"]
    # Another one like it begins with its rows; what is refused stands beside its field, and nothing typed is lost.
    page = await staff.get("/inspections/new?like=1")
    assert "Pull stations are unobstructed</textarea>" in page.text and 'value="NFPA 72"' in page.text
    assert 'value="Fire alarm test, annual"' in page.text and page.text.count(" selected") == 2

    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_request", "The unit lies in another property.", "unit_id")

    stubs.answers[f"{COMMANDS}/ScheduleInspection"] = refuse
    reply = await staff.send("/inspections/new", **values, scheduled_date="2026-12-02")
    assert reply.status == 422 and reply.words.count("The unit lies in another property.") == 2
    assert "\n  Alarm \nRoof</textarea>" in reply.text


async def test_an_edit_sends_what_was_changed(staff: Browser, stubs: Stubs) -> None:
    await staff.get("/inspections/1/edit")
    values = {"title": "Fire alarm test, annual", "assignee_id": "", "scheduled_date": "2026-12-24"}
    reply = await staff.send("/inspections/1/edit", **values)
    assert reply.status == 303
    (sent,) = stubs.called(f"{COMMANDS}/UpdateInspection")
    assert (sent.scheduled_date, list(sent.clear)) == ("2026-12-24", ["assignee_id"])
    assert not sent.HasField("title") and not sent.HasField("compliance_type")
    reply = await staff.get("/inspections/10/edit")
    assert reply.status == 303, "a cancelled one is not edited"


async def test_a_walk_goes_from_row_to_row(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/inspections/1/walk")
    assert page.title == "Pull stations are unobstructed" and "Item 4 of 4 3 inspected" in page.words
    reply = await staff.send("/inspections/1/rows/4/pass")
    (sent,) = stubs.called(f"{COMMANDS}/PassInspectionRow")
    assert (sent.row_id, sent.seen_result) == (4, "none")
    assert reply.headers["Location"] == "/inspections/1/walk", "the other rows have a result"
    assert "“Pull stations are unobstructed” passed." in (await staff.follow(reply)).words
    # A failure takes along what was known of the row, and the photo of it.
    page = await staff.get("/inspections/1/walk?row=2")
    assert "Nguyễn Thị Hồng Hạnh" in page.words and "Silent. The wire" in page.words
    values = {"note": "Silent still.", "category": "Life Safety", "priority": "High", "asset_id": ""}
    reply = await staff.send("/inspections/1/rows/2/fail", **values)
    (sent,) = stubs.called(f"{COMMANDS}/FailInspectionRow")
    assert (sent.note, sent.photo_url, sent.seen_result) == (
        "Silent still.",
        "https://photos.example/horn.jpg",
        "failed",
    )
    assert not sent.HasField("asset_id")
    assert "“Horn on the third floor sounds” failed." in (await staff.follow(reply)).words
    # The last row done, the walk ends with what was found.
    rows = [pb.InspectionRow(row_id=1, position=1, label="Door", result="passed")]
    stubs.answers[f"{COMMANDS}/ListInspectionRows"] = pb.ListInspectionRowsResponse(rows=rows)
    page = await staff.get("/inspections/1/walk")
    assert page.title == "All items passed"
    reply = await staff.send("/inspections/1/complete")
    (sent,) = stubs.called(f"{COMMANDS}/CompleteInspection")
    assert (reply.headers["Location"], sent.completed_date) == ("/inspections/1", "2026-11-22")
    for path in ("/inspections/8/walk", "/inspections/10/walk"):
        assert (await staff.get(path)).headers["Location"] == path.removesuffix("/walk"), "there is nothing to walk"


async def test_who_comes_second_reads_what_it_is_now_and_loses_no_text(staff: Browser, stubs: Stubs) -> None:
    def refuse(message: str) -> Callable[[Any, Any], Any]:
        def answer(_request: Any, _who: Any) -> Any:
            raise Refusal(422, "invalid_request", message, "seen_result")

        return answer

    sentence = "Another person has recorded meanwhile that the row failed."
    stubs.answers[f"{COMMANDS}/PassInspectionRow"] = stubs.answers[f"{COMMANDS}/FailInspectionRow"] = refuse(sentence)
    await staff.get("/inspections/1/walk?row=2")
    reply = await staff.send("/inspections/1/rows/2/pass")
    assert reply.status == 422 and sentence in reply.words and reply.title == "Horn on the third floor sounds"
    reply = await staff.send("/inspections/1/rows/2/fail", note="My own words", category="Leak", priority="Low")
    assert reply.status == 422 and sentence in reply.words and "My own words</textarea>" in reply.text
    assert staff.form("/inspections/1/rows/2/fail")["seen"] == "failed", "sent again, it counts"
    assert 'class="failing" id="fail" open' in reply.text
    cancelled = "The inspection is cancelled; schedule another one."
    for rpc, action, values in (
        ("CancelInspection", "cancel", {"reason": "My reason"}),
        ("CompleteInspection", "complete", {}),
        ("StartInspection", "start", {}),
        ("AddInspectionRow", "rows", {"label": "My row"}),
        ("RemoveInspectionRow", "rows/4/remove", {}),
    ):
        stubs.answers[f"{COMMANDS}/{rpc}"] = refuse(cancelled)
        stubs.answers[f"{COMMANDS}/ListInspectionRows"] = pb.ListInspectionRowsResponse(
            rows=[pb.InspectionRow(row_id=4, label="Door")] if "remove" in action or action == "cancel" else []
        )
        await staff.get("/inspections/2")
        reply = await staff.send(f"/inspections/2/{action}", **values)
        assert reply.status == 422 and cancelled in reply.words, rpc
        assert all(text in reply.text for text in values.values())


async def test_a_cancelled_inspection_says_by_whom_and_why(staff: Browser) -> None:
    page = await staff.get("/inspections/10")
    assert "Cancelled 7:00 am · Dana Adler" in page.words and "The doors are replaced first." in page.words
    assert "/inspections/10/cancel" not in page.text and "/inspections/10/edit" not in page.text
    assert "Lobby doors" not in (await staff.get("/inspections")).words
    page = await staff.get("/inspections?view=cancelled")
    assert "Lobby doors" in page.words and "Boiler room" not in page.words
    assert ",Cancelled," in (await staff.get("/inspections?view=cancelled&csv=1")).text


async def test_upkeep_is_planned_moved_and_closed(staff: Browser, stubs: Stubs) -> None:
    service = "tickets.PmTasksService"
    await staff.get("/pm-tasks/new?property_id=1&asset_id=21")
    values = {"task_name": "Filters", "property_id": "1", "due_date": "2026-12-01", "asset_id": "21"}
    twice = await staff.send("/pm-tasks/new", **values, repeat_months="3", repeat_days="9", unit_id="12", area="Roof")
    assert twice.status == 422 and not stubs.called(f"{service}/AddPmTask")
    assert "months or days, not both" in twice.words and "a unit or an area, not both" in twice.words
    reply = await staff.send("/pm-tasks/new", **values, repeat_months="3", repeat_days="", unit_id="", area="Roof")
    (sent,) = stubs.called(f"{service}/AddPmTask")
    assert (sent.repeat_months, sent.area, sent.HasField("unit_id"), reply.status) == (3, "Roof", False, 303)
    page = await staff.get("/pm-tasks/31/edit")
    assert 'value="1"' in page.text
    form = {"task_name": "Test the fire alarm", "due_date": "2026-12-23", "asset_id": "21", "unit_id": ""}
    assert (await staff.send("/pm-tasks/31/edit", **form, repeat_months="")).status == 303
    (sent,) = stubs.called(f"{service}/UpdatePmTask")
    assert (sent.due_date, list(sent.clear), sent.HasField("asset_id")) == ("2026-12-23", ["repeat_months"], False)
    await staff.get("/pm-tasks/31")
    page = await staff.follow(await staff.send("/pm-tasks/31/complete"))
    assert "Task completed. The next one is due 1 March 2027." in page.words

    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_request", "The task is Completed; only an open one can become Cancelled.")

    stubs.answers[f"{service}/CancelPmTask"] = refuse
    reply = await staff.send("/pm-tasks/31/cancel")
    assert reply.status == 422 and "The task is Completed;" in reply.words and reply.title == "Test the fire alarm"
