"""A month of three companies in real time zones, played over the command line and the API. A receiver gets exactly the
events that the month implies, and their data equal GET.

month_model.py computes the implied events; the month_*.py of each kind of work contain the script.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from makeready_cli.program import parser
from testkit.event_contract import check_envelope
from testkit.patience import until
from testkit.prepared import prepare_state

from . import month_abroad
from . import month_ledger as ledger
from .month_calendar import DAY, Calendar, noon
from .month_company import EVENTS, Command, Player, Request, together
from .month_houses import HUDSON, LAGOON, SUMMIT, begun
from .month_inspections import Inspections, Vendors
from .month_tickets import Desk
from .month_turns import Turns
from .month_upkeep import Upkeep
from .month_walk import Month
from .receiver import Receiver
from .system import System

PATHS = {HUDSON: "/month/hudson", LAGOON: "/month/lagoon", SUMMIT: "/month/summit"}
STALE = ("inspection.stale", "pm.stale", "ticket.stale", "turn.task.stale")
SOME = "/month/hudson/stale"
DOWN = range(15, 18)
"""The days without sweeps."""
_SIGN_IN = "who may sign in changes no record of the month; gateway/tests/identity sends each again"
_WEBHOOKS = "would change what arrives at the month's endpoints; svc-webhooks/tests/administration sends each again"
_RESIDENCIES = "the month's residents move by the API; svc-occupancy/tests/residencies/test_by_staff.py does the same"
_TEMPLATES = "the month's tasks are added one by one; svc-occupancy/tests/turn_templates adds several at once"
_SANDBOXES = "administrators make sandboxes with it; gateway/tests/identity/test_people_in_sandboxes.py does"
_CHECKLISTS = "events and public records have no trace of it; svc-catalog/tests/inspections plays it"
NOT_PLAYED = {
    **{f"turn {verb}": _RESIDENCIES for verb in ("cancel", "move-in", "notice")},
    **{f"turn {verb}": _TEMPLATES for verb in ("apply-template", "order-tasks")},
    **{f"turn-template {verb}": _TEMPLATES for verb in ("add", "remove", "update")},
    **{f"administrator {verb}": _SIGN_IN for verb in ("deactivate", "invite", "reactivate", "update")},
    **{f"key {verb}": _SIGN_IN for verb in ("mint", "revoke", "rotate", "take-over")},
    "company create": _SANDBOXES,
    "inspection set-row-photo": _CHECKLISTS,
    **{f"inspection-template {verb}": _CHECKLISTS for verb in ("add", "remove", "update")},
    **{f"staff {verb}": _SIGN_IN for verb in ("end", "invite", "reinstate")},
    **{
        f"webhooks {verb}": _WEBHOOKS
        for verb in (
            *("attempt-now", "change", "create", "delete", "pause", "resend", "resume", "rotate-secret", "test"),
        )
    },
}
"""The back office's commands that the month does not play, each with the reason."""


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(tmp_path_factory.mktemp("month-receiver")) as running:
        yield running


@pytest.fixture(scope="module")
def house(listener: Receiver, states: Path) -> Iterator[System]:
    """A separate system: sweeps as of future months affect every company in it."""
    prepare_state(states / "month")
    running = System(
        states / "month",
        MAKEREADY_DEMO="0",
        WEBHOOKS_EGRESS_HOSTS=f"receiver.test=127.0.0.1:{listener.port}",
        WEBHOOKS_EGRESS_CA_FILE=str(listener.authority_file),
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def month(house: System, listener: Receiver) -> Month:
    """The whole month, played."""
    played = begun(house, Calendar.next(datetime.now(UTC).date()))
    for name, path in PATHS.items():
        played.players[name].subscribe(path, EVENTS)
    hudson = played.players[HUDSON]
    hudson.subscribe(SOME, STALE)
    listener.answers[PATHS[HUDSON]] = [503, 500]  # two deliveries that must be retried
    desk = Desk(played, HUDSON)
    desk.silence()
    for chapter in (desk, Inspections(played, HUDSON), Vendors(played, HUDSON), Turns(played, HUDSON)):
        chapter.plan()
    Upkeep(played, HUDSON).plan()
    month_abroad.lord_howe(played)
    month_abroad.kathmandu(played)
    for day in (8, 19):
        played.on(day, lambda day=day: deliver(played, day))  # type: ignore[misc]
    played.on(month_abroad.AWAY.start + 1, lambda: withheld(played, listener))
    played.walk(DOWN, returning=3)
    return played


def withheld(month: Month, listener: Receiver) -> None:
    """An inactive company gets no deliveries, though some wait for it; the other companies get theirs."""
    before = {name: len(listener.at(path)) for name, path in PATHS.items()}
    deliver(month, month_abroad.AWAY.start + 1)
    after = {name: len(listener.at(path)) for name, path in PATHS.items()}
    assert after[SUMMIT] == before[SUMMIT] < len(month.implied(SUMMIT)) and after[HUDSON] > before[HUDSON]


def refuses_other_words(player: Player) -> None:
    """A command's Idempotency-Key cannot be used for another command."""
    publish = next(publish for publish in player.commands if publish.verb == "notice publish")
    key = publish.words[publish.words.index("--idempotency-key") + 1]
    line = player.refused("notice", "publish", player.id("notice", "Never said"), idempotency_key=key)
    assert "different request" in line, line


def deliver(month: Month, day: int) -> Any:
    now = noon(month.calendar.day(day))
    return month.system.makeready("sweep", "webhooks", "--now", now.isoformat())


def again(player: Player, call: Command | Request) -> str | None:
    """Repeats a command or request with its key; returns the difference in the answer, or None."""
    if isinstance(call, Command):
        printed = player.system.makeready(*call.words)
        return None if printed == call.printed else f"{call.words}: {printed}, first {call.printed}"
    answer = player.system.call(call.method, call.path, call.key, call.body, {"Idempotency-Key": call.idempotency_key})
    same = (answer.status, answer.body) == (call.answer.status, call.answer.body)
    is_told = answer.headers["X-Idempotent-Replay"] == "1"
    return None if same and is_told else f"{call}: {answer}"


def back_office() -> set[str]:
    """Every command of the command line that takes an Idempotency-Key: those that change a company's records."""

    def keyed(tree: argparse.ArgumentParser) -> Iterator[str]:
        for action in tree._actions:
            if isinstance(action, argparse._SubParsersAction):
                for subparser in action.choices.values():
                    yield from keyed(subparser)
            elif "--idempotency-key" in action.option_strings:
                yield tree.prog.removeprefix("makeready ")

    return set(keyed(parser()))


def test_a_command_that_is_not_played_exists_and_has_a_reason() -> None:
    assert NOT_PLAYED.keys() <= back_office() and all(NOT_PLAYED.values())


@pytest.fixture(scope="module")
def retried(month: Month) -> list[str]:
    """Repeats every API request and one command of each kind; returns those that answered differently."""
    sent: list[tuple[Player, Command | Request]] = []
    verbs: dict[str, tuple[Player, Command]] = {}
    for player in month.players.values():
        sent += [(player, request) for request in player.requests]
        for command in player.commands:
            verbs.setdefault(command.verb, (player, command))
    assert sorted(verbs) == sorted(back_office() - NOT_PLAYED.keys()), "play it in month_*.py, or add it to NOT_PLAYED"
    sent += verbs.values()
    return [wrong for wrong in together([partial(again, player, call) for player, call in sent]) if wrong]


@pytest.fixture(scope="module")
def arrived(month: Month, retried: list[str], listener: Receiver) -> dict[str, list[ledger.Body]]:
    """All events of each subscription, with verified signatures and checked against their schemas."""
    assert not retried
    refuses_other_words(month.players[HUDSON])
    swept = deliver(month, len(month.calendar) + 1)
    assert swept["failed"] == 0
    for delivery in listener.deliveries:
        check_envelope(delivery.body)
    by_company = {name: month.players[name].arrived(listener, path) for name, path in PATHS.items()}
    by_company[SOME] = month.players[HUDSON].arrived(listener, SOME)
    assert sum(map(len, by_company.values())) == len(listener.deliveries)
    return {name: ledger.bodies(deliveries) for name, deliveries in by_company.items()}


def test_the_month_has_every_kind_of_event_and_both_changes_of_clocks(month: Month) -> None:
    assert {event.event for event in month.implied(HUDSON)} == set(EVENTS)
    calendar = month.calendar
    assert calendar.first + 3 * DAY < calendar.forward < calendar.back < calendar.last
    assert len(month.implied(HUDSON)) > 100 and len(month.implied(LAGOON)) > 10 and len(month.implied(SUMMIT)) > 5
    sources = {event.facts["source"] for event in month.implied(HUDSON) if event.event == "ticket.created"}
    assert sources == {"api", "staff", "inspection"}


def test_a_command_that_is_sent_again_answers_as_it_did(retried: list[str]) -> None:
    assert not retried


@pytest.mark.parametrize("name", PATHS)
def test_exactly_what_the_month_implies_arrives(
    month: Month, arrived: dict[str, list[ledger.Body]], listener: Receiver, name: str
) -> None:
    assert len(listener.at(PATHS[name])) == len(arrived[name]) + (2 if name == HUDSON else 0)
    missing, too_much = ledger.exactly(arrived[name], month.implied(name))
    assert not missing and not too_much, f"missing {missing}\ntoo much {too_much}"


def test_a_subscription_to_some_events_gets_those_alone(arrived: dict[str, list[ledger.Body]]) -> None:
    stale = [body for body in arrived[HUDSON] if body["event"] in STALE]
    key = "event_id"
    assert sorted(arrived[SOME], key=lambda body: str(body[key])) == sorted(stale, key=lambda body: str(body[key]))


@pytest.mark.parametrize("name", PATHS)
def test_what_an_event_says_is_what_the_record_was_and_is(
    month: Month, arrived: dict[str, list[ledger.Body]], name: str
) -> None:
    disagreements = list(ledger.disagreements(month, name, arrived[name]))
    assert not disagreements, "\n".join(disagreements[:5])
    assert not list(ledger.out_of_order(arrived[name]))


def test_no_company_hears_or_sees_anything_of_another(month: Month, arrived: dict[str, list[ledger.Body]]) -> None:
    for name in PATHS:
        assert {body["company_id"] for body in arrived[name]} == {month.players[name].company.company_id}
    hudson, lagoon = month.players[HUDSON], month.players[LAGOON]
    for kind, path in (("ticket", "tickets"), ("inspection", "inspections"), ("unit", "units"), ("vendor", "vendors")):
        number = next(number for (other, _), number in lagoon.ids.items() if other == kind)
        assert lagoon.get(f"/{path}/{number}")["entity_id"] == number
        hudson.get(f"/{path}/{number}", status=404)
    acts: list[tuple[str, str, int, dict[str, object]]] = [
        ("ticket", "status", lagoon.id("ticket", "drips"), {"status": "On Hold"}),
        ("inspection", "start", lagoon.id("inspection", "walk 1"), {}),
        ("turn", "cancel-notice", lagoon.id("unit", "U1"), {}),
        ("turn", "complete-task", lagoon.id("task", "Sand"), {}),
        ("pm", "complete", lagoon.id("pm_task", "Tanks"), {}),
        ("notice", "publish", lagoon.id("notice", "Storm"), {}),
        ("vendor", "hold", lagoon.id("vendor", "V1"), {"reason": "Envy"}),
    ]
    together([lambda act=act: hudson.refused(*act[:3], **act[3]) for act in acts])  # type: ignore[misc]


def test_lists_and_the_board_agree_with_what_was_played(month: Month) -> None:
    month.system.makeready("wait")
    for player in month.players.values():
        model = player.model
        units = {unit["entity_id"]: unit for unit in player.all("/units")}
        assert {number: unit["unit_status"] for number, unit in units.items()} == {
            number: unit.status for number, unit in model.units.items()
        }
        for ticket in player.all("/tickets"):
            assert ticket["status"] == model.tickets[ticket["entity_id"]].status
    hudson = month.players[HUDSON]
    board = {unit["unit_id"]: unit for unit in hudson.ask("turn", "board")["units"]}
    for number, unit in hudson.model.units.items():
        turn = hudson.model.turns.get(unit.turn_id)
        assert board[number]["unit_status"] == unit.status
        assert board[number]["turn_id"] == (unit.turn_id if turn and turn.is_active else None)


@pytest.mark.parametrize("name", PATHS)
def test_figures_that_were_kept_up_are_those_that_are_made_anew(month: Month, name: str) -> None:
    player = month.players[name]

    def reports() -> dict[str, Any]:
        groups = {"tickets": "category", "vendors": "vendor", "turns": "property"}
        return {report: player.ask("report", report, group_by=group) for report, group in groups.items()}

    def figures(report: dict[str, Any]) -> dict[str, int]:
        return {figure["measure"]: figure["count"] for figure in report["total"]}

    def are_there() -> bool:
        counts = figures(reports()["tickets"])
        is_open = [ticket.status not in ("Completed", "Cancelled") for ticket in player.model.tickets.values()]
        return (counts["opened"], counts["backlog"]) == (len(is_open), sum(is_open))

    until(are_there, lambda: (figures(reports()["tickets"]), player.model.tickets))
    kept = reports()
    rebuilt = month.system.makeready("report", "rebuild", str(player.company.company_id))
    assert rebuilt["records"]["svc-tickets"] >= len(player.model.tickets)
    assert reports() == kept


def test_the_audit_log_names_actor_and_action(month: Month) -> None:
    hudson = month.players[HUDSON]
    number = hudson.id("ticket", "by staff")
    entries = hudson.ask("audit", "list", subject="ticket", subject_id=number)["entries"]
    actors = {entry["actor"] for entry in entries}
    assert {"operator", f"staff:{hudson.id('staff', 'S2')}"} <= actors, entries
    assert {entry["subject_id"] for entry in entries} == {number}
    nobody = month.players[SUMMIT].ask("audit", "list", subject="ticket", subject_id=number)
    assert nobody["entries"] == []
