"""One process that attacks a console: it reads `Attack` as a line of JSON, and writes `Outcome` as one.

Each connection sends its bytes and reads the answers. One that owes a part of its form waits to be closed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import zlib
from collections import Counter
from typing import TypedDict

HEAD_END = b"\r\n\r\n"
FIELD = b'--b\r\nContent-Disposition: form-data; name="act"\r\n\r\n%b\r\n'
FIELD_BYTES_MAX = 60_000


class Attack(TypedDict):
    port: int
    connections: int
    head: str
    """The lines of a request without its length."""
    requests: int
    """How many each connection sends at once."""
    form_bytes: int
    """The size of the form that is sent, in fields of 60 KB; 0: none is."""
    is_compressed: bool
    missing_bytes: int
    """What never comes of the form."""
    patience_seconds: float
    """How long a connection waits to be closed."""


class Outcome(TypedDict):
    answers: dict[str, int]
    """How many, by status."""
    body_bytes: int
    """The size of one request's body as it is sent."""
    left_open: int


def body_of(attack: Attack) -> bytes:
    size, end = attack["form_bytes"], b"--b--\r\n"
    sizes = (min(FIELD_BYTES_MAX, size - start) for start in range(0, size, FIELD_BYTES_MAX))
    fields = (FIELD % bytes(field_size) for field_size in sizes)
    if not attack["is_compressed"]:
        return b"".join((*fields, end)) if size else b""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join((*map(packer.compress, fields), packer.compress(end), packer.flush()))


async def attack_once(attack: Attack, number: int, sent: bytes, answers: Counter[str]) -> bool:
    """One connection; returns whether it is still open when its patience has ended."""
    opened = socket.socket()
    opened.setblocking(False)
    opened.bind((f"127.{number % 100 + 2}.1.1", 0))
    await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", attack["port"]))
    reader, writer = await asyncio.open_connection(sock=opened, limit=1 << 22)

    async def read() -> None:
        for _ in range(attack["requests"]):
            head = (await reader.readuntil(HEAD_END)).decode("latin-1").lower()
            answers[head.split(" ", 2)[1]] += 1
            _, separator, length = head.partition("content-length: ")
            if separator:
                await reader.readexactly(int(length.partition("\r\n")[0]))
        while attack["missing_bytes"] and await reader.read(65536):
            pass

    reading = asyncio.create_task(read())
    try:
        async with asyncio.timeout(attack["patience_seconds"]):
            writer.write(sent)
            await writer.drain()
            await reading
    except TimeoutError:
        return True
    except (OSError, asyncio.IncompleteReadError):
        return False
    finally:
        reading.cancel()
        writer.transport.abort()
    return False


async def main() -> None:
    attack: Attack = json.loads(sys.stdin.readline())
    body = body_of(attack)
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    request = f"{attack['head']}{length}\r\n".encode() + body[: len(body) - attack["missing_bytes"]]
    answers: Counter[str] = Counter()
    sent = request * attack["requests"]
    tasks = [attack_once(attack, number, sent, answers) for number in range(attack["connections"])]
    left_open = sum(await asyncio.gather(*tasks))
    outcome: Outcome = {"answers": dict(answers), "body_bytes": len(body), "left_open": left_open}
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
