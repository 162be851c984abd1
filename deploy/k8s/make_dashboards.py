"""Writes the dashboards of components/monitoring: `python deploy/k8s/make_dashboards.py`.

Each is a JSON model of Grafana. The variables `namespace` and `service` choose what is shown.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "components/monitoring/dashboards"
COLUMNS, WIDTH, HEIGHT = 2, 12, 8
PICKED = 'namespace=~"$namespace",service=~"$service"'


class Panel(NamedTuple):
    """A graph of several queries, each with the name of its lines. PICKED stands where a query says {}."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def _rate(metric: str, by: str, where: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{PICKED}{where}}}[$__rate_interval]))"


def _quantile(metric: str, by: str, quantile: float = 0.99) -> str:
    return f"histogram_quantile({quantile}, {_rate(metric + '_bucket', 'le, ' + by)})"


def _each(metric: str, more: str = "") -> tuple[str, str]:
    return f"{metric}{{{PICKED}}}", "{{pod}}" + more


DASHBOARDS: dict[str, tuple[str, tuple[Panel, ...]]] = {
    "calls": (
        "Makeready: calls",
        (
            Panel("Requests by status", "reqps", ((_rate("makeready_http_requests_total", "status"), "{{status}}"),)),
            Panel(
                "Faults of the API",
                "percentunit",
                (
                    (
                        _rate("makeready_http_requests_total", "namespace", ',status=~"5..",route!="/readyz"')
                        + " / "
                        + _rate("makeready_http_requests_total", "namespace", ',route!="/readyz"'),
                        "{{namespace}}",
                    ),
                ),
            ),
            Panel("Requests by route", "reqps", ((_rate("makeready_http_requests_total", "route"), "{{route}}"),)),
            Panel(
                "Slowest of a hundred, by route",
                "s",
                ((_quantile("makeready_http_request_seconds", "route"), "{{route}}"),),
            ),
            Panel("Calls by RPC", "reqps", ((_rate("makeready_rpc_total", "rpc"), "{{rpc}}"),)),
            Panel("Slowest of a hundred, by RPC", "s", ((_quantile("makeready_rpc_seconds", "rpc"), "{{rpc}}"),)),
            Panel(
                "Calls that failed, were refused or were sent again",
                "reqps",
                (
                    (_rate("makeready_rpc_total", "service, outcome", ',outcome!="served"'), "{{service}} {{outcome}}"),
                    (_rate("makeready_rpc_repeated_total", "service"), "{{service}} again"),
                ),
            ),
            Panel(
                "Pages of the console",
                "reqps",
                ((_rate("makeready_console_pages_total", "status"), "{{status}}"),),
            ),
            Panel(
                "Slowest of a hundred pages", "s", ((_quantile("makeready_console_page_seconds", "page"), "{{page}}"),)
            ),
            Panel(
                "Pages that listen, imports under way",
                "short",
                (
                    _each("makeready_console_live", " pages"),
                    _each("makeready_console_import_tasks", " imports"),
                ),
            ),
            Panel(
                "Connections of clients",
                "short",
                (
                    _each("makeready_http_connections"),
                    _each("makeready_http_waiting_requests", " wait for something new"),
                    _each("makeready_http_snapshots", " snapshots"),
                ),
            ),
            Panel(
                "Connections refused or given way",
                "cps",
                (
                    (_rate("makeready_http_connections_refused_total", "cap"), "cap {{cap}}"),
                    (_rate("makeready_http_budget_exceeded_total", "budget"), "budget {{budget}}"),
                ),
            ),
            Panel("Bytes that wait for clients", "bytes", (_each("makeready_http_held_bytes", " {{budget}}"),)),
            Panel(
                "Sign-ins by outcome", "cpm", ((f"60 * {_rate('makeready_sign_ins_total', 'outcome')}", "{{outcome}}"),)
            ),
            Panel(
                "Keys and limits",
                "short",
                (
                    _each("makeready_key_listener_connected", " hears of revoked keys"),
                    _each("makeready_rate_limit_store_connected", " has the store of limits"),
                    (_rate("makeready_rate_limit_alone_total", "pod"), "{{pod}} counted alone, a second"),
                    (_rate("makeready_key_usage_lost_total", "pod"), "{{pod}} usage lost, a second"),
                    (_rate("makeready_request_log_dropped_total", "pod"), "{{pod}} requests not logged, a second"),
                ),
            ),
        ),
    ),
    "events": (
        "Makeready: events and webhooks",
        (
            Panel("Events that wait in outboxes", "short", (_each("makeready_outbox_unpublished"),)),
            Panel(
                "Ended sandboxes",
                "short",
                (
                    _each("makeready_sandboxes_to_purge", " has so many to delete"),
                    (_rate("makeready_purged_rows_total", "service"), "{{service}} rows deleted, a second"),
                ),
            ),
            Panel(
                "Events published and applied",
                "cps",
                (
                    (_rate("makeready_outbox_published_total", "service"), "{{service}} published"),
                    (_rate("makeready_consumer_applied_total", "service, by"), "{{service}} applied from {{by}}"),
                ),
            ),
            Panel(
                "Writes whose references went ahead of NATS",
                "cps",
                ((_rate("makeready_handovers_total", "service, outcome"), "{{service}} {{outcome}}"),),
            ),
            Panel(
                "NATS",
                "short",
                (_each("makeready_nats_connected", " connected"), _each("makeready_stream_has_leader", " has leader")),
            ),
            Panel(
                "Events not applied, forged or too old",
                "cps",
                (
                    (_rate("makeready_consumer_poison_total", "service"), "{{service}} not applied"),
                    (_rate("makeready_consumer_misplaced_total", "producer"), "{{producer}} misplaced"),
                    (_rate("makeready_references_refused_total", "producer"), "{{producer}} references refused"),
                    (_rate("makeready_webhooks_events_too_old_total", "service"), "too old"),
                ),
            ),
            Panel(
                "Replica rows checked and corrected",
                "cps",
                (
                    (_rate("makeready_replica_rows_checked_total", "service, kind"), "{{service}} {{kind}} checked"),
                    (
                        _rate("makeready_replica_rows_corrected_total", "service, kind"),
                        "{{service}} {{kind}} corrected",
                    ),
                ),
            ),
            Panel(
                "Feeds",
                "s",
                (_each("makeready_changes_lag_seconds", " behind"),),
            ),
            Panel(
                "Rows that feeds and searches make anew",
                "cps",
                (
                    (_rate("makeready_changes_touched_rows_total", "service"), "{{service}} moved"),
                    (_rate("makeready_ticket_search_rows_total", "service"), "{{service}} searched"),
                    _each("makeready_changes_touching_rows", " still to move"),
                ),
            ),
            Panel("Hints to open pages", "cps", ((_rate("makeready_hints_sent_total", "service"), "{{service}}"),)),
            Panel(
                "Public events stored",
                "cps",
                ((_rate("makeready_webhooks_events_stored_total", "event"), "{{event}}"),),
            ),
            Panel("Attempts by outcome", "cps", ((_rate("makeready_webhooks_attempts_total", "error"), "{{error}}"),)),
            Panel(
                "Time of an attempt",
                "s",
                (
                    (_quantile("makeready_webhooks_attempt_seconds", "service", 0.5), "half of them"),
                    (_quantile("makeready_webhooks_attempt_seconds", "service"), "slowest of a hundred"),
                ),
            ),
            Panel(
                "Since the last sweep, and the oldest due delivery",
                "s",
                (
                    (
                        f"time() - max(makeready_webhooks_sweep_timestamp_seconds{{{PICKED}}} > 0)",
                        "since the last sweep",
                    ),
                    _each("makeready_webhooks_oldest_due_seconds", " oldest due"),
                ),
            ),
            Panel(
                "What waits",
                "short",
                (
                    _each("makeready_webhooks_subscriptions_due", " subscriptions"),
                    _each("makeready_webhooks_waiting_for_host", " deliveries, for their receiver"),
                    _each("makeready_webhooks_expiring_deliveries", " {{state}}, gone within a day"),
                ),
            ),
            Panel(
                "Claims lost, days dropped, deliveries erased",
                "cps",
                (
                    (_rate("makeready_webhooks_claims_lost_total", "before"), "claims before {{before}}"),
                    (_rate("makeready_webhooks_days_dropped_total", "service"), "days"),
                    (_rate("makeready_webhooks_deliveries_erased_total", "service"), "erased"),
                ),
            ),
            Panel(
                "Signing secrets by key",
                "short",
                (_each("makeready_webhooks_secrets", " {{key_id}} opens: {{opens}}"),),
            ),
        ),
    ),
    "processes": (
        "Makeready: processes and databases",
        (
            Panel(
                "Pods by version",
                "short",
                (
                    (
                        f"count by (service, version, revision) (makeready_build_info{{{PICKED}}})",
                        "{{service}} {{version}} {{revision}}",
                    ),
                ),
            ),
            Panel("Ready", "short", (_each("makeready_serving"),)),
            Panel("Cores used", "short", ((_rate("process_cpu_seconds_total", "pod"), "{{pod}}"),)),
            Panel("Memory", "bytes", (_each("process_resident_memory_bytes"),)),
            Panel("Open files", "short", (_each("process_open_fds"),)),
            Panel("Age of the process", "s", ((f"time() - process_start_time_seconds{{{PICKED}}}", "{{pod}}"),)),
            Panel(
                "Connections to PostgreSQL",
                "short",
                (
                    _each("makeready_database_connections", " {{state}}"),
                    _each("makeready_database_connections_max", " at most"),
                ),
            ),
            Panel("Waiting for a connection", "short", (_each("makeready_database_waiting"),)),
            Panel("Clock ahead of PostgreSQL's", "s", (_each("makeready_clock_ahead_seconds"),)),
            Panel(
                "Writes refused by the clocks",
                "cps",
                ((_rate("makeready_clock_refused_total", "service"), "{{service}}"),),
            ),
        ),
    ),
}


def dashboard(name: str) -> dict[str, object]:
    """Grafana's model of a dashboard."""
    title, panels = DASHBOARDS[name]
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "uid": f"makeready-{name}",
        "title": title,
        "tags": ["makeready"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"},
                _variable("namespace", "label_values(makeready_build_info, namespace)"),
                _variable("service", 'label_values(makeready_build_info{namespace=~"$namespace"}, service)'),
            ]
        },
        "panels": [
            {
                "id": number + 1,
                "type": "timeseries",
                "title": panel.title,
                "datasource": source,
                "gridPos": {
                    "x": number % COLUMNS * WIDTH,
                    "y": number // COLUMNS * HEIGHT,
                    "w": WIDTH,
                    "h": HEIGHT,
                },
                "fieldConfig": {
                    "defaults": {"unit": panel.unit, "min": 0 if panel.unit != "s" else None},
                    "overrides": [],
                },
                "targets": [
                    {"refId": chr(ord("A") + place), "expr": query, "legendFormat": legend, "datasource": source}
                    for place, (query, legend) in enumerate(panel.queries)
                ],
            }
            for number, panel in enumerate(panels)
        ],
    }


def _variable(name: str, query: str) -> dict[str, object]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${source}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".+",
        "current": {"text": "All", "value": "$__all"},
    }


def text(name: str) -> str:
    """The content of the file."""
    return json.dumps(dashboard(name), indent=1) + "\n"


if __name__ == "__main__":
    for each in DASHBOARDS:
        (FOLDER / f"{each}.json").write_text(text(each))
