"""The error envelope (spec 7) for every error."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from peer.refusals import ApiError


def _envelope(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


async def _api_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return _envelope(error.status, error.code, error.message, error.headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where, field = first["loc"][0], str(first["loc"][-1])
    if where == "path":
        return _envelope(404, "not_found", "No record with that id is visible to this key; check the id and the key.")
    if where == "header" and first["type"] == "missing":
        return _envelope(400, "idempotency_key_required", "Send an Idempotency-Key header with every write.")
    if field == "limit":
        return _envelope(400, "invalid_limit", "limit must be a positive integer.")
    # A value outside an enum, a title that is too long and an unknown key of a change are 422, all others 400.
    is_rule = first["type"] == "literal_error" or (field, first["type"]) == ("title", "string_too_long")
    is_rule = is_rule or (request.method, first["type"]) == ("PATCH", "extra_forbidden")
    return _envelope(422 if is_rule else 400, "invalid_request", f"{field} is missing or not valid.")


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    return _envelope(error.status_code, code, f"{error.detail}.", error.headers)


async def _fault(_request: Request, _error: Exception) -> JSONResponse:
    return _envelope(500, "internal_error", "Something failed on our side; try again.")


def install(app: FastAPI) -> None:
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _fault)
