// An API in this process, which plays the contract's examples.

import { type Body, type Fields, Refused, checked, invalid, isInstant, isObject } from "./bodies.ts";
import { type Examples, contract } from "./contract.ts";
import type { KeyScope } from "./models.ts";

const PREFIX = "/api/v1";
type Id = number | string; // of deliveries their events' ids

/** The contract as the fake reads it. */
export interface Contract {
  version: string;
  scopes: Record<string, string[]>;
  codes: Record<string, { statuses: number[]; message: string }>;
  limits: { page: number; page_max: number; wait: number; key: number };
  operations: Operation[];
  /** The name of the model of each collection that has a list. */
  collections: Record<string, string>;
  bodies: Record<string, Body>;
  events: string[];
  examples: Examples;
}

interface Operation {
  method: string;
  path: string;
  kind: string;
  scope: string;
  answer: string;
  codes: string[];
  query: string[];
  required: string[];
  filters: Record<string, Filter>;
  // Of writes.
  key_sentence?: string;
  body?: string;
  status?: number;
  differing?: Fields;
}

interface Filter {
  type: string;
  values?: string[];
  requires?: string;
}

/** A request that is answered. */
interface Call {
  operation: Operation;
  /** Those of the path, by name. */
  ids: Record<string, string>;
  query: Record<string, string>;
  key: string;
}

/** Records that have a list, by id, and the ids in the order of their last changes. */
class Collection {
  readonly records: Map<Id, Fields> = new Map();
  readonly changes: Id[] = [];

  put(id: Id, fields: Fields): void {
    this.records.set(id, fields);
    this.changes.push(id);
  }

  /** Ascending by id. */
  get sorted(): [Id, Fields][] {
    return [...this.records].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

/**
 * An API for `new Makeready({ baseUrl: api.baseUrl, fetch: api.fetch })`, which answers without a network.
 *
 * It has one record of each kind at first, the contract's example. It refuses what the API refuses by the contract:
 * other paths, verbs, keys, scopes, query keys, values and bodies, a write without `Idempotency-Key`, ids that it does
 * not have. It does not keep the rules between records, such as that a unit is occupied: let `refuseNext` answer those.
 * It counts no rate limit, and answers a `wait` at once.
 */
export class FakeApi {
  readonly baseUrl: string = `https://makeready.test${PREFIX}`;
  /** What was asked, in its order. */
  readonly requests: Request[] = [];
  readonly #keys: Readonly<Record<string, KeyScope>> | undefined;
  readonly #refusals: Refused[] = [];
  readonly #kept: Map<string, { content: string; status: number; answer: Fields }> = new Map();
  readonly #collections: Map<string, Collection> = new Map();
  readonly #events: Fields[] = contract.events.map(example);

  /** @param keys The scope of each key; any key has the scope `write` if left out. */
  constructor(keys?: Readonly<Record<string, KeyScope>>) {
    this.#keys = keys;
    for (const [noun, model] of [...Object.entries(contract.collections), ["replays", "WebhookReplay"] as const]) {
      this.#collections.set(noun, new Collection());
      this.#put(noun, example(model));
    }
  }

  /** Answers a request as `fetch` does. */
  readonly fetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    request.signal.throwIfAborted();
    this.requests.push(request.clone());
    const raw = await request.arrayBuffer();
    let response: Response;
    try {
      response = this.#answered(request, raw);
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      const { status, code, message, headers } = refused;
      response = Response.json({ error: { code, message } }, { status, headers });
    }
    response.headers.set("Cache-Control", "no-store");
    response.headers.set("X-Request-Id", crypto.randomUUID().replaceAll("-", "").slice(0, 24));
    return response;
  };

  /** Adds a record or an event, or replaces the one with its id. Throws TypeError for what has no list. */
  add(added: object): void {
    const fields: Fields = structuredClone(added);
    if ("event_id" in fields && "occurred_at" in fields && "data" in fields) {
      this.#events.push(fields);
      return;
    }
    const [noun] = Object.entries(contract.collections).find(([, model]) =>
      example(model)["entity_type"] === fields["entity_type"]
    ) ?? [];
    if (!noun) throw new TypeError(`no list has records of the type ${fields["entity_type"]}`);
    this.#put(noun, fields);
  }

  /** Removes a record: its feed of changes says then that it is gone. */
  remove(removed: { entity_type: string; entity_id: number }): void {
    for (const { records, changes } of this.#collections.values()) {
      for (const [id, fields] of [...records]) {
        if (fields["entity_type"] === removed.entity_type && fields["entity_id"] === removed.entity_id) {
          records.delete(id);
          changes.push(id);
        }
      }
    }
  }

  /** Refuses the next request with a code of the contract, whatever it is. Throws TypeError for another code. */
  refuseNext(code: string, { status, message }: { status?: number; message?: string } = {}): void {
    if (!Object.hasOwn(contract.codes, code)) {
      throw new TypeError(`no such code: ${code}; there are ${Object.keys(contract.codes).join(", ")}`);
    }
    const refused = ofCode(code);
    this.#refusals.push(new Refused(status ?? refused.status, code, message ?? refused.message, refused.headers));
  }

  #put(noun: string, fields: Fields): void {
    this.#of(noun).put(noun === "deliveries" ? fields["event_id"] : fields["entity_id"], fields);
  }

  #of(noun: string): Collection {
    return this.#collections.get(noun)!;
  }

  #answered(request: Request, raw: ArrayBuffer): Response {
    const refusal = this.#refusals.shift();
    if (refusal) throw refusal;
    const url = new URL(request.url);
    const path = decodeURIComponent(url.pathname);
    const { operation, ids } = matched(request.method, path);
    const key = this.#authorized(request.headers.get("Authorization") ?? "", operation);
    const call = { operation, ids, key, query: queryOf(url.searchParams, operation) };
    if (operation.kind !== "write") return this.#read(call);
    const idempotencyKey = request.headers.get("Idempotency-Key");
    if (!idempotencyKey) throw new Refused(400, "idempotency_key_required", operation.key_sentence!);
    if (idempotencyKey.length > contract.limits.key) {
      throw invalid(`Idempotency-Key must be at most ${contract.limits.key} characters.`);
    }
    const body = checked(contract.bodies[operation.body!]!, raw);
    const content = `${request.method} ${path} ${sortedJson(body)}`;
    const kept = this.#kept.get(`${key} ${idempotencyKey}`);
    if (kept) {
      if (kept.content !== content) throw ofCode("idempotency_mismatch");
      const { secret: _, ...replayed } = kept.answer;
      return Response.json(replayed, { status: kept.status, headers: { "X-Idempotent-Replay": "1" } });
    }
    const answer = this.#written(call, body);
    const status = operation.status!;
    this.#kept.set(`${key} ${idempotencyKey}`, { content, status, answer: structuredClone(answer) });
    return Response.json(answer, { status });
  }

  /** The key of a request that may be answered; empty where none is needed. */
  #authorized(authorization: string, operation: Operation): string {
    if (operation.scope === "public") return "";
    const [, key] = /^bearer (.+)$/i.exec(authorization) ?? [];
    if (!key || (this.#keys && !Object.hasOwn(this.#keys, key))) {
      throw ofCode("unauthorized", { "WWW-Authenticate": "Bearer" });
    }
    if (!contract.scopes[operation.scope]!.includes(this.#scope(key))) {
      const scope = operation.scope;
      const message = `This key's scope does not cover this operation; use a key with the scope ${scope}.`;
      throw new Refused(403, "insufficient_scope", message);
    }
    return key;
  }

  #scope(key: string): KeyScope {
    return this.#keys?.[key] ?? "write";
  }

  #read(call: Call): Response {
    const { kind, path } = call.operation;
    const last = lastOf(path);
    if (kind === "snapshot") return this.#snapshot(call, last);
    if (kind === "delete") {
      if (!this.#of(path.split("/")[1]!).records.delete(firstId(call))) throw notFound(path);
      return new Response(null, { status: 204 });
    }
    if (kind === "list") {
      this.#checkParents(call);
      return Response.json(page(call, this.#ofList(call, last)));
    }
    if (kind === "feed") return Response.json(this.#feed(call, last));
    if (kind === "search") return Response.json({ data: this.#withExternalId(call.query) });
    return Response.json(kind === "own" ? this.#own(call) : this.#fetched(call));
  }

  #withExternalId({ external_id, kind }: Record<string, string>): Fields[] {
    const names = Object.keys(example("FoundRecord"));
    return [...this.#collections.values()].flatMap(({ sorted }) => sorted.map(([, fields]) => fields))
      .filter((fields) => fields["external_id"] === external_id && (!kind || kind === fields["entity_type"]))
      .map((fields) => Object.fromEntries(names.map((name) => [name, fields[name]])));
  }

  #own({ operation, key }: Call): Fields {
    if (operation.path !== "/whoami") {
      return { openapi: "3.1.0", info: { title: "A fake", version: contract.version }, paths: {} };
    }
    const whoami = example("Whoami");
    whoami["key"].scope = this.#scope(key);
    return whoami;
  }

  #fetched(call: Call): Fields {
    const { path, answer } = call.operation;
    const [noun = "", last = ""] = path.split("/").slice(-2);
    if (!last.startsWith("{")) { // a part of the record, such as its filter
      this.#checkParents(call);
      return Object.keys(call.ids).length ? { ...example(answer), entity_id: firstId(call) } : example(answer);
    }
    this.#checkParents(call, 1);
    const text = Object.values(call.ids).at(-1)!;
    const fields = this.#of(noun).records.get(last === "{event_id}" ? text : number(text));
    if (!fields) throw notFound(path);
    return contract.collections[noun] === answer ? fields : { ...example(answer), ...fields };
  }

  /** Refuses ids of the path that no record has, but for so many of the last ones. */
  #checkParents({ operation, ids }: Call, butLast = 0): void {
    const segments = operation.path.split("/");
    for (const [name, text] of Object.entries(ids).slice(0, Object.keys(ids).length - butLast)) {
      const noun = segments[segments.indexOf(`{${name}}`) - 1]!;
      if (this.#collections.get(noun)?.records.has(number(text)) === false) throw notFound(`/${noun}/{${name}}`);
    }
  }

  #ofList({ query, ids }: Call, noun: string): Fields[] {
    const { sub_id: _, ...filters } = { ...query, ...ids };
    return this.#of(noun).sorted.map(([, fields]) => fields)
      .filter((fields) => Object.entries(filters).every(([name, text]) => passes(fields, name, text)));
  }

  #feed(call: Call, noun: string): Fields {
    let items = [example(call.operation.answer)];
    if (noun === "events") items = this.#events.filter((event) => isNamed(event, call.query));
    else if (this.#collections.has(noun)) items = this.#changed(call, noun);
    const paged = page(call, items);
    const end = position(call, items) + paged["data"].length;
    const positions = paged["data"].map((_: Fields, index: number) => end - paged["data"].length + index + 1);
    return { ...paged, resume_cursor: `at.${end}`, ...(noun === "events" ? { positions } : {}) };
  }

  /** Each change; an earlier one of a record shows its latest state, as a page of the API does. */
  #changed(call: Call, noun: string): Fields[] {
    const { records, changes } = this.#of(noun);
    return changes.map((id) => ({
      ...example(call.operation.answer),
      entity_id: id,
      gone: !records.has(id),
      record: records.get(id) ?? null,
    }));
  }

  #snapshot({ query }: Call, noun: string): Response {
    const { sorted, changes } = this.#of(noun);
    const begin = Number(query["after_id"] ?? 0);
    const lines = sorted.filter(([id]) => Number(id) > begin).map(([, fields]) => `${JSON.stringify(fields)}\n`);
    const headers = new Headers({ "Content-Type": "application/x-ndjson" });
    if (!("after_id" in query)) headers.set("Service-Resume-Cursor", `at.${changes.length}`);
    return new Response(lines.join(""), { headers });
  }

  /** The answer of a write: the contract's example with what the body says. */
  #written(call: Call, body: Fields): Fields {
    const { path, answer, differing = {}, body: model } = call.operation;
    this.#checkParents(call);
    this.#checkNamed(body);
    const noun = path.split("/")[1]!;
    const isStored = contract.collections[noun] === answer || answer === "NewSubscription";
    const id = firstId(call);
    const fields = isStored && id ? structuredClone(this.#of(noun).records.get(id)!) : example(answer);
    const isAsExample = Object.entries(differing).every(([name, value]) =>
      sortedJson(body[name] ?? value) === sortedJson(value)
    );
    if (isAsExample || !id) Object.assign(fields, structuredClone(differing));
    for (const [name, value] of Object.entries(body)) {
      if (name in fields) fields[name] = value;
    }
    this.#refer(fields, { ...body, ...Object.fromEntries(Object.entries(call.ids).map(([k, v]) => [k, number(v)])) });
    stamp(fields, body, contract.bodies[model!]!);
    if (isStored && !id) {
      fields["entity_id"] = Math.max(0, ...[...this.#of(noun).records.keys()].map(Number)) + 1;
    } else if (answer === "WebhookFilter") {
      fields["entity_id"] = id;
      for (const name of ["property_ids", "categories", "priorities"]) fields[name] = body[name] ?? null;
    }
    if ("updated_at" in fields) fields["updated_at"] = new Date().toISOString();
    if (isStored) {
      const { secret: _, ...kept } = fields;
      this.#put(noun, kept);
    }
    return fields;
  }

  /** Refuses ids of the body that no record has. */
  #checkNamed(body: Fields): void {
    for (const [name, value] of Object.entries(body)) {
      const noun = name.replace(/_id$/, "s");
      if (noun !== name && this.#collections.get(noun)?.records.has(value) === false) throw notFound(`/${noun}/{${name}}`);
    }
  }

  /** Lets a record name the records whose ids the body and the path have. */
  #refer(fields: Fields, ids: Fields): void {
    for (const [name, value] of Object.entries(ids)) {
      const referred = name.replace(/_id$/, "");
      const other = this.#collections.get(`${referred}s`)?.records.get(value);
      if (name in fields) {
        fields[name] = value;
      } else if (referred in fields && other) {
        fields[referred] = { id: value, name: other["name"], external_id: other["external_id"] };
        if ("property" in fields && "property" in other) fields["property"] = other["property"];
      }
    }
  }
}

/** A new copy of the contract's example of a model. Throws TypeError if it has none. */
export function example(model: string): Fields {
  const examples: Fields = contract.examples;
  if (!Object.hasOwn(examples, model)) {
    throw new TypeError(`the contract has no example of ${model}; there are ${Object.keys(examples).join(", ")}`);
  }
  return structuredClone(examples[model]);
}

function matched(method: string, path: string): { operation: Operation; ids: Record<string, string> } {
  const matching = new Map<string, Operation>();
  let ids: Record<string, string> = {};
  for (const operation of path.startsWith(`${PREFIX}/`) ? contract.operations : []) {
    const pattern = operation.path.replaceAll(".", "\\.").replace(/\{(\w+)\}/g, "(?<$1>[^/]+)");
    const match = new RegExp(`^${pattern}$`).exec(path.slice(PREFIX.length));
    if (match) {
      matching.set(operation.method, operation);
      ids = { ...match.groups };
    }
  }
  if (!matching.size) throw new Refused(404, "not_found", "This path does not exist; the reference lists those that do.");
  const operation = matching.get(method);
  if (!operation) {
    const Allow = [...matching.keys()].join(", ");
    throw new Refused(405, "method_not_allowed", `This path supports ${Allow}.`, { Allow });
  }
  return { operation, ids };
}

function queryOf(given: URLSearchParams, operation: Operation): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, text] of given) {
    if (!operation.query.includes(name)) {
      const names = operation.query.join(", ");
      throw invalid(names ? `The query may hold these keys only: ${names}.` : "There are no query parameters.");
    }
    if (name in values) throw invalid(`${name} is given more than once; give it once.`, name);
    values[name] = text;
  }
  const { limit = "1", wait = "0" } = values;
  if (!/^0*[1-9][0-9]*$/.test(limit)) throw ofCode("invalid_limit");
  if (!/^[0-9]+$/.test(wait) || Number(wait) > contract.limits.wait) {
    throw invalid(`wait must be a whole number of seconds from 0 to ${contract.limits.wait}.`, "wait", 422);
  }
  for (const name of operation.required) {
    if (!(name in values)) throw invalid(`${name} is required.`, name);
  }
  for (const [name, filter] of Object.entries(operation.filters)) {
    if (name in values) checkFilter(name, filter, values);
  }
  return values;
}

function checkFilter(name: string, { type, values, requires }: Filter, query: Record<string, string>): void {
  const text = query[name]!;
  if (values && !values.includes(text)) throw invalid(`${name} must be one of: ${values.join(", ")}.`, name, 422);
  if (!text) throw invalid(`${name} is empty; give it a value or leave it out.`, name);
  if (type === "id" && !/^-?[0-9]+$/.test(text)) throw invalid(`${name} must be an integer.`, name);
  if (type === "boolean" && !["true", "false"].includes(text)) throw invalid(`${name} must be true or false.`, name);
  if (type === "instant" && !isInstant(text)) {
    throw invalid(`${name} must be a date-time in ISO 8601 with a UTC offset.`, name);
  }
  if (requires && !(requires in query)) throw invalid(`${name} needs ${requires} beside it; give both.`, name);
}

/** Whether a record is one of those that a filter asks for. */
function passes(fields: Fields, name: string, text: string): boolean {
  if (name === "limit" || name === "cursor") return true;
  if (name === "updated_since" || name === "since") {
    const at = fields["updated_at"] ?? fields["occurred_at"];
    return !at || Date.parse(at) >= Date.parse(text);
  }
  const referred = name.endsWith("_id") ? fields[name.slice(0, -3)] : undefined;
  const value = referred?.id ?? fields[name] ?? (name === "unit_id" ? fields["location"]?.id : undefined);
  return String(value) === text;
}

function isNamed({ event, data }: Fields, query: Record<string, string>): boolean {
  const named: Fields = { event, entity_type: data["entity_type"], entity_id: data["entity_id"] };
  return Object.entries(query).every(([name, text]) => !(name in named) || String(named[name]) === text);
}

function page(call: Call, items: Fields[]): Fields {
  const limit = Math.min(Number(call.query["limit"] ?? contract.limits.page), contract.limits.page_max);
  const begin = position(call, items);
  const end = begin + limit;
  return { data: items.slice(begin, end), next_cursor: end < items.length ? `at.${end}` : null, limit };
}

/** Where a page begins: cursors are `at.NUMBER` here. */
function position({ query }: Call, items: Fields[]): number {
  const match = /^at\.([0-9]+)$/.exec(query["cursor"] ?? "at.0");
  if (!match) throw ofCode("invalid_cursor");
  return Math.min(Number(match[1]), items.length);
}

/** Sets and clears what belongs to a value of the body. */
function stamp(fields: Fields, body: Fields, { stamps = {}, between = [] }: Body): void {
  for (const [name, value] of Object.entries(stamps)) {
    fields[name] = body["status"] === value ? new Date().toISOString() : null;
  }
  for (const rule of between) {
    if (rule.field in fields && body[rule.with] !== rule.value) fields[rule.field] = null;
  }
}

/** The first id of the path; 0 where it has none. */
function firstId({ ids }: Call): number {
  return number(Object.values(ids)[0] ?? "");
}

/** The id that a segment names; 0 for what is none. */
function number(text: string): number {
  return /^[0-9]+$/.test(text) ? Number(text) : 0;
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** JSON with the keys of each object in their order. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    isObject(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner);
}

function notFound(path: string): Refused {
  const noun = path.split("/").at(-2)!;
  const singular = SINGULAR[noun] ?? noun.slice(0, -1);
  return new Refused(404, "not_found", `No ${singular} with that id is visible to this key; check the id and the key.`);
}

const SINGULAR: Record<string, string> = {
  properties: "property",
  webhooks: "webhook subscription",
  deliveries: "delivery",
};

/** The refusal of a code, with its example's sentence. */
function ofCode(code: string, headers: Record<string, string> = {}): Refused {
  const { statuses, message } = contract.codes[code]!;
  const after: Record<string, string> = code === "rate_limited" ? { "Retry-After": "1" } : {};
  return new Refused(statuses[0]!, code, message, { ...after, ...headers });
}
