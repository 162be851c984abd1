"""A service's main: one process that serves, or that migrates its database."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import uvloop
from prometheus_client import start_http_server
from sqlalchemy import MetaData

from chassis.app.server import App
from chassis.app.status import publish_build_info
from chassis.db import revisions
from chassis.refusals import Unavailable
from chassis.runtime import failpoints, logs
from chassis.runtime.scheduling import batch_scheduling
from chassis.runtime.settings import Environment, ServiceSettings, SettingsError, database_settings
from chassis.writes.audit import AUDIT
from chassis.writes.idempotency import LEDGER

COMPANY = "company"  # the table of companies, or its replica


def run_process(
    name: str,
    metadata: MetaData,
    package: str,
    read_settings: Callable[[Environment], Any],
    assemble: Callable[[Any], App],
) -> None:
    """A service's main: `python -m PACKAGE` serves, `python -m PACKAGE migrate` migrates.

    It serves once the database has had the newest of the package's migrations; a package of "" has none. A bad setting
    prints one line on standard error and exits with status 2.
    """
    environment = Environment(os.environ)
    try:
        if sys.argv[1:] == ["migrate"]:
            migrate(name, metadata, package, environment)
            return
        if sys.argv[1:]:
            raise SettingsError(f"usage: python -m {package} [migrate]")
        settings = read_settings(environment)
        service: ServiceSettings = getattr(settings, "service", settings)
        logs.configure(name, service.log_level)
        failpoints.arm(environment.text("MAKEREADY_KILL_AT", ""), environment.text("MAKEREADY_STRIKE_FILE", ""))
        batch_scheduling()
        publish_build_info(environment)
        host, _, port = service.metrics_listen.rpartition(":")
        try:
            start_http_server(int(port), host)
        except OSError as error:
            raise SettingsError(f"MAKEREADY_METRICS_LISTEN {service.metrics_listen}: {error.strerror}.") from None

        async def whole() -> None:
            app = assemble(settings)
            if LEDGER in metadata.tables:
                app.forgets(metadata.tables[LEDGER])
            if {AUDIT, COMPANY} <= metadata.tables.keys():
                app.records_future_sweeps(metadata.tables[AUDIT], metadata.tables[COMPANY])
            await app.run(revisions.head_of(package) if package else "")

        uvloop.run(whole())
    except (SettingsError, Unavailable) as error:
        print(f"{name}: {error}", file=sys.stderr)  # noqa: T201 - the operator's one line
        raise SystemExit(2) from None


def migrate(name: str, metadata: MetaData, package: str, environment: Environment) -> None:
    """The command `migrate` of a process. Raises SettingsError and DatabaseUnavailable."""
    logs.configure(name)
    from chassis.db import migrations  # noqa: PLC0415 - Alembic would double the time and memory of serving

    url, owner_url = database_urls(environment)
    service_role = urlsplit(url).username or ""
    migrations.migrate(owner_url or url, package, metadata, service_role if owner_url else "")


def database_urls(environment: Environment) -> tuple[str, str]:
    """The URL of the service's role, and that of the owner's, which migrates; "" if one role does both. A pooler is
    passed by where a direct URL is given."""
    url = database_settings(environment).direct_url
    if environment.optional("MAKEREADY_DATABASE_OWNER_URL") is None:
        return url, ""
    owner_url = environment.database_url("MAKEREADY_DATABASE_OWNER_URL")
    if urlsplit(owner_url).path != urlsplit(url).path:
        raise SettingsError("MAKEREADY_DATABASE_OWNER_URL and MAKEREADY_DATABASE_URL name two databases.")
    if not urlsplit(url).username or urlsplit(owner_url).username == urlsplit(url).username:
        raise SettingsError("MAKEREADY_DATABASE_OWNER_URL and MAKEREADY_DATABASE_URL must name two roles.")
    return url, owner_url
