"""With the manifests' own commands and settings the Jobs migrate, and the services start, answer their probes and stop.

On real PostgreSQL and NATS, on this machine: only hosts and ports are replaced.
"""

import re
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

from testkit import databases
from testkit.plugin import PostgresServer, Server
from testkit.processes import Process, free_port

from .manifests import Bundle, Workload, process

START_SECONDS = 60
DRAIN_SECONDS = 1


class Running(Process):
    """A service's process, and its container's ports on this machine."""

    def __init__(self, workload: Workload, environment: dict[str, str], ports: dict[int, int], log: Path) -> None:
        super().__init__([sys.executable, "-P", *workload.container["command"][1:]], log, environment)
        self.workload = workload
        self.ports = ports

    def passes(self, kind: str) -> bool:
        """Whether the container's probe of that kind succeeds."""
        probe = self.workload.container[kind]
        if "grpc" in probe:
            with grpc.insecure_channel(f"127.0.0.1:{self.ports[probe['grpc']['port']]}") as channel:
                try:
                    answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=2)
                except grpc.RpcError:
                    return False
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
        named = {port["name"]: port["containerPort"] for port in self.workload.container["ports"]}
        return self.answers(named[probe["httpGet"]["port"]], probe["httpGet"]["path"])

    def answers(self, container_port: int, path: str) -> bool:
        """Whether a GET gets a 200."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[container_port]}{path}", timeout=2) as response:
                return bool(response.status == 200)
        except OSError:
            return False


@pytest.fixture
def system(
    as_read: Bundle, tmp_path: Path, postgres_server: PostgresServer, nats_server: Server
) -> Iterator[list[Running]]:
    """All services, migrated, not started."""
    ports = {
        workload.name: {port["containerPort"]: free_port() for port in workload.container["ports"]}
        for workload in as_read.servers()
    }
    running = []
    for server in as_read.servers():
        given = process(as_read, server, tmp_path / server.name)
        context = urlsplit(given["MAKEREADY_DATABASE_URL"]).path.strip("/")
        urls = databases.environment(postgres_server.create_database(f"k8s_system_{context}"))
        (job,) = [job for job in as_read.workloads("Job") if job.name == f"{server.name}-migrate"]
        process_environment = process(as_read, job, tmp_path / job.name)
        assert process_environment.keys() >= {"MAKEREADY_DATABASE_URL", "MAKEREADY_DATABASE_OWNER_URL"}
        process_environment |= urls
        program = [sys.executable, "-P", *job.container["command"][1:]]
        done = subprocess.run(program, env=process_environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        own = ports[server.name]
        environment = {name: on_this_machine(name, value, own, ports) for name, value in given.items()}
        environment |= {name: value for name, value in urls.items() if name != "MAKEREADY_DATABASE_OWNER_URL"}
        environment["MAKEREADY_NATS_URL"] = nats_server.url
        environment["MAKEREADY_DRAIN_SECONDS"] = str(DRAIN_SECONDS)
        running.append(Running(server, environment, own, tmp_path / f"{server.name}.log"))
    try:
        yield running
    finally:
        for one in running:
            one.kill()


def on_this_machine(name: str, value: str, own: dict[int, int], ports: dict[str, dict[int, int]]) -> str:
    """A setting with its ports replaced by this machine's."""
    if target := re.fullmatch(r"dns:///([a-z-]+):(\d+)", value):
        return f"127.0.0.1:{ports[target[1]][int(target[2])]}"
    if listen := re.fullmatch(r"0\.0\.0\.0:(\d+)", value):
        return f"127.0.0.1:{own[int(listen[1])]}"
    if value.isdigit() and name.endswith("_PORT"):
        return str(own[int(value)])
    return "127.0.0.1" if value == "0.0.0.0" else value


def test_the_manifests_settings_start_a_system_that_answers_and_stops(system: list[Running]) -> None:
    for running in system:
        running.launch()
    for running in system:
        running.wait_until(lambda: running.passes("startupProbe"))  # noqa: B023 - called at once
        running.wait_until(lambda: running.passes("readinessProbe"))  # noqa: B023 - called at once
        assert running.passes("livenessProbe")
        annotations = running.workload.manifest["spec"]["template"]["metadata"]["annotations"]
        assert running.answers(int(annotations["prometheus.io/port"]), annotations["prometheus.io/path"])
    for running in reversed(system):
        running.send(signal.SIGTERM)
        running.wait_until(lambda: not running.passes("readinessProbe"), DRAIN_SECONDS + 2)  # noqa: B023 - called at once
        grace = running.workload.pod["terminationGracePeriodSeconds"]
        assert running.wait(grace) == 0, running.log_tail()
        assert "Traceback" not in running.log.read_text()
