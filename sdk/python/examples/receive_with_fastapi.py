"""Receives deliveries with FastAPI: WEBHOOK_SECRET=whsec_… uvicorn receive_with_fastapi:app --port 8000"""

import os

from fastapi import FastAPI, Request, Response

from makeready_client import errors, models, webhooks

app = FastAPI()
seen: set[str] = set()  # in production: a table with event_id as its primary key


@app.post("/webhooks")
async def receive(request: Request) -> Response:
    try:
        event = webhooks.verify(await request.body(), request.headers, os.environ["WEBHOOK_SECRET"])
    except errors.SignatureInvalid:
        return Response(status_code=401)
    if event.event_id not in seen:  # an event comes at least once
        seen.add(event.event_id)
        if isinstance(event, models.TicketCreatedEvent):
            print(event.data.entity_id, event.data.title, flush=True)
    return Response(status_code=204)
