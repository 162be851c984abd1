"""The rules of a change of status that need only its body (spec 4.2)."""

from __future__ import annotations

from typing import Protocol

from peer.refusals import ApiError

WORDS_MIN = 5


class Change(Protocol):
    """The body of a change."""

    @property
    def status(self) -> str: ...
    @property
    def note(self) -> str | None: ...
    @property
    def cancellation_reason_code(self) -> str | None: ...
    @property
    def cancellation_notes(self) -> str | None: ...


def photo_missing() -> ApiError:
    return _refused("The company requires a photo to complete a ticket and this one has none.")


def _refused(message: str, status: int = 422) -> ApiError:
    return ApiError(status, "invalid_request", message)


def _words(text: str) -> int:
    return sum(any(map(str.isalnum, run)) for run in text.split())


def check(body: Change) -> None:
    """Checks the rules that need only the body."""
    if body.note is not None and body.status != "Completed":
        raise _refused("note is accepted with status Completed alone.")
    if body.status == "Completed" and _words(body.note or "") < WORDS_MIN:
        raise _refused(f"note must have {WORDS_MIN} or more words.")
    if body.status != "Cancelled":
        if body.cancellation_reason_code is not None or body.cancellation_notes is not None:
            raise _refused("A reason and its notes are accepted with status Cancelled alone.")
    elif body.cancellation_reason_code is None:
        raise _refused("cancellation_reason_code is required with status Cancelled.")
    elif body.cancellation_reason_code == "see_notes":
        if _words(body.cancellation_notes or "") < WORDS_MIN:
            raise _refused(f"cancellation_notes must have {WORDS_MIN} or more words.")
    elif body.cancellation_notes is not None:
        raise _refused("cancellation_notes is accepted with see_notes alone.", 400)
