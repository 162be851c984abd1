"""The manifests for the tests: read file by file, or rendered by kubectl or kustomize if one is installed."""

import base64
import contextlib
import copy
import functools
import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from makeready_cli import program
from makeready_cli.parsers import Parser

Manifest = dict[str, Any]
K8S = Path(__file__).parents[1]
# The kinds that generators make, and the field with their values.
GENERATED = {"ConfigMap": "data", "Secret": "stringData"}
# What names a part of a list, in the order in which it is looked for.
MERGE_KEYS = ("mountPath", "containerPort", "topologyKey", "name")
RENDERERS = (("kubectl", "kustomize"), ("kustomize", "build"))
# libyaml reads a manifest in a tenth of the time.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Workload:
    """A manifest that makes pods."""

    kind: str
    name: str
    labels: dict[str, str]
    """The labels of its pods."""
    pod: Manifest
    """The pods' spec."""
    manifest: Manifest

    @property
    def component(self) -> str:
        return self.labels["app.kubernetes.io/component"]

    @property
    def container(self) -> Manifest:
        """The only container."""
        (container,) = self.pod["containers"]
        only: Manifest = container
        return only

    @property
    def package(self) -> str | None:
        """The package that the container runs with `python -m`; None if it runs something else."""
        command = self.container.get("command", [])
        return command[2] if command[:2] == ["python", "-m"] else None


@dataclass(frozen=True)
class Bundle:
    """All manifests of one installation."""

    manifests: tuple[Manifest, ...]

    def of(self, kind: str) -> list[Manifest]:
        return [manifest for manifest in self.manifests if manifest["kind"] == kind]

    def one(self, kind: str, name: str) -> Manifest:
        (manifest_of_name,) = [manifest for manifest in self.of(kind) if manifest["metadata"]["name"] == name]
        return manifest_of_name

    def workloads(self, *kinds: str) -> list[Workload]:
        workloads = []
        for manifest in self.manifests:
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            if kind == "Pod":
                workloads.append(Workload(kind, name, manifest["metadata"]["labels"], manifest["spec"], manifest))
            elif kind in ("Deployment", "StatefulSet", "Job"):
                template = manifest["spec"]["template"]
                workloads.append(Workload(kind, name, template["metadata"]["labels"], template["spec"], manifest))
        return [workload for workload in workloads if not kinds or workload.kind in kinds]

    def servers(self) -> list[Workload]:
        """The services' Deployments."""
        return [workload for workload in self.workloads("Deployment") if workload.component == "server"]

    def values(self, kind: str, name: str) -> dict[str, str]:
        """The values of a ConfigMap or a Secret."""
        manifest = self.one(kind, name)
        if kind == "Secret" and "data" in manifest:
            return {key: base64.b64decode(value).decode() for key, value in manifest["data"].items()}
        return dict(manifest[GENERATED[kind]])

    def environment(self, workload: Workload) -> dict[str, str]:
        """The environment of the container's process, without fields of the pod."""
        environment: dict[str, str] = {}
        for source in workload.container.get("envFrom", []):
            environment |= self.values("ConfigMap", source["configMapRef"]["name"])
        for variable in workload.container.get("env", []):
            if "value" in variable:
                environment[variable["name"]] = variable["value"]
            elif "secretKeyRef" in variable["valueFrom"]:
                reference = variable["valueFrom"]["secretKeyRef"]
                values = self.values("Secret", reference["name"])
                if reference["key"] in values or not reference.get("optional"):
                    environment[variable["name"]] = values[reference["key"]]
        return environment

    def files(self, workload: Workload) -> dict[str, str]:
        """The files that ConfigMaps and Secrets mount into the container, by path."""
        volumes = {volume["name"]: volume for volume in workload.pod.get("volumes", [])}
        files: dict[str, str] = {}
        for mount in workload.container.get("volumeMounts", []):
            volume = volumes.get(mount["name"], {})
            if "configMap" in volume:
                source, values = volume["configMap"], self.values("ConfigMap", volume["configMap"]["name"])
            elif "secret" in volume:
                source, values = volume["secret"], self.values("Secret", volume["secret"]["secretName"])
            else:
                continue
            items = source.get("items") or [{"key": key, "path": key} for key in values]
            files |= {f"{mount['mountPath']}/{item['path']}": values[item["key"]] for item in items}
        return files


def selects(selector: Manifest, labels: dict[str, str]) -> bool:
    """Whether a label selector selects pods with these labels."""
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return True


def kustomization(folder: Path) -> Manifest:
    settings: Manifest = yaml.load((folder / "kustomization.yaml").read_text(), LOADER)
    return settings


def documents(path: Path) -> list[Manifest]:
    return [document for document in yaml.load_all(path.read_text(), LOADER) if document is not None]


def read(*folders: Path) -> Bundle:
    """The manifests that kustomizations list, and the ConfigMaps and Secrets that they generate, without patches."""
    manifests: dict[tuple[str, str], Manifest] = {}
    for folder in folders:
        for manifest in _read(folder):
            key = (manifest["kind"], manifest["metadata"]["name"])
            if key in manifests and key[0] in GENERATED:
                field = GENERATED[key[0]]
                manifests[key] = {**manifest, field: manifests[key][field] | manifest[field]}
            else:
                manifests[key] = manifest
    return Bundle(tuple(manifests.values()))


def build(*folders: Path) -> Bundle:
    """As `read`, with components, patches and numbers of replicas applied, in kustomize's order. Names have no digests,
    and neither namespaces nor images are set."""
    manifests: dict[tuple[str, str], Manifest] = {}
    for folder in folders:
        _build(folder, manifests)
    return Bundle(tuple(manifests.values()))


def _build(folder: Path, manifests: dict[tuple[str, str], Manifest]) -> None:
    """Adds the folder's manifests to those found, and changes these as it says; a component sees its parent's."""
    settings = kustomization(folder)
    for entry in settings.get("resources", []):
        path = folder / entry
        if path.is_dir():
            _build(path, manifests)
        else:
            manifests |= {(document["kind"], document["metadata"]["name"]): document for document in documents(path)}
    for entry in settings.get("components", []):
        assert kustomization(folder / entry)["kind"] == "Component", entry
        _build(folder / entry, manifests)
    for manifest in _generators(folder, settings):
        key, field = (manifest["kind"], manifest["metadata"]["name"]), GENERATED[manifest["kind"]]
        manifests[key] = {**manifest, field: manifests.get(key, {}).get(field, {}) | manifest[field]}
    for patch in settings.get("patches", []):
        change: Any = documents(folder / patch["path"])[0]
        target = patch.get("target") or {"kind": change["kind"], "name": change["metadata"]["name"]}
        keys = [key for key in manifests if key[0] == target["kind"] and re.fullmatch(target["name"], key[1])]
        assert keys or "target" in patch, patch
        for key in keys:
            if isinstance(change, list):
                manifests[key] = _with_operations(manifests[key], change)
            elif change.get("$patch") == "delete":
                del manifests[key]
            else:
                manifests[key] = merged(manifests[key], {"spec": change["spec"]})
    for entry in settings.get("replicas", []):
        manifests["Deployment", entry["name"]]["spec"]["replicas"] = entry["count"]


def merged(value: Any, change: Any) -> Any:
    """A strategic merge: mappings by key, lists of named parts by their name, everything else is replaced."""
    if isinstance(value, dict) and isinstance(change, dict):
        return {**value, **{key: merged(value[key], part) if key in value else part for key, part in change.items()}}
    if isinstance(value, list) and isinstance(change, list) and change and isinstance(change[0], dict):
        name = next(merge_key for merge_key in MERGE_KEYS if merge_key in change[0])
        parts = {part[name]: part for part in value}
        return list((parts | {part[name]: merged(parts.get(part[name], {}), part) for part in change}).values())
    return change


def _with_operations(manifest: Manifest, operations: list[Manifest]) -> Manifest:
    """A JSON patch's `add`, `replace` and `remove`."""
    manifest = copy.deepcopy(manifest)
    for operation in operations:
        assert operation["op"] in ("add", "replace", "remove"), operation
        *steps, last = operation["path"].strip("/").split("/")
        place: Any = manifest
        for step in steps:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if operation["op"] == "remove":
            del place[int(last) if isinstance(place, list) else last]
        elif isinstance(place, dict):
            assert operation["op"] == "add" or last in place, operation
            place[last] = operation["value"]
        elif last == "-":
            place.append(operation["value"])
        else:
            place[int(last)] = operation["value"]
    return manifest


def _read(folder: Path) -> Iterator[Manifest]:
    settings = kustomization(folder)
    for entry in [*settings.get("resources", []), *settings.get("components", [])]:
        path = folder / entry
        yield from _read(path) if path.is_dir() else documents(path)
    yield from _generators(folder, settings)


def _generators(folder: Path, settings: Manifest) -> Iterator[Manifest]:
    for kind, field in GENERATED.items():
        for generator in settings.get(f"{kind[0].lower()}{kind[1:]}Generator", []):
            metadata: Manifest = {"name": generator["name"]}
            if labels := settings.get("generatorOptions", {}).get("labels"):
                metadata["labels"] = labels
            values = dict(_generated(folder, generator))
            yield {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: values}


def _generated(folder: Path, generator: Manifest) -> Iterator[tuple[str, str]]:
    lines = list(generator.get("literals", []))
    for name in generator.get("envs", []):
        lines += [line for line in (folder / name).read_text().splitlines() if line and not line.startswith("#")]
    for line in lines:
        key, _, value = line.partition("=")
        yield key, value
    for entry in generator.get("files", []):
        key, equals, name = entry.partition("=")
        path = folder / (name if equals else key)
        yield (key if equals else path.name), path.read_text()


def renderer() -> tuple[str, ...] | None:
    """The command that renders a kustomization; None if this machine has none."""
    for command, verb in RENDERERS:
        if path := shutil.which(command):
            return (path, verb)
    return None


def render(command: tuple[str, ...], *folders: Path) -> Bundle:
    """The manifests as kubectl would apply them."""
    manifests: dict[tuple[str, str], Manifest] = {}
    for folder in folders:
        done = subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert not done.stderr, done.stderr  # warnings about deprecated fields
        for manifest in yaml.load_all(done.stdout, LOADER):
            manifests[manifest["kind"], manifest["metadata"]["name"]] = manifest
    return Bundle(tuple(manifests.values()))


def make_secrets(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs `makeready secrets init`."""
    return run_secrets("init", str(folder), *arguments)


def run_secrets(*words: str) -> "subprocess.CompletedProcess[str]":
    """Runs `makeready secrets` in this process, which saves half a second; on a thread, because tests have a loop."""
    streams = [io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2)]

    def run() -> int:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            try:
                return program.main(["secrets", *words], _tree())
            except SystemExit as ended:
                return int(ended.code or 0)

    with ThreadPoolExecutor(1) as pool:
        status = pool.submit(run).result(timeout=60)
    for stream in streams:
        stream.seek(0)
    return subprocess.CompletedProcess(words, status, streams[0].read(), streams[1].read())


@functools.cache
def _tree() -> Parser:
    return program.parser()


def process(bundle: Bundle, workload: Workload, root: Path) -> dict[str, str]:
    """The environment of the workload's process; the files of its volumes are written below `root`."""
    for path, text in bundle.files(workload).items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    environment = bundle.environment(workload)
    return {name: str(root) + value if value.startswith("/") else value for name, value in environment.items()}
