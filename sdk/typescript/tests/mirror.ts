// What a store is given, and what becomes of it when something fails: node mirror.ts. The API is the program's own, of one
// kind; a cursor is the number of changes that were made before it.
import { type Batch, errors, Makeready, Mirror } from "@makeready/client";

class Api {
  readonly records = new Map<number, object>();
  changes: number[] = [];
  validFrom = 0; // older cursors have expired
  asked: string[] = [];
  answers: Response[] = []; // in place of its own

  put(id: number, record: object | null): void {
    this.changes.push(id);
    if (record) this.records.set(id, { entity_id: id, ...record });
    else this.records.delete(id);
  }

  readonly fetch = async (input: unknown): Promise<Response> => {
    const url = new URL(String(input));
    this.asked.push(url.pathname.replace("/api/v1", ""));
    const other = this.answers.shift();
    if (other) return other;
    if (url.pathname.includes("snapshots")) {
      const lines = [...this.records.values()].map((one) => `${JSON.stringify(one)}\n`).join("");
      return new Response(lines, { headers: { "Service-Resume-Cursor": `${this.changes.length}` } });
    }
    const cursor = Number(url.searchParams.get("cursor"));
    if (cursor < this.validFrom) return refused(410, "cursor_expired");
    const found = this.changes.slice(cursor, cursor + 1);
    const data = found.map((id) => ({ entity_id: id, gone: !this.records.has(id), record: this.records.get(id) ?? null }));
    const after = cursor + found.length;
    const next_cursor = after < this.changes.length ? `${after}` : null;
    return Response.json({ data, next_cursor, resume_cursor: `${after}`, limit: 200 });
  };
}

const refused = (status: number, code: string): Response =>
  Response.json({ error: { code, message: "Said by the test." } }, { status });
const nameOf = (error: unknown): string => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));
const caught = (promise: Promise<unknown>): Promise<string> => promise.then(() => "no error", nameOf);

function begun(): { api: Api; client: Makeready; kept: Map<number, unknown>; keep: (batch: Batch) => Promise<void> } {
  const api = new Api();
  api.put(1, { name: "Unit 1" });
  api.put(2, { name: "Unit 2 – ü" });
  const client = new Makeready({ apiKey: "k", baseUrl: "https://h/api/v1", retries: 0, fetch: api.fetch as typeof fetch });
  const kept = new Map<number, unknown>();
  const keep = async (batch: Batch): Promise<void> => {
    if (batch.isWhole) kept.clear();
    for await (const { entity_id, record } of batch.changes) {
      if (record) kept.set(entity_id, record);
      else kept.delete(entity_id);
    }
  };
  return { api, client, kept, keep };
}

const kinds = ["units"] as const;
const results: Record<string, unknown> = {};
{
  const { api, client, kept, keep } = begun();
  const mirror = new Mirror(client, keep, { kinds });
  const came = [await mirror.run()];
  api.put(1, null);
  api.put(3, { name: "Unit 3" });
  came.push(await mirror.run(), await mirror.run());
  came.push(await new Mirror(client, keep, { kinds, cursors: mirror.cursors }).run());
  const snapshots = api.asked.filter((one) => one === "/snapshots/units").length;
  results["gone records go"] = [came.map((one) => one.units), [...kept.keys()], snapshots];
  // A restore: what was lost goes with the snapshot that is taken anew.
  api.records.delete(2);
  [api.validFrom, api.changes] = [9, Array.from({ length: 9 }, () => 3)];
  results["an expired cursor"] = [(await mirror.run()).units, [...kept.keys()], mirror.cursors];
}
{
  const { client, kept, keep } = begun();
  let fails = true;
  const mirror = new Mirror(client, (batch) => {
    if (fails) throw new RangeError("full");
    return keep(batch);
  }, { kinds });
  const failed = [await caught(mirror.run()), { ...mirror.cursors }, mirror.counts.units];
  fails = false;
  results["a batch that fails"] = [...failed, (await mirror.run()).units, kept.size];
}
{
  const { api, client } = begun();
  const seen: number[] = [];
  const follow = new Mirror(client, async (batch) => {
    for await (const one of batch.changes) seen.push(one.entity_id);
    api.put(3, { name: "Unit 3" });
    if (seen.length > 3) throw new errors.KeyRevoked(401, "key_revoked", "Ask for a new one.", null, null);
  }, { kinds }).follow();
  results["following ends with what repeating would not change"] = [await caught(follow), seen];
}
{
  const { api, client, keep, kept } = begun();
  const ending = new AbortController();
  const mirror = new Mirror(client, async (batch) => {
    await keep(batch);
    if (batch.isWhole) api.answers = [new Response("<html>", { status: 502 })];
    else ending.abort(new Error("enough"));
  }, { kinds });
  const following = mirror.follow({ signal: ending.signal });
  while (!kept.size) await new Promise((resolve) => setTimeout(resolve, 10));
  api.put(3, { name: "Unit 3" });
  results["an outage is outlasted"] = [await caught(following), [...kept.keys()]];
}
{
  const { client } = begun();
  const of = (...names: string[]): string => {
    try {
      return String(new Mirror(client, () => undefined, { kinds: names as "units"[] }).kinds);
    } catch (error) {
      return nameOf(error).slice(0, 30);
    }
  };
  results["kinds"] = [of("units", "tickets"), of("cats")];
}
{
  // A store that does not read all: the connection is not left open, and what it has kept counts.
  const { client } = begun();
  const ended: boolean[] = [];
  const mirror = new Mirror(client, async ({ changes }) => {
    for await (const _ of changes) break;
    ended.push((await changes[Symbol.asyncIterator]().next()).done === true);
  }, { kinds });
  results["read in part"] = [(await mirror.step("units")), ended];
}
console.log(JSON.stringify(results));
