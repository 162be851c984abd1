// The errors that are no single code's; errors.ts has a class for each code.

/** Whatever this library throws on purpose, except TypeError for arguments that cannot be sent. */
export class MakereadyError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came, after all retries. A write may have happened: call again with the same `idempotencyKey`. */
export class ConnectionFailed extends MakereadyError {}

/** A delivery that was not signed with the secret just now. Answer it with 401 and do nothing else. */
export class SignatureInvalid extends MakereadyError {}

/** The API refused a request. */
export class ApiError extends MakereadyError {
  readonly status: number;
  /** Stable; empty where something before the API answered, such as a proxy. */
  readonly code: string;
  /** Names the request in the logs of the API; quote it when you ask for help. */
  readonly requestId: string | null;
  /** Seconds; null where the API named none. */
  readonly retryAfter: number | null;
  /** The parameter or field that was refused, such as `title`; null where the API named none. */
  readonly param: string | null;
  /** The page about the code; null where the API named none. */
  readonly docUrl: string | null;

  constructor(
    status: number,
    code: string,
    message: string,
    requestId: string | null,
    retryAfter: number | null,
    param: string | null = null,
    docUrl: string | null = null,
  ) {
    super(`${status} ${code || "without a code"}: ${message}${requestId ? ` [${requestId}]` : ""}`);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
    this.param = param;
    this.docUrl = docUrl;
  }
}
