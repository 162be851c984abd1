"""Prints the open tickets: MAKEREADY_API_KEY=mk_… MAKEREADY_BASE_URL=https://HOST/api/v1 python open_tickets.py"""

from makeready_client import Makeready

with Makeready() as mk:
    for ticket in mk.tickets.list(status="Open"):
        print(ticket.entity_id, ticket.priority, ticket.title, ticket.unit.name if ticket.unit else "", sep="\t")
