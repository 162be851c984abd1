"""The RPCs that list a company's events and what has not arrived."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

from chassis.auth import identity
from chassis.auth.identity import may_administer
from chassis.refusals import invalid_request
from makeready.webhooks.v1 import webhooks_pb2 as pb
from svc_webhooks.administration import records, rules, scan, subjects
from svc_webhooks.administration.inputs import event_id_of, instant_of, keys_of, limit_of, state_of
from svc_webhooks.administration.queries import deliveries as queries_deliveries
from svc_webhooks.administration.queries import events as queries
from svc_webhooks.administration.queries.events import ListedEvent
from svc_webhooks.administration.service.deliveries import abouts, shown
from svc_webhooks.administration.service.dependencies import Dependencies
from svc_webhooks.days import NEWEST, OLDEST, begins, expires_at, first_day_kept
from svc_webhooks.rules.deliveries import PARKED, WAITING
from svc_webhooks.rules.events import ENTITY_TYPES

UNDELIVERED_DEFAULT, UNDELIVERED_MAX = 50, 1000
EVENTS_DEFAULT, EVENTS_MAX = 50, 200


class EventRpcs:
    """Lists events with the outcome of their deliveries."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    async def ListEvents(self, request: pb.ListEventsRequest, call: identity.Call) -> pb.ListEventsResponse:
        company_id = identity.company_id(call)
        keys = keys_of(request.event, request.entity_type)
        entity_id = request.entity_id if request.HasField("entity_id") else None
        if entity_id is not None and not request.entity_type:
            raise invalid_request("entity_id needs an entity_type.", "entity_id")
        since, before = await self._dependencies.stretch(call, company_id, request)
        if "\0" in request.request_id:
            raise invalid_request("request_id must not hold the character NUL.", "request_id")
        if not 0 <= request.outcome <= len(rules.EVENT_OUTCOMES):
            allowed = ", ".join(rules.EVENT_OUTCOMES)
            raise invalid_request(f"outcome must be one of: {allowed}.", "outcome", status=422)
        outcome = rules.EVENT_OUTCOMES[request.outcome - 1] if request.outcome else None
        states: dict[uuid.UUID, dict[str, int]] = defaultdict(dict)

        async def read(before: uuid.UUID, rows: int) -> Sequence[ListedEvent]:
            return await queries.events_newest(
                self._dependencies.database,
                company_id,
                keys,
                entity_id=entity_id,
                request_id=request.request_id,
                before=before,
                since=since,
                rows=rows,
            )

        async def passing(rows: Sequence[ListedEvent]) -> Sequence[ListedEvent]:
            rows = [row for row in rows if row.event in keys and entity_id in (None, row.entity_id)]
            if outcome is None:
                return rows
            await self._count_states(rows, states)
            return [row for row in rows if rules.outcome_of(states[row.event_id]) == outcome]

        filters = passing if outcome or entity_id is not None or request.request_id else None
        limit = limit_of(request, EVENTS_DEFAULT, EVENTS_MAX)
        rows, following = await scan.page(read, filters, before, limit)
        await self._count_states([row for row in rows if row.event_id not in states], states)
        is_sandbox = await self._dependencies.clocks.is_sandbox(call, company_id)
        events = [records.event(row, states[row.event_id], is_sandbox=is_sandbox) for row in rows]
        response = pb.ListEventsResponse(events=events)
        names = await abouts(self._dependencies.database, [row.event_id for row in rows])
        for event in response.events:
            event.about = names.get(event.event_id, "")
        if following is not None:
            response.next_before_event_id = str(following)
        return response

    async def _count_states(self, rows: Sequence[ListedEvent], states: dict[uuid.UUID, dict[str, int]]) -> None:
        for row in await queries.states_of(self._dependencies.database, [row.event_id for row in rows]):
            states[row.event_id][row.state] = row.deliveries

    async def GetEvent(self, request: pb.GetEventRequest, call: identity.Call) -> pb.GetEventResponse:
        database = self._dependencies.database
        event_id = event_id_of(request.event_id)
        event = await queries_deliveries.event_by_id(database, event_id) if event_id else None
        if event_id is None or event is None or not may_administer(call, event.company_id):
            raise rules.no_such_event()
        rows = await queries_deliveries.deliveries_of_event(database, event_id)
        response = pb.GetEventResponse(
            event_id=request.event_id,
            event=event.event,
            company_id=event.company_id,
            entity_id=event.entity_id,
            entity_type=ENTITY_TYPES.get(event.event, ""),
            request_id=event.request_id,
            body=event.body,
            deliveries=await shown(database, rows, self._dependencies.rungs),
            about=subjects.about(event.event, event.body),
        )
        for delivery in response.deliveries:
            delivery.about = response.about
        response.occurred_at.FromDatetime(event.occurred_at)
        response.stored_at.FromDatetime(event.stored_at)
        is_sandbox = await self._dependencies.clocks.is_sandbox(call, event.company_id)
        response.expires_at.FromDatetime(expires_at(event_id, event.stored_at if is_sandbox else None))
        return response

    async def ListUndelivered(
        self, request: pb.ListUndeliveredRequest, call: identity.Call
    ) -> pb.ListUndeliveredResponse:
        company_id = identity.company_id(call)
        state = state_of(request.state)
        if state not in (None, WAITING, PARKED):
            raise invalid_request("state must be waiting or parked.", "state", status=422)
        after = event_id_of(request.after_event_id) if request.after_event_id else OLDEST
        if after is None:
            raise invalid_request("after_event_id must be the id of an event.", "after_event_id")
        limit = limit_of(request, UNDELIVERED_DEFAULT, UNDELIVERED_MAX)
        rows = await queries_deliveries.deliveries_undelivered(
            self._dependencies.database,
            company_id,
            state=state,
            until=await self._first_id_kept(call, company_id, request),
            after_event_id=after,
            after_sub_id=request.after_sub_id,
            rows=limit + 1,
        )
        deliveries = await shown(self._dependencies.database, rows[:limit], self._dependencies.rungs, last_alone=True)
        return pb.ListUndeliveredResponse(deliveries=deliveries, more=len(rows) > limit)

    async def _first_id_kept(
        self, call: identity.Call, company_id: int, request: pb.ListUndeliveredRequest
    ) -> uuid.UUID:
        """The first event id that exists at `expires_before`; the highest id if the request sets no such instant."""
        if not request.HasField("expires_before"):
            return NEWEST
        first_day = first_day_kept(instant_of(request.expires_before, "expires_before"))
        return await self._dependencies.first_id_since(call, company_id, begins(first_day))
