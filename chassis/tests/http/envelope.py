"""Errors in the form that the tests' clients check: the API's."""

from chassis.http.replies import ErrorReplies, Reply, json


def error(status: int, code: str, message: str) -> Reply:
    return json(b'{"error":{"code":"%b","message":"%b"}}' % (code.encode(), message.encode()), status)


def malformed(reason: str) -> Reply:
    return error(400, "invalid_request", f"The request is not well-formed HTTP/1.1: {reason}.")


ERRORS = ErrorReplies(malformed, error(500, "internal_error", "Something failed on our side."))
BYTES_MAX = 256 * 1024
