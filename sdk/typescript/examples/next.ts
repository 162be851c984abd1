// A receiver of webhooks with Next.js: app/webhooks/route.ts. WEBHOOK_SECRET=whsec_… in its environment.
import { errors, webhooks } from "@makeready/client";

const seen = new Set<string>(); // in production: a table with event_id as its primary key

export async function POST(request: Request): Promise<Response> {
  try {
    const body = await request.arrayBuffer(); // the raw bytes: no request.json() before
    const event = await webhooks.verify(body, request.headers, process.env["WEBHOOK_SECRET"] ?? "");
    if (!seen.has(event.event_id)) { // delivered at least once
      seen.add(event.event_id);
      if (webhooks.isEvent(event, "ticket.created")) console.log(event.data.entity_id, event.data.title);
    }
    return new Response(null, { status: 204 });
  } catch (error) {
    return new Response(null, { status: error instanceof errors.SignatureInvalid ? 401 : 500 });
  }
}
