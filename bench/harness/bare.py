"""`python -m harness.bare BODIES PORT AUTHORITY POSTS CONNECTIONS`: a bare aiohttp client that signs and posts bodies.

Connects first, then posts and prints the cost of the posts: {"seconds": CPU of this process, "elapsed": wall time}.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import json
import ssl
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import uvloop

HOST = "receiver.test"
SECRET = b"whsec_the-bare-client-has-a-secret-too-of-this-length"


async def post(bodies: list[bytes], port: int, authority: str, posts: int, connections: int) -> dict[str, float]:
    """Posts one body. Raises RuntimeError for an answer other than 200."""
    context = ssl.create_default_context(cafile=authority)
    connector = aiohttp.TCPConnector(ssl=context, limit=connections)
    url = f"https://127.0.0.1:{port}/hook"

    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def work(remaining: Iterator[bytes]) -> None:
            for body in remaining:
                moment = int(time.time())
                digest = hmac.new(SECRET, b"%d." % moment + body, hashlib.sha256).hexdigest()
                headers = {
                    "Host": HOST,
                    "Content-Type": "application/json",
                    "Service-Signature": f"t={moment},v1={digest}",
                    "Service-Attempt": "1",
                }
                async with session.post(url, data=body, headers=headers, server_hostname=HOST) as response:
                    await response.read()
                    if response.status != 200:
                        raise RuntimeError(f"{response.status} from the receiver")

        async def run(many: int) -> None:
            remaining = itertools.islice(itertools.cycle(bodies), many)
            await asyncio.gather(*(work(remaining) for _ in range(connections)))

        await run(4 * connections)
        began, started = time.process_time(), time.perf_counter()
        await run(posts)
        return {"seconds": time.process_time() - began, "elapsed": time.perf_counter() - started}


def main() -> None:
    file, port, authority, posts, connections = sys.argv[1:]
    bodies = Path(file).read_bytes().splitlines()
    measured = uvloop.run(post(bodies, int(port), authority, int(posts), int(connections)))
    sys.stdout.write(json.dumps(measured))


if __name__ == "__main__":
    main()
