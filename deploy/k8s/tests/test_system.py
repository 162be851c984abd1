"""With the manifests' own commands and settings the Jobs migrate, and all pods start, answer their probes and stop,
whichever of them begins.

On real PostgreSQL and NATS, on this machine: only hosts and ports are replaced.
"""

import asyncio
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from testkit import databases
from testkit.patience import PATIENCE_SECONDS
from testkit.plugin import PostgresServer, Server
from testkit.processes import Process, free_port
from testkit.warm import early_variables

from .manifests import Bundle, Workload, process

START_SECONDS = 60
DRAIN_SECONDS = 1
WAIT_SECONDS = 3
READY_SECONDS = 60  # they look twice a second


class Running(Process):
    """A container's process with its ports on this machine, and the Job that migrates its database."""

    def __init__(
        self, workload: Workload, environment: dict[str, str], ports: dict[int, int], job: Process, log: Path
    ) -> None:
        super().__init__([sys.executable, "-P", *workload.container["command"][1:]], log, environment, warm=True)
        self.workload = workload
        self.ports = ports
        self.job = job

    def passes(self, kind: str) -> bool:
        """Whether the container's probe of that kind succeeds."""
        probe = self.workload.container[kind]
        if "grpc" in probe:
            with grpc.insecure_channel(f"127.0.0.1:{self.ports[probe['grpc']['port']]}") as channel:
                request = health_pb2.HealthCheckRequest(service=probe["grpc"].get("service", ""))
                try:
                    answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=PATIENCE_SECONDS)
                except grpc.RpcError:
                    return False
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
        named = {port["name"]: port["containerPort"] for port in self.workload.container["ports"]}
        return self.answer(named[probe["httpGet"]["port"]], probe["httpGet"]["path"]) == 200

    def answer(self, container_port: int, path: str) -> int:
        """The status of the answer to a GET; 0 if there is none."""
        try:
            address = f"http://127.0.0.1:{self.ports[container_port]}{path}"
            with urllib.request.urlopen(address, timeout=PATIENCE_SECONDS) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    @property
    def waits(self) -> int:
        """How often its log says that it waits for migrations."""
        return self.log.read_text().count('"event": "waiting_for_migrations"')


@pytest.fixture
def system(
    as_read: Bundle, tmp_path: Path, postgres_server: PostgresServer, nats_server: Server
) -> Iterator[list[Running]]:
    """All pods with a database, on empty databases, not started."""
    (console,) = [workload for workload in as_read.workloads("Deployment") if workload.name == "console"]
    workloads = [*as_read.servers(), console]
    ports = {
        workload.name: {port["containerPort"]: free_port() for port in workload.container["ports"]}
        for workload in workloads
    }
    running = []
    for workload in workloads:
        of_pod = process(as_read, workload, tmp_path / workload.name)
        context = urlsplit(of_pod["MAKEREADY_DATABASE_URL"]).path.strip("/")
        urls = databases.environment(postgres_server.create_database(f"k8s_system_{context}"))
        (job,) = [job for job in as_read.workloads("Job") if job.name == f"{workload.name}-migrate"]
        of_job = process(as_read, job, tmp_path / job.name)
        assert of_job.keys() >= {"MAKEREADY_DATABASE_URL", "MAKEREADY_DATABASE_OWNER_URL"}
        program = [sys.executable, "-P", *job.container["command"][1:]]
        migrating = Process(program, tmp_path / f"{job.name}.log", early_variables() | of_job | urls, warm=True)
        own_ports = ports[workload.name]
        environment = early_variables()
        environment |= {name: on_this_machine(name, value, own_ports, ports) for name, value in of_pod.items()}
        environment |= {name: value for name, value in urls.items() if name != "MAKEREADY_DATABASE_OWNER_URL"}
        environment["MAKEREADY_NATS_URL"] = nats_server.url
        environment["MAKEREADY_DRAIN_SECONDS"] = str(DRAIN_SECONDS)
        if "MAKEREADY_FILES_URL" in environment:
            environment["MAKEREADY_FILES_URL"] = (tmp_path / "files").as_uri()
        running.append(Running(workload, environment, own_ports, migrating, tmp_path / f"{workload.name}.log"))
    try:
        yield running
    finally:
        for pod in running:
            pod.kill()


def on_this_machine(name: str, value: str, own_ports: dict[int, int], ports: dict[str, dict[int, int]]) -> str:
    """A setting with its ports replaced by this machine's."""
    if target := re.fullmatch(r"dns:///([a-z-]+):(\d+)", value):
        return f"127.0.0.1:{ports[target[1]][int(target[2])]}"
    if listen := re.fullmatch(r"0\.0\.0\.0:(\d+)", value):
        return f"127.0.0.1:{own_ports[int(listen[1])]}"
    if value.isdigit() and name.endswith("_PORT"):
        return str(own_ports[int(value)])
    return "127.0.0.1" if value == "0.0.0.0" else value


def test_the_manifests_settings_start_a_system_that_answers_and_stops(system: list[Running]) -> None:
    for running in system:
        running.job.run_to_end()
        running.launch()
    for running in system:
        running.wait_until(lambda: running.passes("startupProbe"))  # noqa: B023 - called at once
        running.wait_until(lambda: running.passes("readinessProbe"))  # noqa: B023 - called at once
        assert running.passes("livenessProbe")
        annotations = running.workload.manifest["spec"]["template"]["metadata"]["annotations"]
        assert running.answer(int(annotations["prometheus.io/port"]), annotations["prometheus.io/path"]) == 200
    for running in reversed(system):
        running.send(signal.SIGTERM)
        running.wait_until(lambda: not running.passes("readinessProbe"))  # noqa: B023 - called at once
        grace = running.workload.pod["terminationGracePeriodSeconds"]
        assert running.wait(grace) == 0, running.log_tail()
        assert "Traceback" not in running.log.read_text()


def test_ready_only_on_its_schema(system: list[Running]) -> None:
    """Pods may start before their migrations: they live, are not ready, and become ready without a restart."""
    for running in system:
        running.launch()
    for running in system:
        running.wait_until(lambda: running.passes("startupProbe"))  # noqa: B023 - called at once
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        for running in system:
            assert running.is_running, running.log_tail()
            assert running.passes("livenessProbe") and not running.passes("readinessProbe"), running.workload.name
        time.sleep(0.5)
    (gateway,) = [running for running in system if running.workload.name == "gateway"]
    assert gateway.answer(8080, "/readyz") == 503 and gateway.answer(8080, "/api/v1/openapi.json") == 200
    assert gateway.answer(8080, "/api/v1/tickets") == 401

    for running in system:
        running.job.run_to_end()
    for running in system:
        running.wait_until(lambda: running.passes("readinessProbe"), READY_SECONDS)  # noqa: B023
        assert running.waits == 1, running.log_tail()
        assert '"level": "error"' not in running.log.read_text(), running.log_tail()

    # A later release has migrated meanwhile; pods of this one move to another node.
    for running in system:
        running.kill()
        asyncio.run(migrate_further(running.job.environment["MAKEREADY_DATABASE_OWNER_URL"]))
        running.launch()
    gateway.job.run_to_end()
    for running in system:
        running.wait_until(lambda: running.passes("readinessProbe"))  # noqa: B023 - called at once
        assert running.waits == 1, running.log_tail()


async def migrate_further(url: str) -> None:
    """Notes a revision of a later release, as its migration would."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("UPDATE alembic_version SET version_num = '9999_of_a_later_release'")
        await connection.execute("INSERT INTO schema_revision VALUES ('9999_of_a_later_release')")
    finally:
        await connection.close()
