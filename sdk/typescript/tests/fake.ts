// Sends the calls on stdin to the fake, and prints its answers: node fake.ts < {"keys", "records", "calls"}
import { json } from "node:stream/consumers";
import { fakeApi } from "@makeready/client/testing";

interface Call {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | null;
}

const { keys, records, calls } = await json(process.stdin) as any;
const api = fakeApi(keys);
for (const record of records) api.add(record);
const answers = [];
for (const { method, path, headers, body } of calls as Call[]) {
  const response = await api.fetch(api.baseUrl + path, { method, headers, body });
  answers.push([response.status, Object.fromEntries(response.headers), await response.text()]);
}
console.log(JSON.stringify(answers));
