// The service worker: pages that a device keeps open without a network, and acts that are done without one wait here. They
// are sent in their order, each with the token of its form, so an act whose answer was lost is not done twice. The server
// says before this text which files a page needs (SHELL), which pages may be kept (KEPT) and which acts may wait (WAITING).
"use strict";
const OFFLINE = "/offline", SHELLS_KEPT = 2, AGAIN_MS = 600000, PATIENCE_MS = 8000, PAGES_MAX = 150, ANSWER_MAX = 200000;
const fits = (patterns, path) => patterns.some((pattern) => new RegExp(`^${pattern}$`).test(path));
const address = (url) => url.pathname + url.search;
const offline = async () => (await caches.match(OFFLINE)) || Response.error();
const tell = async () => { for (const page of await clients.matchAll()) page.postMessage("acts"); };

self.addEventListener("install", (event) => {
  const shell = caches.open(`shell-${VERSION}`).then((cache) => cache.addAll([...SHELL, OFFLINE]));
  event.waitUntil(shell.then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => {
  const begin = async () => {
    const shells = (await caches.keys()).filter((name) => name.startsWith("shell-"));
    for (const name of shells.slice(0, -SHELLS_KEPT)) await caches.delete(name);
    await self.registration.navigationPreload?.enable();
    await clients.claim();
  };
  event.waitUntil(begin());
});

// Pages
const pagesOf = async (me) => caches.open(`pages-${me.owner}`);
const remember = async (me, path, answer) => {
  const isPage = answer.ok && !answer.redirected && (answer.headers.get("Content-Type") || "").startsWith("text/html");
  if (!isPage) return "";
  const text = await answer.text(), headers = new Headers(answer.headers);
  headers.delete("Content-Encoding");
  headers.set("X-Kept", String(Date.now()));
  if (!text.includes(`data-owner="${me.owner}"`) || (await store.me())?.owner !== me.owner) return "";
  await (await pagesOf(me)).put(path, new Response(text, { headers }));
  if ((await store.me())?.owner !== me.owner) await caches.delete(`pages-${me.owner}`);  // signed out meanwhile
  return text;
};
const show = async (event, url) => {
  const me = await store.me().catch(() => null);
  const held = async () => me && (await pagesOf(me)).match(address(url));
  const asked = (async () => (await event.preloadResponse) || fetch(event.request))();
  asked.catch(() => {});
  const slow = new Promise((done) => setTimeout(done, PATIENCE_MS)).then(async () => (await held()) || asked);
  slow.catch(() => {});
  try {
    const answer = await Promise.race([asked, slow]);
    if (me?.keeps && fits(KEPT, url.pathname) && !answer.headers.has("X-Kept")) {
      event.waitUntil(remember(me, address(url), answer.clone()).catch(() => {}));
    }
    return answer;
  } catch {
    return (await held()) || offline();
  }
};
// Fetches pages that may be needed without a network, and the rows of inspections among them.
const keep = (paths) => navigator.locks.request("pages", { ifAvailable: true }, async (lock) => {
  const me = await store.keep();
  if (!lock || !me) return;
  const cache = await pagesOf(me), queue = [...new Set(paths)], seen = new Set(queue);
  for (let index = 0; index < queue.length && index < PAGES_MAX; index += 1) {
    if (!fits(KEPT, queue[index].split("?")[0])) continue;
    const had = await cache.match(queue[index]);
    const isNew = had && Date.now() - Number(had.headers.get("X-Kept")) < AGAIN_MS;
    const answer = isNew ? null : await fetch(queue[index], { headers: { "X-Live": "1" }, redirect: "manual" });
    if (answer && (answer.type === "opaqueredirect" || answer.status === 401)) return;
    const text = isNew ? await had.text() : await remember(me, queue[index], answer);
    for (const [, more] of text.matchAll(/href="(\/inspections\/[0-9]+\/walk(?:\?row=[0-9]+)?)"/g)) {
      if (!seen.has(more)) { seen.add(more); queue.push(more); }
    }
  }
});

// Acts
const page = (path) => path.replace(/\/(rows\/.*|[a-z-]+)$/, "");
const next = async (me, url, referrer) => {
  const from = referrer && address(new URL(referrer));
  if (!from || !fits(KEPT, from.split("?")[0])) return page(url.pathname);
  if (!url.pathname.includes("/rows/")) return from;
  const text = await (await (await pagesOf(me)).match(from))?.text();
  return text?.match(/<a[^>]*href="([^"]+)"[^>]*rel="next"/)?.[1] || page(url.pathname);
};
const titleOf = async (me, path) => {
  const text = await (await (await pagesOf(me)).match(path))?.text();
  return text?.match(/<title>([^<]*?) · [^<]*<\/title>/)?.[1] || "";
};
const digest = async (entries) => {
  const told = JSON.stringify(entries.map(([name, value]) => [name, typeof value === "string" ? value : [value.name, value.size]]));
  return Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(told)))).join(" ");
};
const mark = () => `~${Array.from(crypto.getRandomValues(new Uint8Array(4)), (byte) => (byte % 36).toString(36)).join("")}`;
const read = async (request) => {
  const entries = [...(await request.formData())];
  return { token: String(entries.find(([name]) => name === "act")?.[1] || ""), entries: entries.filter(([name]) => name !== "act") };
};
const act = async (event, url) => {
  const again = event.request.clone(), me = await store.me().catch(() => null);
  if (!me) return fetch(event.request).catch(offline);
  if (!(await store.acts.count()).own) {
    try {
      const answer = await fetch(event.request);
      event.waitUntil(read(again).then(async ({ token, entries }) => store.acts.use(token, await digest(entries))).catch(() => {}));
      return answer;
    } catch { /* it waits for a network */ }
  }
  try {
    const { token, entries } = await read(again);
    const use = await store.acts.use(token, await digest(entries));
    const title = await titleOf(me, page(url.pathname));
    const value = { path: url.pathname, page: page(url.pathname), title, token: use === "other" ? token + mark() : token, entries };
    if (use !== "same" || !(await store.acts.has(token))) await store.acts.add(value);
    await store.drafts.done(token);
    self.registration.sync?.register("acts").catch(() => {});
    event.waitUntil(send());
    return Response.redirect(await next(me, url, event.request.referrer), 303);
  } catch {
    return offline();
  }
};
const send = () => navigator.locks.request("acts", async () => {
  const stopped = new Set();  // the records one of whose acts needs its person first
  for (const row of await store.acts.rows()) {
    if (row.refused) stopped.add(row.page);
    if (stopped.has(row.page)) continue;
    const { token, entries } = await store.acts.get(row.id);
    const body = new FormData();
    for (const [name, value] of [["act", token], ...entries]) body.append(name, value);
    const answer = await fetch(row.path, { method: "POST", body, headers: { "X-Queued": "1" }, redirect: "manual" });
    if (answer.status === 401) { await store.forget(); break; }
    if (answer.status >= 500 || [408, 425, 429].includes(answer.status)) break;
    if (answer.ok) await store.acts.drop(row.id);
    else {
      await store.acts.refuse(row.id, { status: answer.status, html: (await answer.text()).slice(0, ANSWER_MAX) });
      stopped.add(row.page);
    }
    await tell();
  }
}).catch(() => {}).then(tell);

self.addEventListener("fetch", (event) => {
  const { request } = event, url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (url.pathname.startsWith("/static/")) {
    event.respondWith(caches.match(request).then((file) => file || fetch(request)));
  } else if (request.mode === "navigate" && request.method === "GET") {
    event.respondWith(show(event, url));
  } else if (request.mode === "navigate" && request.method === "POST" && url.pathname !== "/sign-out") {
    if (fits(WAITING, url.pathname)) event.respondWith(act(event, url));
    else if (!navigator.onLine || !(request.headers.get("Content-Type") || "").startsWith("multipart/")) {
      event.respondWith(fetch(request).catch(offline));
    }
  }
});
self.addEventListener("sync", (event) => { if (event.tag === "acts") event.waitUntil(send()); });
self.addEventListener("message", (event) => {
  if (event.data === "send") event.waitUntil(send());
  if (event.data.keep) event.waitUntil(keep(event.data.keep).catch(() => {}));
});
