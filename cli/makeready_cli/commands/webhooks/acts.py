"""`makeready webhooks attempt-now|resend|test|check-signature …`: acts on one delivery or destination."""

from __future__ import annotations

import argparse
from pathlib import Path

from makeready.webhooks.v1 import webhooks_pb2 as pb
from makeready_cli.calls import Operator
from makeready_cli.commands.webhooks import rendering as shapes
from makeready_cli.errors import CommandError, printable
from makeready_cli.output import Answer, instant, labels
from makeready_cli.parsers import Commands
from makeready_cli.rpc.command import RpcCommand, add_commands

SERVICE = "svc-webhooks"
ATTEMPT_SECONDS = 60.0  # the attempt's own deadline, and that of another dispatcher's attempt that may be under way
_RPCS = pb.DESCRIPTOR.services_by_name["AdministrationService"].methods_by_name
_BODY = {"flag": "--body-file", "metavar": "FILE", "type": Path, "help": "the body as it was received"}
_VERDICTS = labels(pb.SignatureVerdict.DESCRIPTOR)
_SENTENCES = {
    "genuine": "Genuine: the secret signed these bytes.",
    "stale": "Stale: the secret signed these bytes, {age} s ago; receivers refuse more than {most} s.",
    "reserialized": "Written anew: the secret signed the same JSON with other bytes. Verify the raw body.",
    "wrong_secret": "Wrong secret: the present secret did not sign this.",
    "other_body": "Another body: the secret signed the stored body of this event, and this one has other content.",
    "malformed": "Malformed: the header must be t=SECONDS,v1=HEX.",
}


def add(verbs: Commands) -> None:
    add_commands(
        verbs,
        RpcCommand(
            "attempt-now",
            _RPCS["AttemptNow"],
            "attempt a waiting delivery before it is due",
            description="Attempts a waiting delivery once, now. If the attempt fails, the delivery waits as before: "
            "its next date and its retries stand.",
            company=False,
            deadline_seconds=ATTEMPT_SECONDS,
            answer=_answer,
        ),
        RpcCommand(
            "resend",
            _RPCS["Resend"],
            "send a delivery again that has succeeded",
            description="Sends a delivery once more that has succeeded, with the same event_id. It stays succeeded, "
            "whatever the receiver answers.",
            company=False,
            deadline_seconds=ATTEMPT_SECONDS,
            answer=_answer,
        ),
        RpcCommand(
            "test",
            _RPCS["SendTest"],
            "send the event webhook.test to a destination",
            description="Sends the event `webhook.test` once, signed like all others. It changes no health and is not "
            "retried; a paused subscription gets it too.",
            company=False,
            deadline_seconds=ATTEMPT_SECONDS,
            answer=_answer,
        ),
        RpcCommand(
            "check-signature",
            _RPCS["CheckSignature"],
            "check a Service-Signature header against a body",
            "Says whether the subscription's secret signed this body, and if not, why. Nothing is stored.",
            company=False,
            settings={"signature": {"metavar": "HEADER"}, "body": _BODY},
            run=check_signature,
        ),
    )


def _answer(
    answer: pb.AttemptNowResponse | pb.ResendResponse | pb.SendTestResponse, _arguments: argparse.Namespace
) -> Answer:
    delivery = answer.delivery
    return Answer(
        shapes.delivery_record(delivery), f"{delivery.event_id}:{delivery.sub_id}  {shapes.attempted(delivery)}"
    )


async def check_signature(operator: Operator, arguments: argparse.Namespace) -> Answer:
    try:
        body = arguments.body.read_bytes()
    except OSError as error:
        raise CommandError(f"{printable(str(arguments.body))}: {error.strerror}.") from None
    request = pb.CheckSignatureRequest(sub_id=arguments.sub_id, signature=arguments.signature, body=body)
    response = await operator.call(SERVICE, request, pb.CheckSignatureResponse)
    verdict = _VERDICTS.get(response.verdict, "unknown")
    value = {
        "verdict": verdict,
        "signed_at": instant(response.signed_at) if response.HasField("signed_at") else None,
        "age_seconds": response.age_seconds if response.HasField("signed_at") else None,
        "event_id": response.event_id or None,
    }
    text = _SENTENCES.get(verdict, verdict).format(age=response.age_seconds, most=response.age_seconds_max)
    return Answer(value, text, 0 if verdict == "genuine" else 1)
