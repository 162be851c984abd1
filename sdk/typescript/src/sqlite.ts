// A store of the Mirror in SQLite, by any library that has the usual two methods.

import type { Batch, Cursors, Kind, Store } from "./mirror.ts";
import { KINDS } from "./models.ts";

/** What DatabaseSync of node:sqlite, better-sqlite3 and Database of bun:sqlite have in common. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: (string | number)[]): unknown;
    all(...values: (string | number)[]): unknown[];
  };
}

/**
 * A table for each kind, `entity_id` and `record`, which is JSON: `SELECT record ->> 'title' FROM tickets`.
 *
 * A batch and its cursor are one transaction, so a program may be killed at any moment and go on. The connection is the
 * store's own while a Mirror uses it: what others write there meanwhile becomes part of its transactions.
 */
export class SqliteStore implements Store {
  readonly #database: SqliteDatabase;

  constructor(database: SqliteDatabase) {
    this.#database = database;
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA busy_timeout = 60000");
    for (const kind of KINDS) {
      database.exec(`CREATE TABLE IF NOT EXISTS ${kind} (entity_id INTEGER PRIMARY KEY, record TEXT NOT NULL)`);
    }
    database.exec("CREATE TABLE IF NOT EXISTS position (kind TEXT PRIMARY KEY, cursor TEXT NOT NULL)");
    database.exec("CREATE TABLE IF NOT EXISTS origin (company_id INTEGER NOT NULL)");
  }

  /** Whether the copy is of this company; the first one asked about has it. */
  belongsTo(companyId: number): boolean {
    const [found] = this.#database.prepare("SELECT company_id FROM origin").all() as { company_id: number }[];
    if (!found) this.#database.prepare("INSERT INTO origin VALUES (?)").run(companyId);
    return !found || found.company_id === companyId;
  }

  /** Where the copy of each kind stands. */
  cursors(): Cursors {
    const rows = this.#database.prepare("SELECT kind, cursor FROM position").all() as { kind: Kind; cursor: string }[];
    return Object.fromEntries(rows.map(({ kind, cursor }) => [kind, cursor]));
  }

  /** How many records of the kind the copy has. */
  count(kind: Kind): number {
    const [row] = this.#database.prepare(`SELECT count(*) AS found FROM ${known(kind)}`).all() as { found: number }[];
    return row!.found;
  }

  async keep(batch: Batch): Promise<void> {
    const kind = known(batch.kind);
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      if (batch.isWhole) this.#database.exec(`DELETE FROM ${kind}`);
      const put = this.#database.prepare(`REPLACE INTO ${kind} VALUES (?, ?)`);
      const remove = this.#database.prepare(`DELETE FROM ${kind} WHERE entity_id = ?`);
      for await (const { entity_id, record } of batch.changes) {
        if (record === null) remove.run(entity_id);
        else put.run(entity_id, JSON.stringify(record));
      }
      this.#database.prepare("REPLACE INTO position VALUES (?, ?)").run(kind, batch.cursor);
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }
}

/** The kind, as it may become part of a statement. */
function known(kind: Kind): Kind {
  if (!KINDS.includes(kind)) throw new TypeError(`no such kind: ${kind}`);
  return kind;
}
