"""One service process: allowed callers, error mapping, health, background work, start and stop."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from chassis.app.health import LIVENESS
from chassis.app.server import App
from chassis.auth.clients import NOT_AGAIN
from chassis.auth.identity import ADMINISTRATOR, INTEGRATION, OPERATOR, SERVICE, Identity, make_keys
from chassis.db import migrations
from chassis.refusals import Refusal
from chassis.runtime.settings import Environment, SettingsError, service_settings
from makeready.common.v1 import audit_pb2, retention_pb2, sweeps_pb2
from testkit import databases
from testkit.patience import PATIENCE_SECONDS, eventually
from testkit.plugin import PostgresServer
from testkit.processes import READY_SECONDS, free_port
from testkit.services import Keys, RunningService

from ..contract import EchoRequest, service
from ..parcels import metadata

METHOD = "/makeready.parcels_of_tests.v1.EchoService/Echo"
ORDERS = Identity(SERVICE, "svc-tickets", 7)
NO_NATS = "nats://127.0.0.1:1"


class EchoProcess(RunningService):
    """`tests.app.echo` in a process of its own."""

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-P", str(Path(__file__).with_name("serve_echo.py"))]

    @property
    def lines(self) -> list[str]:
        """The lines that the service printed, without its structured log."""
        return [line for line in self.log.read_text().splitlines() if not line.startswith("{")]

    async def said(self, line: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while line not in self.lines:  # noqa: ASYNC110 - a file sets no event
                await asyncio.sleep(0.02)

    async def echo(self, text: str, who: Identity = ORDERS, traceparent: str = "") -> str:
        async with self.channel() as channel:
            return str((await self.call(channel, EchoRequest(text=text), who, traceparent)).text)

    async def health(self, service: str = "") -> str:
        async with self.channel() as channel:
            request = health_pb2.HealthCheckRequest(service=service)
            answer = await health_pb2_grpc.HealthStub(channel).Check(request, wait_for_ready=True, timeout=20)
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def echo_process(postgres_server: PostgresServer, folder: Path, *, migrated: bool = True) -> EchoProcess:
    """A service with a database, not started."""
    keys = Keys(folder / "keys")
    make_keys(keys.folder, ["svc-echo"])
    url = postgres_server.create_database("chassis_app")
    if migrated:
        migrate(url)
    return EchoProcess("svc-echo", keys, url, NO_NATS, folder / "log")


def migrate(url: str) -> None:
    """What `python -m tests.app.echo migrate` does."""
    migrations.migrate(url, __package__, metadata, urlsplit(databases.service_url(url)).username or "")


@pytest.fixture(scope="module")
def prepared(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> EchoProcess:
    """A service with a database, not started."""
    return echo_process(postgres_server, tmp_path_factory.mktemp("echo"))


@pytest.fixture(scope="module")
def running(prepared: EchoProcess) -> Iterator[EchoProcess]:
    prepared.start()
    yield prepared
    prepared.stop()


@pytest.fixture
def another(prepared: EchoProcess, tmp_path: Path) -> Iterator[EchoProcess]:
    """A second process, for a test that ends it."""
    process = EchoProcess("svc-echo", prepared.keys, prepared.database_url, NO_NATS, tmp_path / "log")
    yield process
    process.kill()


# Calls


async def test_the_kinds_that_the_proto_names_may_call_and_are_known(running: EchoProcess) -> None:
    assert await running.echo("who") == "service 7 req-test"
    assert await running.echo("who", Identity(INTEGRATION, "gateway", 8, 3, "write")) == "caller 8 req-test"


@pytest.mark.parametrize(
    "who",
    [
        Identity(OPERATOR, "operator", 7),
        Identity(ADMINISTRATOR, "gateway", 7),
        Identity(SERVICE, "svc-catalog", 7),
        Identity(INTEGRATION, "gateway", 8, 3, "webhook_only"),
        Identity(INTEGRATION, "gateway", 8, 3),
    ],
    ids=lambda who: f"{who.kind} {who.issuer} {who.scope}",
)
async def test_other_kinds_services_and_scopes_may_not_call(who: Identity, running: EchoProcess) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await running.echo("who", who)
    assert fault.value.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("audience", ["svc-catalog", None])
async def test_a_token_for_another_service_or_none_may_not_call(audience: str | None, running: EchoProcess) -> None:
    metadata = [("authorization", running.keys.token(ORDERS, audience))] if audience else []
    async with running.channel() as channel:
        with pytest.raises(grpc.aio.AioRpcError) as fault:
            await channel.unary_unary(METHOD, EchoRequest.SerializeToString)(EchoRequest(), metadata=metadata)
    assert fault.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_refusal_reaches_the_caller_as_it_was_raised(running: EchoProcess) -> None:
    with pytest.raises(Refusal) as refusal:
        await running.echo("refuse")
    refused = refusal.value
    assert (refused.status, refused.code, refused.message, refused.field) == (
        422,
        "too_heavy",
        "It is too heavy; send it in two parts.",
        "text",
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("identity", grpc.StatusCode.PERMISSION_DENIED),
        ("away", grpc.StatusCode.UNAVAILABLE),
        ("fault", grpc.StatusCode.INTERNAL),
    ],
)
async def test_each_error_has_its_status_and_no_internals(
    text: str, code: grpc.StatusCode, running: EchoProcess
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await running.echo(text)
    assert fault.value.code() is code
    assert "depot" not in str(fault.value.details())


async def test_what_lacks_something_says_that_no_replica_need_be_asked(running: EchoProcess) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as fault:
        await running.echo("away")
    assert set(NOT_AGAIN) <= set(fault.value.trailing_metadata() or ())


async def test_a_fault_is_logged_with_the_request_and_without_values(running: EchoProcess) -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await running.echo("fault")
    line = next(text for text in running.log.read_text().splitlines() if '"event": "fault"' in text)
    assert '"request_id": "req-test"' in line and '"rpc": "EchoService/Echo"' in line
    assert '"locals"' not in line and "authorization" not in line


async def test_every_line_has_a_trace_id_and_those_of_a_call_have_its_callers(running: EchoProcess) -> None:
    trace_id = secrets.token_hex(16)
    with pytest.raises(grpc.aio.AioRpcError):
        await running.echo("fault", traceparent=f"00-{trace_id}-00f067aa0ba902b7-01")
    lines = [json.loads(line) for line in running.log.read_text().splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines if line.get("trace_id") == trace_id] == ["fault"]
    assert all(re.fullmatch("[0-9a-f]{32}", line.get("trace_id", "")) for line in lines), lines


def _lines_of(url: str) -> list[str]:
    with urllib.request.urlopen(url) as answer:
        return answer.read().decode().splitlines()  # type: ignore[no-any-return]


async def test_calls_are_counted_by_outcome(another: EchoProcess) -> None:
    listen = f"127.0.0.1:{free_port()}"
    another.start(MAKEREADY_METRICS_LISTEN=listen)
    await another.echo("a")
    with pytest.raises(Refusal):
        await another.echo("refuse")

    async def counted() -> list[str]:
        lines = await asyncio.to_thread(_lines_of, f"http://{listen}/metrics")
        return sorted(line for line in lines if line.startswith("makeready_rpc_total{") and "EchoService" in line)

    async def is_counted() -> bool:  # a call counts once its answer is on its way
        return await counted() == [
            f'makeready_rpc_total{{outcome="{outcome}",rpc="EchoService/Echo"}} 1.0'
            for outcome in ("refused", "served")
        ]

    await eventually(is_counted)


def test_a_service_without_allowed_callers_is_not_served(prepared: EchoProcess) -> None:
    async def serve() -> None:
        app = App("svc-echo", service_settings(Environment(prepared.environment)))
        app.serve(service("OpenService"), None)

    with pytest.raises(AssertionError, match="names no kind that may call it"):
        asyncio.run(serve())


async def test_what_the_app_is_given_is_served(running: EchoProcess) -> None:
    operator = Identity(OPERATOR, "operator", 7)
    async with running.channel() as channel:
        entries = await running.call(channel, audit_pb2.ListAuditRequest(limit=1), operator)
        gone = await running.call(channel, retention_pb2.SweepRetentionRequest(), operator)
        done = await running.call(channel, sweeps_pb2.RunScheduledSweepsRequest(), operator)
    assert (list(entries.entries), gone.idempotency_keys, dict(done.done)) == ([], 0, {"ticket.stale": 3})


# Start and stop


async def test_steps_run_in_their_order_and_end_in_reverse(another: EchoProcess) -> None:
    another.start()
    await another.said("background 2")
    assert await another.health() == "SERVING"
    another.stop()
    steps = [line for line in another.lines if line.startswith(("on_", "before_"))]
    assert steps == ["on_start 1", "on_start 2", "before_ready 1", "before_ready 2", "on_stop 2", "on_stop 1"]


async def test_background_work_that_fails_is_started_anew(running: EchoProcess) -> None:
    await running.said("background 2")
    assert '"event": "background_failed"' in running.log.read_text()


async def test_a_stop_ends_work_whose_cancellation_was_lost(another: EchoProcess) -> None:
    another.start(SWALLOW="1")
    await another.said("background 2")
    another.stop()
    assert "swallowed" in another.lines
    log = another.log.read_text()
    assert '"event": "background_ends_late"' in log and '"work": "swallowing"' in log and '"event": "stopped"' in log


async def test_a_stop_says_not_ready_first_and_lets_the_calls_under_way_finish(another: EchoProcess) -> None:
    another.start(MAKEREADY_DRAIN_SECONDS="4")
    slow = asyncio.create_task(another.echo("slow"))
    await another.said("slow")
    another.send(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await another.health() != "NOT_SERVING":  # noqa: ASYNC110 - another process sets no event
            await asyncio.sleep(0.02)
    assert await another.health(LIVENESS) == "SERVING"
    assert await another.echo("still here") == "still here", "whoever has not heard yet is served while it drains"
    assert await slow == "slow"
    assert await asyncio.to_thread(another.wait) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAKEREADY_LOG_LEVEL", "loud"),
        ("MAKEREADY_GRPC_LISTEN", "203.0.113.1:1"),
        ("MAKEREADY_METRICS_LISTEN", "203.0.113.1:1"),
    ],
)
def test_a_setting_that_is_bad_ends_the_process_with_one_line(name: str, value: str, prepared: EchoProcess) -> None:
    ended = subprocess.run(
        prepared.command,
        env=prepared.environment | {name: value},
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
        check=False,
    )
    line = ended.stderr.splitlines()[-1]  # after the lines of gRPC's library
    assert ended.returncode == 2 and line.startswith("svc-echo: ") and name in line
    assert "Traceback" not in ended.stderr


def test_an_unknown_argument_prints_the_usage(prepared: EchoProcess) -> None:
    command = [*prepared.command, "serve"]
    ended = subprocess.run(
        command, env=prepared.environment, capture_output=True, text=True, timeout=READY_SECONDS, check=False
    )
    assert (ended.returncode, ended.stderr) == (2, "svc-echo: usage: python -m tests.app [migrate]\n")


async def test_a_missing_address_of_a_service_is_named(prepared: EchoProcess) -> None:
    app = App("svc-echo", service_settings(Environment(prepared.environment)))
    assert app.service_client("svc-catalog") is app.service_client("svc-catalog")
    with pytest.raises(SettingsError, match="MAKEREADY_ORDERS_ADDRESS is not set"):
        app.service_client("svc-orders")
    await app.service_client("svc-catalog").close()
