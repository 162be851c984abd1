"""Pods of svc-tickets come and go under requests: rolled, added, frozen, killed, vanished. No request fails.

The pods have addresses of their own on loopback, and a gateway finds them by a name of the test's DNS server. The
times are a tenth of those in deploy/k8s; MAKEREADY_ROLLS_SCALE=1 takes them as they are (`make soak-rolls`).

In these times a machine that is too busy fails requests too: gRPC looks a name up again after a second, whatever the
scale is. So a round with failures is followed by one in three times the times, up to those of the manifests. The last
one is judged only if each request was sent when it was due. What must never happen is asserted in each.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from makeready_cli.__main__ import main as makeready
from makeready_local.services import is_serving
from testkit.patience import PATIENCE_SECONDS
from testkit.processes import accepts_connections, free_port
from testkit.services import Keys, RunningService

from .harness import Harness
from .kill_matrix import SUMMARY
from .names import Names, Node
from .writes import Caller, Records, create_ticket

pytestmark = pytest.mark.chaos

BASE = Path(__file__).resolve().parents[2] / "deploy" / "k8s" / "base"
SCALE, SCALE_MAX = float(os.environ.get("MAKEREADY_ROLLS_SCALE", "0.1")), 1.0
SETTINGS = dict(
    line.split("=", 1) for line in (BASE / "settings.env").read_text().splitlines() if line and line[0] != "#"
)
DEPLOYMENT = next(
    manifest
    for manifest in yaml.safe_load_all((BASE / "svc-tickets.yaml").read_text())
    if manifest["kind"] == "Deployment"
)
REQUESTS_A_SECOND, READS_OF = 20, 4  # of so many requests all but one are reads
FOUND_SECONDS = 4.0  # until a pod that hangs is given up: chassis.auth.clients
LOADS = itertools.count(1)
LATE_SECONDS = 0.25  # about ten times as late as a machine with nothing else to do
UNDER_WAY_MAX = 40
SERVED = re.compile(r'makeready_rpc_total\{outcome="served",rpc="TicketsService/\w+"\} (\S+)')
REPEATED = re.compile(r'makeready_rpc_repeated_total\{rpc="TicketsService/\w+"\} (\S+)')


@dataclass(frozen=True)
class Times:
    """Seconds of the manifests, at a scale."""

    scale: float

    @property
    def ready(self) -> float:
        """From a pod's start until the next one of a roll is replaced."""
        return self.scale * float(DEPLOYMENT["spec"]["minReadySeconds"])

    @property
    def drain(self) -> int:
        """From SIGTERM until a pod refuses calls."""
        return max(1, round(self.scale * int(SETTINGS["MAKEREADY_DRAIN_SECONDS"])))

    @property
    def age(self) -> int:
        """Of a connection, at most."""
        return max(1, round(self.scale * int(SETTINGS["MAKEREADY_CONNECTION_AGE_SECONDS"])))

    @property
    def stale(self) -> float:
        """Of a name in the cache of a Kubernetes node."""
        return self.scale * 30

    def longer(self) -> Times:
        return Times(min(SCALE_MAX, 3 * self.scale))


@dataclass
class Load:
    """Requests at an even rate, whether the earlier ones are answered or not; UNDER_WAY_MAX at a time."""

    name: str
    base_url: str
    caller: Caller
    records: Records
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    failed_at: list[float] = field(default_factory=list)
    slowest: float = 0.0
    late: float = 0.0
    """How much later than it was due a request was sent, at most: the machine was so busy."""
    created: list[int] = field(default_factory=list)
    under_way: int = 0

    @asynccontextmanager
    async def during(self) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            ends = asyncio.Event()
            running = asyncio.create_task(self._run(session, ends))
            try:
                yield
            finally:
                ends.set()
                await running

    async def _run(self, session: aiohttp.ClientSession, ends: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            due = loop.time()
            for number in itertools.count():
                if ends.is_set():
                    return
                self.late = max(self.late, loop.time() - due)
                if self.under_way < UNDER_WAY_MAX:
                    group.create_task(self._create(session, number) if number % READS_OF == 0 else self._read(session))
                due = max(due + 1 / REQUESTS_A_SECOND, loop.time())
                await asyncio.sleep(max(0, due - loop.time()))

    async def _read(self, session: aiohttp.ClientSession) -> None:
        path = f"/tickets/{self.created[-1]}" if self.created else "/tickets?limit=1"
        await self._send(session, "GET", path)

    async def _create(self, session: aiohttp.ClientSession, number: int) -> None:
        body = create_ticket(self.records).body | {"title": f"{self.name} {number}"}
        answer = await self._send(session, "POST", "/tickets", json=body, key=f"{self.name} {number}")
        if answer is not None:
            self.created.append(answer["entity_id"])

    async def _send(self, session: aiohttp.ClientSession, verb: str, path: str, key: str = "", **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.caller.api_key()}"} | ({"Idempotency-Key": key} if key else {})
        started, status, answer = time.monotonic(), 0, None
        self.under_way += 1
        try:
            async with session.request(verb, self.base_url + path, headers=headers, **more) as response:
                status, answer = response.status, await response.json()
        except (aiohttp.ClientError, TimeoutError):
            pass
        self.under_way -= 1
        self.slowest = max(self.slowest, time.monotonic() - started)
        self.statuses[verb, status] += 1
        if status not in (200, 201):
            self.failed_at.append(time.monotonic())
            return None
        return answer


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
        return str(answer.read().decode())


class Pods:
    """The pods behind the name, and their gateway."""

    def __init__(self, harness: Harness, names: Names, folder: Path) -> None:
        self.harness, self.names, self.folder = harness, names, folder
        self.times = Times(SCALE)
        self.port = free_port()
        self.running: dict[str, RunningService] = {}
        """By address, the oldest first."""
        self._metrics: dict[str, str] = {}
        self._addresses = (f"127.0.0.{number}" for number in itertools.count(2))
        self._stopping: list[asyncio.Task[None]] = []
        # Copies, in a folder as `makeready secrets` knows it: a test rotates them.
        self.secrets = folder / "secrets"
        shutil.copytree(harness.services["gateway"].keys.folder, self.secrets / "identity")
        self.keys = Keys(self.secrets / "identity")
        self.gateway = self._new_gateway()
        self.api_port = free_port()

    def _new_gateway(self) -> RunningService:
        gateway = self.harness.services["gateway"]
        targets = dict(gateway.addresses) | {"svc-tickets": self.names.target(self.port)}
        return RunningService(
            "gateway", self.keys, gateway.database_url, gateway.nats_url, self.folder / "log", None, targets
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.api_port}/api/v1"

    async def open(self) -> None:
        """Two pods, and the gateway once they serve."""
        for _ in range(2):
            await self.add()
        await self._start_gateway()

    async def _start_gateway(self) -> None:
        settings = self.harness.settings_of("gateway") | {
            "MAKEREADY_API_PORT": str(self.api_port),
            "MAKEREADY_METRICS_LISTEN": f"127.0.0.1:{free_port()}",
        }
        await asyncio.to_thread(lambda: self.gateway.start(**settings))
        while not accepts_connections(f"127.0.0.1:{self.api_port}"):  # noqa: ASYNC110 - a process sets no event
            await asyncio.sleep(0.05)

    async def add(self, address: str = "") -> str:
        """Starts a pod; the name has it once it serves. address: of an earlier one."""
        address = address or next(self._addresses)
        service = self.harness.services["svc-tickets"]
        target = f"{address}:{self.port}"
        pod = RunningService(
            service.name,
            self.keys,
            service.database_url,
            service.nats_url,
            self.folder / "log",
            target,
            service.addresses,
        )
        self._metrics[address] = f"127.0.0.1:{free_port()}"
        await asyncio.to_thread(
            lambda: pod.start(
                MAKEREADY_DRAIN_SECONDS=str(self.times.drain),
                MAKEREADY_CONNECTION_AGE_SECONDS=str(self.times.age),
                MAKEREADY_METRICS_LISTEN=self._metrics[address],
            )
        )
        while not await asyncio.to_thread(is_serving, target):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        self.running[address] = pod
        self.names.live.append(address)
        return address

    def drop(self, address: str) -> None:
        """As Kubernetes: out of the name at once, and SIGTERM; it ends by itself."""
        gone = self.running.pop(address)
        self.names.live.remove(address)
        gone.send(signal.SIGTERM)
        self._stopping.append(asyncio.create_task(asyncio.to_thread(gone.stop)))

    async def roll(self, ready_seconds: float = 0.0) -> None:
        """Replaces one after the other: surge 1, none unavailable."""
        for address in list(self.running):
            await self.add()
            await asyncio.sleep(ready_seconds)
            self.drop(address)

    async def take(self, times: Times) -> None:
        """Rolls the pods into other times."""
        if times != self.times:
            self.times = times
            await self.roll()
            await self.all_stopped()

    async def replace_gateway(self, load: Load) -> None:
        """Starts another one, which the load asks from then on, and stops the one before."""
        before, self.gateway, self.api_port = self.gateway, self._new_gateway(), free_port()
        await self._start_gateway()
        load.base_url = self.base_url
        before.send(signal.SIGTERM)
        self._stopping.append(asyncio.create_task(asyncio.to_thread(before.stop)))

    async def all_stopped(self) -> None:
        """Raises if one did not end with status 0."""
        await asyncio.gather(*self._stopping)
        self._stopping.clear()

    async def counted(self, metric: re.Pattern[str]) -> dict[str, float]:
        """The metric of each pod, summed over the RPCs."""
        counts = {}
        for address in self.running:
            text = await asyncio.to_thread(read, f"http://{self._metrics[address]}/metrics")
            counts[address] = sum(float(count) for count in metric.findall(text))
        return counts

    async def share(self, address: str, seconds: float) -> float:
        """The pod's share of the calls of the next seconds."""
        before = await self.counted(SERVED)
        await asyncio.sleep(seconds)
        calls = Counter(await self.counted(SERVED))
        calls.subtract(before)
        return calls[address] / max(1, calls.total())

    def close(self) -> None:
        for process in (*self.running.values(), self.gateway):
            process.kill()


@pytest.fixture(scope="module")
def names() -> Iterator[Names]:
    with Names() as running:
        yield running


@pytest.fixture(scope="module")
async def pods(harness: Harness, names: Names, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pods]:
    rolling = Pods(harness, names, tmp_path_factory.mktemp("pods"))
    try:
        await rolling.open()
        yield rolling
        await rolling.all_stopped()
    finally:
        rolling.close()


@pytest.fixture
def judged(pods: Pods, caller: Caller, records: Records, harness: Harness) -> Judged:
    return Judged(pods, caller, records, harness)


@dataclass
class Judged:
    """Rounds of a disturbance under load."""

    pods: Pods
    caller: Caller
    records: Records
    harness: Harness
    load: Load = field(init=False)
    """The load of the round."""

    async def __call__(
        self, title: str, disturb: Callable[[], Awaitable[object]], is_good: Callable[[Load], bool]
    ) -> None:
        """Fails where a round is not good in the longest times either, although each request was sent in time."""
        await self.pods.take(Times(SCALE))
        while True:
            self.load = load = Load(f"Load {next(LOADS)}", self.pods.base_url, self.caller, self.records)
            async with load.during():
                await disturb()
                await self.pods.all_stopped()
            add_to_summary(title, load)
            await each_create_happened_once(load, self.harness)
            if is_good(load):
                return
            if self.pods.times.scale >= SCALE_MAX:
                break
            await self.pods.take(self.pods.times.longer())
        assert load.late > LATE_SECONDS, load.statuses
        SUMMARY["pods"].append(f"{title}: not judged, the machine was too busy")


def add_to_summary(title: str, load: Load) -> None:
    """A line of the summary."""
    answers = ", ".join(f"{count} {verb} {status}" for (verb, status), count in sorted(load.statuses.items()))
    span = max(load.failed_at) - min(load.failed_at) if load.failed_at else 0.0
    SUMMARY.setdefault("pods", []).append(
        f"{title}: {answers}; {len(load.failed_at)} failed within {span:.1f} s; slowest {load.slowest:.1f} s; "
        f"sent {load.late:.2f} s late at most"
    )


async def each_create_happened_once(load: Load, harness: Harness) -> None:
    """A ticket and an event for each create that was acknowledged, whichever pods took it up; none has two."""
    sql = "SELECT id, title FROM ticket WHERE title LIKE $1"
    rows = await harness.query("svc-tickets", sql, f"{load.name} %")
    tickets = [row["id"] for row in rows]
    assert len({row["title"] for row in rows}) == len(rows) and load.created
    assert len(load.created) == len(set(load.created)) and set(load.created) <= set(tickets)
    assert load.failed_at or len(tickets) == len(load.created)
    events = Counter(
        event.public.entity_id
        for event in (await harness.events(load.caller.company.company_id)).values()
        if event.public.event == "ticket.created"
    )
    assert {events[ticket] for ticket in tickets} == {1}


def no_failure(load: Load) -> bool:
    return not load.failed_at


def no_long_failure(load: Load) -> bool:
    """Creates have time for another pod; reads may fail for two seconds at most."""
    created = {status for verb, status in load.statuses if verb == "POST"}
    return created == {201} and (not load.failed_at or max(load.failed_at) - min(load.failed_at) <= 2)


async def test_four_rolls_back_to_back_fail_no_request(pods: Pods, judged: Judged) -> None:
    async def roll() -> None:
        for _ in range(4):
            await pods.roll()

    await judged("rolled 4 times", roll, no_failure)


async def test_rolls_under_a_stale_name_fail_no_request(pods: Pods, judged: Judged) -> None:
    async def roll() -> None:
        pods.names.cache(pods.times.stale)
        for _ in range(2):
            await pods.roll(pods.times.ready)
        await pods.all_stopped()
        await asyncio.sleep(1)
        pods.names.cache(0)

    try:
        await judged("rolled twice under a stale name", roll, no_failure)
    finally:
        pods.names.cache(0)


async def test_a_third_pod_gets_its_share(pods: Pods, judged: Judged) -> None:
    share = 0.0

    async def add() -> None:
        nonlocal share
        started, share, third = time.monotonic(), 0.0, await pods.add()
        while share < 0.2 and time.monotonic() < started + pods.times.age + 15:
            share = await pods.share(third, seconds=1 + 2 * pods.times.scale)
        told_share = f"a third pod: {100 * share:.0f} % of the calls after {time.monotonic() - started:.1f} s"
        SUMMARY.setdefault("pods", []).append(told_share)
        pods.drop(third)

    await judged("a third pod", add, lambda load: share >= 0.2 and not load.failed_at)


async def test_a_frozen_pod_is_given_up_and_does_nothing_twice_when_it_goes_on(pods: Pods, judged: Judged) -> None:
    async def freeze() -> None:
        frozen = next(iter(pods.running.values()))
        await asyncio.sleep(1)
        frozen.send(signal.SIGSTOP)
        await asyncio.sleep(FOUND_SECONDS + 1.5)
        frozen.send(signal.SIGCONT)
        await asyncio.sleep(1)

    await judged("one of two frozen", freeze, no_long_failure)
    assert any((await pods.counted(REPEATED)).values())


async def test_a_killed_pod_fails_no_request(pods: Pods, judged: Judged) -> None:
    async def kill() -> None:
        address, killed = next(iter(pods.running.items()))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(killed.kill)
        await asyncio.sleep(1)
        del pods.running[address]
        pods.names.live.remove(address)
        await pods.add()
        await asyncio.sleep(0.5)

    await judged("one of two killed", kill, no_failure)


async def test_a_node_that_vanishes_is_given_up(pods: Pods, judged: Judged) -> None:
    """Bytes to and from one of two pods are lost, and nothing says so."""
    address = "127.0.0.254"
    nodes: list[Node] = []

    async def stop() -> None:
        """Once nothing is under way any more: it cuts connections."""
        while nodes:
            await nodes.pop().stop()

    async def vanish() -> None:
        await stop()
        last = list(pods.running)[-1]
        nodes.append(node := Node(f"{last}:{pods.port}"))
        await node.start(address, pods.port)
        pods.names.live[pods.names.live.index(last)] = address
        while not node.is_used:  # noqa: ASYNC110 - until a connection has reached its age
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        node.vanish()
        await asyncio.sleep(FOUND_SECONDS + 1.5)
        pods.names.live[pods.names.live.index(address)] = last
        await asyncio.sleep(0.5)

    try:
        await judged("the node of one of two vanished", vanish, no_long_failure)
    finally:
        await stop()


async def test_the_gateways_key_is_rotated_and_no_request_fails(pods: Pods, judged: Judged) -> None:
    """The three steps of `makeready secrets rotate`. All pods of a step roll at the same time, in any order."""
    key = pods.keys.folder / "gateway.jwk"
    first = key.read_text()

    async def rotate() -> None:
        for words in ((), (), ("--drop-old",)):
            command = ("secrets", "rotate", str(pods.secrets), "identity-gateway", *words)
            assert await asyncio.to_thread(makeready, command) == 0
            await asyncio.gather(pods.replace_gateway(judged.load), pods.roll())
            await pods.all_stopped()

    await judged("the gateway's key rotated", rotate, no_failure)
    kid = json.loads(key.read_text())["kid"]
    ring = [jwk["kid"] for jwk in json.loads((key.parent / "ring.jwks").read_text())["keys"]]
    assert kid in ring and json.loads(first)["kid"] not in [kid, *ring]
