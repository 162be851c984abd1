"""What tests need from the machine beside Python: one name each, and the one way to skip a test that lacks it.

`MAKEREADY_REQUIRE=chromium,podman` makes a skip for one of these reasons a failure, `MAKEREADY_REQUIRE=all` every skip.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIREMENTS = {
    "alarms": "`make alarms`, which fires every alarm once",
    "base-image": "the base image of our image, on this machine or from a registry",
    "chromium": "a Chromium browser",
    "crds": "the CustomResourceDefinitions of other projects' kinds, in the folder MAKEREADY_CRDS",
    "curl": "the curl command",
    "deno": "the wheel that brings deno",
    "docker": "a Docker engine, for the servers of `--backend containers`",
    "kernel-figures": "smaps_rollup in /proc",
    "kubectl": "kubectl or kustomize",
    "node": "the wheel that brings node",
    "npm": "a registry of npm packages",
    "open-files": "a limit of open files that is high enough",
    "openssl": "the openssl command",
    "own-servers": "servers that the tests may stop: neither MAKEREADY_DATABASE_URL nor MAKEREADY_NATS_URL is set",
    "packages": "a registry of Python packages",
    "pgbouncer": "PgBouncer",
    "promtool": "promtool, of Debian's package prometheus",
    "podman": "docker, podman or buildah, with an engine that answers",
    "linux": "Linux: its loopback addresses and its /proc",
    "mount": "the right to mount a small file system",
    "postgresql-tls": "Debian's PostgreSQL: the one of the tests has no TLS",
    "release-before": "the commit of the release before in git, and `make platform`",
    "public-data": "the files of real public data beside the checkout, or in MAKEREADY_TEST_DATA",
    "valkey": "a Valkey or Redis server",
}
VARIABLE, ALL = "MAKEREADY_REQUIRE", "all"


def lacks(requirement: str, reason: str) -> NoReturn:
    """Skips the running test, because this machine lacks what the requirement names; fails it if that is required."""
    text = f"{requirement}: {reason}"
    assert requirement in REQUIREMENTS, text
    if required() & {requirement, ALL}:
        pytest.fail(f"{VARIABLE} requires {text}", pytrace=False)
    pytest.skip(text)


def required() -> set[str]:
    """The names in MAKEREADY_REQUIRE. Raises pytest.UsageError for a name that no test knows."""
    names = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")} - {""}
    if unknown := names - {*REQUIREMENTS, ALL}:
        raise pytest.UsageError(f"{VARIABLE}: {', '.join(sorted(unknown))} is none of {', '.join(REQUIREMENTS)}, {ALL}")
    return names
