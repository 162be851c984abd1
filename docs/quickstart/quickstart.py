# 1. Your key: a company administrator mints one of scope write in the console, under Keys.
# Install the client as /docs/clients says; set MAKEREADY_API_KEY and MAKEREADY_BASE_URL.
from datetime import timedelta

from makeready_client import Makeready, models

client = Makeready()
print(client.whoami().company.name)

# 2. List: units, in the order of their ids.
units = list(client.units.list())
print(len(units), "units")

# 3. Create: a ticket on the first unit. Sent again with the same Idempotency-Key, it is still one ticket.
ticket = client.tickets.create(unit_id=units[0].entity_id, title="Kitchen tap drips", category="Plumbing")
print(ticket.entity_id, ticket.status)

# 4. Receive: the event that this caused. The answer comes as soon as there is one.
since = ticket.created_at - timedelta(minutes=1)
for event in client.events.follow(since=since, event="ticket.created"):
    if isinstance(event.data, models.Ticket) and event.data.entity_id == ticket.entity_id:
        print(event.event, event.data.entity_id)
        break
