// A copy of a company's records, in step with the API (docs/sync of the API says why it is exact).

import { type Answered, type CallOptions, sleep } from "./core.ts";
import { CursorExpired } from "./errors.ts";
import { KINDS } from "./models.ts";
import type { FeedPage } from "./paging.ts";
import { type OnRetry, Pauses } from "./pauses.ts";
import type { Api } from "./resources.ts";
import type { Snapshot } from "./snapshots.ts";

const WAIT_SECONDS = 25;
/** Where everything changes all the time: nine kinds every 5 seconds are 108 of the key's 120 requests a minute. */
const PAUSE_SECONDS = 5;

/** tickets, units, … */
export type Kind = (typeof KINDS)[number];
/** What the fetch of a kind returns. */
export type RecordOf<K extends Kind> = ReturnType<Api["snapshots"][K]> extends Snapshot<infer T> ? T : never;

/** A record at its latest state. */
export interface Change<T> {
  entity_id: number;
  /** Null where it can no longer be seen: delete it. */
  record: T | null;
}

/** What a store keeps of one kind in one transaction. */
export interface BatchOf<K extends Kind> {
  kind: K;
  /** To be read once. Those of a snapshot come from the network while they are read. */
  changes: AsyncIterable<Change<RecordOf<K>>>;
  /** Where the next batch begins: keep it in the same transaction. */
  cursor: string;
  /** Whether these are all records of the kind: delete the others. */
  isWhole: boolean;
}

/** A batch of any kind; `batch.kind === "tickets"` narrows its records. */
export type Batch = { [K in Kind]: BatchOf<K> }[Kind];
export type Cursors = Partial<Record<Kind, string>>;

/** Where batches are kept. A function that keeps them is a store, too. */
export interface Store {
  /** Keeps a batch whole or throws; one batch at a time. What it throws ends the run. */
  keep(batch: Batch): void | Promise<void>;
  /** Where the copy of each kind stands; without this every kind begins with a snapshot. */
  cursors?(): Cursors | Promise<Cursors>;
}

export interface MirrorOptions {
  /** All if left out. */
  kinds?: readonly Kind[] | undefined;
  /** Where the copy of each kind stands; those of the store if left out. */
  cursors?: Cursors | undefined;
}

/** Brings a store in step with the API, from a snapshot of each kind and the changes since. */
export class Mirror {
  readonly kinds: readonly Kind[];
  /** Where the copy of each kind stands; known from the first step on. */
  readonly cursors: Cursors = {};
  /** How many records have come, by kind. */
  readonly counts: Record<Kind, number>;
  readonly #client: Api;
  readonly #store: Store;
  #begun: Promise<void> | undefined;
  #stored: Promise<void> = Promise.resolve();

  constructor(client: Api, store: Store | Store["keep"], options: MirrorOptions = {}) {
    const { kinds = KINDS, cursors } = options;
    const unknown = kinds.filter((one) => !KINDS.includes(one));
    if (unknown.length) throw new TypeError(`no such kinds: ${unknown.join(", ")}; there are ${KINDS.join(", ")}`);
    this.kinds = [...kinds];
    this.counts = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>;
    this.#client = client;
    this.#store = typeof store === "function" ? { keep: store } : store;
    if (cursors) this.#begun = Promise.resolve(void Object.assign(this.cursors, cursors));
  }

  /** Brings every kind up to now. Returns how many records came, by kind: none if nothing has changed. */
  async run(options: CallOptions = {}): Promise<Partial<Record<Kind, number>>> {
    const before = { ...this.counts };
    for (const kind of this.kinds) while (await this.step(kind, options));
    return Object.fromEntries(this.kinds.map((kind) => [kind, this.counts[kind] - before[kind]]));
  }

  /**
   * Keeps every kind in step until an error that repeating would not change, which it throws; outlasts outages. The
   * signal ends it. onRetry is told of each failure, and in how many seconds the next request follows.
   */
  async follow(options: CallOptions & { onRetry?: OnRetry | undefined } = {}): Promise<never> {
    const stopping = new AbortController();
    const { signal } = stopping;
    const stop = (): void => stopping.abort(options.signal?.reason);
    options.signal?.addEventListener("abort", stop);
    if (options.signal?.aborted) stop();
    const work = async (kind: Kind): Promise<never> => {
      const pauses = new Pauses(WAIT_SECONDS, options.onRetry);
      while (true) {
        signal.throwIfAborted();
        pauses.ask();
        let pause = 0;
        try {
          const page = await this.#advance(kind, WAIT_SECONDS, signal);
          if (page) pause = pauses.afterPage(page);
          // Others need the key, too.
          if (page?.next_cursor === null && this.#client.isShort) pause = Math.max(pause, PAUSE_SECONDS);
        } catch (error) {
          signal.throwIfAborted();
          pause = pauses.afterFailure(error);
        }
        if (pause) await sleep(pause, signal);
      }
    };
    const working = this.kinds.map(work);
    try {
      return await Promise.race(working);
    } finally {
      options.signal?.removeEventListener("abort", stop);
      stopping.abort();
      await Promise.allSettled(working); // nothing is stored any more once this has thrown
    }
  }

  /** Brings one kind a page forward, or stores its snapshot. Returns whether more waits. */
  async step(kind: Kind, options: CallOptions & { wait?: number | undefined } = {}): Promise<boolean> {
    const page = await this.#advance(kind, options.wait ?? 0, options.signal);
    return page === undefined || page.next_cursor !== null;
  }

  /** The page by which one kind went forward; undefined after a snapshot, and where one has to follow. */
  async #advance(
    kind: Kind,
    wait: number,
    signal: AbortSignal | undefined,
  ): Promise<Answered<FeedPage<Change<unknown>>> | undefined> {
    await (this.#begun ??= this.#begin());
    const cursor = this.cursors[kind];
    if (!cursor) {
      await this.#snapshot(kind, signal);
      return undefined;
    }
    let page;
    try {
      page = await this.#client.changes[kind]({ cursor, wait }, { signal }).page();
    } catch (error) {
      if (!(error instanceof CursorExpired)) throw error;
      delete this.cursors[kind]; // the API's database was restored: the copy may hold what that lost
      return undefined;
    }
    if (page.data.length || page.resume_cursor !== cursor) {
      await this.#keep(kind, each(page.data), page.resume_cursor, false);
    }
    return page;
  }

  async #begin(): Promise<void> {
    try {
      Object.assign(this.cursors, await this.#store.cursors?.());
    } catch (error) {
      this.#begun = undefined;
      throw error;
    }
  }

  async #snapshot(kind: Kind, signal: AbortSignal | undefined): Promise<void> {
    const snapshot = this.#client.snapshots[kind]({}, { signal });
    const records = snapshot[Symbol.asyncIterator]();
    const first = await records.next(); // the cursor comes before the first record
    async function* changes(): AsyncGenerator<Change<RecordOf<Kind>>> {
      for (let { done, value } = first; !done; { done, value } = await records.next()) {
        yield { entity_id: value!.entity_id, record: value! };
      }
    }
    try {
      await this.#keep(kind, changes(), snapshot.resumeCursor, true);
    } finally {
      await records.return?.(undefined); // where the store has not read all
    }
  }

  async #keep(
    kind: Kind,
    changes: AsyncIterable<Change<RecordOf<Kind>>>,
    cursor: string,
    isWhole: boolean,
  ): Promise<void> {
    let count = 0;
    async function* counted(): AsyncGenerator<Change<RecordOf<Kind>>> {
      for await (const one of changes) {
        count += 1;
        yield one;
      }
    }
    const keeping = this.#stored.then(() => this.#store.keep({ kind, changes: counted(), cursor, isWhole } as Batch));
    this.#stored = keeping.catch(() => undefined); // the next batch may be of another kind
    await keeping;
    this.cursors[kind] = cursor;
    this.counts[kind] += count;
  }
}

async function* each(changes: readonly Change<unknown>[]): AsyncGenerator<Change<RecordOf<Kind>>> {
  for (const { entity_id, record } of changes) yield { entity_id, record: record as RecordOf<Kind> | null };
}
