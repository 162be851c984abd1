// What this browser keeps of a person: texts that were not sent, acts that wait for a network, and the key that opens both.
// The server makes the key for one person, in one company, in one browser, and gives it to their session alone. Here it
// cannot be read, only used; it is dropped when the session is found to be over. What is left is sealed until the same
// person signs in again, for a day: signing out deletes it. Pages and the service worker share this file.
"use strict";
const store = (() => {
  const DAYS_KEPT = 31;
  let opening = null;
  const open = () => {
    opening ??= new Promise((resolve, reject) => {
      const asked = indexedDB.open("makeready", 1);
      asked.onupgradeneeded = () => {
        const db = asked.result;
        db.createObjectStore("me");
        db.createObjectStore("drafts", { keyPath: ["owner", "form"] });
        db.createObjectStore("acts", { keyPath: "id", autoIncrement: true });
        db.createObjectStore("used");
      };
      asked.onerror = () => reject(asked.error);
      asked.onsuccess = () => {
        asked.result.onclose = () => { opening = null; };
        asked.result.onversionchange = () => { asked.result.close(); opening = null; };
        resolve(asked.result);
      };
    });
    opening.catch(() => { opening = null; });
    return opening;
  };
  // Runs `work` in one transaction, and returns what its request results in once all of it is stored.
  const run = async (name, mode, work) => {
    const db = await open();
    return new Promise((resolve, reject) => {
      const transaction = db.transaction(name, mode, { durability: "strict" });
      const request = work(transaction.objectStore(name));
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
  };
  const all = (name) => run(name, "readonly", (rows) => rows.getAll());

  // Who is signed in, and the key. A page of somebody else, or of another company, has nothing to look for here.
  let mine = null;
  const me = async () => {
    const known = await run("me", "readonly", (rows) => rows.get("me"));
    if (!known || (mine && known.owner !== mine)) return null;
    return known;
  };
  const opened = async () => {
    const who = await me();
    if (!who) throw new Error("signed out");
    return who;
  };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  // Begins for who is signed in. Another one's key and pages are dropped first.
  const begin = async (owner) => {
    mine = owner;
    const known = await me();
    if (known) return known;
    await forget();
    const answer = await fetch("/device-key", { credentials: "same-origin" });
    if (!answer.ok || answer.headers.get("X-Owner") !== owner) throw new Error("no key");
    const key = await crypto.subtle.importKey("raw", bytes(await answer.text()), "AES-GCM", false, ["encrypt", "decrypt"]);
    await run("me", "readwrite", (rows) => rows.put({ owner, key }, "me"));
    await tidy(owner);
    return { owner, key };
  };
  // This device keeps pages from now on: it is one that people carry about.
  const keep = async () => {
    const known = await me();
    if (known && !known.keeps) await run("me", "readwrite", (rows) => rows.put({ ...known, keeps: true }, "me"));
    return known;
  };
  const dropPages = async () => {
    for (const name of await caches.keys()) if (name.startsWith("pages-")) await caches.delete(name);
  };
  // The session is over: nothing here can be read any more until the same person is back.
  const forget = async () => {
    await run("me", "readwrite", (rows) => rows.clear());
    await dropPages();
  };
  const tidy = async () => {
    const before = Date.now() - DAYS_KEPT * 86400000;
    for (const row of await all("drafts")) {
      if (row.at < before) await run("drafts", "readwrite", (rows) => rows.delete([row.owner, row.form]));
    }
    await run("used", "readwrite", (rows) => {
      const cursor = rows.openCursor();
      cursor.onsuccess = () => {
        if (cursor.result?.value.at < before) cursor.result.delete();
        cursor.result?.continue();
      };
    });
  };
  // Deletes all that is this person's. Returns whether others have acts here that were not sent.
  const clear = async () => {
    const owner = (await me())?.owner;
    for (const row of await all("drafts")) {
      if (row.owner === owner) await run("drafts", "readwrite", (rows) => rows.delete([row.owner, row.form]));
    }
    for (const row of await all("acts")) if (row.owner === owner) await run("acts", "readwrite", (rows) => rows.delete(row.id));
    await run("used", "readwrite", (rows) => rows.clear());
    await forget();
    return (await all("acts")).length > 0;
  };

  // A value with its files, sealed with the key. Entries are [name, text] or [name, Blob].
  const seal = async (key, content) => {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    return { iv, data: await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, content) };
  };
  const unseal = (key, { iv, data }) => crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, data);
  const packed = async (key, { entries, ...value }) => {
    const files = [], texts = [];
    for (const [name, content] of entries) {
      if (typeof content === "string") { texts.push([name, content]); continue; }
      texts.push([name, { file: files.length, name: content.name, type: content.type }]);
      files.push(await seal(key, await content.arrayBuffer()));
    }
    return { sealed: await seal(key, new TextEncoder().encode(JSON.stringify({ ...value, entries: texts }))), files };
  };
  const unpacked = async (key, row) => {
    const value = JSON.parse(new TextDecoder().decode(await unseal(key, row.sealed)));
    value.entries = await Promise.all(value.entries.map(async ([name, content]) => {
      if (typeof content === "string") return [name, content];
      return [name, new File([await unseal(key, row.files[content.file])], content.name, { type: content.type })];
    }));
    return value;
  };

  // Drafts: what is typed in a form, until its act has succeeded. sent: the token under which it was sent.
  const drafts = {
    put: async (form, value) => {
      const { owner, key } = await opened();
      const content = await packed(key, value);
      const before = await run("drafts", "readonly", (rows) => rows.get([owner, form]));
      await run("drafts", "readwrite", (rows) => rows.put({ owner, form, at: Date.now(), sent: value.sent ?? before?.sent, ...content }));
    },
    get: async (form) => {
      const { owner, key } = await opened();
      const row = await run("drafts", "readonly", (rows) => rows.get([owner, form]));
      return row && { ...(await unpacked(key, row)), at: row.at, sent: row.sent };
    },
    send: async (form, token) => {
      const owner = (await me())?.owner;
      await run("drafts", "readwrite", (rows) => {
        const asked = rows.get([owner, form]);
        asked.onsuccess = () => { if (asked.result) rows.put({ ...asked.result, sent: token }); };
      });
    },
    drop: async (form) => {
      const owner = (await me())?.owner;
      if (owner) await run("drafts", "readwrite", (rows) => rows.delete([owner, form]));
    },
    done: async (token) => {
      for (const row of await all("drafts")) {
        if (row.sent === token) await run("drafts", "readwrite", (rows) => rows.delete([row.owner, row.form]));
      }
    },
  };

  // Acts that wait for a network, in the order in which they were done. refused: what the server said, sealed.
  const own = async () => {
    const owner = (await me())?.owner;
    return (await all("acts")).filter((row) => owner && row.owner === owner);
  };
  const acts = {
    add: async (value) => {
      const { owner, key } = await opened();
      const content = await packed(key, value);
      const { path, page, token } = value;
      return run("acts", "readwrite", (rows) => rows.add({ owner, at: Date.now(), path, page, token, ...content }));
    },
    // Their ids, paths and whether they were refused: without opening any.
    rows: async () => (await own()).map(({ id, at, path, page, answer }) => ({ id, at, path, page, refused: Boolean(answer) })),
    get: async (id) => {
      const { key } = await opened();
      const { answer, at, ...row } = await run("acts", "readonly", (rows) => rows.get(id));
      const refused = answer && JSON.parse(new TextDecoder().decode(await unseal(key, answer)));
      return { ...(await unpacked(key, row)), id, at, refused };
    },
    has: async (token) => (await own()).some((row) => row.token === token),
    count: async () => {
      const rows = await own();
      return { own: rows.length, refused: rows.filter((row) => row.answer).length, others: (await all("acts")).length - rows.length };
    },
    refuse: async (id, refused) => {
      const { key } = await opened();
      const answer = await seal(key, new TextEncoder().encode(JSON.stringify(refused)));
      const row = await run("acts", "readonly", (rows) => rows.get(id));
      if (row) await run("acts", "readwrite", (rows) => rows.put({ ...row, answer }));
    },
    drop: (id) => run("acts", "readwrite", (rows) => rows.delete(id)),
    dropOthers: async () => {
      const owner = (await me())?.owner;
      for (const row of await all("acts")) if (row.owner !== owner) await run("acts", "readwrite", (rows) => rows.delete(row.id));
    },
    // Whether a form token was used here before, for the same or for another content. A page that is kept shows one token
    // for as long as there is no network.
    use: async (token, content) => {
      const before = await run("used", "readonly", (rows) => rows.get(token));
      await run("used", "readwrite", (rows) => rows.put({ content, at: Date.now() }, token));
      if (!before) return "new";
      return before.content === content ? "same" : "other";
    },
  };
  return { me, begin, keep, forget, clear, drafts, acts };
})();
