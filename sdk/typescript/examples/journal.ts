// Keeps a copy of units and tickets without a database: node journal.ts FILE [--follow]. A line of the file is a batch
// with its cursor, so a batch is there whole or not at all.
import { appendFileSync, existsSync, readFileSync, truncateSync } from "node:fs";
import { type Batch, type Change, type Cursors, Makeready, Mirror, type Store } from "@makeready/client";

type Line = Omit<Batch, "changes"> & { changes: Change<unknown>[] };

class Journal implements Store {
  readonly records = new Map<string, unknown>();
  readonly #file: string;
  readonly #cursors: Cursors = {};

  constructor(file: string) {
    this.#file = file;
    if (!existsSync(file)) return;
    const text = readFileSync(file, "utf8");
    const whole = text.slice(0, text.lastIndexOf("\n") + 1); // a kill may have cut the last line
    truncateSync(file, Buffer.byteLength(whole));
    for (const line of whole.split("\n")) if (line) this.#take(JSON.parse(line));
  }

  cursors(): Cursors {
    return this.#cursors;
  }

  async keep({ changes, ...about }: Batch): Promise<void> {
    const line: Line = { ...about, changes: [] };
    for await (const change of changes) line.changes.push(change);
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
    this.#take(line);
  }

  #take({ kind, changes, cursor, isWhole }: Line): void {
    if (isWhole) for (const key of this.records.keys()) if (key.startsWith(`${kind} `)) this.records.delete(key);
    for (const { entity_id, record } of changes) {
      if (record) this.records.set(`${kind} ${entity_id}`, record);
      else this.records.delete(`${kind} ${entity_id}`);
    }
    this.#cursors[kind] = cursor;
  }
}

const journal = new Journal(process.argv[2] ?? "journal.jsonl");
const mirror = new Mirror(new Makeready(), journal, { kinds: ["units", "tickets"] });
for (const [kind, came] of Object.entries(await mirror.run())) console.log(kind, came);
console.log(journal.records.size, "records in all");
if (process.argv[3]) await mirror.follow();
