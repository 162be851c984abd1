"""svc-webhooks: `python -m svc_webhooks` serves, `python -m svc_webhooks migrate` migrates."""

from __future__ import annotations

import functools

from chassis.app.process import run_process
from chassis.app.server import App
from chassis.runtime import open_files
from chassis.writes.commands import CommandRunner
from chassis.writes.retention import every_slot
from makeready.webhooks.v1 import webhooks_pb2
from svc_webhooks import config, schema, tables
from svc_webhooks.administration.service.administration import AdministrationService
from svc_webhooks.administration.service.deliveries import DeliveriesService
from svc_webhooks.administration.service.dependencies import Dependencies
from svc_webhooks.dispatch.attempts import Attempts
from svc_webhooks.dispatch.hosts import Hosts
from svc_webhooks.dispatch.sandboxes import Sandboxes
from svc_webhooks.dispatch.scheduler import Scheduler
from svc_webhooks.dispatch.sender import Sender
from svc_webhooks.events import consumer as events_consumer
from svc_webhooks.events.partitions import Partitions
from svc_webhooks.feed.replays import Replays
from svc_webhooks.feed.service import FeedService
from svc_webhooks.http_client.client import HttpClient
from svc_webhooks.subscriptions.erasure import Eraser
from svc_webhooks.subscriptions.service import SubscriptionsService
from svc_webhooks.vault.service import VaultService

NAME = "svc-webhooks"
USER_AGENT = "Makeready-Webhooks/1"


def assemble(settings: config.Config) -> App:
    # "auto": a generic plan does not suit both a whole day of deliveries and the last ones of a partition.
    app = App(NAME, settings.service, plans="auto")
    clocks = app.keeps_clocks(schema.company)
    audit = app.audits(tables.audit)
    open_files.allow_many()  # endpoints that hang would use up the descriptors of the others
    http = HttpClient(overrides=settings.egress_hosts, ca_file=settings.egress_ca_file, user_agent=USER_AGENT)
    partitions = Partitions(app.database, clocks.real)
    applier = events_consumer.EventApplier(partitions)
    consumer = app.consumes(tables.inbox, applier.apply, events_consumer.SUBJECTS, events_consumer.REPLICAS)
    app.purges(tables.metadata, tables.company)
    local_destinations = settings.local_destinations
    sender = Sender(http, Hosts(app.database), settings.vault, clocks, local_destinations=local_destinations)
    scheduler = Scheduler(
        app.database,
        consumer,
        Attempts(app.database, sender, settings.ladder),
        clocks,
        period_seconds=settings.sweep_seconds,
    )
    sandboxes = Sandboxes(scheduler, clocks)
    sandboxes.retention.append(partitions.expire)
    app.moves_clocks(sandboxes.next_due, sandboxes.do_due)
    app.status.backlog = scheduler.counts
    eraser = Eraser(app.database)
    app.lifecycle.on_start(partitions.ahead)
    app.background("partitions", partitions.run)
    app.background("days", functools.partial(every_slot, partitions.every_hour))
    app.retention_hooks.append(partitions.drop_as_asked)
    app.background("sweeps", scheduler.run)
    app.background("sweeps-of-sandboxes", sandboxes.run)
    app.background("erasures", eraser.run)
    app.background("backlog", scheduler.watch)
    app.lifecycle.on_stop(http.close)
    services = webhooks_pb2.DESCRIPTOR.services_by_name
    commands = CommandRunner(app.database, tables.idempotency, audit, clocks=clocks)
    subscriptions = SubscriptionsService(
        app.database,
        settings.vault,
        http,
        eraser,
        clocks,
        subscriptions_max=settings.subscriptions_max,
        local_destinations=local_destinations,
    )
    app.serve(services["SubscriptionsService"], subscriptions)
    dependencies = Dependencies(
        app.database, commands, settings.vault, http, scheduler, partitions, subscriptions, clocks
    )
    app.serve(services["DeliveriesService"], DeliveriesService(dependencies))
    app.serve(services["AdministrationService"], AdministrationService(dependencies))
    replays = Replays(app.database, scheduler, sandboxes, clocks)
    sandboxes.retention.append(replays.expire)
    app.background("replays", replays.run)
    app.background("old-replays", functools.partial(every_slot, replays.every_hour))
    app.serve(services["FeedService"], FeedService(dependencies, replays))
    vault = VaultService(app.database, audit, settings.vault)
    app.background("vault", functools.partial(every_slot, vault.every_hour))
    app.serve(services["VaultService"], vault)
    return app


if __name__ == "__main__":
    run_process(NAME, tables.metadata, "svc_webhooks", config.read, assemble)
