"""The services' own users of the tests' NATS."""

import os
from urllib.parse import urlsplit

from makeready_cli.streams import CONSOLE, SERVICES
from makeready_local.nats import url_of


def nats_url_of(url: str, service: str) -> str:
    """The URL of a service's own user, made of the operator's. Every user has its password. A server that
    MAKEREADY_NATS_URL names has no other user, and a container has none."""
    password = urlsplit(url).password
    separate = password and not os.environ.get("MAKEREADY_NATS_URL")
    return url_of(url, service, dict.fromkeys((*SERVICES, CONSOLE), password or "") if separate else {})
