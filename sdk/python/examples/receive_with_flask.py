"""Receives deliveries with Flask: WEBHOOK_SECRET=whsec_… flask --app receive_with_flask run --port 8000"""

import os

from flask import Flask, Response, request

from makeready_client import errors, models, webhooks

app = Flask(__name__)
seen: set[str] = set()  # in production: a table with event_id as its primary key


@app.post("/webhooks")
def receive() -> Response:
    try:
        event = webhooks.verify(request.get_data(), request.headers, os.environ["WEBHOOK_SECRET"])
    except errors.SignatureInvalid:
        return Response(status=401)
    if event.event_id not in seen:  # an event comes at least once
        seen.add(event.event_id)
        if isinstance(event, models.TicketCreatedEvent):
            print(event.data.entity_id, event.data.title, flush=True)
    return Response(status=204)
