// A peer on Fastify and pg, in one process: `node server.js HOST PORT`. The same routes, rules and statements as
// by_hand.py, which `python -m peer.export` writes into shared.json. The environment has the database, the key of cursors and the base of links.
import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import formats from "ajv-formats";
import stringifier from "fast-json-stringify";
import Fastify from "fastify";
import pg from "pg";

const [host, port] = process.argv.slice(2);
const { PEER_DATABASE_URL, PEER_CURSOR_KEY, PEER_LINKS_URL } = process.env;
const { statements: sql, words } = JSON.parse(readFileSync(new URL("shared.json", import.meta.url)));
const WINDOW_SECONDS = 60;
const REQUESTS_PER_MINUTE = 120;
const KEY_CACHE_SECONDS = 5;
const PAGE_MAX = 200;
const TEXT_MAX = 20_000;
const WORDS_MIN = 5;

const INT8 = 20;
const TIMESTAMPTZ = 1184;
pg.types.setTypeParser(INT8, Number);
// A Date has no microseconds. The server is in UTC, so an instant ends with +00.
pg.types.setTypeParser(TIMESTAMPTZ, (text) => text.slice(0, 10) + "T" + text.slice(11, -3) + "Z");
const pool = new pg.Pool({ connectionString: PEER_DATABASE_URL, max: 20 });

class ApiError extends Error {
  constructor(status, code, message, headers = {}) {
    super(message);
    Object.assign(this, { status, code, headers });
  }
}
const invalid = (message, status = 422) => new ApiError(status, "invalid_request", message);
const notFound = (noun) => new ApiError(404, "not_found", `No ${noun} with that id is visible to this key.`);
const unauthorized = (code, message) => new ApiError(401, code, message, { "WWW-Authenticate": "Bearer" });

const text = (...types) => ({ type: types.length ? ["string", ...types] : "string" });
const named = {
  type: "object",
  properties: { id: { type: "integer" }, name: text(), external_id: { ...text(), nullable: true } },
};
const assignee = { type: "object", nullable: true, properties: { id: { type: "integer" }, name: text() } };
const maybe = { type: "string", nullable: true };
const ticketSchema = {
  type: "object",
  properties: {
    schema_version: { type: "integer" }, entity_type: text(), entity_id: { type: "integer" },
    ticket_number: { type: "integer", nullable: true }, title: text(), description: maybe, category: text(),
    subcategory: maybe, priority: text(), status: text(), property: named, unit: { ...named, nullable: true },
    unit_number: maybe, room: maybe, room_instance: maybe, permission_to_enter: { type: "boolean" },
    preferred_access_time: maybe, assignee, assigned_vendor: { ...named, nullable: true }, photo_url: maybe,
    created_at: text(), updated_at: text(), completed_at: maybe, cancelled_at: maybe,
    cancellation_reason_code: maybe, external_id: maybe, source: text(), url: text(),
  },
};
const pageSchema = {
  type: "object",
  properties: { data: { type: "array", items: ticketSchema }, next_cursor: maybe, limit: { type: "integer" } },
};
const creationSchema = {
  type: "object", additionalProperties: false, required: ["unit_id", "title", "category"],
  properties: {
    unit_id: { type: "integer" }, title: { type: "string", minLength: 1, maxLength: 150 },
    category: { enum: words.category }, asset_id: { type: ["integer", "null"] },
    description: { type: "string", maxLength: TEXT_MAX, default: "" },
    priority: { enum: words.priority, default: "Medium" },
  },
};
const changeSchema = {
  type: "object", additionalProperties: false, required: ["status"],
  properties: {
    status: { enum: words.status }, note: { type: ["string", "null"], maxLength: TEXT_MAX },
    cancellation_reason_code: { enum: [...words.reason, null] },
    cancellation_notes: { type: ["string", "null"], maxLength: TEXT_MAX },
  },
};
const filtersSchema = {
  type: "object", additionalProperties: false,
  properties: {
    limit: { type: "integer", minimum: 1, default: 50 }, cursor: text(), property_id: { type: "integer" },
    unit_id: { type: "integer" }, status: { enum: words.status },
    updated_since: { type: "string", format: "date-time" }, ticket_number: { type: "integer" },
  },
};

const nameOf = (id, name, external_id) => (id === null ? null : { id, name, external_id });
const ticketOf = (row) => ({
  schema_version: 1, entity_type: "ticket", entity_id: row[0], ticket_number: row[1], title: row[2],
  description: row[3], category: row[4], subcategory: row[5], priority: row[6], status: row[7],
  property: nameOf(row[8], row[9], row[10]), unit: nameOf(row[11], row[12], row[13]), unit_number: row[14],
  room: row[15], room_instance: row[16], permission_to_enter: row[17], preferred_access_time: row[18],
  assignee: row[19] === null ? null : { id: row[19], name: row[20] }, assigned_vendor: nameOf(row[21], row[22], row[23]),
  photo_url: row[24], created_at: row[25], updated_at: row[26], completed_at: row[27], cancelled_at: row[28],
  cancellation_reason_code: row[29], external_id: row[30], source: row[31], url: `${PEER_LINKS_URL}/tickets/${row[0]}`,
});

async function rows(client, name, values, statement = sql[name]) {
  return (await client.query({ name, text: statement, values, rowMode: "array" })).rows;
}

const known = new Map();
async function callerOf(key) {
  const digest = createHash("sha256").update(key).digest("hex");
  const kept = known.get(digest);
  if (kept !== undefined && kept.until > performance.now()) return kept.caller;
  const [row] = await rows(pool, "caller", [digest]);
  if (row === undefined) return null;
  const [keyId, companyId, active, scope, administratorId, revoked] = row;
  const caller = { keyId, companyId, active, scope, administratorId, revoked };
  known.set(digest, { until: performance.now() + 1000 * KEY_CACHE_SECONDS, caller });
  return caller;
}

const windows = new Map();
function take(keyId, reply) {
  const now = Date.now() / 1000;
  let window = windows.get(keyId);
  if (window === undefined) windows.set(keyId, (window = []));
  while (window.length && window[0] <= now - WINDOW_SECONDS) window.shift();
  const reset = window.length ? Math.floor(window[0] + WINDOW_SECONDS - now) + 1 : WINDOW_SECONDS;
  if (window.length >= REQUESTS_PER_MINUTE)
    throw new ApiError(429, "rate_limited", "Too many requests; wait and try again.", { "Retry-After": `${reset}` });
  window.push(now);
  reply.header("RateLimit-Policy", `"default";q=${REQUESTS_PER_MINUTE};w=${WINDOW_SECONDS}`);
  reply.header("RateLimit", `"default";r=${REQUESTS_PER_MINUTE - window.length};t=${reset}`);
}

const opens = (...scopes) => async (request, reply) => {
  const [scheme, key] = (request.headers.authorization ?? "").split(" ", 2);
  if (scheme.toLowerCase() !== "bearer" || !key) throw unauthorized("unauthorized", "Send the API key as a bearer token.");
  const caller = await callerOf(key);
  if (caller === null) throw unauthorized("unauthorized", "This API key is not known.");
  if (caller.revoked) throw unauthorized("key_revoked", "This API key was revoked.");
  if (!caller.active) throw new ApiError(403, "company_inactive", "The company account is inactive.");
  take(caller.keyId, reply);
  if (!scopes.includes(caller.scope)) throw new ApiError(403, "insufficient_scope", "This key's scope does not open this route.");
  request.caller = caller;
};

const signature = (companyId, lastId, filters) =>
  createHmac("sha256", PEER_CURSOR_KEY).update(`${companyId}/${lastId}/${filters}`).digest("hex").slice(0, 32);
const makeCursor = (companyId, lastId, filters) =>
  Buffer.from(`${lastId}.${signature(companyId, lastId, filters)}`).toString("base64url");
function readCursor(companyId, cursor, filters) {
  if (cursor === undefined) return 0;
  const [lastId, signed = ""] = Buffer.from(cursor, "base64url").toString().split(".");
  const expected = signature(companyId, Number(lastId), filters);
  if (signed.length === expected.length && timingSafeEqual(Buffer.from(signed), Buffer.from(expected))) return Number(lastId);
  throw new ApiError(400, "invalid_cursor", "The cursor was not issued by this service for this list.");
}

const idOf = (request) => {
  if (!/^[0-9]+$/.test(request.params.ticketId)) throw notFound("ticket");
  return Number(request.params.ticketId);
};

const countWords = (words) => words.split(/\s+/).filter((run) => /[\p{L}\p{N}]/u.test(run)).length;
function check(body) {
  if (body.note != null && body.status !== "Completed") throw invalid("note is accepted with status Completed alone.");
  if (body.status === "Completed" && countWords(body.note ?? "") < WORDS_MIN) throw invalid("note must have 5 or more words.");
  if (body.status !== "Cancelled") {
    if (body.cancellation_reason_code != null || body.cancellation_notes != null)
      throw invalid("A reason and its notes are accepted with status Cancelled alone.");
  } else if (body.cancellation_reason_code == null) {
    throw invalid("cancellation_reason_code is required with status Cancelled.");
  } else if (body.cancellation_reason_code === "see_notes") {
    if (countWords(body.cancellation_notes ?? "") < WORDS_MIN) throw invalid("cancellation_notes must have 5 or more words.");
  } else if (body.cancellation_notes != null) {
    throw invalid("cancellation_notes is accepted with see_notes alone.", 400);
  }
}

// A write: once for each key, in one transaction. work: returns the ticket, and stores it with its JSON and the key.
async function once(request, reply, operation, status, work) {
  const key = request.headers["idempotency-key"];
  if (key === undefined) throw new ApiError(400, "idempotency_key_required", "Send an Idempotency-Key header with every write.");
  if (key.length < 1 || key.length > 64) throw invalid("Idempotency-Key is not valid.", 400);
  const { caller, body } = request;
  const canonical = JSON.stringify(body, Object.keys(body).sort());
  const fingerprint = createHash("sha256").update(`${operation}\0${canonical}`).digest("hex");
  const digest = createHash("sha256").update(`${caller.companyId}/${caller.keyId}/${key}`).digest();
  reply.code(status).type("application/json");
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const lock = digest.readBigInt64BE(0).toString();
    const [[isFree, kept, , stored]] = await rows(client, "claim", [lock, caller.companyId, caller.keyId, key]);
    if (kept !== null) {
      if (kept !== fingerprint) throw new ApiError(409, "idempotency_mismatch", "This Idempotency-Key was used with a different request.");
      reply.header("X-Idempotent-Replay", "1");
      await client.query("COMMIT");
      return stored;
    }
    if (!isFree) throw new ApiError(409, "idempotency_in_progress", "A request with this Idempotency-Key is in progress.");
    if (caller.administratorId === null) throw new ApiError(422, "created_by_missing", "This key has no minting administrator on record.");
    const json = await work(client, key, fingerprint);
    await client.query("COMMIT");
    return json;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error.code === "23505" ? new ApiError(409, "idempotency_in_progress", "A request with this Idempotency-Key is in progress.") : error;
  } finally {
    client.release();
  }
}

// Fastify would drop unknown keys, and read a body's texts as numbers: the contract refuses both.
const app = Fastify({ genReqId: () => randomUUID().replaceAll("-", "") });
app.setValidatorCompiler(({ schema, httpPart }) => compile(schema, httpPart));
const ofBody = new Ajv({ useDefaults: true, allowUnionTypes: true });
const ofQuery = formats(new Ajv({ useDefaults: true, coerceTypes: true }));
const compile = (schema, httpPart) => {
  const validate = (httpPart === "body" ? ofBody : ofQuery).compile(schema);
  return (data) => validate(data) || { error: refusal(validate.errors[0], schema) };
};
function refusal({ keyword, instancePath }, schema) {
  if (instancePath === "/limit") return new ApiError(400, "invalid_limit", "limit must be a positive integer.");
  const isRule = keyword === "enum" || (instancePath === "/title" && keyword === "maxLength");
  const is422 = isRule || (schema === changeSchema && keyword === "additionalProperties");
  return invalid(`${instancePath || "The body"} is missing or not valid.`, is422 ? 422 : 400);
}
app.decorateRequest("caller", null);
app.addHook("onRequest", async (request, reply) => {
  reply.header("X-Request-Id", request.id).header("Cache-Control", "no-store");
});
app.setErrorHandler((error, _request, reply) => {
  const { status = 500, code, headers = {} } = error;
  const isOurs = error instanceof ApiError;
  const shown = isOurs ? { code, message: error.message } : { code: "internal_error", message: "Something failed on our side." };
  reply.code(isOurs ? status : 500).headers(headers).type("application/json").send(JSON.stringify({ error: shown }));
});

const toJson = stringifier(ticketSchema);
const statements = new Map();
const PREFIX = "/api/v1/tickets";

app.get(PREFIX, { schema: { querystring: filtersSchema, response: { 200: pageSchema } }, onRequest: opens("read", "write") }, async (request) => {
  const { companyId } = request.caller;
  const { limit: asked, cursor, ...filters } = request.query;
  if (filters.ticket_number !== undefined && filters.property_id === undefined) throw invalid("ticket_number needs property_id.", 400);
  const limit = Math.min(asked, PAGE_MAX);
  const names = Object.keys(sql.filters).filter((name) => filters[name] !== undefined);
  const signed = JSON.stringify(names.map((name) => [name, filters[name]]));
  const afterId = readCursor(companyId, cursor, signed);
  const name = `page ${limit} ${names.join(" ")}`;
  if (!statements.has(name)) {
    const conditions = names.map((one, place) => ` AND ${sql.filters[one]} $${place + 3}`).join("");
    statements.set(name, sql.page.replace("{conditions}", conditions).replace("{rows}", limit + 1));
  }
  const found = await rows(pool, name, [companyId, afterId, ...names.map((one) => filters[one])], statements.get(name));
  const data = found.slice(0, limit).map(ticketOf);
  return { data, next_cursor: found.length > limit ? makeCursor(companyId, data.at(-1).entity_id, signed) : null, limit };
});

app.get(`${PREFIX}/:ticketId`, { schema: { response: { 200: ticketSchema } }, onRequest: opens("read", "write") }, async (request) => {
  const [row] = await rows(pool, "ticket", [request.caller.companyId, idOf(request)]);
  if (row === undefined) throw notFound("ticket");
  return ticketOf(row);
});

app.post(PREFIX, { schema: { body: creationSchema }, onRequest: opens("write") }, (request, reply) =>
  once(request, reply, "POST /tickets", 201, async (client, key, fingerprint) => {
    const { caller, body } = request;
    const [place] = await rows(client, "place", [caller.companyId, body.unit_id, body.asset_id ?? null]);
    if (place === undefined) throw notFound("unit");
    const [propertyId, propertyName, propertyExternalId, unitId, unitName, unitExternalId, unitNumber, hasAsset, id, number, moment] = place;
    if (!hasAsset) throw notFound("asset");
    const row = [
      id, number, body.title, body.description, body.category, null, body.priority, "Open", propertyId, propertyName,
      propertyExternalId, unitId, unitName, unitExternalId, unitNumber, null, null, false, null, null, null, null, null, null,
      null, moment, moment, null, null, null, null, "api",
    ];
    const json = toJson(ticketOf(row));
    await rows(client, "create", [
      id, caller.companyId, number, body.title, body.description, body.category, body.priority, propertyId, unitId,
      body.asset_id ?? null, unitNumber, moment, caller.administratorId, json, caller.keyId, key, fingerprint,
    ]);
    return json;
  }));

app.patch(`${PREFIX}/:ticketId`, { schema: { body: changeSchema }, onRequest: opens("write"), preHandler: async (request) => check(request.body) }, (request, reply) => {
  const ticketId = idOf(request);
  return once(request, reply, `PATCH /tickets/${ticketId}`, 200, async (client, key, fingerprint) => {
    const { caller, body } = request;
    const [row] = await rows(client, "held", [caller.companyId, ticketId]);
    if (row === undefined) throw notFound("ticket");
    const ticket = ticketOf(row);
    const [moment, needsPhoto] = row.slice(32);
    if (needsPhoto && body.status === "Completed" && !ticket.photo_url) throw invalid("The company requires a photo to complete a ticket.");
    const comment = body.note ?? body.cancellation_notes ?? null;
    const reason = body.cancellation_reason_code ?? null;
    const before = ticket.status;
    if (body.status === before && reason === ticket.cancellation_reason_code && comment === null) {
      const json = toJson(ticket);
      await rows(client, "keep", [caller.companyId, caller.keyId, key, fingerprint, json]);
      return json;
    }
    ticket.status = body.status;
    ticket.updated_at = moment;
    ticket.completed_at = body.status === "Completed" ? ticket.completed_at ?? moment : null;
    ticket.cancelled_at = body.status === "Cancelled" ? ticket.cancelled_at ?? moment : null;
    ticket.cancellation_reason_code = reason;
    const json = toJson(ticket);
    const change = body.status === before ? null : JSON.stringify({ field: "status", from: before, to: body.status });
    await rows(client, "change", [
      ticketId, body.status, moment, ticket.completed_at, ticket.cancelled_at, reason, body.note ? "closing_note" : "cancellation_notes",
      comment, caller.administratorId, caller.keyId, before, request.id, caller.companyId, json, change, key, fingerprint,
    ]);
    return json;
  });
});

await app.listen({ host, port: Number(port) });
