// What a page shows of work without a network: how many acts wait, those that were refused with both versions, and what a
// sign-out would delete. The service worker (worker.js) does the rest.
"use strict";
(() => {
  const { owner } = document.body.dataset, worker = navigator.serviceWorker, list = document.getElementById("offline");
  if (!worker || !window.crypto?.subtle || !(owner || list)) return;
  const say = (text) => worker.controller?.postMessage(text);
  const words = (element, number) => (number === 1 ? element.dataset.one : element.dataset.many).replace("#", number.toLocaleString("en"));

  // The line above every page.
  const line = document.getElementById("waiting");
  const tellLine = ({ own, refused }) => {
    line.hidden = navigator.onLine && own === 0;
    const parts = { away: !navigator.onLine, waits: own - refused, refused };
    for (const [name, number] of Object.entries(parts)) {
      const part = line.querySelector(`[data-part=${name}]`);
      part.hidden = !number;
      if (part.dataset.one) part.textContent = words(part, number);
    }
    line.querySelector("a").hidden = own === 0;
    line.classList.toggle("red", refused > 0);
    line.classList.toggle("amber", refused === 0);
  };

  // The list of acts.
  const plain = (html) => new DOMParser().parseFromString(html, "text/html");
  const text = (node) => (node?.textContent || "").replace(/\s+/g, " ").trim();
  const isShown = ([name, value]) => value !== "" && !/^(seen|from_|(by|next)$)/.test(name);
  const told = (act) => act.entries.filter(isShown).map(([name, value]) => (typeof value === "string" ? value : value.name));
  const nowOf = (html) => {
    const answer = plain(html);
    const why = [...answer.querySelectorAll("main .note.red, main .error, main .sorry > p:not(.quiet):not(.does)")].map(text);
    return { why: [...new Set(why)].filter(Boolean).slice(0, 3), is: text(answer.querySelector("main h1")), state: text(answer.querySelector("main .sub")) };
  };
  const asDraft = async (act) => {
    if (act.entries.some(([name, value]) => isShown([name, value]) && name !== "status")) {
      await store.drafts.put(act.path, { entries: act.entries.filter(isShown), seen: [] });
    }
    await store.acts.drop(act.id);
    location.href = act.page;
  };
  const item = (act) => {
    const part = document.getElementById(act.refused ? "act-refused" : "act-waits").content.cloneNode(true);
    const kind = act.path.split("/").at(-1);
    const at = (name) => part.querySelector(`[data-at=${name}]`);
    at("kind").textContent = list.dataset[kind] || kind;
    at("title").textContent = act.title ? text(plain(act.title).body) : act.page;
    at("title").href = act.page;
    at("time").textContent = new Date(act.at).toLocaleString("en", { weekday: "short", hour: "numeric", minute: "2-digit" });
    at("mine").textContent = told(act).join(" · ");
    if (act.refused) {
      const now = nowOf(act.refused.html);
      at("why").textContent = now.why.join(" ");
      at("now").textContent = [now.is, now.state].filter(Boolean).join(" · ");
      at("draft").addEventListener("click", () => asDraft(act));
    }
    at("drop").addEventListener("click", async () => { await store.acts.drop(act.id); say("send"); tell(); });
    return part;
  };
  const tellList = async ({ others }) => {
    const rows = await store.acts.rows(), items = [];
    for (const { id } of rows) items.push(item(await store.acts.get(id)));
    list.querySelector("ul").replaceChildren(...items);
    document.getElementById("none").hidden = rows.length > 0;
    const foreign = document.getElementById("others");
    foreign.hidden = others === 0;
    foreign.querySelector("[data-one]").textContent = words(foreign.querySelector("[data-one]"), others);
  };
  const tell = async () => {
    const count = await store.acts.count();
    if (line) tellLine(count);
    if (list) await tellList(count);
  };
  document.getElementById("drop-others")?.addEventListener("click", async () => { await store.acts.dropOthers(); tell(); });

  // A sign-out deletes what is the own; it says so first where something was not sent.
  const leave = document.getElementById("leave");
  const signOut = async (form) => {
    const others = await store.clear();
    if (others) form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "others", value: "1" }));
    form.submit();
  };
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!owner || form.getAttribute("action") !== "/sign-out") return;
    event.preventDefault();
    store.acts.count().then(({ own }) => {
      if (own === 0) return signOut(form);
      const lost = leave.querySelector("[data-one]");
      lost.textContent = words(lost, own);
      leave.onclose = () => { if (leave.returnValue === "go") signOut(form); else delete form.dataset.sent; };
      leave.showModal();
      return null;
    }).catch(() => form.submit());
  });

  // A device that people carry about keeps the work of its person.
  const isCarried = () => matchMedia("(pointer: coarse), (display-mode: standalone)").matches;
  const keep = async () => {
    const { controller } = await worker.ready.then(() => worker);
    if (!controller || !isCarried() || document.body.dataset.posted) return;
    const links = [...document.querySelectorAll("main a[href^='/']")].map((link) => link.getAttribute("href").split("#")[0]);
    const isOfWork = /^\/(my-work|tickets|inspections)(\/|$)/.test(location.pathname) || location.pathname === "/";
    controller.postMessage({ keep: [location.pathname + location.search, ...(isOfWork ? links : [])] });
  };
  document.getElementById("live")?.addEventListener("ended", () => store.forget().catch(() => {}));
  const begin = async () => {
    if (owner) await store.begin(owner);
    await tell();
    if (!owner) return;
    await worker.register("/worker.js", { updateViaCache: "none" });
    say("send");
    await keep();
  };
  worker.addEventListener("message", () => tell().catch(() => {}));
  worker.addEventListener("controllerchange", () => keep().catch(() => {}));
  for (const name of ["online", "offline"]) window.addEventListener(name, () => { say("send"); tell().catch(() => {}); });
  setInterval(async () => { if (navigator.onLine && (await store.acts.count()).own) say("send"); }, 5000);
  begin().catch(() => {});
})();
