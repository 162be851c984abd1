"""Each process has every setting that its code reads, and no other."""

import importlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest

from chassis.runtime.settings import Environment, SettingsError

from .manifests import Bundle, process

CODE = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")


class Recorded(Mapping[str, str]):
    """An environment that records the names that were read."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values_ = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def config_of(name: str) -> ModuleType:
    return importlib.import_module(f"{name.replace('-', '_')}.config")


@pytest.mark.parametrize("name", CODE)
def test_the_code_accepts_its_settings_and_reads_each(as_rendered: Bundle, tmp_path: Path, name: str) -> None:
    accepts(as_rendered, name, tmp_path)


@pytest.mark.parametrize("name", CODE)
def test_the_code_accepts_its_settings_before_patches(as_read: Bundle, tmp_path: Path, name: str) -> None:
    accepts(as_read, name, tmp_path)


def accepts(bundle: Bundle, name: str, root: Path) -> None:
    config = config_of(name)
    (server,) = [workload for workload in bundle.servers() if workload.name == name]
    environment = Recorded(process(bundle, server, root))
    settings = config.read(Environment(environment))
    assert environment.keys() - environment.read == set(), "these are set, but nothing reads them"
    service = getattr(settings, "service", settings)
    assert len(service.addresses) == len(CODE)
    ports = {port["name"]: port["containerPort"] for port in server.container["ports"]}
    assert service.grpc_listen == f"0.0.0.0:{ports['grpc']}"
    assert service.metrics_listen == f"0.0.0.0:{ports['metrics']}"
    assert service.drain_seconds > 0
    assert service.links_url.startswith("https://")
    if name == "gateway":
        assert settings.api_port == ports["api"]
        assert settings.api_url.startswith("https://")
        assert settings.api_url.endswith("/api/v1")
    for other in CODE:
        (port,) = bundle.one("Service", other)["spec"]["ports"]
        assert service.address(other) == f"dns:///{other}:{port['port']}"


def test_the_console_accepts_its_settings_and_reads_each(bundle: Bundle, tmp_path: Path) -> None:
    (web,) = [workload for workload in bundle.workloads("Deployment") if workload.name == "console"]
    environment = Recorded(process(bundle, web, tmp_path))
    settings = config_of("console").read(Environment(environment))
    assert environment.keys() - environment.read == set(), "these are set, but nothing reads them"
    ports = {port["name"]: port["containerPort"] for port in web.container["ports"]}
    assert (settings.port, settings.metrics_listen) == (ports["http"], f"0.0.0.0:{ports['metrics']}")
    assert settings.url.startswith("https://") and settings.api_url.endswith("/api/v1") and settings.trusted_proxies
    assert settings.drain_seconds > 0
    assert settings.addresses == {name: f"dns:///{name}:9090" for name in CODE}
    (server,) = [workload for workload in bundle.servers() if workload.name == "gateway"]
    assert bundle.environment(server)["MAKEREADY_CONSOLE_URL"] == settings.url


@pytest.mark.parametrize("name", CODE)
def test_identities_are_the_services_own_and_the_ring_holds_all(bundle: Bundle, tmp_path: Path, name: str) -> None:
    from chassis.auth.identity import TokenSigner, TokenVerifier

    (server,) = [workload for workload in bundle.servers() if workload.name == name]
    environment = process(bundle, server, tmp_path)
    issuer = TokenSigner(Path(environment["MAKEREADY_IDENTITY_KEY_FILE"]))
    ring_file = Path(environment["MAKEREADY_IDENTITY_RING_FILE"])
    assert issuer.name == name
    assert (
        TokenVerifier(ring_file, audience="svc-catalog").verify(issuer.token("svc-catalog", issuer.as_service())).issuer
        == name
    )
    keys = json.loads(ring_file.read_text())["keys"]
    assert {key["iss"] for key in keys} == {*CODE, "console", "operator"}
    assert not any("d" in key for key in keys), "a private key in the ring"


def test_the_gateway_does_not_start_before_an_overlay_says_where_tls_ends(as_read: Bundle, tmp_path: Path) -> None:
    config = config_of("gateway")
    (server,) = [workload for workload in as_read.servers() if workload.name == "gateway"]
    environment = process(as_read, server, tmp_path)
    del environment["MAKEREADY_TLS_ENDS_AT_INGRESS"]
    with pytest.raises(SettingsError, match="MAKEREADY_TLS_ENDS_AT_INGRESS"):
        config.read(Environment(environment))


def test_no_pod_lets_sandboxes_have_local_receivers(bundle: Bundle, tmp_path: Path) -> None:
    for workload in bundle.workloads("Deployment", "StatefulSet", "Job", "CronJob", "Pod"):
        assert "MAKEREADY_SANDBOX_LOCAL_DESTINATIONS" not in bundle.environment(workload), workload.name
    (server,) = [workload for workload in bundle.servers() if workload.name == "svc-webhooks"]
    settings = config_of("svc-webhooks").read(Environment(process(bundle, server, tmp_path)))
    assert settings.local_destinations is False


def test_the_base_says_neither_where_tls_ends_nor_a_public_name(base: Bundle) -> None:
    environment = {**base.values("ConfigMap", "gateway"), **base.values("ConfigMap", "console")}
    environment |= base.values("ConfigMap", "makeready")
    assert not {"MAKEREADY_TLS_ENDS_AT_INGRESS", "MAKEREADY_API_URL", "MAKEREADY_CONSOLE_URL"} & environment.keys()


def test_the_operators_command_line_finds_every_service(bundle: Bundle, tmp_path: Path) -> None:
    system = importlib.import_module("makeready_cli.system")
    from chassis.auth.identity import TokenSigner

    (pod,) = bundle.workloads("Pod")
    runtime = system.runtime(process(bundle, pod, tmp_path))
    (gateway,) = [workload for workload in bundle.servers() if workload.name == "gateway"]
    environment = bundle.environment(gateway)
    addresses = {name: environment[f"MAKEREADY_{name.removeprefix('svc-').upper()}_ADDRESS"] for name in CODE}
    assert runtime.services == addresses
    assert TokenSigner(tmp_path / str(runtime.operator_key_file).lstrip("/")).name == "operator"


def test_migrations_get_the_settings_of_the_database_alone_by_both_roles(bundle: Bundle) -> None:
    for job in bundle.workloads("Job"):
        if job.component != "migration":
            continue
        (server,) = [workload for workload in bundle.workloads("Deployment") if f"{workload.name}-migrate" == job.name]
        environment = bundle.environment(job)
        assert environment.keys() == {"MAKEREADY_DATABASE_URL", "MAKEREADY_DATABASE_OWNER_URL"}
        assert environment["MAKEREADY_DATABASE_URL"] == bundle.environment(server)["MAKEREADY_DATABASE_URL"]
        url, owner_url = (
            urlsplit(environment[name]) for name in ("MAKEREADY_DATABASE_URL", "MAKEREADY_DATABASE_OWNER_URL")
        )
        assert owner_url.username == f"{url.username}_owner"
        assert owner_url.path == url.path and owner_url.password != url.password
