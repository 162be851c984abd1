"""The broker's settings, on the real server."""

import asyncio
import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nats
import nats.errors
import pytest

from chassis.messaging.transport import inbox_of
from makeready_cli.streams import CONSOLE, SERVICES
from makeready_local.nats import binary, permissions
from testkit.processes import Process, free_port

from .manifests import Bundle, kustomization

USERS = (*SERVICES, CONSOLE)
PASSWORD = "p0123456789abcdef"


@pytest.fixture
def server(as_read: Bundle, tmp_path: Path) -> Iterator[tuple[int, int]]:
    """(clients' port, monitoring port) of a server with the ConfigMap's settings, on free ports."""
    ports = free_port(), free_port()
    text = as_read.values("ConfigMap", "nats")["nats.conf"]
    for pattern, value in (
        (r"^port: 4222$", f"port: {ports[0]}\nhost: 127.0.0.1"),
        (r"^http_port: 8222$", f"http: 127.0.0.1:{ports[1]}"),
        (r"store_dir: /data$", f"store_dir: {json.dumps(str(tmp_path))}"),
    ):
        text, count = re.subn(pattern, value, text, flags=re.MULTILINE)
        assert count == 1
    (tmp_path / "nats.conf").write_text(text)
    environment = {"POD_NAME": "nats-0", "NATS_PASSWORD": PASSWORD, "PATH": os.environ["PATH"]}
    environment |= {variable_of(service): f"{PASSWORD}-{service}" for service in USERS}
    process = Process([binary(), "--config", str(tmp_path / "nats.conf")], tmp_path / "nats.log", environment)
    process.launch()
    try:
        yield ports
    finally:
        process.end(seconds=20)


def variable_of(service: str) -> str:
    return f"NATS_{service.removeprefix('svc-').upper()}_PASSWORD"


def fetched(url: str) -> bytes:
    """The body of a 200; waits up to 10 s for it."""
    for _ in range(100):
        try:
            with urllib.request.urlopen(url, timeout=2) as response:
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
    found = json.loads(await asyncio.to_thread(fetched, f"http://127.0.0.1:{monitor}/jsz?config=true"))
    assert found["config"]["sync_always"] is True
    assert found["config"]["max_storage"] == 8 * 1024**3
    client = await nats.connect(f"nats://makeready:{PASSWORD}@127.0.0.1:{port}", allow_reconnect=False)
    try:
        jetstream = client.jetstream()
        await jetstream.add_stream(name="EVENTS", subjects=["events.>"])
        assert (await jetstream.publish("events.one", b"1")).seq == 1
    finally:
        await client.close()

    async def silent(_error: Exception) -> None:
        """The test expects the refusal."""

    with pytest.raises((nats.errors.Error, TimeoutError)):
        await nats.connect(
            f"nats://makeready:wrong@127.0.0.1:{port}", allow_reconnect=False, connect_timeout=2, error_cb=silent
        )


async def test_each_user_connects_and_may_do_what_it_may_elsewhere(server: tuple[int, int], as_read: Bundle) -> None:
    port, monitor = server
    await asyncio.to_thread(fetched, f"http://127.0.0.1:{monitor}/healthz")
    text = as_read.values("ConfigMap", "nats")["nats.conf"]
    blocks = re.findall(r"user: (\S+), password: \S+\s+permissions: \{(.*?)\n      \}", text, re.DOTALL)
    assert [name for name, _ in blocks] == list(USERS)
    for user, block in blocks:
        sides = re.findall(r"(publish|subscribe): \{\s*(allow|deny): \[(.*?)\]", block, re.DOTALL)
        found = {side: {verb: re.findall(r'"(.*?)"', subjects)} for side, verb, subjects in sides}
        assert found == permissions(user)
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


def test_the_passwords_and_the_urls_belong_together(bundle: Bundle) -> None:
    (nats_server,) = [workload for workload in bundle.workloads("StatefulSet") if workload.name == "nats"]
    told = bundle.environment(nats_server)
    (streams,) = [workload for workload in bundle.workloads("Deployment") if workload.name == "nats-streams"]
    url = bundle.environment(streams)["MAKEREADY_NATS_URL"]
    assert url == f"nats://makeready:{told['NATS_PASSWORD']}@nats:4222"
    console = [workload for workload in bundle.workloads("Deployment") if workload.name == CONSOLE]
    for workload in [*bundle.servers(), *console]:
        url = bundle.environment(workload)["MAKEREADY_NATS_URL"]
        assert url == f"nats://{workload.name}:{told[variable_of(workload.name)]}@nats:4222"
        assert f"user: {workload.name}, password: ${variable_of(workload.name)}" in as_text(bundle)
    assert len({told[variable_of(user)] for user in USERS} | {told["NATS_PASSWORD"]}) == len(USERS) + 1


def as_text(bundle: Bundle) -> str:
    (config,) = [m for m in bundle.of("ConfigMap") if "nats.conf" in m["data"]]
    text: str = config["data"]["nats.conf"]
    return text
