"""STATE_DIR: the files of one installation, locked by one runner at a time."""

import base64
import errno
import fcntl
import json
import os
import secrets
from pathlib import Path
from typing import Any

from makeready_local.children import LOG_BYTES_MAX, LocalError, earlier_log

# A JSON object, as a file of the folder or an answer of the API has it.
JsonObject = dict[str, Any]


class State:
    """The folder and its files."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder if it is missing, and locks it. Raises LocalError."""
        self.folder = folder
        try:
            folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if not os.access(folder, os.W_OK):  # all files needed so far may exist from an earlier start
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(folder))
        except OSError as error:
            reason = f"{error.strerror} ({error.filename})"
            raise LocalError(
                f"cannot write in {folder}: {reason}; MAKEREADY_STATE_DIR may name another folder"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._lock, 20, 0).decode(errors="replace").strip() or "unknown"
            raise LocalError(
                f"another Makeready (process {holder}) runs on {folder}; MAKEREADY_STATE_DIR may name another folder"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        self.remove("runtime.json")

    @property
    def logs(self) -> Path:
        """The folder of the processes' logs."""
        return self.folder / "logs"

    @property
    def keys(self) -> Path:
        """The folder of the identity keys."""
        return self.folder / "identity"

    def log(self, name: str) -> Path:
        """The log file of a process; a large one is renamed first."""
        path = self.logs / f"{name}.log"
        if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
            path.replace(earlier_log(path))
        return path

    def read(self, name: str) -> JsonObject:
        """The object in a file; empty if the file is missing. Raises LocalError if it is damaged."""
        path = self.folder / name
        try:
            value = json.loads(path.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise LocalError(f"{path} cannot be read: {error}") from None
        if not isinstance(value, dict):
            raise LocalError(f"{path} does not hold an object")
        return value

    def write(self, name: str, value: JsonObject) -> None:
        """Writes an object atomically, readable by its owner only."""
        part = self.folder / f"{name}.part"
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(self.folder / name)

    def remove(self, name: str) -> None:
        """Removes a file if it exists."""
        (self.folder / name).unlink(missing_ok=True)

    def secret(self, name: str, *, as_ring: bool = False) -> str:
        """A secret of this installation, made at its first use; as_ring: a key of 32 bytes as `1:BASE64`."""
        secrets_by_name = self.read("secrets.json")
        if name not in secrets_by_name:
            key = "1:" + base64.b64encode(secrets.token_bytes(32)).decode()
            secrets_by_name[name] = key if as_ring else secrets.token_urlsafe(24)
            self.write("secrets.json", secrets_by_name)
        return str(secrets_by_name[name])
