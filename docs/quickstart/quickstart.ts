// 1. Your key: a company administrator mints one of scope write in the console, under Keys.
// Install the client as /docs/clients says; set MAKEREADY_API_KEY and MAKEREADY_BASE_URL.
import { Makeready } from "@makeready/client";

const client = new Makeready();
console.log((await client.whoami()).company.name);

// 2. List: units, in the order of their ids.
const units = [];
for await (const unit of client.units.list()) units.push(unit);
console.log(units.length, "units");

// 3. Create: a ticket on the first unit. Sent again with the same Idempotency-Key, it is still one ticket.
const [unit] = units;
if (!unit) throw new Error("The company has no units.");
const ticket = await client.tickets.create({ unit_id: unit.entity_id, title: "Kitchen tap drips", category: "Plumbing" });
console.log(ticket.entity_id, ticket.status);

// 4. Receive: the event that this caused. The answer comes as soon as there is one.
const since = new Date(Date.parse(ticket.created_at) - 60_000);
for await (const event of client.events.follow({ since, event: "ticket.created" })) {
  if (event.event === "ticket.created" && event.data.entity_id === ticket.entity_id) {
    console.log(event.event, event.data.entity_id);
    break;
  }
}
