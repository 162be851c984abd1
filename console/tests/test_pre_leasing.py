"""Units that are let ahead: the row of a unit's turns, what pages say of it, and forms that ask before they send."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from chassis.refusals import Refusal
from console.areas.board.cards import Days
from console.areas.board.rows import (
    NOW,
    PLANNED,
    can_be_let,
    effect_of_change,
    effect_of_move_in,
    effect_of_notice,
    left_over,
    notice_of,
    stay_of,
)
from makeready.common.v1 import documents_pb2
from makeready.occupancy.v1 import residency_commands_pb2 as commands_pb
from makeready.occupancy.v1 import turn_board_pb2 as pb
from makeready.occupancy.v1 import turn_tasks_pb2 as tasks_pb

from .browsing import Browser, Tags
from .samples_board import day
from .stubs import NOW as TODAY_AT
from .stubs import Stubs

NOTICE, MOVE_IN = "occupancy.ResidencyCommandsService/AddNotice", "occupancy.ResidencyCommandsService/AddMoveIn"
CHANGE = "occupancy.ResidencyCommandsService/ChangeMoveIn"
CANCEL_NOTICE, CANCEL_TURN = "occupancy.TurnBoardService/CancelNotice", "occupancy.TurnBoardService/CancelTurn"
CANCEL_INSPECTION = "catalog.InspectionCommandsService/CancelInspection"
DAYS = Days(TODAY_AT.date())  # Sunday, 22 November 2026
ANA = {"first_name": "Ana", "last_name": "Ortiz"}


def date(days: int) -> datetime.date:
    return datetime.date.fromisoformat(day(days))


def found(current: tuple[int, int | None] | None, *ahead: tuple[int, int | None], has_left: bool = False) -> Any:
    """A unit: the dates of its current turn 1, and of the planned turns 2, 3, … behind it."""
    unit = pb.BoardUnit(unit_id=7, unit_status="Vacant Ready" if has_left or current is None else "Occupied")
    if current is not None:
        unit.turn_id, unit.has_left, unit.move_in_date = 1, has_left, day(current[0])
        if current[1] is not None:
            unit.move_out_date = day(current[1])
    answer = pb.GetBoardUnitResponse(unit=unit)
    for number, (came, leaves) in enumerate(ahead, start=2):
        planned = answer.planned.add(turn_id=number, move_in_date=day(came))
        if leaves is not None:
            planned.move_out_date = day(leaves)
    return answer


@pytest.mark.parametrize(
    ("unit", "lets"),
    [
        (found(None), True),
        (found((-400, None)), False),
        (found((-400, 36)), True),
        (found((-400, -6), has_left=True), True),
        (found((-400, 36), (49, None)), False),
        (found((-400, 36), (49, 414)), True),
        (found(None, (49, None)), False),
    ],
)
def test_a_unit_is_let_behind_the_last_of_its_residents(unit: Any, lets: bool) -> None:
    assert can_be_let(unit) is lets


@pytest.mark.parametrize(
    ("unit", "came", "kind", "oddities"),
    [
        (found(None), 0, NOW, []),
        (found(None), 1, PLANNED, []),
        (found(None), None, "", []),
        (found((-400, 36)), 49, PLANNED, []),
        (found((-400, 36)), 36, PLANNED, []),  # on the day of the departure
        (found((-400, 36)), 35, PLANNED, ["That is before the previous resident's move-out on 28 Dec."]),
        (found((-400, 36)), 0, NOW, ["That is before the previous resident's move-out on 28 Dec."]),
        (found((-400, -6), has_left=True), -1, NOW, []),
        (found((-400, -6), has_left=True), -400, NOW,
         ["That is before the previous resident's move-out on 16 Nov.",
          "That is not after the previous resident's move-in on 18 Oct 2025."]),
        (found((-400, 36), (49, 100)), 0, PLANNED,
         ["That is before the previous resident's move-out on 2 Mar 2027.",
          "That is not after the previous resident's move-in on 10 Jan 2027."]),
        (found(None, (49, 100)), None, PLANNED, []),
    ],
)  # fmt: skip
def test_what_a_move_in_does_follows_from_its_day(unit: Any, came: int | None, kind: str, oddities: list[str]) -> None:
    effect = effect_of_move_in(unit, None if came is None else date(came), DAYS)
    assert (effect.kind, list(effect.oddities)) == (kind, oddities)
    assert effect.is_seen({"seen": kind, "sure": effect.sure})
    assert not effect.is_seen({"seen": "other", "sure": effect.sure})
    if oddities:
        assert not effect.is_seen({"seen": kind}) and not effect.is_seen({"seen": kind, "sure": "2026-01-01/1"})


@pytest.mark.parametrize(
    ("unit", "leaves", "turn_id", "oddities"),
    [
        (found((-400, None)), 36, 1, []),
        (found((-400, None)), -401, 1, ["That is before this resident's move-in on 18 Oct 2025."]),
        (found((-400, 36), (49, None)), 49, 1, []),
        (found((-400, 36), (49, None)), 50, 1,
         ["The current resident moves out 11 Jan 2027, and the next resident moves in 10 Jan 2027."]),
        # Once the resident has left, a day on or after the planned move-in is of the next one.
        (found((-400, -6), (49, None), has_left=True), 48, 1, []),
        (found((-400, -6), (49, None), has_left=True), 49, 2, []),
        (found(None, (49, None)), 400, 2, []),
        (found(None, (49, None)), 48, 2, ["That is before this resident's move-in on 10 Jan 2027."]),
        (found(None, (49, 100), (110, None)), 111, 2,
         ["The current resident moves out 13 Mar 2027, and the next resident moves in 12 Mar 2027."]),
    ],
)  # fmt: skip
def test_whose_notice_it_is_follows_from_its_day(unit: Any, leaves: int, turn_id: int, oddities: list[str]) -> None:
    effect = effect_of_notice(unit, date(leaves), DAYS)
    assert (effect.kind, list(effect.oddities)) == (str(turn_id), oddities)


def test_a_unit_without_residents_takes_no_notice() -> None:
    assert notice_of(found(None), date(9), DAYS.today) is None
    assert effect_of_notice(found(None), date(9), DAYS).kind == ""


@pytest.mark.parametrize(
    ("came", "oddities"),
    [
        (49, []),
        (36, []),
        (35, ["That is before the previous resident's move-out on 28 Dec."]),
        (101, ["That is after this resident's move-out on 2 Mar 2027."]),
        (110, ["That is after this resident's move-out on 2 Mar 2027.",
               "That is not before the next resident's move-in on 12 Mar 2027."]),
    ],
)  # fmt: skip
def test_another_date_stands_between_its_neighbours(came: int, oddities: list[str]) -> None:
    stay, before, behind = stay_of(found((-400, 36), (49, 100), (110, None)), 2)
    assert stay and before and behind and (before.turn_id, behind.turn_id) == (1, 3)
    effect = effect_of_change(stay, before, behind, date(came), DAYS)
    assert (effect.kind, list(effect.oddities)) == (PLANNED, oddities)


def test_tasks_of_turns_that_are_over_are_left_over() -> None:
    unit = found((-400, 36), (49, None))
    for number, (turn_id, status) in enumerate(((1, "Open"), (2, "Open"), (9, "Open"), (9, "Completed")), start=1):
        unit.unit.tasks.append(tasks_pb.TurnTask(task_id=number, turn_id=turn_id, status=status, task_type="Paint"))
    assert [task.task_id for task in left_over(unit)] == [3]


# Pages


async def test_the_board_says_who_comes_next_and_what_clashes(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/board")
    for words in (
        "Moving in 1 Mar 2027 Ana Ortiz",
        "Not leased",
        "The current resident moves out 30 Nov, and the next resident moves in 28 Nov.",
        "Move-in is in 5 days; unit is not ready.",
    ):
        assert words in page.words, words
    # Clashes stand above the columns, as an occupied unit is in none of them.
    head = page.words[: page.words.index("Vacant Not Ready")]
    assert "2 move-in conflicts:" in head
    assert "Loft 4B , The Kessler Block : The next resident moves in 1 Jan 2027, and the current resident has" in head
    for view in ("list", "weeks"):
        assert "Moving in" in (await staff.get(f"/board?view={view}")).words
    clashes = await staff.get("/board?view=list&clashes=1")
    assert "Loft 4B" in clashes.words and "Townhome 4" in clashes.words and "Alder Court 104" not in clashes.words
    stubs.calls.clear()
    file = await staff.get("/board?view=list&clashes=1&csv=1")
    (request,) = stubs.called("occupancy.TurnBoardService/ListBoard")
    assert request.clashes and not request.unit_statuses and "Ana Ortiz" in file.text and "has_left" in file.text


async def test_a_property_s_panel_names_its_clashes(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/board/panel?property_id=1")
    assert "move-in conflicts:" in page.words and "Townhome 4" in page.words
    (request,) = stubs.called("occupancy.TurnBoardService/ListBoard")
    assert request.clashes and request.property_id == 1


async def test_the_first_page_counts_clashes(staff: Browser, stubs: Stubs) -> None:
    home = await staff.get("/")
    tile = (
        "2 Move-in conflicts Townhome 4: The current resident moves out 30 Nov, and the next resident moves in 28 Nov."
    )
    assert tile in home.words
    plain = stubs.answers["occupancy.TurnBoardService/ListBoard"]

    def none(request: Any, who: Any) -> Any:
        return pb.ListBoardResponse() if request.clashes else plain(request, who)

    stubs.answers["occupancy.TurnBoardService/ListBoard"] = none
    assert "conflict" not in (await staff.get("/")).words.replace("At risk, overdue or conflict", "")


async def test_a_unit_s_page_has_its_row_and_what_is_left_over(staff: Browser) -> None:
    page = await staff.get("/board/panel?unit_id=13")
    assert "Ana Ortiz" in page.words and "Moving in 1 March 2027 in 99 days , until 29 Feb 2028" in page.words
    assert "/turns/20/move-in" in page.text and "/turns/21/cancel" in page.text
    assert "moved in 1 March 2027" not in page.words and "/units/13/move-in" not in page.text  # the last one stays
    assert "/turns/3/notice/cancel" not in page.text  # a move-in is planned
    page = await staff.get("/board/panel?unit_id=15")
    over = page.words[page.words.index("Open tasks from earlier turns") :]
    assert "Change the blinds turn 4, 2 Nov , overdue" in over and "Paint" not in over.partition("Update status")[0]
    assert "Moved out; make-ready in progress" in page.words and "Next resident Not leased" in page.words
    staff.form("/turn-tasks/35/complete")
    assert "The current resident moves out 30 Nov" in (await staff.get("/board/panel?unit_id=32")).words


async def test_a_planned_turn_never_says_that_it_has_begun(staff: Browser) -> None:
    for path in ("/turns/20", "/units/13/transitions"):
        words = (await staff.get(path)).words
        assert "Moving in 1 March 2027" in words and "Planned" in words, path
        assert "current resident" not in words, path
    page = await staff.get("/turns/20")
    assert "Moving in 1 Mar 2027 in 99 days" in page.words and "Moved in" not in page.words
    assert "/turns/20/move-in" in page.text and "/turns/20/cancel" in page.text and "/notice/cancel" not in page.text
    clash = await staff.get("/turns/22")
    assert "previous resident Marguerite Okafor-Lindqvist · Moving out 30 November 2026" in clash.words
    over = await staff.get("/turns/4")
    assert "some tasks are still open" in over.words and "Move-in date" not in over.words


# Forms


async def sent(browser: Browser, path: str, **values: str) -> Any:
    """Fills the form of the page that is open in, and sends it."""
    return await browser.post(path, {**browser.form(path), **values})


async def test_a_move_in_says_which_of_two_it_is_before_it_is_sent(staff: Browser, stubs: Stubs) -> None:
    document = documents_pb2.Document(json=b"{}", entity_id=90, version=1)
    stubs.answers[MOVE_IN] = commands_pb.AddMoveInResponse(document=document)
    path = "/units/15/move-in"
    dates = {"move_in_date": day(30), "lease_start_date": day(30)}
    page = await staff.get(path)
    assert "Today ( 22 November 2026 ) or earlier: the move-in takes effect now." in page.words
    assert "3 tasks of turn 5 are still open: Paint , Floors , Final walk" in page.words
    # The region that says it follows the date, where scripts run.
    region = next(attributes for tag, attributes in Tags(page.text).found if attributes.get("id") == "effect")
    assert (region["hx-get"], region["hx-select"], region["hx-include"]) == (path, "#effect", "#f-move_in_date")
    effect_page = await staff.get(f"{path}?move_in_date={day(30)}")
    assert "The move-in is scheduled for 22 December 2026 . The unit does not change until then." in effect_page.words
    # Without script nobody has read it yet: the form comes back, and keeps what was typed.
    await staff.get(path)
    again = await sent(staff, path, **dates, **ANA)
    assert again.status == 422 and "Not saved yet." in again.words and 'value="Ortiz"' in again.text
    assert "The move-in is scheduled for 22 December 2026" in again.words and not stubs.called(MOVE_IN)
    done = await sent(staff, path)
    assert (done.status, done.headers["Location"]) == (303, "/turns/90")
    after = (await staff.get("/turns/5")).words
    assert "Move-in to Alder Court 403 scheduled for 22 Dec. Until then the unit does not change." in after
    (request,) = stubs.called(MOVE_IN)
    assert (request.predecessor_transition_id, request.move_in_date) == (5, day(30))
    await staff.get(f"{path}?move_in_date={day(0)}")
    now = await sent(staff, path, lease_start_date=day(0), **ANA)
    assert now.status == 303 and "The unit is Occupied." in (await staff.get("/turns/5")).words
    # What the form said of one day does not count for another.
    await staff.get(f"{path}?move_in_date={day(0)}")
    other = await sent(staff, path, **dates, **ANA)
    assert other.status == 422 and len(stubs.called(MOVE_IN)) == 2


async def test_a_move_in_that_is_sent_twice_is_one(staff: Browser, stubs: Stubs) -> None:
    """The second one meets the turn that the first one made; its key is the same, so the service answers as before."""
    document = documents_pb2.Document(json=b"{}", entity_id=90, version=1)
    stubs.answers[MOVE_IN] = commands_pb.AddMoveInResponse(document=document)
    path, plain = "/units/15/move-in", stubs.answers["occupancy.TurnBoardService/GetBoardUnit"]
    await staff.get(f"{path}?move_in_date={day(30)}")
    filled = {**staff.form(path), "lease_start_date": day(30), **ANA}
    first = await staff.post(path, filled)

    def let(request: Any, who: Any) -> Any:
        answer = plain(request, who)
        answer.planned.add(turn_id=90, move_in_date=day(30))
        return answer

    stubs.answers["occupancy.TurnBoardService/GetBoardUnit"] = let
    second = await staff.post(path, filled)
    assert [reply.headers["Location"] for reply in (first, second)] == ["/turns/90", "/turns/90"]
    keys = [request.idempotency_key for request in stubs.called(MOVE_IN)]
    assert len(keys) == 2 and len(set(keys)) == 1
    assert [request.predecessor_transition_id for request in stubs.called(MOVE_IN)] == [5, 5]


async def test_dates_in_a_strange_order_are_sent_when_ticked(staff: Browser, stubs: Stubs) -> None:
    path = "/units/11/move-in"
    page = await staff.get(f"{path}?move_in_date={day(10)}")
    assert "Check this date. That is before the previous resident's move-out on 9 Dec." in page.words
    refused = await sent(staff, path, lease_start_date=day(10), **ANA)
    assert refused.status == 422 and "confirm that they are correct" in refused.words and not stubs.called(MOVE_IN)
    sure = f"{day(10)}/1"
    assert f'name="sure" value="{sure}"' in refused.text
    # A tick for another day is none.
    assert (await sent(staff, path, move_in_date=day(11), sure=sure)).status == 422
    assert not stubs.called(MOVE_IN)
    assert (await sent(staff, path, move_in_date=day(10), sure=sure)).status == 303 and len(stubs.called(MOVE_IN)) == 1

    page = await staff.get("/units/13/notice")
    clash = await sent(staff, "/units/13/notice", move_out_date=day(120))
    assert clash.status == 422 and "The current resident moves out 22 Mar 2027" in clash.words
    assert not stubs.called(NOTICE)
    done = await sent(staff, "/units/13/notice", sure=f"{day(120)}/1")
    assert done.status == 303 and stubs.called(NOTICE)[0].expected_turn_id == 3
    await staff.get("/units/13/notice")
    before = await sent(staff, "/units/13/notice", move_out_date=day(-1100))
    assert before.status == 422 and "That is before this resident's move-in on 30 Nov 2023." in before.words


async def test_the_next_resident_s_notice_is_named_as_theirs(staff: Browser, stubs: Stubs) -> None:
    """The resident has left; on or after the planned move-in it is the next one who leaves."""
    path = "/units/36/notice"
    await staff.get(path)
    shown_again = await sent(staff, path, move_out_date=day(370))
    assert (
        shown_again.status == 422 and "This notice is for Ana Ortiz" in shown_again.words and not stubs.called(NOTICE)
    )
    assert (await sent(staff, path)).status == 303
    (request,) = stubs.called(NOTICE)
    assert (request.expected_turn_id, request.expected_move_out_date) == (24, "")
    stayed = await staff.get(f"{path}?move_out_date={day(2)}")
    assert "The unit is on Notice again" in stayed.words
    same = await staff.get(f"{path}?move_out_date={day(-6)}")
    assert "The unit’s status does not change." in same.words


async def test_a_planned_move_in_is_moved(staff: Browser, stubs: Stubs) -> None:
    path = "/turns/20/move-in"
    page = await staff.get(path)
    assert page.title == "Alder Court 202: move-in date" and staff.form(path)["move_in_date"] == day(99)
    done = await sent(staff, path, move_in_date=day(106))
    assert (done.status, done.headers["Location"]) == (303, "/turns/20")
    (request,) = stubs.called(CHANGE)
    assert (request.turn_id, request.move_in_date, request.expected_move_in_date) == (20, day(106), day(99))
    assert "move-in date set to 8 Mar 2027" in (await staff.get("/turns/5")).words
    # A clash is asked for; a refusal stands beside its field.
    await staff.get(f"{path}?move_in_date={day(20)}")
    clash = await sent(staff, path)
    assert clash.status == 422 and "That is before the previous resident's move-out on 31 Dec." in clash.words

    def refuse(_request: Any, _who: Any) -> Any:
        message = "The move-in date is 2027-03-02 by now; look at it again."
        raise Refusal(422, "invalid_request", message, "move_in_date")

    stubs.answers[CHANGE] = refuse
    refused = await sent(staff, path, sure=f"{day(20)}/1")
    assert refused.status == 422 and "The move-in date is 2027-03-02 by now" in refused.words
    # A turn that has begun: the form says what a later day does. One that is over has no form.
    begun = await staff.get(f"/turns/3/move-in?move_in_date={day(9)}")
    assert "The move-in is rescheduled for 1 December 2026 ." in begun.words
    over = await staff.get("/turns/4/move-in")
    assert (
        "The turn is completed. Only" in over.words
        and "<form" not in over.text[over.text.index("<main") : over.text.index("</main")]
    )


async def test_what_a_cancelled_turn_leaves_is_said(staff: Browser, stubs: Stubs) -> None:
    planned = await staff.get("/turns/20/cancel")
    assert planned.title == "Cancel scheduled move-in" and "Move-in on 1 March 2027 :" in planned.words
    assert "Moving in 6 March 2028 ." in planned.words and "Webhook events: none." in planned.words
    assert (await sent(staff, "/turns/20/cancel")).status == 303 and stubs.called(CANCEL_TURN)[0].turn_id == 20
    current = await staff.get("/turns/3/cancel")
    assert "The scheduled move-in stays: Ana Ortiz" in current.words and "Moving in 1 March 2027" in current.words
    assert "The unit’s status is Vacant Not Ready." in current.words


async def test_a_notice_with_a_planned_successor_stays(staff: Browser, stubs: Stubs) -> None:
    page = await staff.get("/turns/3/notice/cancel")
    assert "A move-in is scheduled for 1 March 2027 . Cancel it first." in page.words
    assert "/turns/20/cancel" in page.text
    assert "Move-out walk" in page.words
    main = page.text[page.text.index("<main") :]
    assert 'action="/turns/3/notice/cancel"' not in main
    # Planned while the form was open: what the service says stands on the page.
    await staff.get("/turns/1/notice/cancel")

    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_request", "A move-in is planned for 2027-03-01; cancel that first.")

    stubs.answers[CANCEL_NOTICE] = refuse
    reply = await sent(staff, "/turns/1/notice/cancel", inspection="6")
    assert reply.status == 422 and "A move-in is planned for 2027-03-01; cancel that first." in reply.words
    assert not stubs.called(CANCEL_INSPECTION)


async def test_the_inspection_of_a_move_out_goes_with_the_notice_if_ticked(staff: Browser, stubs: Stubs) -> None:
    path = "/turns/1/notice/cancel"
    page = await staff.get(path)
    boxes = [
        attributes
        for tag, attributes in Tags(page.text).found
        if tag == "input" and attributes.get("name") == "inspection"
    ]
    assert len(boxes) > 1 and not any("checked" in box for box in boxes)
    first = str(boxes[0]["value"])  # that of the move-out stands first
    assert page.words.index("Move-out walk") < page.words.index("Quarterly unit walk")
    assert (await sent(staff, path)).status == 303 and not stubs.called(CANCEL_INSPECTION)
    await staff.get(path)
    reply = await sent(staff, path, inspection=first)
    after = (await staff.follow(reply)).words
    assert "Inspection “Move-out walk” cancelled." in after
    (request,) = stubs.called(CANCEL_INSPECTION)
    assert str(request.inspection_id) == first and request.reason == "Notice cancelled: the resident stays."
    assert request.idempotency_key == f"{stubs.called(CANCEL_NOTICE)[-1].idempotency_key}.{first}"

    # One that cannot be cancelled any more stays, and the page says so. One of another unit is no choice.
    def refuse(_request: Any, _who: Any) -> Any:
        raise Refusal(422, "invalid_request", "It is completed.")

    stubs.answers[CANCEL_INSPECTION] = refuse
    await staff.get(path)
    after = (await staff.follow(await sent(staff, path, inspection=first))).words
    assert "“Move-out walk” was not cancelled: It is completed." in after
    stubs.calls.clear()
    await staff.get(path)
    assert (await sent(staff, path, inspection="9999")).status == 303 and not stubs.called(CANCEL_INSPECTION)
    # While svc-catalog is away, the notice can be taken back all the same.
    stubs.slow.add("catalog.InspectionDetailsService/SearchInspections")
    page = await staff.get(path)
    assert page.status == 200 and "Inspections are unavailable right now" in page.words
    reply = await sent(staff, path, inspection=first)
    assert "cancel them on their own pages" in (await staff.follow(reply)).words
