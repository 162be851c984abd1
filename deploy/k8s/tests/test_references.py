"""References between manifests are correct: labels, ports, ConfigMaps, Secrets, Services."""

import re
import tomllib
from pathlib import Path

from .manifests import Bundle, Workload, kustomization, selects

CODE = ("gateway", "svc-catalog", "svc-tickets", "svc-occupancy", "svc-webhooks")
OPTIONAL = {"database-ca"}


def ports_of(workload: Workload) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in workload.container.get("ports", [])}


def test_every_service_of_ours_runs_and_migrates(bundle: Bundle) -> None:
    assert [workload.name for workload in bundle.servers()] == sorted(
        CODE, key=[w.name for w in bundle.servers()].index
    )
    assert {workload.name for workload in bundle.servers()} == set(CODE)
    for name in CODE:
        package = name.replace("-", "_")
        (server,) = [workload for workload in bundle.servers() if workload.name == name]
        (job,) = [workload for workload in bundle.workloads("Job") if workload.name == f"{name}-migrate"]
        assert server.container["command"] == ["python", "-m", package]
        assert job.container["command"] == ["python", "-m", package, "migrate"]
        assert server.labels["app.kubernetes.io/name"] == job.labels["app.kubernetes.io/name"] == name


def test_selectors_select_their_own_pods_alone(bundle: Bundle) -> None:
    for owner in bundle.workloads("Deployment", "StatefulSet"):
        selector = owner.manifest["spec"]["selector"]
        assert [w.name for w in bundle.workloads() if selects(selector, w.labels)] == [owner.name]
        for spread in owner.pod.get("topologySpreadConstraints", []):
            assert spread["labelSelector"] == selector
    for budget in bundle.of("PodDisruptionBudget"):
        chosen = [w.name for w in bundle.workloads() if selects(budget["spec"]["selector"], w.labels)]
        assert chosen == [budget["metadata"]["name"]]


def test_workloads_bear_the_labels_of_their_pods(bundle: Bundle) -> None:
    """The commands in deploy/README.md select Jobs and Deployments by these labels."""
    for workload in bundle.workloads():
        assert workload.manifest["metadata"]["labels"] == workload.labels
        assert workload.labels["app.kubernetes.io/part-of"] == "makeready"
    assert {job.component for job in bundle.workloads("Job") if job.name != "companies"} == {"migration"}


def test_every_workload_has_a_service_account_of_its_own_without_a_token(bundle: Bundle) -> None:
    accounts = {account["metadata"]["name"]: account for account in bundle.of("ServiceAccount")}
    assert {workload.pod["serviceAccountName"] for workload in bundle.workloads()} == accounts.keys()
    for workload in bundle.workloads():
        assert workload.pod["serviceAccountName"] == workload.name
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())


def test_workloads_say_the_version_that_they_run(bundle: Bundle, k8s: Path) -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    images = [
        named_image for folder in ("base", "overlays/example") for named_image in kustomization(k8s / folder)["images"]
    ]
    tags = {named_image["name"]: re.split("-[a-z]", named_image["newTag"])[0] for named_image in images} | {
        "makeready": project["version"]
    }
    for workload in bundle.workloads():
        image = re.split("[:@]", workload.container["image"].rpartition("/")[2])[0]
        assert workload.labels["app.kubernetes.io/version"] == tags[image], workload.name


def test_services_lead_to_ports_that_one_workload_opens(bundle: Bundle) -> None:
    for service in bundle.of("Service"):
        selector = {"matchLabels": service["spec"]["selector"]}
        (chosen,) = [workload for workload in bundle.workloads() if selects(selector, workload.labels)]
        assert service["metadata"]["name"] in (chosen.name, f"{chosen.name}-http")
        for port in service["spec"]["ports"]:
            assert ports_of(chosen)[port["targetPort"]] == port["port"]


def test_grpc_services_are_headless(bundle: Bundle) -> None:
    for name in CODE:
        service = bundle.one("Service", name)["spec"]
        assert service["clusterIP"] == "None"
        assert [port["name"] for port in service["ports"]] == ["grpc"]


def test_probes_and_annotations_name_open_ports(bundle: Bundle) -> None:
    for workload in bundle.workloads("Deployment", "StatefulSet"):
        named = ports_of(workload)
        assert {"readinessProbe", "livenessProbe"} <= workload.container.keys(), workload.name
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            probe = workload.container.get(kind, {})
            if "grpc" in probe:
                assert probe["grpc"]["port"] == named["grpc"]
            for way in ("httpGet", "tcpSocket"):
                if way in probe:
                    assert probe[way]["port"] in named
    for server in bundle.servers():
        annotations = server.manifest["spec"]["template"]["metadata"]["annotations"]
        assert annotations["prometheus.io/scrape"] == "true"
        assert int(annotations["prometheus.io/port"]) == ports_of(server)["metrics"]
        assert annotations["prometheus.io/path"] == "/metrics"


def test_every_key_of_a_configmap_or_secret_that_is_used_is_there(bundle: Bundle) -> None:
    for workload in bundle.workloads():
        bundle.environment(workload)  # raises if one is missing
        bundle.files(workload)
        mounted = {mount["name"] for mount in workload.container.get("volumeMounts", [])}
        claimed = {claim["metadata"]["name"] for claim in workload.manifest["spec"].get("volumeClaimTemplates", [])}
        assert mounted == {volume["name"] for volume in workload.pod.get("volumes", [])} | claimed, workload.name


def test_every_key_that_is_made_is_used(bundle: Bundle) -> None:
    used = set()
    for workload in bundle.workloads():
        for source in workload.container.get("envFrom", []):
            name = source["configMapRef"]["name"]
            used |= {(name, key) for key in bundle.values("ConfigMap", name)}
        for variable in workload.container.get("env", []):
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            if reference:
                used.add((reference["name"], reference["key"]))
        for volume in workload.pod.get("volumes", []):
            for kind, field, word in (("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName")):
                if field in volume:
                    name = volume[field][word]
                    items = volume[field].get("items") or [{"key": key} for key in bundle.values(kind, name)]
                    used |= {(name, item["key"]) for item in items}
    generated = {
        (manifest["metadata"]["name"], key)
        for kind in ("ConfigMap", "Secret")
        for manifest in bundle.of(kind)
        for key in bundle.values(kind, manifest["metadata"]["name"])
    }
    assert generated - used - patched_in(bundle) == set()


def patched_in(bundle: Bundle) -> set[tuple[str, str]]:
    """The keys of Secrets that only a patch of the overlay uses."""
    return {
        (manifest["metadata"]["name"], "url")
        for manifest in bundle.of("Secret")
        if manifest["metadata"]["name"] == "valkey"
    }


def test_a_service_is_given_its_own_secrets_alone(bundle: Bundle) -> None:
    shared = {"nats", "nats-users", "valkey", "database-ca"}
    for workload in bundle.workloads():
        names = {
            variable["valueFrom"]["secretKeyRef"]["name"]
            for variable in workload.container.get("env", [])
            if "secretKeyRef" in variable.get("valueFrom", {})
        }
        names |= {volume["secret"]["secretName"] for volume in workload.pod.get("volumes", []) if "secret" in volume}
        service = workload.labels["app.kubernetes.io/name"]
        # The password of the tables' owner is in no pod that serves.
        own_secrets = {service, f"{service}-owner"} if workload.component == "migration" else {service}
        assert {without_digest(name) for name in names} - shared <= own_secrets, workload.name
        keys = [path for path in bundle.files(workload) if path.endswith(".jwk")]
        assert len(keys) == (1 if workload.component in ("server", "web", "operator") else 0)


def without_digest(name: str) -> str:
    """A generated name without its last part, if that is a digest of ten characters."""
    head, _, tail = name.rpartition("-")
    return head if len(tail) == 10 else name


def test_the_ingress_leads_to_the_gateway_over_tls_alone(bundle: Bundle) -> None:
    (ingress,) = bundle.of("Ingress")
    hosts = [rule["host"] for rule in ingress["spec"]["rules"]]
    assert [host for entry in ingress["spec"]["tls"] for host in entry["hosts"]] == hosts
    assert all(entry["secretName"] for entry in ingress["spec"]["tls"])
    annotations = ingress["metadata"]["annotations"]
    assert annotations["traefik.ingress.kubernetes.io/router.entrypoints"] == "websecure"
    assert annotations["kubernetes.io/ingress.allow-http"] == "false"
    for rule in ingress["spec"]["rules"]:
        for path in rule["http"]["paths"]:
            service = path["backend"]["service"]
            ports = bundle.one("Service", service["name"])["spec"]["ports"]
            assert service["port"]["name"] in [port["name"] for port in ports]
