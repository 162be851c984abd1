// A receiver of webhooks with Express: WEBHOOK_SECRET=whsec_… node express.ts PORT
import express from "express";
import { errors, webhooks } from "@makeready/client";

const secret = process.env["WEBHOOK_SECRET"] ?? "";
const seen = new Set<string>(); // in production: a table with event_id as its primary key

const app = express();
app.post("/webhooks", express.raw({ type: "*/*", limit: "1mb" }), async (request, response) => {
  try {
    const event = await webhooks.verify(request.body, request.headers, secret); // the raw bytes: no express.json() before
    response.status(204).end();
    if (seen.has(event.event_id)) return; // delivered at least once
    seen.add(event.event_id);
    if (webhooks.isEvent(event, "ticket.created")) console.log(event.data.entity_id, event.data.title);
  } catch (error) {
    response.status(error instanceof errors.SignatureInvalid ? 401 : 500).end();
  }
});
app.listen(Number(process.argv[2] ?? 3000), "127.0.0.1", () => console.log("listening"));
