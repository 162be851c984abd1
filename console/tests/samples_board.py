"""Answers of svc-occupancy about one company, as on its board on 22 November 2026."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

from chassis.auth.identity import Identity
from chassis.refusals import Refusal
from makeready.common.v1 import documents_pb2
from makeready.occupancy.v1 import residencies_pb2 as residencies
from makeready.occupancy.v1 import resident_search_pb2, turns_pb2
from makeready.occupancy.v1 import turn_board_pb2 as pb
from makeready.occupancy.v1 import turn_tasks_pb2 as tasks_pb
from makeready.occupancy.v1 import turn_templates_pb2 as templates_pb

from .stubs import NOW, ago

PLACES = {1: "Alder Court", 2: "Harbor Point Townhomes", 3: "Willow Gardens", 4: "Résidence du Vieux-Port",
          5: "Meridian Tower", 6: "The Kessler Block"}  # fmt: skip
# The units that svc-catalog's answers have are of property 1; the one with hostile texts is unit 3 of property 3.
PROPERTY_IDS = {5: 5}
FLAGS = ("turn_id", "next_turn_id")
UNDER_WAY = ("Notice", "Vacant Not Ready", "Vacant Ready", "Down")


def day(days: int) -> str:
    return (NOW.date() + datetime.timedelta(days=days)).isoformat()


def task(task_id: int, name: str, on: int | None, status: str = "Open", turn_id: int = 5, unit_id: int = 15, *,
         who: bool = False) -> Any:  # fmt: skip
    sample = tasks_pb.TurnTask(
        task_id=task_id, turn_id=turn_id, unit_id=unit_id, task_type=name, status=status, created_at=ago(days=12),
        updated_at=ago(days=1), source="staff")  # fmt: skip
    if who:
        sample.MergeFrom(tasks_pb.TurnTask(assignee_id=8, assignee_name="DeShawn Whitfield", vendor_id=1,
                                           vendor_name="Lakeside Plumbing"))  # fmt: skip
    if on is not None:
        sample.scheduled_date = day(on)
    if status == "Completed":
        sample.completed_at.CopyFrom(ago(days=4))
    if status == "Cancelled":
        sample.cancelled_at.CopyFrom(ago(days=3))
    if status == "Open" and on is not None and on < 0:
        sample.stale_at.CopyFrom(ago(hours=9))
    return sample


def templates(hostile: str) -> Sequence[templates_pb.TurnTemplate]:
    def template(number: int, name: str, *tasks: templates_pb.TurnTemplateTask, **more: Any) -> Any:
        stamps: dict[str, Any] = {"version": 2, "created_at": ago(days=30), "updated_at": ago(days=2)}
        return templates_pb.TurnTemplate(template_id=number, name=name, tasks=tasks, **stamps, **more)

    of_task = templates_pb.TurnTemplateTask
    return [
        template(
            8, "Standard turn", of_task(task_type="Trash-out", days_after_move_out=1),
            of_task(task_type="Paint", days_after_move_out=2, assignee_id=8, assignee_name="DeShawn Whitfield"),
            of_task(task_type="Final walk", days_after_move_out=5, vendor_id=1, vendor_name="Lakeside Plumbing"),
        ),
        template(9, hostile, of_task(task_type=hostile, assignee_id=9, assignee_name=hostile, vendor_id=3,
                                     vendor_name=hostile), property_id=3, property=hostile, floorplan=hostile),
    ]  # fmt: skip


def units(hostile: str) -> Sequence[pb.BoardUnit]:
    def unit(number: int, name: str, place: int, status: str, **more: Any) -> pb.BoardUnit:
        unit_tasks = more.pop("tasks", [])
        late = sum(
            unit_task.status == "Open" and bool(unit_task.scheduled_date) and unit_task.scheduled_date < day(0)
            for unit_task in unit_tasks
        )
        open_tasks = sum(unit_task.status == "Open" for unit_task in unit_tasks)
        if status != "Notice" and more.get("move_out_date", 0) < 0:
            more["empty_since"] = more["move_out_date"]
        dates = {key: day(value) for key, value in more.items() if type(value) is int and key not in FLAGS}
        where = 3 if number == 3 else PROPERTY_IDS.get(place, 1)
        return pb.BoardUnit(unit_id=number, name=name, property_id=where, property=PLACES[place], unit_status=status,
                            tasks=unit_tasks, tasks_open=open_tasks, tasks_late=late, **{**more, **dates})  # fmt: skip

    notice, empty, ready, down = UNDER_WAY
    return [
        unit(11, "Alder Court 104", 1, notice, turn_id=1, move_in_date=-712, move_out_date=17, projected_ready_on=26,
             unit_status_since=ago(days=20)),
        unit(32, "Townhome 4", 2, notice, turn_id=2, move_in_date=-400, move_out_date=8, projected_ready_on=17,
             next_move_in=6, next_turn_id=22, next_resident="Ana Ortiz", is_clash=True,
             tasks=[task(21, "Walk with resident", 6)], unit_status_since=ago(days=22)),
        unit(13, "Alder Court 202", 1, notice, turn_id=3, move_in_date=-1088, move_out_date=39,
             next_move_in=99, next_turn_id=20, next_resident="Ana Ortiz", unit_status_since=ago(days=4)),
        unit(15, "Alder Court 403", 1, empty, turn_id=5, move_in_date=-700, move_out_date=-7, projected_ready_on=4,
             has_left=True,
             tasks=[task(31, "Clean out", -5, "Completed"), task(32, "Paint", -2, who=True), task(33, "Floors", -1),
                    task(34, "Final walk", 4), task(35, "Change the blinds", -20, turn_id=4)],
             unit_status_since=ago(days=6)),
        unit(36, "C-01", 3, empty, turn_id=6, move_in_date=-300, move_out_date=-6, projected_ready_on=5, has_left=True,
             next_move_in=5, next_turn_id=24, next_resident=hostile,
             tasks=[task(41, "Replace range", -2, "Completed"), task(42, "Clean", 3)],
             unit_status_since=ago(days=5)),
        unit(37, "Logement 2B, 1er étage", 4, empty, turn_id=7, move_in_date=-300, move_out_date=-12,
             tasks=[task(51, "Peinture", -3)], unit_status_since=ago(days=11), since_or_earlier=True),
        unit(38, "Meridian 0305", 5, ready, turn_id=8, move_out_date=-30, next_move_in=10, next_turn_id=26,
             has_left=True, unit_status_since=ago(days=5)),
        unit(39, "Logement 3C, 2e étage", 4, ready, turn_id=9, move_out_date=-31, unit_status_since=ago(days=4)),
        unit(3, hostile, 3, ready, turn_id=10, move_out_date=-40),
        unit(41, "Loft 3A", 6, down, unit_status_since=ago(days=58), since_or_earlier=True,
             tasks=[task(61, hostile, 54)]),
        unit(42, "Old ballroom", 6, down, unit_status_since=ago(days=58)),
        unit(43, "Loft 4B", 6, "Occupied", turn_id=11, move_in_date=-90, next_move_in=40, next_turn_id=27,
             is_clash=True),
    ]  # fmt: skip


def planned(unit: pb.BoardUnit, hostile: str) -> Sequence[pb.PlannedTurn]:
    """The turns behind the current one: one, and in unit 13 two."""
    if not unit.next_turn_id:
        return []
    names = [pb.Resident(first_name="Ana", last_name="Ortiz", role="leaseholder"),
             pb.Resident(first_name="Ben", last_name=hostile, role="leaseholder")]  # fmt: skip
    row = [pb.PlannedTurn(turn_id=unit.next_turn_id, move_in_date=unit.next_move_in, residents=names,
                          is_clash=unit.is_clash)]  # fmt: skip
    if unit.unit_id == 13:
        row[0].move_out_date = day(464)
        row.append(pb.PlannedTurn(turn_id=21, move_in_date=day(470)))
    return row


def turn(unit: pb.BoardUnit) -> Mapping[str, Any]:
    def named(number: int, name: str) -> Mapping[str, Any]:
        return {"id": number, "name": name, "external_id": None}

    return {
        "schema_version": 1, "entity_type": "turn", "entity_id": unit.turn_id, "status": "Active",
        "property": named(unit.property_id, unit.property), "unit": named(unit.unit_id, unit.name),
        "move_out_date": unit.move_out_date or None, "move_in_date": unit.move_in_date or None,
        "projected_ready_on": unit.projected_ready_on or None, "occupancy_source": "yardi",
        "occupancy_fed_at": "2026-11-21T09:30:00.000000Z", "created_at": "2024-11-02T15:12:00.000000Z",
        "updated_at": "2026-11-20T09:31:00.000000Z", "external_id": f"R-{unit.turn_id}", "source": "import",
        "url": f"http://localhost/turns/{unit.turn_id}",
    }  # fmt: skip


def refuse(noun: str) -> Refusal:
    return Refusal(404, "not_found", f"The company has no {noun} with this id.")


def answers(hostile: str) -> dict[str, Any]:
    every = units(hostile)

    def one(unit_id: int, who: Identity) -> pb.BoardUnit:
        for unit in every:
            if unit.unit_id == unit_id and who.company_id == 1:
                return unit
        raise refuse("unit")

    return {**_board(hostile, every, one), **_of_units(hostile, one), **_of_turns(hostile, every)}


def _board(hostile: str, every: Sequence[pb.BoardUnit], own_unit: Any) -> dict[str, Any]:

    def board(request: Any, who: Identity) -> Any:
        statuses = UNDER_WAY if request.under_way else request.unit_statuses
        place = request.property_id if request.HasField("property_id") else 0
        fitting = [u for u in every if place in (0, u.property_id) and who.company_id == 1]
        fitting = (
            [u for u in fitting if u.is_clash] if request.clashes else [u for u in fitting if u.unit_status in statuses]
        )
        fitting.sort(key=lambda unit: unit.projected_ready_on or "9")
        last = 0 if not request.HasField("after") else int(request.after.partition(".")[2])
        more: Any = {"next_after": f"2026-11-26.{last + request.limit}"} if len(fitting) > last + request.limit else {}
        return pb.ListBoardResponse(units=fitting[last : last + request.limit], **more)

    def get_unit(request: Any, who: Identity) -> Any:
        names = [pb.Resident(first_name="Marguerite", last_name="Okafor-Lindqvist", role="leaseholder"),
                 pb.Resident(first_name=hostile, role="guarantor")]  # fmt: skip
        unit = own_unit(request.unit_id, who)
        row = planned(unit, hostile)
        answer = pb.GetBoardUnitResponse(unit=unit, residents=names if unit.turn_id else [], planned=row)
        if answer.unit.move_out_date:
            answer.notice.CopyFrom(
                pb.NoticeToVacate(move_out_date=answer.unit.move_out_date, ntv_reason_code="NEW_JOB", notes=hostile)
            )
        return answer

    def count(request: Any, who: Identity) -> Any:
        if who.company_id != 1:
            return pb.CountBoardResponse()
        place = request.property_id if request.HasField("property_id") else 0
        fitting = [unit for unit in every if place in (0, unit.property_id)]
        by_status = {word: sum(unit.unit_status == word for unit in fitting) for word in UNDER_WAY}
        places = {unit.property_id: unit.property for unit in reversed(every)}
        by_place = {number: sum(unit.property_id == number for unit in every) for number in places}
        statuses = [pb.StatusCount(unit_status=word, units=units) for word, units in by_status.items() if units]
        return pb.CountBoardResponse(
            units=130 if not place else len(fitting) + 12, statuses=statuses, days_empty=19,
            tasks_open=sum(unit.tasks_open for unit in fitting), tasks_late=sum(unit.tasks_late for unit in fitting),
            properties=[] if place else [
                pb.PropertyCount(property_id=number, property=name, units=by_place[number])
                for number, name in sorted(places.items(), key=lambda own_unit: own_unit[1])])  # fmt: skip

    return {
        "occupancy.TurnBoardService/ListBoard": board,
        "occupancy.TurnBoardService/GetBoardUnit": get_unit,
        "occupancy.TurnBoardService/CountBoard": count,
    }


def _of_units(hostile: str, own_unit: Any) -> dict[str, Any]:
    def changes(request: Any, who: Identity) -> Any:
        own_unit(request.unit_id, who)
        words = ("Notice", "Occupied", "Vacant Ready", "Vacant Not Ready")
        causes = (pb.UNIT_STATUS_CAUSE_VACATED, pb.UNIT_STATUS_CAUSE_NOTICE, pb.UNIT_STATUS_CAUSE_MOVE_IN,
                  pb.UNIT_STATUS_CAUSE_BOARD)  # fmt: skip
        actors, days = ("svc-occupancy", "caller:3", "caller:3", "administrator:1"), (6, 40, 700, 702)
        changed = [
            pb.UnitStatusChange(version=9 - place, changed_at=ago(days=days[place]), from_status=words[place],
                                to_status=("Vacant Not Ready", *words)[place], cause=causes[place],
                                actor=actors[place], turn_id=5)
            for place in range(4)
        ]  # fmt: skip
        return pb.ListUnitStatusChangesResponse(changes=changed)

    def lived(request: Any, who: Identity) -> Any:
        unit = own_unit(request.unit_id, who)
        party = residencies.Party
        residents = []
        for place, (came, move_out) in enumerate(((-730, -7), (-1900, -733), (None, -1905), (None, -2400))):
            one_of = residencies.Residency(
                turn_id=5 - place, status=("Active", "Completed", "Cancelled", "Completed")[place],
                source=("api", "api", "import", "import")[place], occupancy_source="yardi",
                occupancy_fed_at=ago(days=1), created_at=ago(days=740), updated_at=ago(days=2),
                external_id=f"R-100-403-{4 - place}", move_out_date=day(move_out))  # fmt: skip
            if came is not None:
                one_of.move_in_date = day(came)
            residents.append(one_of)
        first, second, *_ = residents  # two without names have one heading
        if unit.next_turn_id:
            ahead = residencies.Residency(
                turn_id=unit.next_turn_id, status="Active", source="staff", created_at=ago(days=3),
                updated_at=ago(days=3), move_in_date=unit.next_move_in, is_planned=True, predecessor_id=5,
                parties=[party(id=9, first_name="Ana", last_name="Ortiz", role="leaseholder")])  # fmt: skip
            residents.insert(0, ahead)
        first.lease.CopyFrom(residencies.Lease(id=1, lease_type="fixed_term", start_date=day(-730), end_date=day(-1)))
        second.lease.CopyFrom(residencies.Lease(id=2, lease_type="month_to_month", start_date=day(-1900)))
        first.parties.extend([
            party(id=1, first_name="Marguerite", last_name="Okafor-Lindqvist", email="marguerite.okafor@example.com",
                  phone="+1 207 555 0143", role="leaseholder"),
            party(id=2, first_name="Nguyễn Thị", last_name="Hồng Hạnh", email="hanh@example.com", role="leaseholder"),
            party(id=3, first_name="Ben", last_name="Osei", phone="+1 207 555 0101", role="guarantor"),
        ])  # fmt: skip
        second.parties.append(party(id=4, first_name=hostile, email=hostile, phone="555", role="leaseholder"))
        second.parties.append(party(id=5, role="guarantor", forgotten_at=ago(days=2)))
        first.ntv_reason_code, first.departure_destination_code = "NEW_JOB", "OUT_OF_STATE"
        first.notes = f"Wants the deposit sent on.\nKeys are with the office. {hostile}"
        where: Any = {"property_id": unit.property_id, "property": unit.property}
        return residencies.ListResidenciesResponse(residencies=residents, unit_id=unit.unit_id, unit=unit.name, **where)

    def searched(request: Any, who: Identity) -> Any:
        response = resident_search_pb2.SearchResidentsResponse()
        if who.company_id == 1 and request.words.casefold() in ("ana", "503 555 0142", "x", hostile.casefold()):
            contacts = {"phone": "+1 503 555 0142", "email": "ana@example.com"} if request.with_contacts else {}
            for number, status in enumerate(("current", "future", "former"), start=1):
                response.residents.add(
                    party_id=number, first_name="Ana", last_name=hostile, role="leaseholder", status=status,
                    turn_id=number, turn_status="Cancelled" if number == 3 else "Active", unit_id=15, unit=hostile,
                    property_id=1, property="Alder Court", **contacts,
                )  # fmt: skip
        return response

    return {
        "occupancy.ResidentSearchService/SearchResidents": searched,
        "occupancy.TurnBoardService/ListUnitStatusChanges": changes,
        "occupancy.ResidenciesService/ListResidencies": lived,
    }


def _of_turns(hostile: str, every: Sequence[pb.BoardUnit]) -> dict[str, Any]:
    others = [task(70, "Change the locks", -4, "Cancelled"), task(71, hostile, None)]

    def get_turn(request: Any, who: Identity) -> Any:
        for unit in every:
            for ahead in planned(unit, hostile) if who.company_id == 1 else ():
                if ahead.turn_id == request.turn_id:
                    record = {**turn(unit), "entity_id": ahead.turn_id, "move_in_date": ahead.move_in_date,
                              "move_out_date": ahead.move_out_date or None, "projected_ready_on": None}  # fmt: skip
                    document = documents_pb2.Document(json=json.dumps(record).encode(), entity_id=ahead.turn_id)
                    return turns_pb2.GetTurnResponse(document=document)
            # Turn 4 is over: another one of the unit that turn 5 is of.
            if unit.turn_id == (5 if request.turn_id == 4 else request.turn_id) and who.company_id == 1:
                record = {**turn(unit), **({"entity_id": 4, "status": "Completed"} if request.turn_id == 4 else {})}
                document = documents_pb2.Document(
                    json=json.dumps(record).encode(), entity_id=request.turn_id, version=1
                )
                return turns_pb2.GetTurnResponse(document=document)
        raise refuse("turn")

    def list_turns(request: Any, who: Identity) -> Any:
        own_turns = [turn(unit) for unit in every if unit.turn_id and who.company_id == 1]
        page = documents_pb2.Page(data=json.dumps(own_turns[: request.limit]).encode())
        return turns_pb2.ListTurnsResponse(page=page)

    def list_tasks(request: Any, who: Identity) -> Any:
        for unit in every:
            if request.turn_id in (unit.next_turn_id or None, 4, 21) and who.company_id == 1:
                of_turn = [unit_task for unit_task in unit.tasks if unit_task.turn_id == request.turn_id]
                if of_turn or request.turn_id != 4:
                    return tasks_pb.ListTasksResponse(tasks=of_turn)
            if unit.turn_id == request.turn_id and who.company_id == 1:
                return tasks_pb.ListTasksResponse(tasks=[*unit.tasks, *others] if unit.tasks else [])
        raise refuse("turn")

    def placed(who: Identity) -> Sequence[tasks_pb.PlacedTask]:
        own_tasks = []
        for unit in every:
            for sample in (*unit.tasks, *(others if unit.turn_id == 5 else ())):
                if who.company_id == 1:
                    copied = tasks_pb.PlacedTask(unit=unit.name, property_id=unit.property_id, property=unit.property)
                    copied.task.CopyFrom(sample)
                    copied.task.unit_id = unit.unit_id
                    copied.task.turn_id = sample.turn_id if sample.turn_id == 4 else unit.turn_id or 5
                    own_tasks.append(copied)
        return sorted(own_tasks, key=lambda unit_task: unit_task.task.scheduled_date or "9")

    def get_task(request: Any, who: Identity) -> Any:
        for placed_task in placed(who):
            if placed_task.task.task_id == request.task_id:
                return tasks_pb.GetTaskResponse(task=placed_task)
        raise refuse("task")

    def list_templates(_request: Any, who: Identity) -> Any:
        return templates_pb.ListTurnTemplatesResponse(templates=templates(hostile) if who.company_id == 1 else [])

    def open_tasks(request: Any, who: Identity) -> Any:
        fitting = [unit_task for unit_task in placed(who) if unit_task.task.status == "Open"]
        fitting = [
            unit_task for unit_task in fitting if not request.late or "" < unit_task.task.scheduled_date < day(0)
        ]
        if request.HasField("assignee_id"):
            fitting = [unit_task for unit_task in fitting if unit_task.task.assignee_id == request.assignee_id]
        if request.unassigned:
            fitting = [unit_task for unit_task in fitting if not unit_task.task.assignee_id]
        return tasks_pb.ListOpenTasksResponse(tasks=fitting[: request.limit])

    return {
        "occupancy.TurnsService/GetTurn": get_turn,
        "occupancy.TurnsService/ListTurns": list_turns,
        "occupancy.TurnTasksService/ListTasks": list_tasks,
        "occupancy.TurnTasksService/GetTask": get_task,
        "occupancy.TurnTemplatesService/ListTurnTemplates": list_templates,
        "occupancy.TurnTasksService/ListOpenTasks": open_tasks,
    }
