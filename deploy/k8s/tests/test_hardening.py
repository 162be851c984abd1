"""Every pod is confined, has limits, and has the time that it needs to stop."""

import re
from pathlib import Path

from chassis.app import rpc_server
from chassis.http import port

from .manifests import Bundle, Workload

SIZES = {"Mi": 1, "Gi": 1024}
# After the drain and the grace for calls under way: aborted handlers, NATS, the database.
CLOSING_SECONDS = 2 + 2 + 5
MEGABYTES_AT_REST = 90
NAMES_CACHED_SECONDS = 30  # by NodeLocal DNSCache


def megabytes(quantity: str) -> int:
    match = re.fullmatch(r"(\d+)(Mi|Gi)", quantity)
    assert match, quantity
    return int(match[1]) * SIZES[match[2]]


def test_pods_run_unprivileged_and_can_change_nothing(bundle: Bundle) -> None:
    for workload in bundle.workloads():
        pod, container = workload.pod["securityContext"], workload.container["securityContext"]
        assert pod["runAsNonRoot"] is True
        assert pod["runAsUser"] >= 10000
        assert pod["runAsGroup"] >= 10000
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["allowPrivilegeEscalation"] is False
        assert container["readOnlyRootFilesystem"] is True
        assert container["capabilities"] == {"drop": ["ALL"]}
        assert workload.pod["automountServiceAccountToken"] is False
        assert workload.pod["enableServiceLinks"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & workload.pod.keys()
        assert all("hostPath" not in volume for volume in workload.pod.get("volumes", []))


def test_the_image_and_the_pods_agree_on_the_user(bundle: Bundle) -> None:
    dockerfile = (Path(__file__).parents[2] / "Dockerfile").read_text()
    users = {
        f"{w.pod['securityContext']['runAsUser']}:{w.pod['securityContext']['runAsGroup']}" for w in bundle.servers()
    }
    assert re.findall(r"^USER (.+)$", dockerfile, re.MULTILINE) == list(users)


def test_resources_are_asked_for_and_bounded(bundle: Bundle) -> None:
    for workload in bundle.workloads():
        requests, limits = workload.container["resources"]["requests"], workload.container["resources"]["limits"]
        assert requests.keys() == limits.keys() == {"cpu", "memory"}
        assert megabytes(requests["memory"]) <= megabytes(limits["memory"])
        if workload.package:
            assert megabytes(requests["memory"]) > MEGABYTES_AT_REST
            assert megabytes(limits["memory"]) > 3 * MEGABYTES_AT_REST


def test_servers_drain_and_then_have_time_to_finish(bundle: Bundle) -> None:
    for workload in bundle.servers():
        drain = int(bundle.environment(workload)["MAKEREADY_DRAIN_SECONDS"])
        assert drain >= readiness_seconds(workload)
        needed: float = drain + rpc_server.GRACE_SECONDS + CLOSING_SECONDS
        if workload.name == "gateway":
            needed += 2 * port.GRACE_SECONDS  # its two HTTP ports close one after the other
        assert workload.pod["terminationGracePeriodSeconds"] > needed


def test_a_pods_successor_is_in_every_cache_of_names_before_the_pod_goes(bundle: Bundle) -> None:
    for workload in bundle.servers():
        ready = workload.manifest["spec"]["minReadySeconds"]
        drain = int(bundle.environment(workload)["MAKEREADY_DRAIN_SECONDS"])
        assert ready + drain > NAMES_CACHED_SECONDS + 1


def readiness_seconds(workload: Workload) -> int:
    """The longest time until Kubernetes notices that a pod reports not ready."""
    probe = workload.container["readinessProbe"]
    seconds: int = probe["periodSeconds"] * probe["failureThreshold"]
    return seconds


def test_slow_starts_are_awaited_as_long_as_the_database_is(bundle: Bundle) -> None:
    for workload in bundle.servers():
        probe = workload.container["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] > 60


def test_releases_and_drains_leave_a_pod_standing(bundle: Bundle) -> None:
    for workload in bundle.servers():
        assert workload.manifest["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        keys = {spread["topologyKey"] for spread in workload.pod["topologySpreadConstraints"]}
        assert keys == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    budgets = {budget["metadata"]["name"]: budget["spec"] for budget in bundle.of("PodDisruptionBudget")}
    assert budgets.keys() == {workload.name for workload in bundle.workloads("Deployment", "StatefulSet")}
    assert all(budget["maxUnavailable"] == 1 for budget in budgets.values())


def test_replicas_of_the_gateway_share_their_count_of_requests(bundle: Bundle, base: Bundle) -> None:
    (gateway,) = [workload for workload in bundle.servers() if workload.name == "gateway"]
    environment = bundle.environment(gateway)
    replicas = gateway.manifest["spec"]["replicas"]
    assert int(environment.get("MAKEREADY_GATEWAY_PROCESSES", "1")) == replicas
    assert replicas == 1 or environment["MAKEREADY_RATE_LIMIT_URL"].startswith("valkey://")
    assert base.one("Deployment", "gateway")["spec"]["replicas"] == 1


def test_every_server_has_the_same_shape(bundle: Bundle) -> None:
    """The pods of two services differ only in name and secrets, and at the gateway in the probes."""
    first, *others = [shape(workload) for workload in bundle.servers()]
    assert all(other == first for other in others)


def shape(workload: Workload) -> object:
    text = repr(
        {
            **{key: value for key, value in workload.pod.items() if key not in ("containers", "volumes")},
            "container": {key: workload.container[key] for key in ("securityContext", "resources", "volumeMounts")},
            "replicas": workload.manifest["spec"]["replicas"],
        }
    )
    return text.replace(workload.name, "NAME")
