"""Each component on the example alone, all of them together, and the overlays for what other projects provide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from testkit.requirements import lacks

from . import schemas
from .manifests import GENERATED, K8S, Bundle, build, documents, kustomization, render, renderer
from .test_kustomizations import comparable
from .test_network import peer_of, reaches

COMPONENTS = sorted(path.parent.name for path in K8S.glob("components/*/kustomization.yaml"))
OVERLAY = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: makeready
resources: [../example]
components: [{}]
"""
# What an operator gives a component in addition to its files.
GIVEN = {"nats-tls": "secretGenerator: [{name: nats-tls, literals: [tls.crt=1, tls.key=2, ca.crt=3]}]\n"}
OVERLAYS = [
    "example-external-secrets",
    "example-external-secrets/store",
    "example-external-secrets/migrations",
    "example-external-secrets/operator",
    "example-cloudnative-pg",
    "example-cloudnative-pg/database",
    "example-cloudnative-pg/migrations",
]
ROOT = K8S.parents[1]


def overlay(k8s: Path, *components: str) -> Path:
    """An overlay of the example with these components."""
    folder = k8s / "overlays" / f"with-{'-'.join(components)}"
    if not folder.exists():
        folder.mkdir()
        text = OVERLAY.format(", ".join(f"../../components/{component}" for component in components))
        (folder / "kustomization.yaml").write_text(text + "".join(GIVEN.get(component, "") for component in components))
    return folder


@pytest.fixture(scope="module")
def folders(k8s_ha: Path) -> dict[str, Path]:
    """By name: an overlay with each component, one with all, and those in the project."""
    overlays = {name: overlay(k8s_ha, name) for name in COMPONENTS} | {"all": overlay(k8s_ha, *COMPONENTS)}
    return overlays | {name: k8s_ha / "overlays" / name for name in OVERLAYS}


@pytest.fixture(scope="module")
def built(folders: dict[str, Path]) -> dict[str, Bundle]:
    return {name: build(folder) for name, folder in folders.items()}


def test_the_components_that_platforms_ask_for_are_there() -> None:
    assert {"autoscaling", "gateway-api", "nats-ha", "nats-tls"} <= set(COMPONENTS)
    handbook = (ROOT / "deploy/README.md").read_text()
    assert [component for component in COMPONENTS if f"`components/{component}`" not in handbook] == []


@pytest.mark.parametrize("name", [*COMPONENTS, "all", *OVERLAYS])
def test_kubectl_renders_what_is_built_here(folders: dict[str, Path], built: dict[str, Bundle], name: str) -> None:
    """The other tests rely on a subset of kustomize that is written here."""
    command = renderer()
    if command is None:
        lacks("kubectl", "neither kubectl nor kustomize is on this machine")
    rendered = render(command, folders[name])
    generated = {manifest["metadata"]["name"] for kind in GENERATED for manifest in built[name].of(kind)}
    ours = sorted(comparable(manifest, generated) for manifest in built[name].manifests)
    assert ours == sorted(comparable(manifest, generated) for manifest in rendered.manifests)


def after_a_restore(bundle: Bundle, commands: list[str]) -> dict[str, int]:
    """The number of pods that each Deployment stands at once docs/restore.md was followed. As Kubernetes does it: an
    `apply` sets the number if the manifest has one, and an autoscaler leaves 0 alone."""
    manifests = {workload.name: workload.manifest["spec"] for workload in bundle.workloads("Deployment")}
    pods = {name: spec.get("replicas", 1) for name, spec in manifests.items()}
    for command in commands:
        if scaled := re.search(r"scale deployment --all --replicas=(\d+)", command):
            pods = dict.fromkeys(pods, int(scaled[1]))
        if re.search(r"kubectl apply -k \.(?:$|\s)", command):
            pods |= {name: spec["replicas"] for name, spec in manifests.items() if "replicas" in spec}
    for scaler in bundle.of("HorizontalPodAutoscaler"):
        name = scaler["spec"]["scaleTargetRef"]["name"]
        pods[name] = pods[name] and max(pods[name], scaler["spec"]["minReplicas"])
    return pods


def test_after_a_restore_everything_runs_again(built: dict[str, Bundle]) -> None:
    page = (ROOT / "docs/restore.md").read_text()
    commands = re.findall(r"`(kubectl [^`]+)`|^ *(kubectl .+)$", page, re.MULTILINE)
    steps = [inline or line for inline, line in commands]
    assert "--replicas=0" in steps[0] and any("apply -k ." in step for step in steps)
    for name, bundle in built.items():
        normal = after_a_restore(bundle, [])
        assert after_a_restore(bundle, steps) == normal and all(normal.values()), name


def every(built: dict[str, Bundle]) -> list[dict[str, Any]]:
    return [manifest for bundle in built.values() for manifest in bundle.manifests]


@pytest.mark.parametrize("version", schemas.VERSIONS)
def test_every_manifest_follows_the_schema_of_each_version(built: dict[str, Bundle], version: str) -> None:
    assert schemas.check(every(built), version) <= schemas.CUSTOM.keys()


def test_kinds_of_other_projects_follow_their_schemas(built: dict[str, Bundle]) -> None:
    custom = [custom_resource for custom_resource in every(built) if custom_resource["kind"] in schemas.CUSTOM]
    names = sorted({custom_resource["kind"] for custom_resource in custom})
    schemas_by_kind = schemas.custom_schemas()
    if schemas_by_kind is None:
        lacks("crds", f"not checked against their schemas, which are in no package: {', '.join(names)}")
    for manifest in custom:
        schema = schemas_by_kind[manifest["apiVersion"], manifest["kind"]]
        jsonschema.Draft202012Validator(schema).validate(manifest)


def test_the_handbook_names_each_kind_that_kubernetes_does_not_have() -> None:
    handbook = (ROOT / "deploy/README.md").read_text()
    assert [kind for kind in schemas.CUSTOM if f"`{kind}`" not in handbook] == []


def test_an_autoscaler_alone_says_how_many_pods_there_are(built: dict[str, Bundle]) -> None:
    for name in ("autoscaling", "all"):
        bundle = built[name]
        scalers = {scaler["metadata"]["name"]: scaler["spec"] for scaler in bundle.of("HorizontalPodAutoscaler")}
        deployments = {workload.name: workload for workload in bundle.workloads("Deployment")}
        scaled = {workload.name for workload in deployments.values() if workload.component in ("server", "web")}
        assert scalers.keys() == scaled
        for service, spec in scalers.items():
            assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": service}
            assert "replicas" not in deployments[service].manifest["spec"]
            assert 2 <= spec["minReplicas"] < spec["maxReplicas"]
        gateway = bundle.environment(deployments["gateway"])
        assert int(gateway["MAKEREADY_GATEWAY_PROCESSES"]) == scalers["gateway"]["maxReplicas"]
        assert {budget["metadata"]["name"] for budget in bundle.of("PodDisruptionBudget")} >= scaled


def test_the_connections_of_the_most_pods_fit_the_limit_that_the_component_names(built: dict[str, Bundle]) -> None:
    text = (K8S / "components/autoscaling/kustomization.yaml").read_text()
    match = re.search(r"--role-connections (\d+)", text)
    assert match and f"--role-connections {match[1]}`" in (ROOT / "deploy/README.md").read_text()
    bundle = built["autoscaling"]
    pool = int(bundle.values("ConfigMap", "makeready")["MAKEREADY_DATABASE_CONNECTIONS"]) + 1
    most = max(scaler["spec"]["maxReplicas"] for scaler in bundle.of("HorizontalPodAutoscaler"))
    assert (most + 1) * pool <= int(match[1])


def test_routes_lead_from_tls_to_the_gateway_and_the_console(built: dict[str, Bundle]) -> None:
    for name in ("gateway-api", "all", "example-external-secrets"):
        bundle = built[name]
        assert not bundle.of("Ingress")
        (gateway,) = bundle.of("Gateway")
        listeners = {listener["name"]: listener for listener in gateway["spec"]["listeners"]}
        assert all((listener["protocol"], listener["port"]) == ("HTTPS", 443) for listener in listeners.values())
        hosts = set()
        for route in bundle.of("HTTPRoute"):
            (parent,) = route["spec"]["parentRefs"]
            assert parent["name"] == gateway["metadata"]["name"]
            assert route["spec"]["hostnames"] == [listeners[parent["sectionName"]]["hostname"]]
            hosts |= set(route["spec"]["hostnames"])
            (rule,) = route["spec"]["rules"]
            (backend,) = rule["backendRefs"]
            ports = bundle.one("Service", backend["name"])["spec"]["ports"]
            assert backend["port"] in [port["port"] for port in ports]
        urls = bundle.values("ConfigMap", "console")
        assert hosts == {urls[setting].split("/")[2] for setting in ("MAKEREADY_API_URL", "MAKEREADY_CONSOLE_URL")}


def test_each_secret_of_an_installation_comes_from_the_store(built: dict[str, Bundle], as_read: Bundle) -> None:
    stored = built["example-external-secrets/store"]
    names = {secret["metadata"]["name"] for secret in stored.of("ExternalSecret")}
    assert names == {secret["metadata"]["name"] for secret in as_read.of("Secret")} - {"valkey"}
    used = set()
    for part in (
        "example-external-secrets",
        *(f"example-external-secrets/{overlay_part}" for overlay_part in ("migrations", "operator")),
    ):
        assert not built[part].of("Secret")
        used |= {reference for workload in built[part].workloads() for reference in secrets_of(workload.pod)}
    assert used == names


def secrets_of(pod: dict[str, Any]) -> set[str]:
    """The names of the Secrets that a pod uses."""
    named = set(re.findall(r"'secretName': '([a-z-]+)'", repr(pod)))
    return named | set(re.findall(r"'secretKeyRef': \{'name': '([a-z-]+)'", repr(pod)))


def test_pods_trust_and_reach_the_cluster_of_databases_alone(built: dict[str, Bundle]) -> None:
    (cluster,) = built["example-cloudnative-pg/database"].of("Cluster")
    name = cluster["metadata"]["name"]
    for part in ("example-cloudnative-pg", "example-cloudnative-pg/migrations"):
        for workload in built[part].workloads("Deployment", "Job"):
            volumes = {volume["name"]: volume for volume in workload.pod.get("volumes", [])}
            if "database-ca" in volumes:
                assert volumes["database-ca"]["secret"]["secretName"] == f"{name}-ca"
    policies = [
        policy
        for policy in built["example-cloudnative-pg"].of("NetworkPolicy")
        if policy["metadata"]["name"].endswith("-database")
    ]
    assert len(policies) == 6
    for policy in policies:
        (rule,) = policy["spec"]["egress"]
        assert rule["to"] == [{"podSelector": {"matchLabels": {"cnpg.io/cluster": name}}}]


def test_components_leave_the_policies_as_they_are(built: dict[str, Bundle]) -> None:
    for bundle in (built["all"], built["autoscaling"], built["gateway-api"]):
        for sender in bundle.workloads():
            reached = reaches(bundle, peer_of(bundle, sender.name), peer_of(bundle, "svc-tickets"), 9090)
            assert reached == (sender.component in ("server", "web")), sender.name


def test_no_folder_that_people_delete_has_the_namespace(k8s_ha: Path) -> None:
    """With it, all that is in it would go: volumes, too."""
    for path in sorted((k8s_ha / "overlays").rglob("kustomization.yaml")):
        if kustomization(path.parent)["kind"] != "Kustomization":
            continue
        kinds = {manifest["kind"] for manifest in build(path.parent).manifests}
        assert ("Namespace" in kinds) == (kinds == {"Namespace"}), path


def test_resources_that_components_add_are_ours(built: dict[str, Bundle]) -> None:
    """`kubectl get -l app.kubernetes.io/part-of=makeready` shows all of them."""
    added = {
        path
        for component in COMPONENTS
        for path in (K8S / "components" / component).glob("*.yaml")
        if path.name in resources(component)
    }
    for path in added:
        for manifest in documents(path):
            assert manifest["metadata"]["labels"]["app.kubernetes.io/part-of"] == "makeready", path
    assert added


def resources(component: str) -> list[str]:
    files: list[str] = yaml.safe_load((K8S / "components" / component / "kustomization.yaml").read_text()).get(
        "resources", []
    )
    return files
