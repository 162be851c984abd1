// Lists and feeds, page by page or record by record.

import type { Answered, Call, Core } from "./core.ts";
import { PAGE_RECORDS_MAX } from "./models.ts";

/** One page of a list, ascending by id. */
export interface Page<T> {
  data: T[];
  /** The `cursor` of the next page; null at the end. */
  next_cursor: string | null;
  limit: number;
}

/** One page of changes or events, in their order. */
export interface FeedPage<T> extends Page<T> {
  /** The `cursor` of the next request, now or later. Store it together with what you made of the page. */
  resume_cursor: string;
  /** The numbers of events: without filters each follows the one before. Changes have none. */
  positions?: number[];
}

/** All records of a list or feed, from the `cursor` on that was given. Each iteration asks anew. */
class Walk<T, P extends Page<T>> implements AsyncIterable<T> {
  readonly #client: Core;
  readonly #call: Call;

  constructor(client: Core, call: Call) {
    this.#client = client;
    this.#call = call;
  }

  /** What console.log shows of one that was not iterated over. */
  get [Symbol.toStringTag](): string {
    return `${this.#call.method} ${this.#call.path}: iterate with for await, or take a page()`;
  }

  /** One page: that of the cursor, or else the first. */
  page(cursor?: string | null): Promise<Answered<P>> {
    const query = { limit: PAGE_RECORDS_MAX, ...defined(this.#call.query), ...(cursor ? { cursor } : {}) };
    return this.#client.call({ ...this.#call, query });
  }

  /** All pages, until nothing more waits. */
  async *pages(): AsyncGenerator<Answered<P>, void, undefined> {
    for (let cursor: string | null | undefined;;) {
      const page = await this.page(cursor);
      yield page;
      cursor = page.next_cursor;
      if (cursor === null) return;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}

export class Pages<T> extends Walk<T, Page<T>> {}

export class Feed<T> extends Walk<T, FeedPage<T>> {}

function defined(query: object = {}): object {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
}
