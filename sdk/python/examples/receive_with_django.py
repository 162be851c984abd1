"""Receives deliveries with Django: WEBHOOK_SECRET=whsec_… python receive_with_django.py runserver 8000 --noreload"""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from makeready_client import errors, models, webhooks

seen: set[str] = set()  # in production: a table with event_id as its primary key


def receive(request: HttpRequest) -> HttpResponse:
    try:
        event = webhooks.verify(request.body, request.headers, os.environ["WEBHOOK_SECRET"])
    except errors.SignatureInvalid:
        return HttpResponse(status=401)
    if event.event_id not in seen:  # an event comes at least once
        seen.add(event.event_id)
        if isinstance(event, models.TicketCreatedEvent):
            print(event.data.entity_id, event.data.title, flush=True)
    return HttpResponse(status=204)


urlpatterns = [path("webhooks", csrf_exempt(receive))]  # in a project: its urls.py
settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["localhost", "127.0.0.1"])
execute_from_command_line(sys.argv)
