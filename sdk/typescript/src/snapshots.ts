// Snapshots: all records of a kind in one answer of any length.

import { type Call, type Core, limit, reason } from "./core.ts";
import { ConnectionFailed } from "./failures.ts";

/** How often in a row a snapshot may break off before it has brought another record. */
const BREAKS_MAX = 4;
const SILENT_SECONDS = 35;

/** Iterate over it for all records, ascending by id. Goes on by itself where the connection breaks off. */
export class Snapshot<T> implements AsyncIterable<T> {
  readonly #client: Core;
  readonly #call: Call;
  /** The `cursor` with which the changes since the snapshot's beginning begin; known from the first record on. */
  resumeCursor = "";

  constructor(client: Core, call: Call) {
    this.#client = client;
    this.#call = call;
  }

  /** The records as JSON. */
  async *lines(): AsyncGenerator<string, void, undefined> {
    let call = this.#call;
    for (let breaks = 0;;) {
      const response = await this.#client.stream(call);
      // A request that goes on after a record brings none: the first one stays good.
      this.resumeCursor ||= response.headers.get("Service-Resume-Cursor") ?? "";
      let last = "";
      try {
        for await (const line of linesOf(response, call.options.signal)) {
          last = line;
          yield line;
        }
        return;
      } catch (error) {
        call.options.signal?.throwIfAborted();
        if (!(error instanceof Broken)) throw error;
        breaks = last ? 1 : breaks + 1;
        if (breaks > BREAKS_MAX) {
          throw new ConnectionFailed(`${call.path} broke off ${breaks} times: ${error.message}`, { cause: error });
        }
        if (last) call = { ...call, query: after(last) };
      }
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const line of this.lines()) yield JSON.parse(line) as T;
  }
}

class Broken extends Error {}

async function* linesOf(response: Response, signal: AbortSignal | undefined): AsyncGenerator<string, void, undefined> {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    while (true) {
      const { done, value } = await soon(reader.read(), signal).catch((error: unknown) => {
        throw new Broken(reason(error), { cause: error });
      });
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } finally {
    // Ends the request also where the caller stops early; one that broke off can't be ended again.
    reader.cancel().catch(() => undefined);
  }
}

/** Rejects what takes too long, for a connection may break without a word, and what the caller has ended. */
async function soon<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const limited = limit(SILENT_SECONDS, signal);
  const ended = new Promise<never>((_, reject) => {
    limited.signal.addEventListener("abort", () => reject(limited.signal.reason));
    if (limited.signal.aborted) reject(limited.signal.reason);
  });
  try {
    return await Promise.race([promise, ended]);
  } finally {
    limited.end();
  }
}

function after(line: string): object {
  const last = JSON.parse(line) as { entity_id: number; meter_id?: number };
  return { after_id: last.entity_id, after_meter_id: last.meter_id };
}
