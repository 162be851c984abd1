"""svc-occupancy: `python -m svc_occupancy` serves, `python -m svc_occupancy migrate` migrates."""

from __future__ import annotations

from chassis.server import App, run_process
from svc_occupancy import config, consumers, tables

NAME = "svc-occupancy"


def assemble(settings: config.Config) -> App:
    app = App(NAME, settings.service)
    app.produces(tables.outbox, consumers=["svc-catalog"])
    app.consumes(tables.inbox, consumers.apply, consumers.SUBJECTS)
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_occupancy", config.read, assemble)
