"""What is on record of an answered request: metrics, the usage of its key, and a line in the log if it failed."""

from __future__ import annotations

import logging

import structlog
from prometheus_client import Counter, Histogram

from chassis.app.rpc_server import SECONDS_BUCKETS
from chassis.http.requests import Request
from gateway.http.outside import READINESS
from gateway.http.usage import Usage

UNKNOWN = "unknown"
"""Stands for the route of a request that has none."""

log = structlog.stdlib.get_logger(__name__)
ANSWERED = Counter("makeready_http_requests_total", "Requests answered", ["route", "method", "status"])
SECONDS = Histogram("makeready_http_request_seconds", "Time to answer a request", ["route"], buckets=SECONDS_BUCKETS)


class AnsweredRequests:
    """Counts the answered requests of all connections."""

    def __init__(self, usage: Usage, *, debug: bool) -> None:
        """debug: whether each request has its line in the log."""
        self._usage = usage
        self._debug = debug
        # Looking up a labelled metric costs more than counting does.
        self._counters: dict[tuple[str, str, int], Counter] = {}
        self._histograms: dict[str, Histogram] = {}

    def count(self, request: Request, route: str, status: int, seconds: float) -> None:
        key = (route, request.method, status)
        counter = self._counters.get(key)
        if counter is None:
            method = request.method if route != UNKNOWN else ""
            counter = self._counters[key] = ANSWERED.labels(route, method, str(status))
        counter.inc()
        histogram = self._histograms.get(route)
        if histogram is None:
            histogram = self._histograms[route] = SECONDS.labels(route)
        histogram.observe(seconds)
        if request.caller is not None:
            self._usage.count(request.caller, request, route, status)
        is_fault = status >= 500 and route != READINESS
        if self._debug or is_fault:
            log.log(
                logging.ERROR if is_fault else logging.DEBUG,
                "answered",
                route=route,
                method=request.method,
                status=status,
                request_id=request.id,
                milliseconds=round(seconds * 1000, 1),
            )
