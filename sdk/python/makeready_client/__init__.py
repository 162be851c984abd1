"""A client of the Maintenance and Occupancy Records API.

    from makeready_client import Makeready
    for ticket in Makeready().tickets.list(status="Open"): print(ticket.title)

`Makeready` and `AsyncMakeready` have every operation; `webhooks.verify` judges deliveries; `Mirror` keeps a copy of the
records; `errors` has a class for each code.
"""

from makeready_client import errors, models, webhooks
from makeready_client.answers import Response
from makeready_client.client import AsyncMakeready, Makeready
from makeready_client.exchange import Attempt, __version__
from makeready_client.mirror import Batch, Change, Mirror
from makeready_client.sqlite import SqliteStore

__all__ = [
    "AsyncMakeready",
    "Attempt",
    "Batch",
    "Change",
    "Makeready",
    "Mirror",
    "Response",
    "SqliteStore",
    "__version__",
    "errors",
    "models",
    "webhooks",
]
