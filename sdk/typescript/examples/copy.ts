// Keeps a copy of all records in SQLite: node copy.ts copy.sqlite [--follow]. Node.js 22.13 or newer, for node:sqlite;
// on an older one give SqliteStore a Database of better-sqlite3.
import { DatabaseSync } from "node:sqlite";
import { Makeready, Mirror, SqliteStore } from "@makeready/client";

const [file = "copy.sqlite", follow] = process.argv.slice(2);
const client = new Makeready();
const store = new SqliteStore(new DatabaseSync(file));
const { company } = await client.whoami();
if (!store.belongsTo(company.id)) throw new Error(`${file} has the records of another company`);
const mirror = new Mirror(client, store);
for (const [kind, came] of Object.entries(await mirror.run())) console.log(kind, came);
if (follow) await mirror.follow(); // within a second or two, until Ctrl-C
