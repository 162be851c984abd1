"""The file of API keys that `company ensure` has minted: a Secret of Kubernetes, as `kubectl apply -f` takes it.

The gateway keeps no key, so a key that is not stored is lost. Before a mint the file notes that it begins, with the
idempotency key of the request. The run after one that was killed in between finds the note, sends the same request and
gets the same key.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from makeready_cli.ensuring import companies_file
from makeready_cli.errors import CommandError

SECRET_NAME = "makeready-keys"  # noqa: S105 - the name of a Secret
MINTING = "makeready/minting"
"""The annotation with the notes: a JSON object of idempotency keys, by entry."""


class KeysFile:
    """Entries and notes. Each change is on the disk when the call returns. Use as a context manager: one process at a
    time has the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = -1
        self._manifest: dict[str, Any] = {}
        self._keys: dict[str, str] = {}
        self._minting: dict[str, str] = {}

    def __enter__(self) -> Self:
        try:
            self._folder = os.open(self.path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # The file itself is replaced at each change, so its folder is locked.
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.load()
        except BlockingIOError:
            self._close()
            raise CommandError(f"Another `company ensure` is writing to the folder of {self.path}.") from None
        except OSError as error:
            self._close()
            raise CommandError(f"{self.path} can't be used: {error.strerror}.") from None
        except CommandError:
            self._close()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def load(self) -> None:
        """Reads the file, if there is one. Raises CommandError and OSError."""
        if not self.path.exists():
            name = {"name": SECRET_NAME}
            self._manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": name, "type": "Opaque"}
            return
        try:
            document = companies_file.load(self.path.read_bytes())
            if document["kind"] != "Secret":
                raise ValueError
            metadata = document.setdefault("metadata", {})
            self._keys = {
                name: base64.b64decode(text).decode() for name, text in (document.pop("data", None) or {}).items()
            }
            self._keys |= {str(name): str(key) for name, key in (document.pop("stringData", None) or {}).items()}
            self._minting = dict(json.loads((metadata.get("annotations") or {}).get(MINTING) or "{}"))
            self._manifest = document
        except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, binascii.Error):
            raise CommandError(f"{self.path} holds something else than a Secret; give another file.") from None

    def key(self, entry: str) -> str:
        """The bearer key; empty if the file lacks it."""
        return self._keys.get(entry, "")

    def minting(self, entry: str) -> str:
        """The idempotency key of a mint that began and whose key is not stored; else empty."""
        return self._minting.get(entry, "")

    def begin(self, entry: str, idempotency_key: str) -> None:
        """Notes that a mint begins."""
        self._minting[entry] = idempotency_key
        self._write()

    def store(self, entry: str, key: str) -> None:
        """Keeps a minted key, in place of the note and of an older key."""
        self._keys[entry] = key
        self._minting.pop(entry, None)
        self._write()

    def _write(self) -> None:
        metadata = dict(self._manifest["metadata"])
        annotations = {**(metadata.pop("annotations", None) or {})}
        annotations.pop(MINTING, None)
        if self._minting:
            annotations[MINTING] = json.dumps(self._minting)
        if annotations:
            metadata["annotations"] = annotations
        self._replace({**self._manifest, "metadata": metadata, "stringData": self._keys})

    def _replace(self, manifest: Mapping[str, Any]) -> None:
        """A run that is killed in between leaves the old file or the new one. Only their owner may read them."""
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            new.unlink(missing_ok=True)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                yaml.safe_dump(manifest, file, sort_keys=False)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self.path)
            os.fsync(self._folder)
        except OSError as error:
            raise CommandError(f"{self.path} can't be written: {error.strerror}.") from None
