// The palette: pages, actions of the page, and records, which come from the server's search with the person's permissions.
const WAIT_MS = 200, SHOWN = 8, TEXT_MAX = 120;
const palette = document.getElementById("palette");
const isShown = (element) => element.checkVisibility?.({ visibilityProperty: true }) ?? true;
const all = (selector) => [...document.querySelectorAll(selector)].filter(isShown);
const field = document.getElementById("palette-q"), list = document.getElementById("palette-list");
const status = document.getElementById("palette-status");
const words = (element) => (element.dataset.words || element.textContent).replace(/\s+/g, " ").trim();
const pages = () => [...document.querySelectorAll(".nav a, .who a")].map((link) => ({ text: words(link), run: () => link.click() }));
const acts = () => all("main .head .does a, main .head .does button, main .acts button, main .acts summary")
  .map((element) => ({ text: words(element), run: () => element.click() }))
  .concat({ text: list.dataset.keys, run: () => document.getElementById("keys").showModal() });
const fits = (text, typed) => typed.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
let options = [], chosen = 0, asking = null, timer = 0;
const choose = (index) => {
  chosen = Math.min(Math.max(index, 0), options.length - 1);
  [...list.querySelectorAll("[role=option]")].forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
  const option = document.getElementById(`palette-${chosen}`);
  option?.scrollIntoView({ block: "nearest" });
  if (option) field.setAttribute("aria-activedescendant", option.id); else field.removeAttribute("aria-activedescendant");
};
const draw = (groups) => {
  options = groups.flatMap(([, several]) => several);
  let index = 0;
  list.replaceChildren(...groups.filter(([, several]) => several.length).map(([name, several], at) => {
    const group = document.createElement("div"), head = document.createElement("div");
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", `palette-g${at}`);
    Object.assign(head, { id: `palette-g${at}`, className: "group", textContent: name });
    head.setAttribute("role", "presentation");
    group.append(head, ...several.map((option) => {
      const line = document.createElement("div");
      line.setAttribute("role", "option");
      Object.assign(line, { id: `palette-${index}`, dir: "auto", textContent: option.text });
      line.dataset.index = index++;
      return line;
    }));
    return group;
  }));
  list.hidden = options.length === 0;
  field.setAttribute("aria-expanded", String(options.length > 0));
  choose(0);
};
// Links of the search's page; a search that means one record leads to it.
const search = async (typed, signal) => {
  const answer = await fetch(`/search?typing=1&q=${encodeURIComponent(typed)}`, { signal, credentials: "same-origin" });
  const url = new URL(answer.url), page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (url.pathname === "/sign-in") { location.href = url.href; return []; }
  const go = (path) => () => { location.href = path; };
  if (answer.redirected) return [{ text: words(page.querySelector("h1") || page.body), run: go(url.pathname) }];
  const found = new Map();
  for (const link of page.querySelectorAll("main section li a[href^='/'], main section td a[href^='/']")) {
    const path = link.getAttribute("href"), row = link.closest("tr");
    const text = (row ? [...row.cells].map(words).filter(Boolean).join(" · ") : [...link.closest("li").children].map(words).filter(Boolean).join(" · ")).slice(0, TEXT_MAX);
    if (text && !path.startsWith("//") && !found.has(path)) found.set(path, { text, run: go(path) });
  }
  return [...found.values()].slice(0, SHOWN);
};
const look = () => {
  const typed = field.value.trim();
  const own = [[list.dataset.pages, pages()], [list.dataset.acts, acts()]]
    .map(([name, several]) => [name, several.filter(({ text }) => fits(text, typed)).slice(0, typed ? SHOWN : 40)]);
  draw(own);
  status.textContent = "";
  clearTimeout(timer);
  asking?.abort();
  if (typed.length < 2) return;
  timer = setTimeout(async () => {
    const mine = asking = new AbortController();
    try {
      const records = await search(typed, mine.signal);
      if (mine.signal.aborted) return;
      draw([[list.dataset.records, records], ...own]);
      status.textContent = options.length ? "" : status.dataset.none;
    } catch { if (!mine.signal.aborted) status.textContent = status.dataset.away; }
  }, WAIT_MS);
};
export const open = () => {
  field.value = "";
  palette.showModal();
  look();
};
const run = (index) => {
  const option = options[index];
  palette.close();
  option?.run();
};
field.addEventListener("input", look);
field.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: SHOWN, PageUp: -SHOWN };
  if (steps[event.key]) { event.preventDefault(); choose(chosen + steps[event.key]); }
  if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); run(chosen); }
});
list.addEventListener("click", (event) => {
  const option = event.target.closest("[role=option]");
  if (option) run(Number(option.dataset.index));
});
