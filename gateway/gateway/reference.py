"""What the gateway serves of its own contract: the OpenAPI document."""

from __future__ import annotations

from importlib import resources

import msgspec

from gateway import replies

# Stands in the committed files where each installation has a base URL of its own.
BASE_URL = "https://makeready.example/api/v1"


class Reference:
    """Read once, at the start."""

    def __init__(self, api_url: str) -> None:
        quoted = msgspec.json.encode(api_url)[1:-1]
        self.document = replies.json(_file("openapi.json").replace(BASE_URL.encode(), quoted))


def _file(name: str) -> bytes:
    return (resources.files("gateway") / "pages" / name).read_bytes()
