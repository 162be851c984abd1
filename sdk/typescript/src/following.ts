// Following events without an end.

import { type CallOptions, type Core, Resource, sleep } from "./core.ts";
import type { Event, EventKey } from "./models.ts";
import { Feed } from "./paging.ts";
import { type OnRetry, Pauses } from "./pauses.ts";

const WAIT_SECONDS = 25;

export interface Follow {
  /** Of an earlier `follow(…).cursor`; left out: from `since` on, else the events of 30 days. */
  cursor?: string | null | undefined;
  /** How long one request waits, 0 to 25 seconds. */
  wait?: number | undefined;
  event?: EventKey | undefined;
  since?: Date | string | undefined;
  /** Is told of each fault that may pass, and in how many seconds the next request follows. */
  onRetry?: OnRetry | undefined;
}

/** Events as they happen, for ever; each at least once over restarts from `cursor`. */
export class Followed implements AsyncIterable<Event> {
  readonly #feed: Feed<Event>;
  readonly #pauses: Pauses;
  readonly #signal: AbortSignal | undefined;
  /** That of the first event that was not yet handed out whole: store it after you have handled an event. */
  cursor: string | null;

  constructor(client: Core, follow: Follow, options: CallOptions) {
    const { cursor = null, wait = WAIT_SECONDS, event, since, onRetry } = follow;
    this.#feed = new Feed(client, { method: "GET", path: "/events", query: { wait, event, since }, options });
    this.#pauses = new Pauses(wait, onRetry);
    this.#signal = options.signal;
    this.cursor = cursor;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, never, undefined> {
    while (true) {
      this.#pauses.ask();
      let page;
      try {
        page = await this.#feed.page(this.cursor);
      } catch (error) {
        this.#signal?.throwIfAborted();
        await sleep(this.#pauses.afterFailure(error), this.#signal);
        continue;
      }
      const pause = this.#pauses.afterPage(page);
      yield* page.data.slice(0, -1);
      // Within a page the cursor is that of its beginning, so a program that stops there gets its events again.
      this.cursor = page.resume_cursor;
      yield* page.data.slice(-1);
      if (pause) await sleep(pause, this.#signal);
    }
  }
}

/** What `client.events` has besides its operation. */
export class Following extends Resource {
  /**
   * Iterate over the result for all events behind `cursor`, and then for each new one within about a second. It throws
   * CursorExpired if events behind the cursor are no longer there. Faults that may pass end nothing: the next request
   * follows 1, 2, 4 … 30 seconds later.
   */
  follow(follow: Follow = {}, options: CallOptions = {}): Followed {
    return new Followed(this.client, follow, options);
  }
}
