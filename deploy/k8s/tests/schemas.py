"""The schemas of Kubernetes' own kinds, version by version, and those of other projects' kinds where they can be had.

The wheel `kubernetes-validate` has Kubernetes' own. Other projects publish theirs as CustomResourceDefinitions, in no
package: MAKEREADY_CRDS names a folder with files of them.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from kubernetes_validate.utils import all_versions, major_minor, schema_contents
from packaging.version import Version
from referencing import Registry, Resource

from .manifests import Manifest

OLDEST, NEWEST = "1.31", "1.37"
VERSIONS = [version for version in dict.fromkeys(all_versions()) if Version(major_minor(version)) >= Version(OLDEST)]
CUSTOM = {
    "Cluster": "CloudNativePG",
    "ExternalSecret": "External Secrets Operator",
    "Gateway": "Gateway API",
    "HTTPRoute": "Gateway API",
    "PodMonitor": "Prometheus Operator",
    "PrometheusRule": "Prometheus Operator",
}
"""The kinds in the manifests that no version of Kubernetes has, and the project that defines each."""
_VALID: set[tuple[str, str]] = set()
"""Versions and manifests that have been checked: bundles share most of theirs."""


def check(manifests: Iterable[Manifest], version: str) -> set[str]:
    """Validates strictly: an unknown field is a fault. Returns the kinds that this version does not have. Raises
    jsonschema.ValidationError."""
    unknown = set()
    for manifest in manifests:
        if (version, text := json.dumps(manifest)) in _VALID:
            continue
        validator = _validator(version, manifest["apiVersion"], manifest["kind"])
        if validator is None:
            unknown.add(manifest["kind"])
            continue
        validator.validate(manifest)
        _VALID.add((version, text))
    return unknown


@functools.cache
def _validator(version: str, api_version: str, kind: str) -> Any:
    folder = f"kubernetes-json-schema/v{version}-local-strict"
    api = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    try:
        schema = schema_contents(f"{folder}/{kind.lower()}-{api}.json", version)
    except FileNotFoundError:
        return None
    registry = Resource.from_contents(schema) @ _definitions(folder, version)
    return jsonschema.Draft202012Validator(schema, registry=registry)


@functools.cache
def _definitions(folder: str, version: str) -> Registry[Any]:
    registry: Registry[Any] = Registry()
    return Resource.from_contents(schema_contents(f"{folder}/_definitions.json", version)) @ registry


def custom_schemas() -> dict[tuple[str, str], Any] | None:
    """By apiVersion and kind, the schemas in the folder of MAKEREADY_CRDS; None if it is not set."""
    folder = os.environ.get("MAKEREADY_CRDS")
    if not folder:
        return None
    schemas = {}
    for path in sorted(Path(folder).rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if not isinstance(document, dict) or document.get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                schema = version["schema"]["openAPIV3Schema"]
                schema["properties"]["metadata"] = {"type": "object"}
                schemas[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = _strict(schema)
    return schemas


def _strict(schema: Any, *, is_whole: bool = True) -> Any:
    """The schema, and each below it, without fields that it does not name. Not the parts of anyOf and the like: these
    name some fields of a whole."""
    if not isinstance(schema, dict):
        return schema
    keeps_unknown = schema.get("x-kubernetes-preserve-unknown-fields")
    if is_whole and "properties" in schema and "additionalProperties" not in schema and not keeps_unknown:
        schema["additionalProperties"] = False
    for field in schema.get("properties", {}).values():
        _strict(field, is_whole=is_whole)
    for name in ("items", "additionalProperties"):
        _strict(schema.get(name), is_whole=is_whole)
    return schema
