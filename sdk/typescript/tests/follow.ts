// Follows all kinds until it is killed: node follow.ts FILE KEY…, with the client's environment. Each request has the
// next of the keys, for one key's 120 a minute are few where everything changes all the time.
import { DatabaseSync } from "node:sqlite";
import { Makeready, Mirror, SqliteStore } from "@makeready/client";

const [file = "", ...keys] = process.argv.slice(2);
let sent = 0;
const client = new Makeready({
  apiKey: keys[0],
  fetch: (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set("Authorization", `Bearer ${keys[sent++ % keys.length]}`);
    return fetch(url, { ...init, headers });
  },
});
await new Mirror(client, new SqliteStore(new DatabaseSync(file))).follow();
