"""The errors that are no single code's; `errors` has a class for each code."""

from __future__ import annotations

import functools


class MakereadyError(Exception):
    """Whatever this library raises on purpose, except ValueError for arguments that can't be sent."""


class ConnectionFailed(MakereadyError):
    """No answer came, after all retries. A write may have happened: call again with the same Idempotency-Key."""


class SignatureInvalid(MakereadyError):
    """A delivery that was not signed with the secret just now. Answer it with 401 and do nothing else."""


class ApiError(MakereadyError):
    """The API refused a request. code: "" where something before the API answered, such as a proxy."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        request_id: str | None = None,
        retry_after: float | None = None,
        param: str | None = None,
        doc_url: str | None = None,
    ) -> None:
        super().__init__(f"{status} {code or 'without a code'}: {message}" + (f" [{request_id}]" if request_id else ""))
        self.status = status
        self.code = code
        self.message = message
        """For people; it may be reworded."""
        self.request_id = request_id
        """Names the request in the logs of the API; quote it when you ask for help."""
        self.retry_after = retry_after
        """Seconds; None where the API named none."""
        self.param = param
        """The parameter or field that was refused, such as `title`; None where the API named none."""
        self.doc_url = doc_url
        """The page about the code; None where the API named none."""

    def __reduce__(self) -> tuple[object, ...]:
        """Errors travel between processes: the default would call the class with the text alone."""
        again = functools.partial(
            type(self),
            request_id=self.request_id,
            retry_after=self.retry_after,
            param=self.param,
            doc_url=self.doc_url,
        )
        return again, (self.status, self.code, self.message)


def may_pass(error: MakereadyError) -> bool:
    """Whether the same request may work a little later, so that what goes on for ever outlasts it."""
    return isinstance(error, ConnectionFailed) or (
        isinstance(error, ApiError) and (error.status == 429 or error.status >= 500)
    )
