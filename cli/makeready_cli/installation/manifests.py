"""The secrets as manifests of Kubernetes, for tools that seal, encrypt or apply them."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from makeready_cli.installation.folder import RING_CONFIGMAP, RING_FILE, secrets_of, text
from makeready_cli.output import Record


def manifests(folder: Path, namespace: str) -> list[Record]:
    """Every Secret, and the ConfigMap of public keys. Raises CommandError."""
    documents: list[Record] = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _metadata(name, namespace),
            "type": "Opaque",
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in secret.items()},
        }
        for name, secret in secrets_of(folder).items()
    ]
    ring = text(folder / "identity" / RING_FILE)
    metadata = _metadata(RING_CONFIGMAP, namespace)
    return [*documents, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {RING_FILE: ring}}]


def as_yaml(documents: list[Record]) -> str:
    """Documents of YAML, one after the other."""
    return "---\n".join(yaml.safe_dump(document, sort_keys=False) for document in documents)


def _metadata(name: str, namespace: str) -> Record:
    return {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/part-of": "makeready"}}
