"""The story: a subscription, a ticket, its deliveries, a failure, its retry, a change by staff, the record."""

import json
import queue
import shlex
import time

from makeready_local import certificates
from makeready_local.children import LocalError
from makeready_local.make import Make
from makeready_local.state import JsonObject
from makeready_local.webhook_demo.installation import Installation
from makeready_local.webhook_demo.receiver import HOST, Arrival, Receiver
from makeready_local.webhook_demo.screen import Screen

HOUR_SECONDS = 3
LADDER_HOURS = (1, 2, 4, 8, 24)
REFUSED = "ticket.status_changed"
EVENTS = ["ticket.created", REFUSED]
DESK_STATUS = "On Hold"
ARRIVAL_SECONDS = 60
LADDER = ",".join(str(hours * HOUR_SECONDS / 3600) for hours in LADDER_HOURS)


class Story:
    """Plays once from begin to end; then shows every delivery until the user stops it."""

    def __init__(self, screen: Screen, installation: Installation) -> None:
        self._screen = screen
        self._installation = installation
        self._make = Make()

    def run(self, *, once: bool) -> None:
        """Raises LocalError if a step has another result than the story's."""
        self._screen.title("Makeready: a system of its own, and a receiver that verifies what it is sent.")
        retries = ", ".join(str(hours * HOUR_SECONDS) for hours in LADDER_HOURS)
        self._screen.text(
            f"An hour takes {HOUR_SECONDS} seconds here: that often comes a sweep; retries after {retries}.\n"
        )
        files = certificates.made(self._installation.folder, HOST)
        with Receiver(files, refuse_once=REFUSED) as receiver:
            settings = {
                "WEBHOOKS_EGRESS_HOSTS": f"{HOST}=127.0.0.1:{receiver.server_address[1]}",
                "WEBHOOKS_EGRESS_CA_FILE": str(files.authority),
                "WEBHOOKS_SWEEP_SECONDS": str(HOUR_SECONDS),
                "WEBHOOKS_RETRY_LADDER_HOURS": LADDER,
            }
            self._installation.start(settings, self._screen.step)
            self._installation.makeready("wait")  # until the events of the demo company's tickets are done
            self._delete_other_subscriptions()
            self._screen.step("Ready", self._installation.demo["base_url"], "good")
            ticket, sub_id = self._tell(receiver)
            if not once:
                self._invite(ticket, sub_id)
                while not self._make.has_ended():
                    self._show_next(receiver)

    def _delete_other_subscriptions(self) -> None:
        """Deletes those of the demo company, so that what is on record is of this receiver alone."""
        _, listed = self._installation.call("GET", "/webhooks", "read")
        for subscription in listed["data"]:
            company_id = str(self._installation.demo["company_id"])
            self._installation.makeready("webhooks", "delete", company_id, str(subscription["entity_id"]))

    def _tell(self, receiver: Receiver) -> tuple[JsonObject, int]:
        """Plays the steps; returns the ticket and the subscription's id."""
        self._screen.title("A company subscribes, and a ticket is opened: the next sweep delivers it")
        destination = {"destination_url": f"https://{HOST}/hooks", "events": EVENTS}
        subscription = self._call("POST", "/webhooks", "webhook_only", destination)
        receiver.secret = subscription["secret"]
        self._screen.step("", f"subscription {subscription['entity_id']}; its secret is returned this once", "dim")
        _, units = self._installation.call("GET", "/units?limit=1", "read")
        opening = {"unit_id": units["data"][0]["entity_id"], "title": "Kitchen tap drips", "category": "Plumbing"}
        ticket = self._call("POST", "/tickets", "write", opening)
        self._arrival(receiver, "ticket.created", 200)
        self._show_health(receiver)

        self._screen.title("Its status changes, and the receiver answers that delivery 500, on purpose")
        self._call("PATCH", f"/tickets/{ticket['entity_id']}", "write", {"status": "In Progress"})
        failed = self._arrival(receiver, REFUSED, 500)
        self._show_health(receiver, "retrying")

        self._screen.title("It comes again: the same event_id and the same bytes, signed anew")
        again = self._arrival(receiver, REFUSED, 200)
        if again.body != failed.body or again.attempt != failed.attempt + 1:
            raise LocalError(f"attempt {again.attempt} of {again.event_id} is no retry of {failed.event_id}")
        if (health := self._show_health(receiver, "healthy")) != "healthy":
            raise LocalError(f"the subscription is {health} after a success")

        words = ("ticket", "status", str(self._installation.demo["company_id"]), str(ticket["entity_id"]))
        self._screen.title("Staff put it on hold from the command line: the event fires, whoever makes the change")
        self._installation.makeready(*words, "--status", DESK_STATUS)
        self._screen.step("makeready", f'{" ".join(words)} --status "{DESK_STATUS}"')
        self._arrival(receiver, REFUSED, 200)

        self._screen.title(f"What is on record:  makeready webhooks event {failed.event_id}")
        self._screen.text(self._installation.makeready("webhooks", "event", failed.event_id).rstrip())
        return ticket, subscription["entity_id"]

    def _call(self, method: str, path: str, scope: str, body: JsonObject) -> JsonObject:
        answer: JsonObject
        status, answer = self._installation.call(method, path, scope, body)
        named = " ".join(str(body.get(key, "")) for key in ("destination_url", "title", "status")).strip()
        self._screen.step(f"{method} {path}", f"{status}  {named}")
        return answer

    def _arrival(self, receiver: Receiver, event: str, answered: int) -> Arrival:
        """Waits for the next delivery and shows it. Raises LocalError if it is not the expected one."""
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while time.monotonic() < deadline:
            if arrival := self._show_next(receiver):
                if (arrival.event.get("event"), arrival.answered) != (event, answered):
                    raise LocalError(f"this delivery was to be {event}, and to be answered {answered}")
                return arrival
        raise LocalError(f"no delivery of {event} came within {ARRIVAL_SECONDS} s")

    def _show_next(self, receiver: Receiver) -> Arrival | None:
        """Shows the next delivery; None if none arrives at once."""
        try:
            arrival = receiver.arrivals.get(timeout=0.2)
        except queue.Empty:
            self._installation.check()
            return None
        if not arrival.is_genuine:
            self._screen.step("delivery", "signature WRONG, answered 401", "bad")
            return arrival
        line = f"{arrival.event['event']}  {arrival.event_id}  attempt {arrival.attempt}"
        self._screen.step("delivery", line, "strong")
        self._screen.step("  signature ok", _line_of_data(arrival.event), "")
        if arrival.answered == 200:
            self._screen.step("  answered 200", "" if arrival.is_new else "known already: nothing to do", "good")
        else:
            self._screen.step(f"  answered {arrival.answered}", "on purpose: it will be tried again", "bad")
        return arrival

    def _show_health(self, receiver: Receiver, expected: str = "healthy") -> str:
        """Shows the subscription's health once it is the expected one, or once the next delivery has arrived.

        An attempt is recorded a moment after the receiver has answered.
        """
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while True:
            status, listed = self._installation.call("GET", "/webhooks", "read")
            health = str(listed["data"][-1]["health"])
            if health == expected or not receiver.arrivals.empty() or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self._screen.step("GET /webhooks", f"{status}  health {health}")
        return health

    def _invite(self, ticket: JsonObject, sub_id: int) -> None:
        demo = self._installation.demo
        url, key = demo["base_url"], f"-H 'Authorization: Bearer {demo['keys']['write']}'"
        once = '-H "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)"'
        opening = json.dumps({"unit_id": ticket["unit"]["id"], "title": "Hello", "category": "Other"})
        state = f"MAKEREADY_STATE_DIR={shlex.quote(str(self._installation.state))}"
        moving = json.dumps({"status": "Open"})
        makeready = f"{state} .venv/bin/makeready"
        company_id, ticket_id = demo["company_id"], ticket["entity_id"]
        who = shlex.quote(demo["administrator"]["email"])
        self._screen.title("Your turn: whatever happens to a ticket arrives here. Try:")
        for line in (
            f"curl -s {key} {once} {url}/tickets -d '{opening}'",
            f"curl -s {key} {once} {url}/tickets/{ticket_id} -X PATCH -d '{moving}'",
            f"curl -s {key} {url}/webhooks",
            f'{makeready} ticket status {company_id} {ticket_id} --status "In Progress" --as {who}',
            f"{makeready} audit list {company_id} --subject ticket --subject-id {ticket_id}",
            f"{makeready} webhooks deliveries {sub_id}",
        ):
            self._screen.text(f"  {line}")
        self._screen.text("\nCtrl-C stops everything and removes it.\n")


def _line_of_data(event: JsonObject) -> str:
    data, change = event["data"], event["change"]
    moved = f", {change['field']}: {change['from']} -> {change['to']}" if change else f", {data['status']}"
    return f'ticket {data["entity_id"]} "{data["title"]}"{moved}'
