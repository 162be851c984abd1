// The client of the Maintenance and Occupancy Records API.

import { Api } from "./resources.ts";

export type { Answered, Attempt, CallOptions, Settings, WriteOptions } from "./core.ts";
export { VERSION } from "./core.ts";
export * as errors from "./errors.ts";
export type { Follow, Followed } from "./following.ts";
export type {
  Batch,
  BatchOf,
  Change,
  Cursors,
  Kind,
  MirrorOptions,
  RecordOf,
  Store,
} from "./mirror.ts";
export { Mirror } from "./mirror.ts";
export type * from "./models.ts";
export { CONTRACT, KINDS } from "./models.ts";
export type { Feed, FeedPage, Page, Pages } from "./paging.ts";
export type { OnRetry } from "./pauses.ts";
export type { Snapshot } from "./snapshots.ts";
export type { SqliteDatabase } from "./sqlite.ts";
export { SqliteStore } from "./sqlite.ts";
export * as webhooks from "./webhooks.ts";

/** The API of one company. One client serves a whole program. */
export class Makeready extends Api {}
