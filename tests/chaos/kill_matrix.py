"""Kills each process at each point of each write, then checks the answer to the same request.

Cases of independent services run side by side: restarting the services one after another would take minutes.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .effects import Effect, counted, since
from .harness import Harness
from .writes import KINDS, Caller, Records, Reply, Write

API = ("api-before-call", "api-after-call")
RELAY = ("relay-claimed", "relay-published")
CONSUMER = ("consumer-before-commit", "consumer-before-ack")
SERVICE, GATEWAY, POSTGRES, CLIENT = "service", "gateway", "PostgreSQL", "client"

# Lines of the terminal summary, by section.
SUMMARY: dict[str, list[str]] = {}


NOTHING = Reply(0, False, b"the client left")


class Case(NamedTuple):
    """A write of this kind is under way; a process reaches the point; the victim is killed then."""

    victim: str
    point: str
    kind: str

    @property
    def at(self) -> str:
        """The process that reaches the point: the gateway, the write's own service, or a consumer of its event."""
        if self.point in API:
            return "gateway"
        kind = KINDS[self.kind]
        return kind.hears if self.point in CONSUMER else kind.service

    @property
    def is_on_the_way(self) -> bool:
        """Whether the point lies after the write: its event is on the way."""
        return self.point in RELAY or self.point in CONSUMER


class Outcome(NamedTuple):
    """The interrupted request's status (0: no answer), and whether the retry was a replay.

    The retry is the client's, or the gateway's own, which answers the interrupted request if the service is back soon.
    """

    first: int
    replayed: bool


def cases() -> list[Case]:
    """Every point of every kind. Those after the write are the same for all events: one kind a service has them."""
    all_cases = []
    relayed: set[str] = set()
    for name, kind in KINDS.items():
        way: tuple[str, ...] = ()
        if kind.event and kind.service not in relayed:
            relayed.add(kind.service)
            way = (*RELAY, *CONSUMER)
        all_cases += [Case(SERVICE, point, name) for point in (*kind.points, *way)]
        all_cases += [Case(GATEWAY, point, name) for point in (*API, *kind.points)]
        all_cases += [Case(POSTGRES, point, name) for point in (*API, *kind.points, *way)]
        all_cases += [Case(CLIENT, point, name) for point in (*API, *kind.points)]
    return all_cases


@dataclass
class Started:
    """A write that has been sent, on its way to its point."""

    case: Case
    write: Write
    api_key: str
    key: str
    before: Effect
    first: asyncio.Task[Reply]


class KillMatrix:
    """Runs all cases of a victim together, when the outcome of the first of them is requested."""

    def __init__(self, harness: Harness, caller: Caller, records: Records, alone: dict[str, Effect]) -> None:
        self.harness = harness
        self.caller = caller
        self.records = records
        self.alone = alone
        self._outcomes: dict[Case, Outcome | BaseException] = {}
        self._numbers = itertools.count(1)

    async def outcome(self, case: Case) -> Outcome:
        """Raises the error of this case, if it failed."""
        if case not in self._outcomes:
            burn: dict[str, Callable[[list[Case]], Awaitable[None]]] = {
                SERVICE: self._kill_services,
                GATEWAY: self._kill_the_gateway,
                POSTGRES: self._kill_postgres,
                CLIENT: self._cut_the_client_off,
            }
            of_victim = [each for each in cases() if each.victim == case.victim]
            await burn[case.victim](of_victim)
            try:
                await self.harness.all_events_arrived()
            except Exception as error:
                self._outcomes |= dict.fromkeys((each for each in of_victim if each.is_on_the_way), error)
        outcome = self._outcomes[case]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    # Victims

    async def _kill_services(self, chosen: list[Case]) -> None:
        """The cases of svc-occupancy run in parallel with the others: few of those use its process."""
        consumers = [case for case in chosen if case.point in CONSUMER]
        others = [case for case in chosen if case not in consumers]
        far = [case for case in others if case.at == "svc-occupancy"]
        near = [case for case in others if case not in far]
        await asyncio.gather(*(self._one_by_one(self._kill_at_its_point, lane) for lane in (near, far)))
        await self._one_by_one(self._kill_at_its_point, consumers)

    async def _kill_the_gateway(self, chosen: list[Case]) -> None:
        of_the_api = [case for case in chosen if case.point in API]
        await self._one_by_one(self._kill_at_its_point, of_the_api)
        for together in rounds(case for case in chosen if case not in of_the_api):
            await self._together(together, self._gateway_dies)

    async def _kill_postgres(self, chosen: list[Case]) -> None:
        for together in rounds(chosen):
            await self._together(together, self._postgres_dies)

    async def _cut_the_client_off(self, chosen: list[Case]) -> None:
        for together in rounds(chosen):
            await self._together(together, self._client_leaves)

    async def _gateway_dies(self, held: Sequence[Started]) -> None:
        await self.harness.kill("gateway")
        for started in held:
            self.harness.go_on(started.case.at)
        await self.harness.start("gateway")

    async def _postgres_dies(self, held: Sequence[Started]) -> None:
        self.harness.restart_postgres()
        for started in held:
            self.harness.go_on(started.case.at)

    async def _client_leaves(self, held: Sequence[Started]) -> None:
        for started in held:
            started.first.cancel()
        await asyncio.wait([started.first for started in held])
        for started in held:
            self.harness.go_on(started.case.at)

    # One case

    async def _one_by_one(self, burn: Callable[[Case], Awaitable[Outcome]], chosen: list[Case]) -> None:
        for case in chosen:
            try:
                self._outcomes[case] = await burn(case)
            except Exception as error:
                self._outcomes[case] = error
                await self.harness.mend(case.at)

    async def _kill_at_its_point(self, case: Case) -> Outcome:
        started = await self._start(case, "kill")
        await self.harness.killed_at_point(case.at)
        await self.harness.start(case.at)
        return await self._finish(started)

    async def _together(self, chosen: list[Case], die: Callable[[Sequence[Started]], Awaitable[None]]) -> None:
        """Runs cases of different processes together: all are held at their points when the victim dies."""
        try:
            started = [await self._start(case, "hold") for case in chosen]
            for case in chosen:
                await self.harness.held(case.at)
            await die(started)
            outcomes = await asyncio.gather(
                *(self._finish(case_started) for case_started in started), return_exceptions=True
            )
            self._outcomes |= dict(zip(chosen, outcomes, strict=True))
        except Exception as error:
            self._outcomes |= dict.fromkeys(chosen, error)
        if any(isinstance(self._outcomes[case], BaseException) for case in chosen):
            await self.harness.mend()

    async def _start(self, case: Case, how: str) -> Started:
        kind = KINDS[case.kind]
        write, api_key = kind.make(self.records), self.caller.api_key()
        key = f"{case.victim} {case.point} {next(self._numbers)}"
        if case.point in RELAY:  # otherwise an earlier event would reach the point
            await self.harness.relay_rests(kind.service)
        if case.point in CONSUMER:
            await self.harness.all_events_arrived()
        before = await counted(self.harness, kind.service)
        self.harness.arm(case.at, case.point, how)
        return Started(case, write, api_key, key, before, asyncio.create_task(self.caller.send(write, api_key, key)))

    async def _finish(self, started: Started) -> Outcome:
        """Retries the request as a client would. There must be one effect, one event, and only replays after that."""
        kind = KINDS[started.case.kind]
        first = NOTHING if started.first.cancelled() else await started.first
        reply = await self.caller.insist(started.write, started.api_key, started.key)
        again = await self.caller.send(started.write, started.api_key, started.key)
        assert reply.status in (200, 201), (started.case, reply)
        assert again.replayed and again.status == reply.status, (started.case, again)
        assert again.body == reply.body or "secret" in reply.json, (started.case, reply, again)
        if first.status in (200, 201):
            assert reply.replayed, (started.case, first, reply)
        effect = since(started.before, await counted(self.harness, kind.service))
        assert effect == self.alone[started.case.kind], (started.case, effect)
        by_gateway = started.case.victim == SERVICE and not started.case.is_on_the_way and first.status in (200, 201)
        return Outcome(first.status, first.replayed if by_gateway else reply.replayed)


def rounds(chosen: Iterable[Case]) -> list[list[Case]]:
    """Groups the cases: those of one round hold different processes and write to different databases."""
    lanes: dict[str, list[Case]] = {}
    for case in chosen:
        lane = "alone" if case.at == "gateway" or case.point in CONSUMER else case.at
        lanes.setdefault(lane, []).append(case)
    alone = [[case] for case in lanes.pop("alone", [])]
    return alone + [[case for case in column if case] for column in itertools.zip_longest(*lanes.values())]


def described(outcomes: dict[Case, Outcome]) -> list[str]:
    """The table for the summary: a line for each victim and point, with each write and the answer to its retry."""
    lines = [f"{len(outcomes)} cases: one effect, one event, whoever was killed where"]
    for (victim, point), group in itertools.groupby(
        sorted(outcomes, key=lambda case: (case.victim, _ORDER.index(case.point))), lambda case: case[:2]
    ):
        parts = []
        for case in group:
            outcome = outcomes[case]
            parts.append(
                f"{case.kind}: {outcome.first or 'no answer'}, {'replay' if outcome.replayed else 'first answer'}"
            )
        lines.append(f"{victim:<10} at {point:<23} {'; '.join(parts)}")
    return lines


_ORDER = [*API, "write-before-statement", "write-locked", "write-decided", "write-before-commit"]
_ORDER += ["write-after-commit", *RELAY, *CONSUMER]
