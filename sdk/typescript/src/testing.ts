// For the tests of your program: records, signed deliveries, and an API that answers in this process. All of it plays
// the contract's own examples, and needs no network.

import { type Fields, isObject } from "./bodies.ts";
import type { Examples } from "./contract.ts";
import { FakeApi, example } from "./fake.ts";
import type { Event, KeyScope } from "./models.ts";

export type { Examples } from "./contract.ts";
export type { FakeApi } from "./fake.ts";

/** A signing secret. */
export const SECRET = "whsec_dGVzdHMtb2YtaW50ZWdyYXRvcnMtaGF2ZS10aGlzLTE=";

/** Other values of a record; an object in it keeps what is not named. */
export type Overrides<T> = T extends readonly unknown[] ? T
  : T extends object ? { readonly [K in keyof T]?: Overrides<T[K]> }
  : T;

/** A request as subscriptions' URLs get it: POST `body` with `headers`. */
export interface Delivery {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * An API in this process: `new Makeready({ apiKey: "mk_any", baseUrl: api.baseUrl, fetch: api.fetch })`.
 *
 * @param keys The scope of each key; any key has the scope `write` if left out.
 */
export function fakeApi(keys?: Readonly<Record<string, KeyScope>>): FakeApi {
  return new FakeApi(keys);
}

/**
 * The contract's example of a record or event, with other values: `record("Ticket", { title: "Tap" })`. Throws
 * TypeError for a field that it does not have.
 */
export function record<K extends keyof Examples>(model: K, overrides: Overrides<Examples[K]> = {} as never): Examples[K] {
  return merged(example(model), overrides as Fields, model) as Examples[K];
}

function merged(fields: Fields, overrides: Fields, within: string): Fields {
  for (const [name, value] of Object.entries(overrides)) {
    if (!Object.hasOwn(fields, name)) {
      throw new TypeError(`${within} has no field ${name}; it has ${Object.keys(fields).join(", ")}`);
    }
    const inner = fields[name];
    fields[name] = isObject(inner) && isObject(value) ? merged(inner, value, `${within}.${name}`) : value;
  }
  return fields;
}
/**
 * The delivery of an event, as `webhooks.verify` accepts it with the secret.
 *
 * @param options.now When it is signed, in seconds since 1970; the clock's if left out. More than 300 seconds ago is
 * refused.
 */
export async function signed(
  event: Event,
  secret: string = SECRET,
  options: { now?: number; attempt?: number } = {},
): Promise<Delivery> {
  const { now = Date.now() / 1000, attempt = 1 } = options;
  const body = JSON.stringify(event);
  const timestamp = String(Math.floor(now));
  const hex = [...await digest(new TextEncoder().encode(secret), `${timestamp}.${body}`)]
    .map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    "User-Agent": "Makeready-Webhooks/1",
    "Service-Attempt": String(attempt),
    "Service-Signature": `t=${timestamp},v1=${hex}`,
  };
  const [, encoded] = /^whsec_([A-Za-z0-9+/]{43}=)$/.exec(secret) ?? [];
  if (encoded) { // others sign for Service-Signature alone
    const key = Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
    const standard = await digest(key, `${event.event_id}.${timestamp}.${body}`);
    headers["webhook-id"] = event.event_id;
    headers["webhook-timestamp"] = timestamp;
    headers["webhook-signature"] = `v1,${btoa(String.fromCharCode(...standard))}`;
  }
  return { body, headers };
}

async function digest(key: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, new TextEncoder().encode(text)));
}
