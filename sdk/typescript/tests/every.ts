// Calls every operation, and prints what was asked: node every.ts DESTINATION, with the client's environment.
import { errors, KINDS, Makeready } from "@makeready/client";

const asked: string[] = [];
const client = new Makeready({
  fetch: (url, init) => {
    asked.push(`${init?.method} ${new URL(String(url)).pathname.replace(/^.*\/api\/v1/, "")}`);
    return fetch(url, init);
  },
});

async function first<T>(found: AsyncIterable<T>): Promise<T> {
  for await (const one of found) return one;
  throw new Error("nothing is there");
}

const results: Record<string, unknown> = {};
results["scope"] = (await client.whoami()).key.scope;
results["openapi"] = (await client.openapi())["openapi"];

results["found"] = (await client.search({ external_id: "nothing has it", kind: "unit" })).data.length;

const property = await client.properties.get((await first(client.properties.list())).entity_id);
const unit = await client.units.get((await first(client.units.list({ property_id: property.entity_id }))).entity_id);
await client.assets.get((await first(client.assets.list({ status: "Active" }))).entity_id);
await client.vendors.get((await first(client.vendors.list())).entity_id);
await client.inspections.get(
  (await first(client.inspections.list({ unit_id: unit.entity_id, limit: 1 }).pages())).data[0]?.entity_id ??
    (await first(client.inspections.list())).entity_id,
);
const meter = await client.meters.get((await first(client.meters.list())).entity_id);
const month = { period_start: "2026-01-01T00:00:00Z", period_end: "2026-02-01T00:00:00Z", consumption: 12.5 };
results["reading"] = (await client.meters.addReadings(meter.entity_id, { readings: [month] })).data[0]?.outcome;
results["readings"] = (await client.meters.listReadings(meter.entity_id, { limit: 1 }).page()).data.length;

const subscription = await client.webhooks.create({ destination_url: process.argv[2]!, events: ["ticket.created"] });
results["secret"] = subscription.secret;
const begun = new Date(Date.now() - 60_000);
const ticket = await client.tickets.create({ unit_id: unit.entity_id, title: "Tap – 漏水 🚿", category: "Plumbing" });
results["own fields"] = Object.keys(ticket).filter((one) => ["requestId", "replayed"].includes(one)).length;
results["request id"] = ticket.requestId;
await client.tickets.get(ticket.entity_id);
results["listed"] = (await first(client.tickets.list({ unit_id: unit.entity_id, updated_since: begun }))).title;
const note = "Done and tested it twice.";
results["status"] = (await client.tickets.changeStatus(ticket.entity_id, { status: "Completed", note })).status;
const member = await first(client.staff.list());
results["assignee"] = (await client.tickets.assign(ticket.entity_id, { assignee_id: member.entity_id })).assignee?.name;
results["comment"] = (await client.tickets.comment(ticket.entity_id, { text: "Done. 🚿" })).author;
results["photo"] =
  (await client.tickets.createPhoto(ticket.entity_id, { photo_url: "https://photos.example/1.jpg" })).photo_url;

const moved = await client.units.recordMoveIn(unit.entity_id, {
  move_in_date: "2026-01-01",
  lease_start_date: "2026-01-01",
  provider: "tests",
  parties: [{ first_name: "Ana", last_name: "Ortiz", role: "leaseholder" }],
});
const noticed = await client.units.recordNotice(unit.entity_id, { move_out_date: "2027-01-01", provider: "tests" });
results["turn"] = [moved.entity_id === noticed.entity_id, (await client.turns.get(moved.entity_id)).status];
await first(client.turns.list({ status: "Active" }));

const followed = client.events.follow({ event: "ticket.created", since: begun });
const event = await first(followed);
results["followed"] = [event.event, event.event === "ticket.created" && followed.cursor !== null];
let events = 0;
for (let looks = 0; events < 2 && looks < 100; looks += 1) { // the second event comes a moment after the first
  if (looks > 0) await new Promise((later) => setTimeout(later, 600));
  const page = await client.events.list({ entity_type: "ticket", entity_id: ticket.entity_id }).page();
  events = page.positions?.length ?? 0;
}
results["events"] = events;

const { request_id: loggedId, ...logged } = await first(client.requests.follow({ route: "/tickets", wait: 20 }));
results["logged"] = [logged.route, logged.entity_type, (await client.requests.fetch(loggedId)).request_body];

const reports = [
  await client.reports.tickets({ group_by: "category" }),
  await client.reports.vendors({ bucket: "day" }),
  await client.reports.turns(),
  await client.reports.inspections({ group_by: "item" }),
];
results["reports"] = reports.map((report) => [report.name, report.total.length, report.group_by]);

const clock = await client.sandbox.getClock();
const advance = await client.sandbox.advanceClock({ advance_by: "PT0S" });
const [start, target] = [advance.start, advance.target].map((instant) => Date.parse(instant ?? ""));
results["advanced"] = [clock.status, advance.status, target! - start!];

const counts: Record<string, [number, number]> = {};
for (const kind of KINDS) {
  let records = 0;
  const snapshot = client.snapshots[kind]();
  for await (const _ of snapshot) records += 1;
  const page = await client.changes[kind]({ cursor: snapshot.resumeCursor, wait: 0 }).page();
  counts[kind] = [records, page.data.length];
}
results["copies"] = counts;

results["test"] = (await client.webhooks.test(subscription.entity_id)).state;
results["health"] = (await first(client.webhooks.list())).health;
const delivery = await first(client.webhooks.listDeliveries(subscription.entity_id));
await client.webhooks.getDelivery(subscription.entity_id, delivery.event_id);
const replay = await client.webhooks.createReplay(subscription.entity_id, {
  since: begun.toISOString(),
  until: new Date().toISOString(),
});
results["matched"] = (await client.webhooks.getReplay(subscription.entity_id, replay.entity_id)).matched;
await client.webhooks.setFilter(subscription.entity_id, { priorities: ["High"] });
results["filter"] = (await client.webhooks.getFilter(subscription.entity_id)).priorities;
await client.webhooks.delete(subscription.entity_id);

const trigger = { event: "property.notice.published", property_id: property.entity_id } as const;
const published = await client.sandbox.createTrigger(trigger);
results["triggered"] = published.event === "property.notice.published" && published.data.property;

try {
  await client.tickets.get(2 ** 52);
} catch (error) {
  results["missing"] = error instanceof errors.NotFound &&
    [error.name, error.status, error.code, error.requestId !== null];
}
try {
  await client.tickets.create({ unit_id: unit.entity_id, title: "", category: "Plumbing" });
} catch (error) {
  results["refused"] = error instanceof errors.InvalidRequest && error.status;
}
console.log(JSON.stringify({ asked, results }));
