// Completes every ticket that waits for nothing but its note: node close.ts PROPERTY_ID
import { errors, Makeready } from "@makeready/client";

const client = new Makeready();
const property_id = Number(process.argv[2]);
let completed = 0;
for await (const ticket of client.tickets.list({ property_id, status: "In Progress" })) {
  try {
    const note = "Work is done, the resident has been told.";
    await client.tickets.changeStatus(ticket.entity_id, { status: "Completed", note });
    completed += 1;
  } catch (error) {
    if (!(error instanceof errors.InvalidRequest)) throw error; // such as a company that asks for a photo first
    console.log(ticket.entity_id, error.message);
  }
}
console.log(completed, "completed");
