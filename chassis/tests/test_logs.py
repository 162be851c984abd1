"""What a log line may hold."""

import asyncio
import subprocess
import sys

from makeready_local.testing import PostgresServer

PROGRAM = """
import structlog
from chassis import logs
logs.configure("test")
log = structlog.get_logger("test")

def fails():
    secret = "hunter2"
    raise ValueError("it failed")

try:
    fails()
except ValueError:
    log.exception("fault", token="hunter2", authorization="hunter2", secret="hunter2", reason="known")
"""


def test_a_logged_exception_tells_where_and_why_but_no_local_variable_and_no_secret() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "it failed" in done.stderr and '"reason": "known"' in done.stderr and "fails" in done.stderr
    assert "hunter2" not in done.stderr


OF_A_ROW = """
import asyncio, sys
import asyncpg, structlog
from chassis import logs
logs.configure("test")
log = structlog.get_logger("test")

async def main():
    connection = await asyncpg.connect(sys.argv[1])
    await connection.execute("CREATE TEMP TABLE party (id int PRIMARY KEY, phone text CHECK (length(phone) < 5))")
    try:
        try:
            await connection.execute("INSERT INTO party VALUES (1, $1)", "hunter2")
        except asyncpg.CheckViolationError as error:
            assert "hunter2" in str(error)
            raise ValueError("it failed") from error
    except ValueError:
        log.exception("fault")

asyncio.run(main())
"""


async def test_what_postgresql_tells_of_a_row_is_not_logged(postgres_server: PostgresServer) -> None:
    """Not even where a constraint that no request should reach is broken: rows hold residents' data."""
    url = postgres_server.create_database("logs_test")
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", OF_A_ROW, url], capture_output=True, text=True, check=True
    )
    assert "it failed" in done.stderr and "party_phone_check" in done.stderr and "CheckViolation" in done.stderr
    assert "hunter2" not in done.stderr
