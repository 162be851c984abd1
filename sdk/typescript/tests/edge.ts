// What the client does where the network or the API fails, and how long it would wait: node edge.ts UNIT_ID. Requests
// reach the real API; only answers are lost, and replaced, on their way back.
import { type Attempt, Makeready } from "@makeready/client";

const unit_id = Number(process.argv[2]);
const keys: string[] = [];
const results: Record<string, unknown> = {};

/** A client whose next answers are replaced: null loses the real one, undefined leaves it. */
function with_(answers: (Response | null | undefined)[], settings: object = {}): [Makeready, () => number] {
  let sent = 0;
  const client = new Makeready({
    ...settings,
    fetch: async (url, init) => {
      const at = sent++;
      const key = new Headers(init?.headers).get("Idempotency-Key");
      if (key) keys.push(key);
      const replaced = answers[at];
      if (replaced) return replaced;
      const response = await fetch(url, init);
      if (replaced === undefined) return response;
      await response.text();
      throw new TypeError("fetch failed");
    },
  });
  return [client, () => sent];
}

const failing = (status: number, code: string, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify({ error: { code, message: "Said by the test." } }), { status, headers });
const caught = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => "no error", (error: unknown) => error);
const nameOf = (error: unknown): string => (error instanceof Error ? error.name : String(error));
const body = { unit_id, title: "Of the edge", category: "Plumbing" } as const;

{
  const [client, sent] = with_([null, null]);
  const ticket = await client.tickets.create(body);
  results["lost twice"] = [sent(), ticket.replayed, new Set(keys).size];
  const again = await client.tickets.create(body, { idempotencyKey: keys[0] });
  results["same key later"] = [again.entity_id === ticket.entity_id, again.replayed];
}
{
  const counts: number[] = [];
  const ids = new Set<number>();
  await Promise.all(Array.from({ length: 20 }, async (_, n) => {
    const [client, sent] = with_(n % 3 ? [null] : [failing(503, "vault_unavailable"), null]);
    ids.add((await client.tickets.create({ ...body, title: `Many ${n}` })).entity_id);
    counts.push(sent());
  }));
  results["many"] = [ids.size, Math.min(...counts), Math.max(...counts)];
}
for (
  const [name, answers] of Object.entries({
    "500 once": [failing(500, "internal_error")],
    "500 twice": [failing(500, "internal_error"), failing(500, "internal_error")],
    "503": [failing(503, "vault_unavailable"), failing(503, "receiver_busy"), new Response("<html>", { status: 503 })],
    "502 and 504 of a proxy": [new Response("<html>", { status: 502 }), new Response("<html>", { status: 504 })],
    "503 for ever": Array.from({ length: 9 }, () => failing(503, "vault_unavailable")),
    "in progress": [failing(409, "idempotency_in_progress")],
    mismatch: [failing(409, "idempotency_mismatch")],
    "429": [failing(429, "rate_limited", { "Retry-After": "1" })],
    "429 more often than retries": Array.from({ length: 6 }, () => failing(429, "rate_limited")),
    "400": [failing(400, "invalid_request")],
    "401": [failing(401, "key_revoked")],
    "404": [failing(404, "not_found")],
    "422 of a later version": [failing(422, "no_such_code_yet")],
    redirected: [new Response(null, { status: 302, headers: { Location: "https://elsewhere.example/" } })],
    "no json": [new Response("hello", { status: 200 })],
    "the prototype": [failing(422, "toString")],
  })
) {
  const [client, sent] = with_(answers, /more often|for ever/.test(name) ? { retries: 2 } : {});
  const started = performance.now();
  const error = await caught(client.whoami());
  const waits = answers.some((one) => one.headers.has("Retry-After"));
  results[name] = [nameOf(error), sent(), waits && performance.now() - started > 999];
}
{
  const [client, sent] = with_([failing(503, "vault_unavailable", { "Retry-After": "60" })], { timeoutSeconds: 5 });
  results["beyond the deadline"] = [nameOf(await caught(client.whoami())), sent()];
}
{
  const used = new Response("{}", { headers: { RateLimit: '"key";r=0;t=1' } });
  const [client, sent] = with_([used, new Response("{}")]);
  await client.whoami();
  const started = performance.now();
  await client.whoami();
  results["limit used up"] = [sent(), performance.now() - started > 900];
}
{
  const [client, sent] = with_([new Response("{}", { headers: { RateLimit: '"key";r=0;t=50' } })], {
    timeoutSeconds: 5,
  });
  await client.whoami();
  const error = await caught(client.whoami());
  results["limit beyond the deadline"] = [nameOf(error), sent()];
}
{
  const [client] = with_([]);
  const started = performance.now();
  const events = client.events.follow({ since: new Date() }, { signal: AbortSignal.timeout(300) });
  const error = await caught((async () => {
    for await (const _ of events);
  })());
  results["ended by its signal"] = [nameOf(error), performance.now() - started < 10_000];
}
{
  const attempts: Attempt[] = [];
  const lines: string[] = [];
  const seen: (string | null)[] = [];
  const client = new Makeready({
    headers: { "X-Team": "bi" },
    onResponse: (attempt) => attempts.push(attempt),
    log: (line) => lines.push(line),
    fetch: async (_, init) => {
      const headers = new Headers(init?.headers);
      seen.push(`${headers.get("X-Team")} ${headers.get("X-Job")} ${headers.get("Authorization")?.startsWith("Bearer mk_")}`);
      if (seen.length === 1) throw new TypeError("fetch failed");
      if (seen.length === 2) return failing(503, "vault_unavailable", { "X-Request-Id": "r1" });
      return new Response("{}", { headers: { "X-Request-Id": "r2", RateLimit: '"key";r=7;t=60' } });
    },
  });
  await client.tickets.get(17, { headers: { "X-Job": "nightly", authorization: "none", "x-team": "ops" } });
  const single = await caught(client.tickets.get(17, { retries: 0, timeoutSeconds: 0 }));
  results["each request is told"] = [
    attempts.map((one) => [one.method, one.path, one.status, one.requestId, one.number, one.remaining]),
    lines.map((line) => line.split(" in ")[0]),
    seen,
    nameOf(single),
  ];
}
{
  // A proxy without the API, then a wait that newer requests end, then an event.
  const page = { data: [], next_cursor: null, resume_cursor: "c", limit: 200, positions: [] };
  const event = { event_id: "e1", event: "ticket.created" };
  const [client, sent] = with_([
    new Response("<html>", { status: 502 }),
    new Response(JSON.stringify(page), { headers: { "Service-Wait": "superseded" } }),
    new Response(JSON.stringify({ ...page, data: [event], positions: [1] })),
  ], { retries: 0 });
  const retried: [string, number][] = [];
  const started = performance.now();
  const events = client.events.follow({ onRetry: (error, seconds) => retried.push([error.name, seconds]) });
  for await (const { event_id } of events) {
    results["following outlasts faults"] = [event_id, sent(), retried, performance.now() - started > 2900];
    break;
  }
}
{
  // The first answer breaks off within the second record; the second one goes on after the first.
  const lines = ['{"entity_id":1,"title":"é"}\n', '{"entity_id":2,"ti'];
  const broken = new ReadableStream({
    start(controller) {
      for (const one of lines) controller.enqueue(new TextEncoder().encode(one));
    },
    pull: (controller) => controller.error(new Error("cut")),
  }, { highWaterMark: 0 });
  const rest = '{"entity_id":2,"title":"b"}\n{"entity_id":3,"title":"c"}\n';
  const places: string[] = [];
  const answers = [new Response(broken, { headers: { "Service-Resume-Cursor": "one" } }), new Response(rest)];
  const client = new Makeready({ fetch: async (url) => (places.push(new URL(String(url)).search), answers.shift()!) });
  const snapshot = client.snapshots.tickets();
  const ids: number[] = [];
  for await (const one of snapshot) ids.push(one.entity_id);
  results["a snapshot that breaks off"] = [ids, places, snapshot.resumeCursor];
}
{
  const [client, sent] = with_([]);
  const wrong = [
    () => new Makeready({ apiKey: "mk a" }),
    () => new Makeready({ baseUrl: "ftp://x" }),
    () => new Makeready({ timeoutSeconds: 0 }),
    () => client.tickets.get(NaN),
    () => client.webhooks.getDelivery(1, ".."),
  ];
  const thrown = await Promise.all(wrong.map((one) => caught((async () => one())())));
  results["not sent"] = [
    thrown.map(nameOf),
    nameOf(await caught(client.tickets.create(body, { idempotencyKey: "é" }))),
    sent(),
  ];
}
console.log(JSON.stringify(results));
