// Signatures of deliveries, by WebCrypto.

import { SignatureInvalid } from "./failures.ts";
import type { Event, Events } from "./models.ts";

const TOLERANCE_SECONDS = 300;
// 32 bytes in standard base64; secrets made before 2026-11-23 have another form, and no signature of Standard Webhooks.
const STANDARD_SECRET = /^whsec_([A-Za-z0-9+/]{43}=)$/;

type Value = string | readonly string[] | undefined;

/**
 * The headers of a request: of any fetch, of node:http, a Map or pairs; or the value of Service-Signature alone. What is
 * none of these bears no signature.
 */
export type Signed = string | Iterable<readonly [string, Value]> | Readonly<Record<string, Value>>;

/**
 * The event of a delivery. Throws SignatureInvalid if it was not signed with the secret in the 300 seconds before or
 * after.
 *
 * @param body The raw body as it came, never JSON that was parsed and printed again.
 * @param signed The request's headers. Service-Signature is verified, or those of Standard Webhooks where it is missing.
 * @param secret The subscription's, `whsec_…`; several while it is rotated.
 * @param now Seconds since 1970; the clock's if left out.
 */
export async function verify(
  body: Uint8Array | ArrayBuffer | string,
  signed: Signed,
  secret: string | readonly string[],
  now: number = Date.now() / 1000,
): Promise<Event> {
  const raw = bytesOf(body);
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (!secrets.length || secrets.includes("")) throw new TypeError("no secret");
  const { timestamp, scheme, digests } = typeof signed === "string" ? ours(signed) : signatures(signed);
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new SignatureInvalid("The delivery was signed more than 300 seconds ago, or this machine's clock is wrong.");
  }
  for (const one of secrets) {
    const key = scheme.key(one);
    if (key && (await isSigned(key, joined(scheme.prefix, raw), digests))) {
      return JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(raw)) as Event;
    }
  }
  throw new SignatureInvalid("The signature is not that of these bytes with this secret.");
}

/** Whether an event has this key; its type is then the key's. */
export function isEvent<K extends keyof Events>(event: Event, key: K): event is Events[K] {
  return event.event === key;
}

interface Read {
  timestamp: string;
  digests: Uint8Array<ArrayBuffer>[];
  scheme: { prefix: string; key: (secret: string) => Uint8Array<ArrayBuffer> | undefined };
}

function ours(header: string): Read {
  const parts = header.split(",").map((part) => {
    const [name = "", ...value] = part.trim().split("=");
    return [name, value.join("=")] as const;
  });
  const values = (wanted: string): string[] => parts.filter(([name]) => name === wanted).map(([, value]) => value);
  const [timestamp = "", ...others] = values("t");
  if (others.length || !/^[0-9]{1,12}$/.test(timestamp)) {
    throw new SignatureInvalid("Service-Signature is missing or has no timestamp.");
  }
  const digests = values("v1").filter((one) => /^[0-9a-f]{64}$/.test(one));
  const scheme = { prefix: `${timestamp}.`, key: (secret: string) => new TextEncoder().encode(secret) };
  return {
    timestamp,
    scheme,
    digests: digests.map((one) => Uint8Array.from(one.match(/../g) ?? [], (pair) => parseInt(pair, 16))),
  };
}

function signatures(headers: Exclude<Signed, string>): Read {
  const values = byName(headers);
  const signature = values.get("service-signature");
  if (signature) return ours(signature);
  const id = values.get("webhook-id");
  const timestamp = values.get("webhook-timestamp") ?? "";
  if (!id || !/^[0-9]{1,12}$/.test(timestamp)) throw new SignatureInvalid("The request has no signature.");
  const digests = (values.get("webhook-signature") ?? "").split(" ").filter((one) => /^v1,[A-Za-z0-9+/]{43}=$/.test(one));
  const scheme = {
    prefix: `${id}.${timestamp}.`,
    key: (secret: string) => {
      const [, encoded] = STANDARD_SECRET.exec(secret) ?? [];
      return encoded ? fromBase64(encoded) : undefined;
    },
  };
  return { timestamp, scheme, digests: digests.map((one) => fromBase64(one.slice(3))) };
}

async function isSigned(
  key: Uint8Array<ArrayBuffer>,
  bytes: Uint8Array<ArrayBuffer>,
  digests: Uint8Array<ArrayBuffer>[],
): Promise<boolean> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  for (const one of digests) {
    if (await crypto.subtle.verify("HMAC", imported, one, bytes)) return true; // in constant time
  }
  return false;
}

/** The headers by their names in lower case; empty for what is none. */
function byName(headers: unknown): Map<string, string> {
  const values = new Map<string, string>();
  if (typeof headers !== "object" || headers === null) return values;
  const pairs: unknown[] = Symbol.iterator in headers ? [...headers as Iterable<unknown>] : Object.entries(headers);
  for (const pair of pairs) {
    const [name, value] = Array.isArray(pair) ? pair as unknown[] : [];
    if (typeof name === "string" && value !== undefined) values.set(name.toLowerCase(), String(value));
  }
  return values;
}

function bytesOf(body: Uint8Array | ArrayBuffer | string): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new TypeError("body must be the raw body of the request, before anything parses it");
}

function joined(prefix: string, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const before = new TextEncoder().encode(prefix);
  const all = new Uint8Array(before.length + body.length);
  all.set(before);
  all.set(body, before.length);
  return all;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
}
