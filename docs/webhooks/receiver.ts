// A receiver of webhook deliveries; node 22.18 or newer runs it as it is, with its own modules alone.
//
//     WEBHOOK_SECRET=whsec_… node receiver.ts PORT INBOX [CERTIFICATE KEY]
//
// A delivery that is verified becomes the file INBOX/EVENT_ID.json, and then is answered; one that comes again finds
// its file there. Without CERTIFICATE (PEM) something before this must end TLS: it listens on loopback then.

import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { link, open, unlink } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TOLERANCE_SECONDS = 300;
const BODY_BYTES_MAX = 1024 * 1024;

type Event = {
  schema_version: number;
  event_id: string;
  event: string;
  occurred_at: string;
  company_id: number;
  data: object;
  change: { field: string; from: unknown; to: unknown } | null;
};

/** Whether `header`, the value of Service-Signature, was made of `body`, the raw bytes, with `secret`, just now. */
export function isGenuine(secret: string, header: string, body: Buffer, now: number): boolean {
  const times: string[] = [];
  const digests: string[] = [];
  for (const part of header.split(",")) {
    const stripped = part.trim();
    if (stripped.startsWith("t=")) times.push(stripped.slice(2));
    if (stripped.startsWith("v1=")) digests.push(stripped.slice(3));
  }
  const [timestamp, another] = times;
  if (timestamp === undefined || another !== undefined || !/^[0-9]{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const right = Buffer.from(createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex"));
  return digests.some((digest) => {
    const given = Buffer.from(digest);
    return given.length === right.length && timingSafeEqual(given, right); // it throws where lengths differ
  });
}

/** The whole body as it came; undefined where it is too long. */
async function rawBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Puts the event on disk, whole or not at all; false where it is there already. */
async function keep(inbox: string, eventId: string, body: Buffer): Promise<boolean> {
  if (!/^[0-9A-Za-z-]{1,64}$/.test(eventId)) throw new Error("event_id"); // it becomes the name of a file
  const part = join(inbox, `${randomUUID()}.part`);
  const file = await open(part, "wx", 0o600);
  try {
    await file.writeFile(body);
    await file.sync();
    await link(part, join(inbox, `${eventId}.json`));
    const folder = await open(inbox);
    await folder.sync().finally(() => folder.close()); // the name too
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await file.close();
    await unlink(part);
  }
}

/** Your work goes here, or into a program of its own that goes through the inbox. */
function handle(event: Event): void {
  console.log(event.event_id, event.event);
}

async function receive(request: IncomingMessage, inbox: string, secret: string): Promise<[status: number, event?: Event | undefined]> {
  if (request.method !== "POST") return [405];
  if (Number(request.headers["content-length"]) > BODY_BYTES_MAX) return [413];
  const body = await rawBody(request);
  if (body === undefined) return [413];
  const header = request.headers["service-signature"];
  if (!isGenuine(secret, [header ?? ""].flat().join(","), body, Date.now() / 1000)) return [401];
  const event: Event = JSON.parse(body.toString()); // only now
  return [200, (await keep(inbox, event.event_id, body)) ? event : undefined];
}

function main(port: string, inbox: string, certificate?: string, key?: string): void {
  const secret = process.env.WEBHOOK_SECRET;
  if (!secret) throw new Error("WEBHOOK_SECRET is not set");
  const limits = { requestTimeout: 10_000, headersTimeout: 10_000 };
  const server = certificate
    ? createTlsServer({ ...limits, cert: readFileSync(certificate), key: readFileSync(key!) })
    : createServer(limits);
  server.on("request", async (request, response) => {
    try {
      const [status, event] = await receive(request, inbox, secret);
      if (status === 413) response.setHeader("Connection", "close");
      response.writeHead(status).end(); // the sender waits no longer than 10 s: answer first, work later
      if (event) setImmediate(handle, event);
    } catch (error) {
      console.error(`not kept: ${error}`);
      response.writeHead(500).end(); // it comes again
    }
  });
  server.listen(Number(port), certificate ? undefined : "127.0.0.1");
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main(...(process.argv.slice(2) as [string, string]));
}
