"""Receives deliveries: WEBHOOK_SECRET=whsec_… python receive_deliveries.py PORT

Something before it must end TLS. While you develop: makeready-client listen --forward-to http://localhost:PORT
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from makeready_client import errors, models, webhooks


class Delivery(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = webhooks.verify(body, self.headers, os.environ["WEBHOOK_SECRET"])
        except errors.SignatureInvalid:
            self.send_error(401)
            return
        # Store the event here, under its event_id: it may come again.
        if isinstance(event, models.TicketCreatedEvent):
            print(event.data.entity_id, event.data.title, flush=True)
        self.send_response(204)
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1])), Delivery).serve_forever()
