// When to ask again, for what goes on for ever.

import { now } from "./core.ts";
import { ApiError, ConnectionFailed } from "./errors.ts";
import type { FeedPage } from "./paging.ts";

const PAUSE_SECONDS = 1;
const PAUSE_SECONDS_MAX = 30;
// A wait ends a little early or late, by the clocks of both sides.
const EARLY_SECONDS = 1;

/** Is told of a failure that may pass, and in how many seconds the next request follows. */
export type OnRetry = (error: ApiError | ConnectionFailed, seconds: number) => void;

/** The seconds between the requests of one follower: 1, 2, 4 … 30 while nothing comes of them. */
export class Pauses {
  readonly #wait: number;
  readonly #onRetry: OnRetry | undefined;
  #seconds = PAUSE_SECONDS;
  #askedAt = 0;
  #hasWarned = false;

  constructor(wait: number, onRetry: OnRetry | undefined) {
    this.#wait = wait;
    this.#onRetry = onRetry;
  }

  /** Notes that a request is sent now. */
  ask(): void {
    this.#askedAt = now();
  }

  /** The pause after a page: 0, unless it came empty before its wait was over. */
  afterPage(page: FeedPage<unknown> & { readonly superseded: boolean }): number {
    if (page.superseded && !this.#hasWarned) {
      this.#hasWarned = true;
      console.warn("Other programs follow with this API key, more than may wait: each should have a key.");
    }
    const isEmpty = !page.data.length && page.next_cursor === null;
    if (isEmpty && now() - this.#askedAt < this.#wait - EARLY_SECONDS) return this.#longer();
    this.#seconds = PAUSE_SECONDS;
    return 0;
  }

  /** The pause after a failure. Throws the error if the same request cannot work a little later. */
  afterFailure(error: unknown): number {
    const mayPass = error instanceof ConnectionFailed ||
      (error instanceof ApiError && (error.status === 429 || error.status >= 500));
    if (!mayPass) throw error;
    const seconds = this.#longer();
    this.#onRetry?.(error, seconds);
    return seconds;
  }

  #longer(): number {
    const seconds = this.#seconds;
    this.#seconds = Math.min(seconds * 2, PAUSE_SECONDS_MAX);
    return seconds;
  }
}
