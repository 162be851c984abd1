"""Starting and stopping a gateway: the services that it waits for, the settings that it refuses, its end."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import ssl
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import trustme

from chassis.runtime.settings import Environment, SettingsError
from gateway import config
from gateway.http.admission import OPENS_SECONDS_MAX
from testkit import databases
from testkit.gateways import Gateway, GatewayHarness, Operator
from testkit.patience import PATIENCE_SECONDS, took
from testkit.plugin import PostgresServer
from testkit.raw_http import Api
from testkit.requirements import lacks
from testkit.stub_contexts import Contexts


async def ended(gateway: Gateway, seconds: float = PATIENCE_SECONDS) -> tuple[int, str]:
    """Exit status and the last line of the log."""
    assert gateway.process is not None
    status = await asyncio.to_thread(gateway.process.wait, seconds)
    return status, gateway.log.read_text().strip().splitlines()[-1]


def at_level(gateway: Gateway, level: str) -> list[dict[str, Any]]:
    """The lines of its log at this level."""
    lines = map(json.loads, gateway.log.read_text().splitlines())
    return [line for line in lines if line["level"] == level]


async def logged(gateway: Gateway, text: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not gateway.log.exists() or text not in gateway.log.read_text():  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.05)


async def test_it_is_ready_when_every_service_serves(harness: GatewayHarness, contexts: Contexts) -> None:
    await contexts.say("svc-tickets", serving=False)
    await contexts.stop("svc-webhooks")
    gateway = harness.gateway()
    gateway.start()
    api = Api(gateway.api_port)
    try:
        await logged(gateway, '["svc-tickets", "svc-webhooks"]')
        assert ((await api.get("//healthz")).status, (await api.get("//readyz")).status) == (200, 503)
        assert (await api.get("/whoami")).status == 401, "its own database is there"
    finally:
        await contexts.start("svc-webhooks")
        await contexts.say("svc-tickets", serving=True)
    await gateway.ready()
    assert await gateway.stop() == 0
    assert not at_level(gateway, "error")


async def test_an_absent_service_keeps_it_from_ready_no_longer_than_the_setting_says(
    harness: GatewayHarness, contexts: Contexts
) -> None:
    await contexts.say("svc-tickets", serving=False)
    try:
        gateway = harness.gateway(MAKEREADY_WAIT_FOR_SERVICES_SECONDS="1")
        gateway.start()
        await gateway.ready()
        assert "ready_without" in gateway.log.read_text()
        assert await gateway.stop() == 0
    finally:
        await contexts.say("svc-tickets", serving=True)


async def test_without_its_migrations_it_answers_and_is_not_ready(
    harness: GatewayHarness, postgres_server: PostgresServer
) -> None:
    empty = databases.environment(postgres_server.create_database("gateway_not_migrated"))
    gateway = harness.gateway(empty)
    gateway.start()
    await logged(gateway, "waiting_for_migrations")
    api = Api(gateway.api_port)
    assert [(await api.get(path)).status for path in ("//healthz", "//readyz", "//docs")] == [200, 503, 200]
    assert (await api.get("/openapi.json")).status == 200
    sent_at = time.monotonic()
    early = await api.get("/tickets", "mk_" + "z" * 43)
    assert (early.status, early.code) == (500, "internal_error")
    assert time.monotonic() - sent_at > 0.9 * OPENS_SECONDS_MAX, "a start that is soon over refuses nobody"
    assert (await api.get("/tickets")).status == 401
    await asyncio.to_thread(gateway.run_to_end, "migrate")
    # The gateway looks for them twice a second; a request that comes before it has looked waits.
    while (late := await api.get("/tickets", "mk_" + "z" * 43)).status == 500:
        took("a gateway has noticed its migrations: later than a request waits", OPENS_SECONDS_MAX)
    assert late.status == 401
    await gateway.ready()
    assert await gateway.stop() == 0
    assert {line["route"] for line in at_level(gateway, "error")} == {"/tickets"}, "a probe's 503 is no error"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_during_the_wait_ends_it_cleanly(
    harness: GatewayHarness, contexts: Contexts, number: int
) -> None:
    await contexts.say("svc-catalog", serving=False)
    try:
        gateway = harness.gateway()
        gateway.start()
        await logged(gateway, "waiting_for_services")
        assert gateway.process is not None
        gateway.process.send_signal(number)
        assert (await ended(gateway))[0] == 0
        assert "Traceback" not in gateway.log.read_text()
    finally:
        await contexts.say("svc-catalog", serving=True)


async def test_stopping_is_not_ready_first_then_finishes_what_is_under_way(
    harness: GatewayHarness, operator: Operator, company_id: int, contexts: Contexts
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_context: object) -> None:
        begun.set()
        await go_on.wait()

    contexts.behaviours["tickets.TicketsService/CreateTicket"] = slow
    gateway = harness.gateway(MAKEREADY_DRAIN_SECONDS="4")
    gateway.start()
    await gateway.ready()
    api = Api(gateway.api_port)
    key = await operator.key(company_id)
    writing = asyncio.ensure_future(api.request("POST", "/tickets", key, b"{}", Idempotency_Key="k"))
    idle = await api.connect()
    await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
    assert gateway.process is not None
    gateway.process.terminate()
    # Still served until load balancers notice, but not ready.
    while (await api.get("//readyz")).status != 503:  # noqa: ASYNC110 - polling
        await asyncio.sleep(0.02)
    assert (await api.get("//healthz")).status == 200
    assert (await api.get("/whoami", key)).status == 200
    assert await idle.is_closed()
    go_on.set()
    response = await writing
    assert (response.status, response.header("Connection")) == (201, "close")
    assert (await ended(gateway))[0] == 0


async def test_a_write_under_way_survives_even_where_its_client_left(
    harness: GatewayHarness, operator: Operator, company_id: int, contexts: Contexts
) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def slow(_context: object) -> None:
        begun.set()
        await asyncio.sleep(1)
        done.set()

    contexts.behaviours["tickets.TicketsService/CreateTicket"] = slow
    gateway = harness.gateway()
    gateway.start()
    await gateway.ready()
    api = Api(gateway.api_port)
    connection = await api.connect()
    key = await operator.key(company_id)
    await connection.send(api.bytes("POST", "/tickets", key, b"{}", Idempotency_Key="k"))
    await asyncio.wait_for(begun.wait(), PATIENCE_SECONDS)
    connection.close()
    assert await gateway.stop() == 0
    assert done.is_set()


async def test_a_port_in_use_is_one_clear_line(harness: GatewayHarness, gateway: Gateway) -> None:
    for setting in ("MAKEREADY_API_PORT", "MAKEREADY_GRPC_LISTEN", "MAKEREADY_METRICS_LISTEN"):
        second = harness.gateway({setting: gateway.environment[setting]})
        second.start()
        status, line = await ended(second)
        assert status == 2
        assert line.startswith(f"gateway: {setting}")
        assert "Traceback" not in second.log.read_text()
        second.process = None


RING = "1:" + base64.b64encode(b"k" * 32).decode()
BAD_RINGS = ["", "abc", "1:", "1:!!!", "1:c2hvcnQ=", f"{RING},{RING}", f"a b:{RING[2:]}", f":{RING[2:]}"]
BAD_SETTINGS = {
    "MAKEREADY_CURSOR_KEYS": BAD_RINGS,
    "MAKEREADY_TOTP_KEYS": BAD_RINGS,
    "MAKEREADY_KEY_CHECK_SECRETS": [*BAD_RINGS, f"ninechars:{RING[2:]}", f"a_b:{RING[2:]}"],
    "MAKEREADY_RATE_LIMIT_URL": ["postgres://x", "memory", "nonsense"],
    "MAKEREADY_API_PORT": ["0", "65536", "x", "-1"],
    "MAKEREADY_API_HOST": ["0.0.0.0", "::", "192.0.2.1", "example.com"],
    "MAKEREADY_API_URL": ["ftp://x", "localhost"],
    "MAKEREADY_GATEWAY_PROCESSES": ["2", "0", "x"],
    "MAKEREADY_TLS_CERT_FILE": ["/nowhere"],
    "MAKEREADY_TLS_KEY_FILE": ["/nowhere"],
    "MAKEREADY_TLS_ENDS_AT_INGRESS": ["yes", "2"],
    "MAKEREADY_CATALOG_ADDRESS": [""],
    "MAKEREADY_WEBHOOKS_ADDRESS": [""],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_SETTINGS.items() for value in values]
)
def test_a_bad_setting_is_named(harness: GatewayHarness, name: str, value: str) -> None:
    environment = harness.gateway({name: value}).environment
    with pytest.raises(SettingsError) as refused:
        config.read(Environment(environment))
    assert name in str(refused.value) and str(refused.value).endswith(".") and "\n" not in str(refused.value)
    assert not value or "RATE" in name or value not in str(refused.value).split()


def test_loopback_and_an_ingress_need_no_certificate(harness: GatewayHarness) -> None:
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        config.read(Environment(harness.gateway(MAKEREADY_API_HOST=host).environment))
    outside = harness.gateway(MAKEREADY_API_HOST="0.0.0.0", MAKEREADY_TLS_ENDS_AT_INGRESS="1")
    assert config.read(Environment(outside.environment)).tls is None


def test_a_bad_setting_ends_the_process_with_status_2(harness: GatewayHarness) -> None:
    environment = harness.gateway(MAKEREADY_API_HOST="0.0.0.0").environment
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gateway"],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gateway: MAKEREADY_API_HOST ") and done.stderr.count("\n") == 1


async def test_tls_ends_at_the_gateway_where_a_certificate_is_given(
    harness: GatewayHarness, operator: Operator, company_id: int, tmp_path: Path
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    certificate, key_file = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    key_file.write_bytes(issued.private_key_pem.bytes())
    gateway = harness.gateway(
        MAKEREADY_API_HOST="0.0.0.0",
        MAKEREADY_TLS_CERT_FILE=str(certificate),
        MAKEREADY_TLS_KEY_FILE=str(key_file),
    )
    gateway.start()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    api = Api(gateway.api_port, trusting)
    await logged(gateway, '"event": "serving"')
    assert (await api.get("//readyz")).status == 200
    key = await operator.key(company_id)
    connection = await api.connect()
    for _ in range(2):
        await connection.send(api.bytes("GET", "/whoami", key))
        assert (await connection.receive()).status == 200
    await connection.send(b"nonsense\r\n\r\n")
    assert (await connection.receive()).status == 400
    big = await api.request("POST", "/tickets", key, b"x" * 200_000, Idempotency_Key="k")
    assert big.status == 201
    plain = await Api(gateway.api_port).connect()
    await plain.send(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")
    assert await plain.is_closed()
    old = ssl.create_default_context()
    authority.configure_trust(old)
    with warnings.catch_warnings(action="ignore"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(OSError):
        await Api(gateway.api_port, old).get("//healthz")
    assert await gateway.stop() == 0


async def test_logs_are_json_and_hold_no_key_and_no_query(
    harness: GatewayHarness, operator: Operator, company_id: int, contexts: Contexts
) -> None:
    gateway = harness.gateway(MAKEREADY_LOG_LEVEL="debug")
    gateway.start()
    await gateway.ready()
    api = Api(gateway.api_port)
    key = await operator.key(company_id)
    await api.get("/tickets?limit=3&updated_since=2026-01-01T00:00:00Z", key)
    await api.get("/tickets?secret-in-a-query=1", key)
    await api.get("/whoami", "mk_unknown-key-of-a-caller")
    await api.request("POST", "/tickets", key, b'{"title": "a resident says"}', Idempotency_Key="idem-1")

    async def fault(_context: object) -> None:
        raise RuntimeError("boom")

    contexts.behaviours["tickets.TicketsService/GetTicket"] = fault
    failed = await api.get("/tickets/5", key)
    assert failed.status == 500
    assert await gateway.stop() == 0
    text = gateway.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    answered = [line for line in lines if line["event"] == "answered"]
    assert {line["route"] for line in answered} >= {"/tickets", "/tickets/{ticket_id}", "/whoami", "/readyz"}
    assert any(line["level"] == "error" and line["request_id"] == failed.header("X-Request-Id") for line in answered)
    for hidden in (key, key[11:], "updated_since", "secret-in-a-query", "unknown-key", "resident", "idem-1", "Bearer"):
        assert hidden not in text, hidden


async def test_metrics_are_labelled_by_route_template(
    harness: GatewayHarness, gateway: Gateway, api: Api, key: str
) -> None:
    for entity_id in (1, 2, 3):
        await api.get(f"/tickets/{entity_id}", key)
    await api.get("/some-path-nobody-has", key)
    await api.request("PUT", "/some-path-nobody-has", key)
    port = int(gateway.environment["MAKEREADY_METRICS_LISTEN"].rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    assert 'makeready_http_requests_total{method="GET",route="/tickets/{ticket_id}",status="404"}' in text
    assert "makeready_http_request_seconds_bucket" in text
    assert "some-path" not in text
    for name in ("makeready_key_listener_connected 1.0", "makeready_rate_limit_alone_total 0.0"):
        assert name in text


async def test_probes_lie_outside_the_namespace_and_need_no_key(api: Api) -> None:
    for path in ("//healthz", "//readyz"):
        assert (await api.get(path)).json == {"status": "ok"}
        refused = await api.request("POST", path)
        assert (refused.status, refused.header("Allow")) == (405, "GET")
    for path in ("/healthz", "/readyz", "//metrics"):
        assert (await api.get(path)).status == 404


@pytest.fixture
async def idle_gateway(harness: GatewayHarness) -> Gateway:
    """A gateway that has served nothing: what checks passwords and passkeys is loaded when it is first used."""
    gateway = harness.gateway(warm=False)
    gateway.start()
    await gateway.ready()
    return gateway


def test_an_idle_gateway_is_small(idle_gateway: Gateway) -> None:
    """Proportional set size: its own memory, and its part of the memory shared with the other services."""
    assert idle_gateway.process is not None
    smaps = Path(f"/proc/{idle_gateway.process.pid}/smaps_rollup")
    if not smaps.exists():
        lacks("kernel-figures", f"there is no {smaps}")
    share = next(line for line in smaps.read_text().splitlines() if line.startswith("Pss:"))
    assert int(share.split()[1]) * 1024 < 90_000_000, share
