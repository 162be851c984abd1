// A receiver of webhooks with Fastify: WEBHOOK_SECRET=whsec_… node fastify.ts PORT
import Fastify from "fastify";
import { errors, webhooks } from "@makeready/client";

const secret = process.env["WEBHOOK_SECRET"] ?? "";
const seen = new Set<string>(); // in production: a table with event_id as its primary key

const app = Fastify();
app.removeAllContentTypeParsers();
app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body)); // the raw bytes
app.post<{ Body: Buffer }>("/webhooks", async (request, reply) => {
  try {
    const event = await webhooks.verify(request.body, request.headers, secret);
    if (!seen.has(event.event_id)) { // delivered at least once
      seen.add(event.event_id);
      if (webhooks.isEvent(event, "ticket.created")) console.log(event.data.entity_id, event.data.title);
    }
    return reply.code(204).send();
  } catch (error) {
    return reply.code(error instanceof errors.SignatureInvalid ? 401 : 500).send();
  }
});
app.listen({ port: Number(process.argv[2] ?? 3000), host: "127.0.0.1" }).then(() => console.log("listening"));
