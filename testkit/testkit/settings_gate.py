"""The settings that every process reads, compared with those of the last release.

`python -m testkit.settings_gate` prints what an installation of the last release would fail on: a setting that it
lacks, a value that is refused now. `release` stores today's settings as released. They are found by running the code
that reads them, so no list can be out of date.
"""

from __future__ import annotations

import base64
import functools
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from chassis.app.process import database_urls
from chassis.runtime.settings import Environment, SettingsError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "settings"
PROCESSES = ("gateway", "console", "svc_catalog", "svc_tickets", "svc_occupancy", "svc_webhooks")
RUNNER = "makeready_local"
_UNSET = re.compile(r"(?P<name>[A-Z0-9_]+) is not set\.")
# Values that the processes accept, by the end of the setting's name.
_SAMPLES = {
    "DATABASE_URL": "postgresql://user:password@127.0.0.1/database",
    "NATS_URL": "nats://127.0.0.1:4222",
    "_URL": "https://sample.example",
    "_ADDRESS": "127.0.0.1:9090",
    "_FILE": __file__,
    "": "1:" + base64.b64encode(b"s" * 32).decode(),  # a ring of keys, which is also a text
}

Setting = dict[str, Any]
Settings = dict[str, dict[str, Setting]]
"""By process and by name: kind, required, and what the kind has of default, minimum, maximum, schemes."""


class _Recording(Environment):
    """Records each typed read that names a setting; reads within reads are not counted."""

    def __init__(self, values: Mapping[str, str], settings: dict[str, Setting]) -> None:
        super().__init__(values)
        self._settings = settings
        self._depth = 0

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name.startswith("_") or not inspect.ismethod(value) or "name" not in inspect.signature(value).parameters:
            return value
        return functools.partial(self._recorded, name, value)

    def _recorded(self, kind: str, read: Callable[..., Any], *positional: Any, **named: Any) -> Any:
        bound = inspect.signature(read).bind(*positional, **named)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        if self._depth == 0:
            setting = {"kind": kind, "required": False}
            setting |= {
                argument: arguments[argument]
                for argument in ("default", "minimum", "maximum")
                if arguments.get(argument) is not None
            }
            setting |= {"schemes": list(arguments["schemes"])} if "schemes" in arguments else {}
            self._settings.setdefault(arguments["name"], setting)
        self._depth += 1
        try:
            return read(*positional, **named)
        finally:
            self._depth -= 1


class _Names(dict[str, str]):
    """An empty environment that notes the names for which it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return default


def read_by(read: Callable[[Environment], Any]) -> dict[str, Setting]:
    """The settings that a function reads. It is tried with none, and then with a sample of each that it demands."""
    values: dict[str, str] = {}
    settings: dict[str, Setting] = {}
    while True:
        try:
            read(_Recording(values, settings))
            # Any name of this form is read, so an address that is not demanded is none of the process's own.
            return {
                name: setting
                for name, setting in sorted(settings.items())
                if setting["required"] or not name.endswith("_ADDRESS")
            }
        except SettingsError as error:
            lacking = _UNSET.fullmatch(str(error))
            if lacking is None or lacking["name"] in values:
                raise RuntimeError(f"testkit.settings_gate has no sample that is accepted: {error}") from error
            name = lacking["name"]
            settings.setdefault(name, {"kind": "text"})["required"] = True
            values[name] = next(sample for end, sample in _SAMPLES.items() if name.endswith(end))


def current() -> Settings:
    """Today's settings of all processes, of their migrations, and of `make run`."""
    settings = {name: read_by(importlib.import_module(f"{name}.config").read) for name in PROCESSES}
    settings["migrate"] = read_by(database_urls)
    names = _Names()
    importlib.import_module(f"{RUNNER}.config").read(names)
    settings["make run"] = {name: {"kind": "text", "required": False} for name in sorted(names.names)}
    return settings


def breakages(released: Settings, now: Settings, deprecated: Mapping[str, str]) -> list[str]:
    """What an installation of the release would fail on: one sentence each, sorted. A new process is none.

    deprecated: the settings of which the release said that they go.
    """
    return sorted(
        sentence
        for process, settings in released.items()
        for sentence in _of_process(process, settings, now.get(process, {}), deprecated)
    )


def _of_process(
    process: str, was: Mapping[str, Setting], now: Mapping[str, Setting], deprecated: Mapping[str, str]
) -> Iterator[str]:
    for name, setting in now.items():
        if setting["required"] and not was.get(name, {}).get("required"):
            yield f"{process}: {name} {'becomes' if name in was else 'is new and'} required"
    for name, old in was.items():
        new = now.get(name)
        if new is None:
            if name not in deprecated:
                yield f"{process}: {name} is not read any more"
            continue
        if old.get("default") != new.get("default") and not new["required"]:
            yield f"{process}: {name} has another default"
        if new.get("minimum", 0) > old.get("minimum", 0) or new.get("maximum", 0) < old.get("maximum", 0):
            yield f"{process}: {name} accepts fewer values"
        schemes: list[str] = old.get("schemes", [])
        if lost := [scheme for scheme in schemes if scheme not in new.get("schemes", schemes)]:
            yield f"{process}: {name} accepts no {' and no '.join(lost)} any more"


def listed(name: str, folder: Path = FOLDER) -> dict[str, str]:
    """A file of sentences, or of settings, each with its reason; empty if there is none."""
    file = folder / f"{name}.toml"
    entries: dict[str, str] = tomllib.loads(file.read_text()) if file.exists() else {}
    return entries


def problems(now: Settings, folder: Path = FOLDER) -> list[str]:
    """What is neither as released nor allowed, and what is allowed in vain."""
    released = json.loads((folder / "released.json").read_text())
    allowed = listed("allowed", folder)
    sentences = breakages(released["settings"], now, released["deprecated"])
    return [
        *(sentence for sentence in sentences if not allowed.get(sentence)),
        *(
            f"allowed.toml allows what does not happen, or names no reason: {sentence}"
            for sentence in sorted(allowed.keys() - {*sentences})
        ),
    ]


def main(words: list[str]) -> int:
    """Returns the exit status."""
    if words not in ([], ["release"]):
        sys.stderr.write("usage: python -m testkit.settings_gate [release]\n")
        return 2
    if words:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        kept = {"commit": head.stdout.strip(), "settings": current(), "deprecated": listed("deprecated")}
        (FOLDER / "released.json").write_text(json.dumps(kept, indent=1) + "\n")
        for name in ("allowed", "deprecated"):
            (FOLDER / f"{name}.toml").unlink(missing_ok=True)
        return 0
    sentences = problems(current())
    sys.stdout.write("".join(f"breaks installations of the release: {line}\n" for line in sentences))
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
