"""The broker's settings, on the real server."""

import asyncio
import json
import os
import re
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import nats
import nats.errors
import pytest
import trustme

from chassis.messaging import streams
from chassis.messaging.transport import FAULTS, STREAM, NatsConnection, Transport, inbox_of
from makeready_cli.streams import CONSOLE, CONSUMERS, SERVICES
from makeready_local.nats import binary, permissions
from testkit.patience import eventually
from testkit.processes import Process, free_port

from .manifests import Bundle, kustomization
from .test_network import peer_of, reaches

USERS = (*SERVICES, CONSOLE)
PASSWORD = "p0123456789abcdef"


class Broker:
    """One server with a ConfigMap's settings, on free ports of this machine."""

    def __init__(self, bundle: Bundle, folder: Path, name: str = "nats-0", routes: Sequence[str] = ()) -> None:
        """routes: the URL of each server of a cluster, its own included."""
        self.port, self.monitor, self.name = free_port(), free_port(), name
        folder.mkdir()
        for file, text in bundle.values("ConfigMap", "nats").items():
            (folder / file).write_text(text.replace("/etc/nats-tls", str(folder.parent / "tls")))
        text = (folder / "nats.conf").read_text()
        for pattern, value in (
            (r"^port: 4222$", f"port: {self.port}\nhost: 127.0.0.1"),
            (r"^http_port: 8222$", f"http: 127.0.0.1:{self.monitor}"),
            (r"store_dir: /data$", f"store_dir: {json.dumps(str(folder / 'data'))}"),
            *(
                [(r"^  port: 6222$", f"  listen: {json.dumps(routes[int(name[-1])].rpartition('@')[2])}")]
                if routes
                else []
            ),
        ):
            text, count = re.subn(pattern, value, text, flags=re.MULTILINE)
            assert count == 1, pattern
        (folder / "nats.conf").write_text(text)
        environment = {"POD_NAME": name, "NATS_PASSWORD": PASSWORD, "PATH": os.environ["PATH"]}
        environment |= {variable_of(service): f"{PASSWORD}-{service}" for service in USERS}
        environment |= {"NATS_ROUTES_PASSWORD": PASSWORD}
        environment |= {f"NATS_ROUTE_{number}": url for number, url in enumerate(routes)}
        self.process = Process([binary(), "--config", str(folder / "nats.conf")], folder / "nats.log", environment)

    def url(self, user: str) -> str:
        password = PASSWORD if user == "makeready" else f"{PASSWORD}-{user}"
        return f"nats://{user}:{password}@127.0.0.1:{self.port}"


@pytest.fixture
def server(as_read: Bundle, tmp_path: Path) -> Iterator[tuple[int, int]]:
    """(clients' port, monitoring port) of a server with the ConfigMap's settings, on free ports."""
    broker = Broker(as_read, tmp_path / "nats")
    broker.process.launch()
    try:
        yield broker.port, broker.monitor
    finally:
        broker.process.end(seconds=20)


@pytest.fixture(params=["ha", "tls"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Broker]]:
    """Three servers with the settings of the component nats-ha, without and with nats-tls."""
    bundle: Bundle = request.getfixturevalue(request.param)
    make_certificates(tmp_path / "tls")
    routes = [f"nats://routes:{PASSWORD}@127.0.0.1:{free_port()}" for _ in range(3)]
    brokers = [Broker(bundle, tmp_path / f"nats-{number}", f"nats-{number}", routes) for number in range(3)]
    for broker in brokers:
        broker.process.launch()
    try:
        yield brokers
    finally:
        for broker in brokers:
            broker.process.kill()


def make_certificates(folder: Path) -> None:
    """The files of the Secret nats-tls."""
    folder.mkdir()
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.crt")
    (folder / "tls.crt").write_bytes(b"".join(certificate.bytes() for certificate in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(folder / "tls.key")


def variable_of(service: str) -> str:
    return f"NATS_{service.removeprefix('svc-').upper()}_PASSWORD"


def fetched(url: str) -> bytes:
    """The body of a 200; waits up to a minute for it."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=2) as response:  # short: asked again
                body: bytes = response.read()
                return body
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer 200")


async def test_the_server_starts_syncs_always_and_asks_for_the_password(
    server: tuple[int, int], as_read: Bundle
) -> None:
    port, monitor = server
    (workload,) = [workload for workload in as_read.workloads("StatefulSet") if workload.name == "nats"]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = workload.container[kind]["httpGet"]
        assert await asyncio.to_thread(fetched, f"http://127.0.0.1:{monitor}{probe['path']}")
    jetstream_state = json.loads(await asyncio.to_thread(fetched, f"http://127.0.0.1:{monitor}/jsz?config=true"))
    assert jetstream_state["config"]["sync_always"] is True
    assert jetstream_state["config"]["max_storage"] == 8 * 1024**3
    client = await nats.connect(f"nats://makeready:{PASSWORD}@127.0.0.1:{port}", allow_reconnect=False)
    try:
        jetstream = client.jetstream()
        await jetstream.add_stream(name="EVENTS", subjects=["events.>"])
        assert (await jetstream.publish("events.one", b"1")).seq == 1
    finally:
        await client.close()

    async def silent(_error: Exception) -> None:
        """The test expects the refusal."""

    wrong = f"nats://makeready:wrong@127.0.0.1:{port}"
    with pytest.raises((nats.errors.Error, TimeoutError)):
        await nats.connect(wrong, allow_reconnect=False, connect_timeout=20, error_cb=silent)


async def test_each_user_connects_and_may_do_what_it_may_elsewhere(server: tuple[int, int], as_read: Bundle) -> None:
    port, monitor = server
    await asyncio.to_thread(fetched, f"http://127.0.0.1:{monitor}/healthz")
    text = as_text(as_read)
    blocks = re.findall(r"user: (\S+), password: \S+\s+permissions: \{(.*?)\n      \}", text, re.DOTALL)
    assert [name for name, _ in blocks] == list(USERS)
    for user, block in blocks:
        sides = re.findall(r"(publish|subscribe): \{\s*(allow|deny): \[(.*?)\]", block, re.DOTALL)
        configured = {side: {verb: re.findall(r'"(.*?)"', subjects)} for side, verb, subjects in sides}
        assert configured == permissions(user)
        url = f"nats://{user}:{PASSWORD}-{user}@127.0.0.1:{port}"
        client = await nats.connect(url, allow_reconnect=False, inbox_prefix=inbox_of(user))
        if user == CONSOLE:
            await client.subscribe("hints.*.7.>")
        else:
            await client.publish(f"hints.{user}.7.ticket.1")
        await client.flush()
        assert client.last_error is None
        await client.close()


def test_there_is_room_on_the_disk_for_all_that_the_server_may_keep(as_read: Bundle) -> None:
    (claim,) = as_read.one("StatefulSet", "nats")["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "10Gi"
    assert "max_file_store: 8GB" in as_read.values("ConfigMap", "nats")["nats.conf"]


def test_the_image_is_the_server_that_the_tests_run_on(k8s: Path) -> None:
    version = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True).stdout
    (image,) = [image for image in kustomization(k8s / "base")["images"] if image["name"] == "nats"]
    assert version.strip() == f"nats-server: v{image['newTag']}"


async def test_each_service_publishes_its_own_events_alone_in_a_cluster(cluster: list[Broker], tmp_path: Path) -> None:
    has_tls = "tls {" in (tmp_path / "nats-0/tls.conf").read_text()
    tls = ssl.create_default_context(cafile=tmp_path / "tls/ca.crt") if has_tls else None
    errors: list[str] = []

    async def note(error: Exception) -> None:
        errors.append(str(error))

    def urls(user: str) -> str:
        return ",".join(broker.url(user) for broker in cluster)

    keeping = asyncio.create_task(streams.keep(urls("makeready"), CONSUMERS, replicas=3, tls=tls))
    operator, service = NatsConnection(urls("makeready"), tls), NatsConnection(urls("svc-webhooks"), tls)
    tickets = Transport(urls("svc-tickets"), "svc-tickets", tls)
    running = asyncio.create_task(tickets.run())
    await operator.open("tests")
    await service.open("svc-webhooks", error_cb=note, inbox_prefix=inbox_of("svc-webhooks"))
    for _ in range(600):
        if not tickets.fault and await replicas_and_consumers(operator) == (3, len(CONSUMERS)):
            break
        await asyncio.sleep(0.05)
    else:
        raise AssertionError(f"the stream is not kept: {await replicas_and_consumers(operator)}")
    subject = "events.svc-tickets.public.ticket.created"

    async def refused() -> bool:
        return f'nats: permissions violation for publish to "{subject}"' in errors

    with pytest.raises(nats.errors.TimeoutError):
        await service.jetstream(timeout=3).publish(subject, b"forged")  # short: no answer comes
    await eventually(refused)
    await tickets.jetstream.publish(subject, b"true")
    messages = await service.jetstream().pull_subscribe_bind(durable="svc-webhooks", stream=STREAM)
    (message,) = await messages.fetch(1, timeout=60)
    await message.ack_sync()
    assert message.data == b"true"
    assert (await service.jetstream().consumer_info(STREAM, "svc-webhooks")).num_pending == 0
    for task in (keeping, running):
        task.cancel()
    for connection in (operator, service, tickets._client):
        await connection.end()


async def replicas_and_consumers(operator: NatsConnection) -> tuple[int | None, int]:
    try:
        info = await operator.jetstream(timeout=1).stream_info(STREAM)  # short: asked again
    except FAULTS:
        return 0, 0
    return info.config.num_replicas, info.state.consumer_count


def test_a_service_trusts_the_authority_of_the_servers_and_gets_no_key_of_theirs(tls: Bundle) -> None:
    streams_and_console = ("nats-streams", CONSOLE)
    clients = [
        *tls.servers(),
        *(candidate for candidate in tls.workloads("Deployment") if candidate.name in streams_and_console),
    ]
    assert {candidate.name for candidate in clients} == {*USERS, "nats-streams"}
    for workload in clients:
        files = tls.files(workload)
        assert files[tls.environment(workload)["MAKEREADY_NATS_CA_FILE"]] == "3"
        assert "2" not in files.values()


def test_the_passwords_and_the_urls_belong_together(bundle: Bundle) -> None:
    (nats_server,) = [workload for workload in bundle.workloads("StatefulSet") if workload.name == "nats"]
    environment = bundle.environment(nats_server)
    (keeper,) = [workload for workload in bundle.workloads("Deployment") if workload.name == "nats-streams"]
    count = nats_server.manifest["spec"]["replicas"]
    places = ["nats:4222"] if count == 1 else [f"nats-{number}.nats:4222" for number in range(count)]

    def urls(user: str, password: str) -> str:
        return ",".join(f"nats://{user}:{password}@{place}" for place in places)

    url = bundle.environment(keeper)["MAKEREADY_NATS_URL"]
    assert url == urls("makeready", environment["NATS_PASSWORD"])
    assert bundle.environment(keeper).get("MAKEREADY_NATS_REPLICAS", "1") == str(count)
    console = [workload for workload in bundle.workloads("Deployment") if workload.name == CONSOLE]
    for workload in [*bundle.servers(), *console]:
        url = bundle.environment(workload)["MAKEREADY_NATS_URL"]
        assert url == urls(workload.name, environment[variable_of(workload.name)])
        assert f"user: {workload.name}, password: ${variable_of(workload.name)}" in as_text(bundle)
    assert len({environment[variable_of(user)] for user in USERS} | {environment["NATS_PASSWORD"]}) == len(USERS) + 1


def as_text(bundle: Bundle) -> str:
    """The settings of the users."""
    (config,) = [m for m in bundle.of("ConfigMap") if "users.conf" in m["data"]]
    text: str = config["data"]["users.conf"]
    return text


def test_routes_lead_from_server_to_server_alone(ha: Bundle) -> None:
    environment = ha.environment(next(workload for workload in ha.workloads("StatefulSet") if workload.name == "nats"))
    routes = [environment[f"NATS_ROUTE_{number}"] for number in range(3)]
    assert routes == [f"nats://routes:$(NATS_ROUTES_PASSWORD)@nats-{number}.nats:6222" for number in range(3)]
    assert environment["NATS_ROUTES_PASSWORD"] not in {environment["NATS_PASSWORD"], ""}
    service = ha.one("Service", "nats")["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    for sender in ha.workloads():
        reached = reaches(ha, peer_of(ha, sender.name), peer_of(ha, "nats"), 6222)
        assert reached == (sender.name == "nats"), sender.name
