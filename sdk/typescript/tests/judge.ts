// Judges deliveries on stdin, one JSON object a line: node judge.ts
import { createInterface } from "node:readline";
import { errors, webhooks } from "@makeready/client";

const judged: Record<string, boolean | string> = {};
for await (const line of createInterface(process.stdin)) {
  const { name, secret, header, headers, body, received_at } = JSON.parse(line);
  try {
    const event = await webhooks.verify(Buffer.from(body), headers ?? header, secret, received_at);
    judged[name] = typeof event.event_id === "string";
  } catch (error) {
    judged[name] = error instanceof errors.SignatureInvalid ? false : String(error);
  }
}
console.log(JSON.stringify(judged));
