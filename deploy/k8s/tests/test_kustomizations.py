"""Every file is listed and every listed file exists; overlays patch what exists; images are pinned."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kubernetes_validate.utils import major_minor

from testkit.requirements import lacks

from . import schemas
from .conftest import PARTS
from .manifests import GENERATED, Bundle, Manifest, build, documents, kustomization, render, renderer

FIELDS = {
    "apiVersion",
    "kind",
    "namespace",
    "resources",
    "components",
    "configMapGenerator",
    "generatorOptions",
    "secretGenerator",
    "images",
    "replicas",
    "patches",
}
IMAGE = re.compile(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+")


def folders(k8s: Path) -> list[Path]:
    return sorted(path.parent for path in k8s.rglob("kustomization.yaml"))


def generators(settings: Manifest) -> list[Manifest]:
    return [*settings.get("configMapGenerator", []), *settings.get("secretGenerator", [])]


def listed(folder: Path) -> set[Path]:
    """The files and folders that a kustomization names."""
    settings = kustomization(folder)
    names = [*settings.get("resources", []), *settings.get("components", [])]
    names += [patch["path"] for patch in settings.get("patches", [])]
    for generator in generators(settings):
        names += generator.get("envs", [])
        names += [entry.partition("=")[2] or entry for entry in generator.get("files", [])]
    return {(folder / name).resolve() for name in names}


def test_every_listed_file_exists_and_every_file_is_listed(k8s: Path) -> None:
    named = {path for folder in folders(k8s) for path in listed(folder)}
    assert not [path for path in named if not path.exists()]
    there = {path for top in ("base", "components", "overlays") for path in (k8s / top).rglob("*") if path.is_file()}
    unlisted = {
        str(path.relative_to(k8s))
        for path in there - named
        if path.name not in ("kustomization.yaml", ".gitignore") and path.name != "databases.sql"
    }
    assert not unlisted


def test_kustomizations_use_fields_that_are_known_here(k8s: Path) -> None:
    for folder in folders(k8s):
        settings = kustomization(folder)
        assert settings.keys() <= FIELDS, folder
        assert settings["kind"] in ("Kustomization", "Component")


def test_patches_and_replicas_name_what_exists(k8s: Path, as_read: Bundle) -> None:
    for folder in folders(k8s):
        settings = kustomization(folder)
        for patch in settings.get("patches", []):
            change: Any = documents(folder / patch["path"])[0]
            if (target := patch.get("target")) and isinstance(change, dict):
                assert [m for m in as_read.of(target["kind"]) if re.fullmatch(target["name"], m["metadata"]["name"])]
            elif target:
                manifests = [
                    m for m in as_read.of(target["kind"]) if re.fullmatch(target["name"], m["metadata"]["name"])
                ]
                assert manifests, patch
                for operation in change:
                    path = operation["path"]
                    there = path if operation["op"] == "replace" else path.rpartition("/")[0]
                    for manifest in manifests:
                        assert place(manifest, there) is not None, operation
            else:
                workload = as_read.one(change["kind"], change["metadata"]["name"])
                if "template" not in workload["spec"]:
                    continue
                containers = {container["name"] for container in workload["spec"]["template"]["spec"]["containers"]}
                assert {
                    container["name"] for container in change["spec"]["template"]["spec"]["containers"]
                } <= containers
        for entry in settings.get("replicas", []):
            assert as_read.one("Deployment", entry["name"])


def place(manifest: Any, path: str) -> Any:
    """The value at a JSON pointer."""
    for step in path.strip("/").split("/"):
        manifest = manifest[int(step)] if isinstance(manifest, list) else manifest[step]
    return manifest


def test_every_image_is_pinned(k8s: Path, as_read: Bundle) -> None:
    pinned = {}
    for folder in folders(k8s):
        for image in kustomization(folder).get("images", []):
            assert IMAGE.fullmatch(image["newName"]), image
            assert "digest" in image or re.match(r"\d+\.\d+\.\d+", image["newTag"]), image
            pinned[image["name"]] = image
    assert {workload.container["image"] for workload in as_read.workloads()} == pinned.keys()


def test_rendered_images_have_a_registry_and_a_version(as_rendered: Bundle) -> None:
    for workload in as_rendered.workloads():
        assert re.fullmatch(r"[a-z.]+\.[a-z]+/[a-z/]+:\d+\.\d+\.\d+(-alpine)?", workload.container["image"])


def test_digests_that_the_release_writes_reach_every_pod(k8s: Path, tmp_path: Path) -> None:
    """A tag can be moved to another image, a digest cannot."""
    command = renderer()
    if command is None:
        lacks("kubectl", "neither kubectl nor kustomize is on this machine")
    copied = shutil.copytree(k8s, tmp_path / "deploy/k8s")
    digests = {"makeready": "sha256:" + "a1" * 32, "nats": "sha256:" + "b2" * 32, "valkey": "sha256:" + "c3" * 32}
    script = tmp_path / ".ci/version.py"
    script.parent.mkdir()
    shutil.copy(Path(__file__).parents[3] / ".ci/version.py", script)
    words = [sys.executable, "-P", str(script), "images", *(f"{name}={digest}" for name, digest in digests.items())]
    subprocess.run(words, check=True, timeout=60)
    overlays = [copied / "overlays" / overlay for overlay in ("example", "example-ha", "example-external-secrets")]
    parts = [folder / part for folder in overlays for part in PARTS if (folder / part / "kustomization.yaml").exists()]
    assert len(parts) > len(overlays)
    images = set()
    for part in parts:
        for workload in render(command, part).workloads():
            image, _, digest = workload.container["image"].partition("@")
            name = image.rpartition("/")[2].partition(":")[0]
            assert digest == digests[name], (part, workload.name)
            images.add(name)
    assert images == digests.keys()


@pytest.mark.parametrize("version", schemas.VERSIONS)
def test_every_manifest_follows_its_schema(bundle: Bundle, base: Bundle, version: str) -> None:
    assert schemas.check((*base.manifests, *bundle.manifests), version) == set()


def test_the_versions_that_the_handbook_names_are_checked() -> None:
    checked = [major_minor(version) for version in schemas.VERSIONS]
    assert checked == [f"1.{minor}" for minor in range(31, 38)]
    assert (checked[0], checked[-1]) == (schemas.OLDEST, schemas.NEWEST)
    handbook = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    assert f"Kubernetes {schemas.OLDEST} or newer" in handbook
    assert f"Kubernetes {schemas.OLDEST} to {schemas.NEWEST}" in handbook


def test_nothing_secret_lies_in_the_project(k8s: Path) -> None:
    for path in Path(__file__).parents[1].rglob("*.yaml"):
        for document in documents(path):
            assert not isinstance(document, dict) or document.get("kind") != "Secret", path
    assert (k8s / "overlays/example/settings/.gitignore").read_text() == "secrets/\n"


def test_what_is_built_here_is_what_kubectl_renders(k8s_ha: Path) -> None:
    """The tests of components rely on a subset of kustomize that is written here."""
    command = renderer()
    if command is None:
        lacks("kubectl", "neither kubectl nor kustomize is on this machine")
    for overlay in ("example", "example-ha", "tls"):
        folder = k8s_ha / "overlays" / overlay
        built, rendered = build(folder), render(command, folder)
        generated = {manifest["metadata"]["name"] for kind in GENERATED for manifest in built.of(kind)}
        ours = {comparable(manifest, generated) for manifest in built.manifests}
        assert ours == {comparable(manifest, generated) for manifest in rendered.manifests}, overlay


def comparable(manifest: Manifest, generated: set[str]) -> str:
    """Without namespaces, digests and images; with lists of named parts in the order of their names."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in sorted(value.items()) if key not in ("namespace", "image")}
        if isinstance(value, list):
            parts = [plain(part) for part in value]
            return sorted(parts, key=str) if parts and isinstance(parts[0], dict) else parts
        match = re.fullmatch(r"(.+)-[a-z0-9]{10}", value) if isinstance(value, str) else None
        return match[1] if match and match[1] in generated else value

    if manifest["kind"] == "Secret":
        name = manifest["metadata"]["name"]
        return json.dumps(["Secret", plain(name), sorted(Bundle((manifest,)).values("Secret", name).items())])
    return json.dumps(plain(manifest))
