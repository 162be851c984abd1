"""Opens a ticket on a unit: python create_ticket.py UNIT_ID TITLE ORDER

ORDER is your own number of the work. As the Idempotency-Key it makes sure that no run of this program opens a second
ticket for it, whatever happened to the first one.
"""

import sys

from makeready_client import Makeready, errors

_, unit_id, title, order = sys.argv
with Makeready() as mk:
    try:
        ticket = mk.tickets.create(
            unit_id=int(unit_id), title=title, category="Plumbing", idempotency_key=f"order-{order}"
        )
    except errors.IdempotencyMismatch:
        sys.exit(f"order {order} has another ticket already")
    except errors.InvalidRequest as error:
        sys.exit(error.message)
    print(ticket.entity_id, "opened before" if ticket.replayed else "opened", ticket.url)
