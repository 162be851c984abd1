// What tests of programs are given: node testing.ts
import { Makeready, Mirror, type Batch, errors, webhooks } from "@makeready/client";
import { type Examples, SECRET, fakeApi, record, signed } from "@makeready/client/testing";

const body = { unit_id: 4, title: "Tap", category: "Leak" } as const;
const nameOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(() => "no error", (error: Error) => error.name);
const thrown = (called: () => unknown): string => {
  try {
    return String(called());
  } catch (error) {
    return String(error).split(";")[0]!;
  }
};
const api = fakeApi();
const client = new Makeready({ apiKey: "mk_any", baseUrl: api.baseUrl, fetch: api.fetch });
const results: Record<string, unknown> = {};
{
  const ticket = record("Ticket", { title: "Tap", property: { name: "Elm Court" }, unit: null });
  const event = record("TicketStatusChangedEvent", { data: { entity_id: 3 }, change: { from: "On Hold" } });
  results["records"] = [
    [ticket.title, ticket.property.name, ticket.property.id, ticket.unit, record("Ticket").title],
    [event.data.entity_id, event.change.from],
    thrown(() => record("Ticket", { property: { nam: "x" } } as object)),
    thrown(() => record("Tickets" as keyof Examples)),
  ];
}
{
  const event = record("TicketCreatedEvent");
  const { body, headers } = await signed(event);
  const standard = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("webhook-")));
  const old = await signed(event, SECRET, { now: Date.now() / 1000 - 302 });
  const ours = await signed(event, "of before");
  results["deliveries"] = [
    (await webhooks.verify(body, headers, SECRET)).event_id === event.event_id,
    (await webhooks.verify(body, standard, SECRET)).event,
    (await webhooks.verify(ours.body, ours.headers, "of before")).event,
    await nameOf(webhooks.verify(body, headers, "whsec_other")),
    await nameOf(webhooks.verify(old.body, old.headers, SECRET)),
  ];
}
{
  api.add(record("Unit", { entity_id: 9, name: "Loft", property: { id: 7, name: "Elm Court" } }));
  const ticket = await client.tickets.create({ ...body, unit_id: 9 }, { idempotencyKey: "one" });
  const again = await client.tickets.create({ ...body, unit_id: 9 }, { idempotencyKey: "one" });
  const done = await client.tickets.changeStatus(ticket.entity_id, { status: "Completed", note: "A new washer is in now" });
  const read = await client.tickets.get(ticket.entity_id);
  const opened = await client.tickets.changeStatus(ticket.entity_id, { status: "Open" });
  const listed = [];
  for await (const { entity_id } of client.tickets.list({ unit_id: 9 })) listed.push(entity_id === ticket.entity_id);
  const made = await client.webhooks.create({ destination_url: "https://you.example/hooks", events: ["vendor.hold"] });
  const { data: [subscription] } = await client.webhooks.list().page();
  await client.webhooks.delete(made.entity_id);
  results["what is written is read again"] = [
    [ticket.title, ticket.status, ticket.unit?.name, ticket.property.id],
    [again.replayed, again.entity_id === ticket.entity_id],
    [done.completed_at !== null, JSON.stringify(read) === JSON.stringify(done), opened.completed_at, listed],
    [Boolean(made.secret), "secret" in subscription!, await nameOf(client.webhooks.delete(made.entity_id))],
  ];
}
{
  for (let entity_id = 100; entity_id < 106; entity_id += 1) api.add(record("Unit", { entity_id }));
  const sizes = [];
  for await (const page of client.units.list({ limit: 3 }).pages()) sizes.push(page.data.length);
  const copy = new Map<number, unknown>();
  const keep = async (batch: Batch): Promise<void> => {
    for await (const change of batch.changes) copy.set(change.entity_id, change.record);
  };
  const mirror = new Mirror(client, keep, { kinds: ["units"] });
  await mirror.run();
  const first = copy.size;
  api.add(record("Unit", { entity_id: 107 }));
  api.remove(record("Unit", { entity_id: 100 }));
  results["lists have pages and mirrors copies"] = [sizes, first, await mirror.run(), copy.get(100), copy.size];
  const events = [];
  for await (const event of client.events.follow()) {
    if (events.push(event.event) === 10) break;
  }
  results["events"] = new Set(events).size;
}
{
  api.refuseNext("vault_unavailable");
  const before = api.requests.length;
  await client.whoami();
  const asked = api.requests.length - before;
  api.refuseNext("created_by_missing", { message: "Said by the test." });
  const refused = await client.tickets.create(body).catch((error: unknown) => error);
  const { fetch, baseUrl } = fakeApi({ mk_read: "read" });
  const reader = new Makeready({ apiKey: "mk_read", baseUrl, fetch });
  results["refusals"] = [
    [asked, await api.requests.at(-1)?.json()],
    [refused instanceof errors.CreatedByMissing, String(refused).includes("Said by the test.")],
    thrown(() => api.refuseNext("nonsense")),
    thrown(() => api.add({ entity_type: "cat" })),
    [(await reader.whoami()).key.scope, await nameOf(reader.tickets.create(body))],
    await nameOf(new Makeready({ apiKey: "mk_other", baseUrl, fetch }).whoami()),
    await nameOf(client.whoami({ signal: AbortSignal.abort() })),
  ];
}
console.log(JSON.stringify(results));
