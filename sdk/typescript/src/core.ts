// Requests as they are sent: keys, retries, the deadline and the rate limit.

import { ApiError, BY_CODE, ConnectionFailed, IdempotencyInProgress, RateLimited } from "./errors.ts";

export const VERSION = "0.2.0";
export const TIMEOUT_SECONDS = 120;
export const RETRIES = 8;
const ANSWER_SECONDS = 35; // the slowest operation waits 30 s for a receiver of webhooks
const REQUESTS_A_MINUTE = 120;
// With the default of 8 retries they last 20 to 40 seconds: longer than a release or a restart of the API.
const BACKOFF_SECONDS = 0.5;
const BACKOFF_SECONDS_MAX = 8;
// What a proxy answers while nothing behind it does: a release comes, or a machine has gone.
const GATEWAY_FAULTS = [502, 503, 504];

/** What a client is made with. */
export interface Settings {
  /** MAKEREADY_API_KEY of the environment if left out. */
  apiKey?: string | undefined;
  /** As in https://HOST/api/v1; MAKEREADY_BASE_URL of the environment if left out. */
  baseUrl?: string | undefined;
  /** For one call with all its retries and its waits for the rate limit, besides the `wait` of a feed. */
  timeoutSeconds?: number | undefined;
  /** How often a call is repeated at most. */
  retries?: number | undefined;
  /** Sent besides the client's own. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Is told of each request that was sent. */
  onResponse?: ((attempt: Attempt) => void) | undefined;
  /** Gets a line about each request, never with the key: console.debug. */
  log?: ((line: string) => void) | undefined;
  /** In place of the global fetch: for a proxy, or a certificate authority of your own. */
  fetch?: typeof fetch | undefined;
}

/** A request that was sent, and what came of it. */
export interface Attempt {
  readonly method: string;
  readonly path: string;
  /** Null where no answer came. */
  readonly status: number | null;
  readonly requestId: string | null;
  /** 1, and more for retries of the same call. */
  readonly number: number;
  /** Until the answer was there, or failed. */
  readonly seconds: number;
  /** The key's requests that are left in this minute; null where the answer does not say it. */
  readonly remaining: number | null;
}

export interface CallOptions {
  /** Ends the call; it then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** In place of the client's own, for this call. */
  timeoutSeconds?: number | undefined;
  retries?: number | undefined;
  /** Sent besides those of the client. */
  headers?: Readonly<Record<string, string>> | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Names the write; a new one if left out. All retries of a call have the same. */
  idempotencyKey?: string | undefined;
}

/** One call of an operation, before it is sent. Values that are undefined or null are not sent. */
export interface Call {
  method: string;
  path: string;
  query?: object | undefined;
  body?: object | undefined;
  options: WriteOptions;
}

/** An answer, and what it has beside its own fields. JSON.stringify and Object.keys see its own fields alone. */
export type Answered<T> = T & {
  /** Names the request in the logs of the API; quote it when you ask for help. */
  readonly requestId: string | null;
  /** Whether an earlier request with the same Idempotency-Key had the effect, and this is its answer again. */
  readonly replayed: boolean;
  /** Whether a feed's page came before its `wait` was over, as too many other programs wait with this key. */
  readonly superseded: boolean;
};

/** A path with its ids. Throws TypeError for an empty one, which would name another operation. */
export function path(parts: TemplateStringsArray, ...ids: (string | number)[]): string {
  return parts.reduce((before, after, n) => {
    const text = encodeURIComponent(ids[n - 1] ?? "");
    if (["", ".", "..", "NaN"].includes(text)) throw new TypeError(`no id: ${ids[n - 1]}`);
    return before + text + after;
  });
}

export class Core {
  readonly #baseUrl: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #ownHeaders: Readonly<Record<string, string>>;
  readonly #timeoutSeconds: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;
  readonly #onResponse: (attempt: Attempt) => void;
  // What is left of the key's requests, by the last answer.
  #remaining = 1;
  #resetsAt = 0;
  #limited = false; // whether an answer has said it

  constructor(settings: Settings = {}) {
    // A key that was read from a file ends with a newline.
    const apiKey = (settings.apiKey ?? environment("MAKEREADY_API_KEY") ?? "").trim();
    const baseUrl = settings.baseUrl ?? environment("MAKEREADY_BASE_URL") ?? "";
    const { timeoutSeconds = TIMEOUT_SECONDS, retries = RETRIES } = settings;
    if (!apiKey) throw new TypeError("no API key: give apiKey, or set MAKEREADY_API_KEY");
    if (!/^[!-~]+$/.test(apiKey)) throw new TypeError("apiKey must be printable ASCII without blanks");
    if (!baseUrl) {
      throw new TypeError("no base address: give baseUrl, or set MAKEREADY_BASE_URL, as in https://HOST/api/v1");
    }
    if (!/^https?:\/\/[^/?#\s]+(\/[^?#\s]*)?$/.test(baseUrl)) {
      throw new TypeError(`baseUrl must be like https://HOST/api/v1, not ${baseUrl}`);
    }
    checked(timeoutSeconds, retries);
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#timeoutSeconds = timeoutSeconds;
    this.#retries = retries;
    this.#fetch = settings.fetch ?? ((...given) => fetch(...given));
    this.#onResponse = (attempt) => {
      settings.log?.(lineOf(attempt));
      settings.onResponse?.(attempt);
    };
    this.#headers = settings.headers ?? {};
    this.#ownHeaders = {
      Authorization: `Bearer ${apiKey}`,
      "User-Agent": `makeready-client/${VERSION} typescript`,
    };
  }

  /** Whether fewer than half of the key's 120 requests a minute are left, by the last answer. */
  get isShort(): boolean {
    return this.#limited && this.#remaining < REQUESTS_A_MINUTE / 2;
  }

  /** The answer to a call. Throws ApiError or ConnectionFailed. */
  async call<T>(call: Call): Promise<Answered<T>> {
    const { response, text } = await this.#sent(call, (found) => found.text());
    const answer = parsed(text) as Answered<T> | undefined;
    if (typeof answer !== "object" || answer === null) throw refusal(response, text, this.#baseUrl);
    // Not enumerable, so that the record stays what the API answered.
    return Object.defineProperties(answer, {
      requestId: { value: response.headers.get("X-Request-Id") },
      replayed: { value: response.headers.get("X-Idempotent-Replay") === "1" },
      superseded: { value: response.headers.get("Service-Wait") === "superseded" },
    });
  }

  /** Sends a call whose answer has no content. Throws as `call`. */
  async send(call: Call): Promise<void> {
    await this.#sent(call, (found) => found.text());
  }

  /** The response to a call, its body unread. Throws as `call`. */
  async stream(call: Call): Promise<Response> {
    return (await this.#sent(call, async () => "")).response;
  }

  // Retried are 429 (after Retry-After), 503, 500 (once), 409 idempotency_in_progress, lost connections (section 7 of
  // the API's specification), and 502 and 504, which only proxies answer.
  async #sent(
    call: Call,
    read: (response: Response) => Promise<string>,
  ): Promise<{ response: Response; text: string }> {
    const { signal, timeoutSeconds = this.#timeoutSeconds, retries = this.#retries } = call.options;
    checked(timeoutSeconds, retries);
    const wait = Number((call.query as { wait?: number } | undefined)?.wait ?? 0);
    const deadline = now() + timeoutSeconds + wait;
    const url = this.#baseUrl + call.path + search(call.query);
    const init = this.#request(call);
    for (let number = 1, tried = 0, faults = 0, mayHaveHappened = false;; number += 1) {
      await this.#allowed(deadline, signal);
      let failure: ApiError | ConnectionFailed;
      let isRetried: boolean;
      const seconds = Math.min(ANSWER_SECONDS + wait, Math.max(deadline - now(), 0.001));
      const limited = limit(seconds, signal);
      const started = now();
      let outcome: { response: Response; text: string } | undefined;
      let fault: unknown;
      try {
        const response = await this.#fetch(url, { ...init, signal: limited.signal });
        outcome = { response, text: await (response.ok ? read(response) : response.text()) };
      } catch (error) {
        signal?.throwIfAborted();
        fault = error;
      } finally {
        limited.end();
      }
      this.#report(call, outcome?.response, number, now() - started);
      if (outcome) {
        const { status, ok } = outcome.response;
        if (ok || (call.method === "DELETE" && mayHaveHappened && status === 404)) return outcome;
        failure = refusal(outcome.response, outcome.text, this.#baseUrl);
        faults += status === 500 ? 1 : 0;
        mayHaveHappened ||= [500, 502, 504].includes(status);
        isRetried = [429, ...GATEWAY_FAULTS].includes(status) || (status === 500 && faults === 1) ||
          failure instanceof IdempotencyInProgress;
      } else {
        failure = new ConnectionFailed(`${call.method} ${this.#baseUrl}${call.path}: ${reason(fault)}`, {
          cause: fault,
        });
        mayHaveHappened = true;
        isRetried = !isDistrust(fault);
      }
      const longest = Math.min(BACKOFF_SECONDS * 2 ** tried, BACKOFF_SECONDS_MAX);
      const backoff = (1 + Math.random()) / 2 * longest;
      const pause = backoff + (failure instanceof ApiError ? failure.retryAfter ?? 0 : 0);
      // The API says when a refused request may come again, so those do not use up the retries.
      const isLimited = retries > 0 && failure instanceof RateLimited;
      if (!isRetried || (tried >= retries && !isLimited) || now() + pause > deadline) throw failure;
      if (!isLimited) tried += 1;
      await sleep(pause, signal);
    }
  }

  #report({ method, path }: Call, response: Response | undefined, number: number, seconds: number): void {
    const remaining = this.#note(response?.headers.get("RateLimit"));
    const requestId = response?.headers.get("X-Request-Id") ?? null;
    this.#onResponse({ method, path, status: response?.status ?? null, requestId, number, seconds, remaining });
  }

  #request(call: Call): RequestInit {
    const headers = new Headers(this.#headers);
    for (const more of [call.options.headers ?? {}, this.#ownHeaders]) {
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
    }
    const init: RequestInit = { method: call.method, headers, redirect: "manual" };
    if (call.body) {
      const key = call.options.idempotencyKey ?? crypto.randomUUID();
      if (!/^[!-~]([ -~]{0,62}[!-~])?$/.test(key)) {
        throw new TypeError("idempotencyKey must be 1 to 64 characters of printable ASCII");
      }
      headers.set("Idempotency-Key", key);
      headers.set("Content-Type", "application/json");
      init.body = JSON.stringify(call.body);
    }
    return init;
  }

  /** Waits until the key may send, by what the last answer said of its limit. */
  async #allowed(deadline: number, signal: AbortSignal | undefined): Promise<void> {
    for (let at = now(); this.#remaining <= 0 && at < this.#resetsAt; at = now()) {
      const pause = this.#resetsAt - at;
      if (this.#resetsAt > deadline) {
        throw new RateLimited(429, "rate_limited", "The key's requests are used up beyond the deadline.", null, pause);
      }
      await sleep(pause, signal);
    }
    // The window has moved on by one request at least; its answer tells how many more.
    if (this.#remaining <= 0) this.#resetsAt = now() + 1;
    this.#remaining = Math.max(this.#remaining - 1, 0);
  }

  /** Keeps what a header RateLimit says; returns the requests that are left. */
  #note(header: string | null | undefined): number | null {
    const [, remaining, seconds] = /;\s*r=(\d+)\s*;\s*t=(\d+)/.exec(header ?? "") ?? [];
    if (!remaining) return null;
    this.#limited = true;
    this.#remaining = Number(remaining);
    this.#resetsAt = now() + Number(seconds);
    return this.#remaining;
  }
}

/** Operations of one resource. */
export class Resource {
  readonly client: Core;

  constructor(client: Core) {
    this.client = client;
  }
}

function checked(timeoutSeconds: number, retries: number): void {
  if (!(timeoutSeconds > 0) || !(retries >= 0)) {
    throw new TypeError("timeoutSeconds must be more than 0, retries 0 or more");
  }
}

function lineOf({ method, path, status, requestId, number, seconds, remaining }: Attempt): string {
  const result = status ?? "no answer";
  return `${method} ${path}: ${result} in ${seconds.toFixed(3)} s, attempt ${number}, request ${requestId}, ${remaining} left`;
}

function environment(name: string): string | undefined {
  // Not in browsers, where a key has no place anyway.
  return (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env[name];
}

function search(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const texts = given.map((
    [name, value],
  ): [string, string] => [name, value instanceof Date ? value.toISOString() : String(value)]);
  return texts.length ? `?${new URLSearchParams(texts)}` : "";
}

/** Whether the server's certificate was refused, which the next attempt would do again. */
function isDistrust(error: unknown): boolean {
  const { code } = (error as { cause?: { code?: unknown } } | undefined)?.cause ?? {};
  return typeof code === "string" && /^(ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
}

function refusal(response: Response, text: string, baseUrl: string): ApiError {
  const after = response.headers.get("Retry-After") ?? "";
  const error = (parsed(text) as { error?: { code?: unknown; message?: unknown } } | undefined)?.error;
  const location = response.headers.get("Location");
  const elsewhere = GATEWAY_FAULTS.includes(response.status)
    ? `${response.statusText || "An answer"}: a proxy did not reach the API at ${baseUrl}`
    : `${response.statusText || "An answer"}${location ? ` to ${location}` : ""}, not from the API itself; ` +
      `is baseUrl right? It is ${baseUrl}`;
  const [code, words] = typeof error?.code === "string" ? [error.code, String(error.message)] : ["", elsewhere];
  const isElsewhere = code && response.status === 404 && !baseUrl.endsWith("/api/v1");
  const message = isElsewhere ? `${words} baseUrl is ${baseUrl}; most end with /api/v1.` : words;
  const kind = Object.hasOwn(BY_CODE, code) ? BY_CODE[code]! : ApiError;
  const link = /<([^>]*)>\s*;\s*rel="?help"?/.exec(response.headers.get("Link") ?? "")?.[1];
  return new kind(
    response.status,
    code,
    message,
    response.headers.get("X-Request-Id"),
    /^\d+$/.test(after) ? Number(after) : null,
    response.headers.get("Service-Error-Param"),
    link !== undefined && URL.canParse(link, baseUrl) ? new URL(link, baseUrl).href : null,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Of a monotonic clock, in seconds. */
export function now(): number {
  return performance.now() / 1000;
}

/** Throws the signal's reason as soon as that aborts. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    const abort = (): void => {
      end();
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      end();
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", abort);
  });
}

/** A signal that aborts after so many seconds, or with another one; `end` when it is no longer needed. */
export function limit(seconds: number, other: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort(other?.reason);
  const timer = setTimeout(
    () => controller.abort(new Error(`no answer within ${seconds.toFixed(1)} s`)),
    seconds * 1000,
  );
  other?.addEventListener("abort", abort);
  if (other?.aborted) abort();
  const end = (): void => {
    clearTimeout(timer);
    other?.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, end };
}

export function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message.trim()}` : "";
  return error instanceof Error ? `${error.message}${cause}` : String(error);
}
