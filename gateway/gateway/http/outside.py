"""Paths outside the namespace: the pages for people, liveness and readiness."""

from __future__ import annotations

from collections.abc import Sequence

from chassis.app.lifecycle import Lifecycle
from chassis.http.replies import Reply, json
from chassis.refusals import Refusal
from gateway.http.reference import Reference
from gateway.http.replies import PageMissing, verb_not_allowed

READINESS = "/readyz"


class Outside:
    """Answers what needs no key."""

    def __init__(self, reference: Reference, lifecycle: Lifecycle) -> None:
        self._reference = reference
        self._lifecycle = lifecycle

    @property
    def document(self) -> Reply:
        """The OpenAPI document."""
        return self._reference.document

    def reply(self, method: str, path: str, accept: Sequence[str] = ()) -> Reply:
        """The page or the probe at a path. accept: the values of the header. Raises Refusal.

        Nothing that is away makes a gateway unready once it has started: it would be away for all gateways, and callers
        would get no envelope.
        """
        page = self._reference.pages.get(path)
        if page is not None:
            if method not in ("GET", "HEAD"):
                raise verb_not_allowed("GET, HEAD")
            return page
        if path not in ("/healthz", READINESS):
            missing = PageMissing if path.startswith("/docs/") and "text/html" in ",".join(accept) else Refusal
            raise missing(404, "not_found", "There is nothing at this path; check it against the API's reference.")
        if method != "GET":
            raise verb_not_allowed("GET")
        if path == "/healthz" or self._lifecycle.is_ready:
            return json(b'{"status":"ok"}')
        return json(b'{"status":"not ready"}', 503)
