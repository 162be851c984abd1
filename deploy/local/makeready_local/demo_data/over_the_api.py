"""What integrations of the demo company do: a feed reports residents, an app opens tickets, receivers subscribe."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from importing.demo import residents
from makeready_local.children import LocalError
from makeready_local.demo_data.receivers import DOWN, REPORTS, WORKING
from makeready_local.state import JsonObject

# By the external_id of the unit.
_TICKETS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "P-500-0903",
        {
            "title": "Package locker 14 says “delivered”, the door stays shut",
            "category": "Common Area",
            "priority": "Low",
            "description": "Reported by the concierge app. Courier code 4471-B, two parcels inside.",
        },
    ),
    ("P-100-204", {"title": "Water under the dishwasher again", "category": "Leak", "priority": "High"}),
)
_TICKET_EVENTS = ("ticket.created", "ticket.status_changed")
_TURN_EVENTS = ("turn.schedule_changed", "turn.status_changed")
_ALL_ELSE = (
    "inspection.stale", "pm.stale", "property.notice.published", "ticket.stale", "turn.task.stale", "vendor.hold",
)  # fmt: skip
SUBSCRIPTIONS = {
    WORKING: (*_TICKET_EVENTS, *_TURN_EVENTS, *_ALL_ELSE),
    DOWN: (*_TICKET_EVENTS, *_TURN_EVENTS),
    REPORTS: _TICKET_EVENTS,
}
# The lists whose records acts name by external_id.
_LISTS = ("properties", "units", "vendors", "assets", "tickets", "turns", "inspections")
_ANSWER_SECONDS = 30


class ApiError(LocalError):
    """The API refused a request, or gave no answer."""


class Api:
    """The demo company's API, with its keys by scope. Every method raises ApiError."""

    def __init__(self, url: str, keys: Mapping[str, str], vendors: Mapping[str, str]) -> None:
        """vendors: the external_id of each, which the API does not serve, by its name."""
        self._url = url
        self._vendors = vendors
        self._keys = keys

    def ids(self) -> dict[str, int]:
        """The id of each record that has an external_id, by that; of one that stands twice, the newest's."""
        ids_by_external_id = {}
        for name in _LISTS:
            for record in self._rows(name):
                if external_id := self._vendors.get(record["name"]) if name == "vendors" else record["external_id"]:
                    ids_by_external_id[external_id] = record["entity_id"]
        return ids_by_external_id

    def _rows(self, name: str) -> Iterator[JsonObject]:
        cursor = ""
        while True:
            page = self._call("GET", f"/{name}?limit=200{cursor}", "read")
            yield from page["data"]
            if page["next_cursor"] is None:
                return
            cursor = f"&cursor={page['next_cursor']}"

    def move(self, moves: Iterable[residents.Move], ids: Mapping[str, int]) -> Iterator[str]:
        """Moves residents in and announces departures, once however often it is called. Yields what was refused."""
        for move in moves:
            body = dict(move.body)
            if move.predecessor:
                body["predecessor_transition_id"] = ids.get(move.predecessor, 0)
            if problem := self._once(f"/units/{ids.get(move.unit, 0)}/{move.verb}", "write", body, move.key):
                yield f"{move.verb} of {move.unit}: {problem}"

    def open_tickets(self, ids: Mapping[str, int]) -> Iterator[str]:
        """Opens the tickets that are not there yet. Yields what was refused."""
        titles = {ticket["title"] for ticket in self._rows("tickets")}
        for number, (unit, ticket) in enumerate(_TICKETS, 1):
            if ticket["title"] in titles:
                continue
            body = {"unit_id": ids.get(unit, 0), **ticket}
            if problem := self._once("/tickets", "write", body, f"demo-ticket-{number}"):
                yield f"a ticket of {unit}: {problem}"

    def subscribe(self) -> dict[str, int]:
        """Makes the subscriptions, once however often it is called; returns the id of each by its host."""
        return {
            host: self._call(
                "POST",
                "/webhooks",
                "webhook_only",
                {"destination_url": f"https://{host}/makeready", "events": list(events)},
                f"demo-subscription-{host}",
            )["entity_id"]
            for host, events in SUBSCRIPTIONS.items()
        }

    def _once(self, path: str, scope: str, body: object, idempotency_key: str) -> str:
        """Returns the refusal's sentence, or nothing."""
        try:
            self._call("POST", path, scope, body, idempotency_key)
        except ApiError as refused:
            return str(refused)
        return ""

    def _call(self, method: str, path: str, scope: str, body: object = None, idempotency_key: str = "") -> Any:
        headers = {"Authorization": f"Bearer {self._keys[scope]}"}
        if idempotency_key:
            headers |= {"Idempotency-Key": idempotency_key, "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            reason = f"{error.code} {error.reason}"
            with error, suppress(ValueError, TypeError, LookupError):
                reason = str(json.load(error)["error"]["message"]).rstrip(".")
            raise ApiError(reason) from None
        except OSError as error:  # it serves TLS, under a name that the runner does not know
            raise ApiError(f"the API gives no answer at {self._url} ({error})") from None
