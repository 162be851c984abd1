"""A producer for the tests: an outbox in a database of its own, relayed and served by the chassis."""

import sys

from sqlalchemy import MetaData

from chassis.app.process import run_process
from chassis.app.server import App
from chassis.messaging.outbox import outbox_table
from chassis.runtime.settings import ServiceSettings, service_settings

metadata = MetaData()
outbox = outbox_table(metadata)


def assemble(settings: ServiceSettings) -> App:
    app = App(NAME, settings)
    app.produces(outbox, consumers={"svc-webhooks": ["public", "references"]})
    return app


if __name__ == "__main__":
    NAME = sys.argv.pop()
    run_process(NAME, metadata, "", service_settings, assemble)
