"""The turn board: units in words, bars in four weeks, and its pages over HTTP."""

from __future__ import annotations

import csv
import datetime
import io
import re
from collections.abc import Sequence
from typing import Any

import pytest

from chassis.refusals import Refusal
from console.areas.board import residencies
from console.areas.board.cards import DOWN, NOT_READY, NOTICE, READY, Days, card_of
from console.areas.board.weeks import DAYS, weeks
from makeready.occupancy.v1 import parties_pb2, residencies_pb2, turn_board_pb2

from .browsing import Browser, Reply, Tags
from .samples import HOSTILE
from .samples_board import day
from .stubs import NOW, Stubs, ago

TODAY = Days(NOW.date())  # Sunday, 22 November 2026


def card(status: str, **more: Any) -> Any:
    dates: Any = {}
    for name, value in more.items():
        is_date = type(value) is int and name.endswith(("date", "_on", "_in", "_since"))
        dates[name] = day(value) if is_date else value
    return card_of(turn_board_pb2.BoardUnit(unit_status=status, **dates), TODAY, datetime.UTC)


@pytest.mark.parametrize(
    ("status", "more", "when", "ready", "late"),
    [
        (NOTICE, {"move_out_date": 17, "projected_ready_on": 26}, "Moving out 9 Dec", "Ready 18 Dec", ""),
        (NOTICE, {"move_out_date": -1}, "Moved out 21 Nov", "No ready date", ""),
        (NOT_READY, {"empty_since": -7, "projected_ready_on": 4}, "Vacant 7 days", "Ready 26 Nov", ""),
        (NOT_READY, {"empty_since": -7, "projected_ready_on": 4, "tasks_late": 2}, "Vacant 7 days",
         "Ready 26 Nov, at risk", "2 tasks overdue."),
        (NOT_READY, {"empty_since": -1, "projected_ready_on": -1}, "Vacant 1 day", "Ready 21 Nov, overdue",
         "Make-ready is 1 day overdue."),
        (NOT_READY, {"empty_since": -9, "projected_ready_on": 9, "next_move_in": 8}, "Vacant 9 days",
         "Ready 1 Dec, at risk", "Next move-in is 30 Nov, before the ready date."),
        (NOT_READY, {}, "Vacant", "No ready date", ""),
        (READY, {"empty_since": -30, "unit_status_since": ago(days=5), "next_move_in": 10}, "Ready 5 days", "", ""),
        (READY, {"empty_since": -30, "unit_status_since": ago(days=5), "since_or_earlier": True}, "Vacant 30 days",
         "", ""),
        (READY, {"empty_since": -30}, "Vacant 30 days", "", ""),
        (READY, {}, "Ready", "", ""),
        (DOWN, {"unit_status_since": ago(days=58), "since_or_earlier": True}, "Down 58 days or longer", "No ready date",
         ""),
        (DOWN, {"unit_status_since": ago(hours=1)}, "Down since today", "No ready date", ""),
        (DOWN, {"empty_since": -58, "unit_status_since": ago(hours=1), "since_or_earlier": True},
         "Down · Vacant 58 days", "No ready date", ""),
        (DOWN, {"unit_status_since": ago(hours=1), "since_or_earlier": True}, "Down", "No ready date", ""),
        (DOWN, {}, "Down", "No ready date", ""),
        ("Occupied", {"unit_status_since": ago(hours=1)}, "since today", "", ""),
        ("Occupied", {"unit_status_since": ago(days=3)}, "for 3 days", "", ""),
    ],
)  # fmt: skip
def test_a_unit_in_words(status: str, more: dict[str, Any], when: str, ready: str, late: str) -> None:
    drawn = card(status, **more)
    assert (drawn.when, drawn.ready, drawn.late) == (when, ready, late)


@pytest.mark.parametrize(
    ("status", "more", "comes", "clash", "soon"),
    [
        (NOTICE, {"turn_id": 1, "move_out_date": 36, "next_move_in": 49}, "Moving in 10 Jan 2027", "", ""),
        (NOTICE, {"turn_id": 1, "move_out_date": 36}, "Not leased", "", ""),
        (NOT_READY, {"turn_id": 1, "move_out_date": -7, "has_left": True}, "Not leased", "", ""),
        (READY, {}, "Not leased", "", ""),
        (READY, {"turn_id": 1}, "Not leased", "", ""),  # handed over by its builder, with dates of nobody
        (DOWN, {"turn_id": 1}, "", "", ""),  # its resident stays
        (DOWN, {"turn_id": 1, "move_out_date": -90, "has_left": True}, "Not leased", "", ""),
        ("Occupied", {"turn_id": 1}, "", "", ""),
        ("", {}, "", "", ""),
        (READY, {"next_move_in": 1}, "Moving in 23 Nov", "", ""),
        (READY, {"next_move_in": 0}, "Moving in 22 Nov", "", ""),
        (NOT_READY, {"next_move_in": 7}, "Moving in 29 Nov", "",
         "Move-in is in 7 days; unit is not ready."),
        (NOT_READY, {"next_move_in": 8}, "Moving in 30 Nov", "", ""),
        (NOT_READY, {"next_move_in": 3, "projected_ready_on": 4}, "Moving in 25 Nov", "", ""),  # late says it
        (NOT_READY, {"next_move_in": 3, "projected_ready_on": 2}, "Moving in 25 Nov", "",
         "Move-in is in 3 days; unit is not ready."),
        (DOWN, {"next_move_in": 1}, "Moving in 23 Nov", "", "Move-in is tomorrow; unit is down."),
        (DOWN, {"next_move_in": -2}, "Move-in was due 20 Nov", "",
         "Move-in was due 2 days ago; unit is down."),
        (NOTICE, {"turn_id": 1, "move_out_date": 8, "next_move_in": 6, "is_clash": True}, "Moving in 28 Nov",
         "The current resident moves out 30 Nov, and the next resident moves in 28 Nov.", ""),
        ("Occupied", {"turn_id": 1, "next_move_in": 6, "is_clash": True}, "Moving in 28 Nov",
         "The next resident moves in 28 Nov, and the current resident has no move-out date.", ""),
        (NOTICE, {"turn_id": 1, "move_out_date": 6, "next_move_in": 6, "is_clash": True}, "Moving in 28 Nov",
         "A later move-in is scheduled before the previous resident moves out.", ""),
        (NOTICE, {"turn_id": 1, "move_out_date": 6, "next_move_in": 6}, "Moving in 28 Nov", "", ""),  # on the same day
    ],
)  # fmt: skip
def test_who_comes_next_and_what_is_in_the_way(
    status: str, more: dict[str, Any], comes: str, clash: str, soon: str
) -> None:
    drawn = card(status, **more)
    assert (drawn.next, drawn.clash, drawn.soon) == (comes, clash, soon)
    assert list(drawn.warnings) == [sentence for sentence in (clash, soon, drawn.late) if sentence]


def test_a_year_stands_beside_a_date_of_another_one() -> None:
    assert [TODAY.words(datetime.date(year, 1, 15)) for year in (2026, 2027)] == ["15 Jan", "15 Jan 2027"]
    assert [TODAY.distance(day(days)) for days in (-2, -1, 0, 1, 54)] == [
        "2 days ago", "yesterday", "today", "tomorrow", "in 54 days"]  # fmt: skip


def test_bars_are_the_stretches_of_the_four_weeks() -> None:
    cards = [
        card(NOTICE, move_out_date=8, projected_ready_on=17, next_move_in=24),
        card(NOTICE, move_out_date=80, projected_ready_on=90),
        card(NOT_READY, empty_since=-3, projected_ready_on=4, tasks_late=2),
        card(NOT_READY, empty_since=-90, projected_ready_on=-60),
        card(READY, empty_since=-30, unit_status_since=ago(days=5), next_move_in=10),
        card(DOWN),
        card(NOTICE, turn_id=1, move_out_date=8, projected_ready_on=17, next_move_in=6, is_clash=True),
        card(NOTICE, turn_id=1, next_move_in=6, next_resident="Ana Ortiz", is_clash=True),
        card(DOWN, next_move_in=6, next_resident="Ana Ortiz"),
        card("Occupied", turn_id=1, next_move_in=6),
        card(READY, next_move_in=-30),
    ]
    drawn = weeks(cards, TODAY, datetime.UTC)
    assert [(label.first, label.days, label.words) for label in drawn.labels] == [
        (2, 6, "Mon 16 Nov"), (8, 1, "22"), (9, 7, "Mon 23"), (16, 7, "Mon 30"), (23, 7, "Mon 7 Dec")]  # fmt: skip
    assert drawn.now == 7
    assert [[(bar.tone, bar.first, bar.days) for bar in bars] for _, bars in drawn.rows] == [
        [("violet", 1, 15), ("amber", 16, 9)],
        [("violet", 1, 28)],
        [("violet", 1, 4), ("red", 5, 7)],
        [("red", 1, 7)],
        [("green", 2, 15), ("blue", 17, 12)],
        [("slate", 1, 28)],
        [("violet", 1, 12), ("red", 13, 16)],
        [("violet", 1, 12), ("red", 13, 16)],
        [("slate", 1, 12), ("red", 13, 16)],
        [("slate", 1, 12), ("blue", 13, 16)],
        [("blue", 1, 28)],
    ]
    words = [bar.words for _, bars in drawn.rows for bar in bars]
    assert words[2:6] == ["Moving out 10 Feb 2027", "", "2 tasks overdue · Ready 26 Nov", "Ready 23 Sep"]


def test_bars_end_with_the_calendar() -> None:
    """A ready date may be any that the calendar has."""
    first, last = [(date - TODAY.today).days for date in (datetime.date.min, datetime.date.max)]
    cards = [card(status, move_out_date=end, empty_since=end, projected_ready_on=end, next_move_in=end)
             for status in (NOTICE, NOT_READY, READY, DOWN) for end in (first, last)]  # fmt: skip
    assert len(weeks(cards, TODAY, datetime.UTC).rows) == 8


def test_bars_and_labels_stay_in_the_stylesheet_s_columns_on_every_day_of_a_week() -> None:
    for start in range(7):
        days = Days(datetime.date(2026, 12, 28) + datetime.timedelta(days=start))
        cards = [card(status, move_out_date=move_out, empty_since=move_out, projected_ready_on=ready,
                      next_move_in=comes)
                 for status in (NOTICE, NOT_READY, READY, DOWN)
                 for move_out in (-300, 30, 37, 44)
                 for ready in (-299, 36, 50, 400)
                 for comes in (37, 45, 500)]  # fmt: skip
        drawn = weeks(cards, days, datetime.UTC)
        for _, bars in drawn.rows:
            assert all(bar.first >= 1 and bar.days >= 1 and bar.first + bar.days <= DAYS + 1 for bar in bars)
        assert sum(label.is_today for label in drawn.labels) == 1
        assert all(label.first >= 2 and label.first + label.days <= DAYS + 2 for label in drawn.labels)


def test_residencies_share_one_scale() -> None:
    dates = ((-100, None), (-300, -100), (None, -300))
    lived = [residencies_pb2.Residency(status="Active") for _ in dates]
    for residency, (came, move_out) in zip(lived, dates, strict=True):
        if came is not None:
            residency.move_in_date = day(came)
        if move_out is not None:
            residency.move_out_date = day(move_out)
    rectangles = [
        re.findall(r'class="tone" x="([\d.]+)" y="3" width="([\d.]+)"', bar)
        for bar in residencies.bars(lived, NOW.date())
    ]
    third = residencies.WIDTH / 3
    assert residencies.bars([], NOW.date()) == []
    assert [(float(x), float(wide)) for ((x, wide),) in rectangles] == [
        (pytest.approx(2 * third, abs=0.1), pytest.approx(third, abs=0.1)),
        (0.0, pytest.approx(2 * third, abs=0.1)),
        (0.0, residencies.LEAST),
    ]


def test_a_planned_residency_has_a_bar_ahead_of_today() -> None:
    lived = [
        residencies_pb2.Residency(status="Active", is_planned=True, move_in_date=day(40)),
        residencies_pb2.Residency(status="Active", move_in_date=day(-60), move_out_date=day(36)),
    ]
    ahead, now = residencies.bars(lived, NOW.date())
    assert 'aria-label="scheduled from 1 January 2027"' in ahead and 'class="ahead"' in ahead and 'class="tone"' in now
    (x, wide), today = re.findall(r'class="ahead" x="([\d.]+)" y="3" width="([\d.]+)"', ahead)[0], 60 / 160
    assert float(x) == pytest.approx(residencies.WIDTH * 100 / 160, abs=0.1)
    assert float(wide) == pytest.approx(residencies.WIDTH * 60 / 160, abs=0.1)
    assert f'x1="{round(residencies.WIDTH * today, 1)}"' in ahead


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))


async def test_the_board_s_list_is_filtered_paged_and_a_file(staff: Browser, stubs: Stubs) -> None:
    reply = await staff.get("/board?view=list&status=Down&property_id=1")
    (request,) = stubs.called("occupancy.TurnBoardService/ListBoard")
    assert (list(request.unit_statuses), request.property_id, request.limit) == (["Down"], 1, 50)
    assert "Loft 3A" in reply.words and "Alder Court 104" not in reply.words
    assert (
        "Down 58 days or longer" in reply.words
        and "/board?view=list&amp;property_id=1&amp;status=Down&amp;csv=1" in reply.text
    )
    file = await staff.get("/board?view=list&csv=1")
    lines = rows(file.text)
    assert file.headers["Content-Type"].startswith("text/csv") and len(lines) == 12
    assert dict(zip(lines[0], lines[1], strict=True))["late"] == "3 tasks overdue."
    assert (await staff.get("/board?view=list&status=Occupied")).status == 200
    assert (await staff.get("/board?property_id=no&status=x&view=y")).status == 200
    for path, column in (("/turns?csv=1", "entity_id"), ("/turn-tasks?csv=1&late=1", "task_id")):
        assert rows((await staff.get(path)).text)[0][0] == column


async def test_a_column_leads_to_its_whole_list_and_the_list_to_its_next_page(staff: Browser, stubs: Stubs) -> None:
    plain = stubs.answers["occupancy.TurnBoardService/ListBoard"]

    def board(request: Any, who: Any) -> Any:
        answer = plain(request, who)
        del answer.units[1:]
        answer.next_after = "2026-11-26.15"
        return answer

    stubs.answers["occupancy.TurnBoardService/ListBoard"] = board
    page = await staff.get("/board?property_id=1")
    assert "/board?view=list&amp;status=Notice&amp;property_id=1" in page.text and "View all 3" in page.words
    for view in ("list", "weeks"):
        page = await staff.get(f"/board?view={view}")
        assert f"/board?view={view}&amp;after=2026-11-26.15" in page.text
    stubs.calls.clear()
    await staff.get("/board?view=weeks&after=2026-11-26.15")
    requests = [call for call in stubs.called("occupancy.TurnBoardService/ListBoard") if not call.clashes]
    assert [call.after for call in requests] == ["2026-11-26.15"]


async def test_nobody_s_turn_and_another_company_s_are_the_same_page(
    administrator: Browser, staff: Browser, stranger: Browser
) -> None:
    def without_ids(reply: Any) -> str:
        text = re.sub(r'name="act" value="[^"]+"', "", reply.text)
        return str(text.replace(reply.headers["X-Request-Id"], ""))

    for path in ("/turns/{}", "/turn-tasks/{}", "/units/{}/transitions"):
        anothers, nobodys = (
            await stranger.get(path.format(15 if "units" in path else 5)),
            await stranger.get(path.format(404)),
        )
        assert (anothers.status, nobodys.status) == (404, 404)
        assert without_ids(anothers) == without_ids(nobodys), path
    assert (await staff.get("/turns/5")).title == "Alder Court 403: turn"
    assert (await administrator.get("/turn-tasks/32")).title == "Paint"


async def test_a_look_at_contacts_is_one_call(administrator: Browser, stubs: Stubs) -> None:
    reply = await administrator.get("/units/15/transitions")
    for words in ("Marguerite Okafor-Lindqvist", "marguerite.okafor@example.com", "+1 207 555 0143", "NEW_JOB",
                  "OUT_OF_STATE", "fixed term", "each view is recorded in the audit log", HOSTILE.split(">")[1],
                  "When it began is not on file", "set on the turn board · Dana Adler"):  # fmt: skip
        assert words in reply.words, words
    assert len(stubs.called("occupancy.ResidenciesService/ListResidencies")) == 1
    # No other page of a unit has contacts.
    for path in ("/turns/5", "/board", "/board/panel?unit_id=15", "/board/home"):
        assert "@example.com" not in (await administrator.get(path)).text
    assert len(stubs.called("occupancy.ResidenciesService/ListResidencies")) == 1


async def test_a_turn_stands_without_its_parts(administrator: Browser, stubs: Stubs) -> None:
    stubs.slow |= {"occupancy.TurnBoardService/GetBoardUnit", "occupancy.TurnTasksService/ListTasks"}
    reply = await administrator.get("/turns/5")
    assert reply.status == 200 and reply.title == "Alder Court 403: turn"
    assert "Make-ready tasks: Unavailable right now." in reply.words and "15 Nov" in reply.words
    assert "Unit status unavailable right now" in reply.words
    assert reply.words.lower().count("unavailable right now") == 2


FORGET = "/units/15/parties/1/forget"


async def submitted(browser: Browser, path: str, texts: Sequence[str] = (), **values: str) -> Reply:
    """Sends the form of the page that is open, with these texts marked."""
    marked = [("ticket_texts", text) for text in texts]
    return await browser.post(path, [("act", browser.form(path)["act"]), *marked, *values.items()])


async def test_an_administrator_forgets_a_person(administrator: Browser, staff: Browser, stubs: Stubs) -> None:
    rpc, marked = "occupancy.PartiesService/ForgetParty", ["102.description", "102.comment.8"]
    path = "/units/15/transitions"
    residencies_page = await administrator.get(path)
    assert (
        FORGET in residencies_page.text
        and "Forgotten" in residencies_page.words
        and FORGET not in (await staff.get(path)).text
    )
    page = await administrator.get(FORGET)
    assert page.title == "Forget Marguerite Okafor-Lindqvist"
    for words in ("Type Marguerite Okafor-Lindqvist to confirm", "asthma", "Resident", "Alder 12", "phone number"):
        assert words in page.words, words
    # The contacts themselves are on no other page than that of the residencies.
    assert "marguerite.okafor@example.com" not in page.text
    # 30 days before the move-in, to 90 days after the move-out.
    assert "opened from 23 October 2024 to 13 February 2027" in page.words

    refused = await submitted(administrator, FORGET, marked, with_notice="1", name="Marguerite")
    assert refused.status == 422 and "Type “Marguerite Okafor-Lindqvist” exactly as shown." in refused.words
    boxes = [
        attributes
        for tag, attributes in Tags(refused.text).found
        if tag == "input" and attributes.get("type") == "checkbox"
    ]
    assert {box["value"] for box in boxes if "checked" in box} == {*marked, "1"}  # what was marked still is
    assert not stubs.called(rpc)

    def confirm_first(*_: Any) -> Any:
        raise Refusal(403, "step_up_required", "Confirm who you are first.")

    stubs.answers[rpc] = confirm_first
    name = "  marguerite   OKAFOR-lindqvist "
    confirmation = await submitted(administrator, FORGET, marked, with_notice="1", name=name)
    assert confirmation.title == "Confirm your identity"
    borne = [
        attributes["value"]
        for tag, attributes in Tags(confirmation.text).found
        if tag == "input" and attributes.get("name") == "ticket_texts"
    ]
    assert borne == marked
    stubs.answers[rpc] = parties_pb2.ForgetPartyResponse()
    done = await submitted(administrator, FORGET, marked, with_notice="1", name=name)
    assert (done.status, done.headers["Location"]) == (303, path)
    request = stubs.called(rpc)[-1]
    assert (request.party_id, list(request.ticket_texts), request.with_notice) == (1, marked, True)
    # The sentence after it has no name any more.
    after = (await administrator.get(path)).words
    assert "The person is forgotten. The selected ticket text is removed within seconds." in after


async def test_overlooked_texts_of_a_forgotten_person_are_removed(administrator: Browser, stubs: Stubs) -> None:
    rpc, path = "occupancy.PartiesService/ForgetParty", "/units/15/parties/5/forget"
    page = await administrator.get(path)
    assert page.title == "Forgotten person" and "Forgotten Fri 20 Nov" in page.words
    nothing = await submitted(administrator, path, name="remove")
    assert nothing.status == 422 and "Select what to remove." in nothing.words and not stubs.called(rpc)
    stubs.answers[rpc] = parties_pb2.ForgetPartyResponse()
    done = await submitted(administrator, path, ["3.title"], name="remove")
    assert done.status == 303 and list(stubs.called(rpc)[-1].ticket_texts) == ["3.title"]
    # A party of another unit is nobody's here; without svc-tickets the rest of the page stands.
    assert (await administrator.get("/units/11/parties/5/forget")).status == 404
    stubs.slow.add("tickets.TicketViewsService/ListTicketTexts")
    page = await administrator.get(FORGET)
    assert page.status == 200 and "Ticket text: unavailable right now" in page.words
