// A receiver of webhooks: WEBHOOK_SECRET=whsec_… node receive.ts PORT
import { createServer } from "node:http";
import { errors, webhooks } from "@makeready/client";

const secret = process.env["WEBHOOK_SECRET"] ?? "";
const seen = new Set<string>(); // in production: a table with event_id as its primary key

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    const event = await webhooks.verify(Buffer.concat(chunks), request.headers, secret);
    response.writeHead(204).end();
    if (seen.has(event.event_id)) return; // delivered at least once
    seen.add(event.event_id);
    if (webhooks.isEvent(event, "ticket.created")) console.log(event.event, event.data.title);
  } catch (error) {
    response.writeHead(error instanceof errors.SignatureInvalid ? 401 : 500).end();
  }
});
server.listen(Number(process.argv[2] ?? 3000), "127.0.0.1", () => console.log("listening"));
