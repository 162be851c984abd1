// The keyboard: characters that go somewhere, which the account's page turns off, Ctrl+Enter, and Ctrl+K for the palette.
"use strict";
(() => {
  const palette = document.getElementById("palette"), help = document.getElementById("keys");
  const { shortcuts } = document.body.dataset;
  if (!palette || !help) return;
  const GO_MS = 1500;
  const isShown = (element) => element.checkVisibility?.({ visibilityProperty: true }) ?? true;
  const all = (selector, root = document) => [...root.querySelectorAll(selector)].filter(isShown);
  const isTyping = (target) => {
    const field = target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], dialog");
    return Boolean(field) && isShown(field);
  };

  // Characters
  let going = 0;
  const rows = () => all("main tbody tr, main .lines > li, main .hits > li").map((row) => row.querySelector("a[href]"))
    .filter((link) => link && isShown(link));
  const move = (step) => {
    const links = rows(), row = document.activeElement?.closest("tr, li");
    const now = links.findIndex((link) => link.closest("tr, li") === row);
    const next = links[now < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(now + step, 0), links.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const create = () => (all("main .head a[href*='/new']")[0] || all("main a[href*='/new']")[0])?.click();
  const tick = () => document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]")?.click();
  const characters = {
    j: () => move(1), k: () => move(-1), c: create, x: tick,
    "/": () => document.querySelector("input[type=search]")?.focus(),
    "?": () => { help.showModal(); help.querySelector("button").focus(); },
    g: () => { going = Date.now(); },
  };
  document.addEventListener("keydown", (event) => {
    if (shortcuts === "off" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
    const place = Date.now() - going < GO_MS && document.querySelector(`.nav a[data-go="${CSS.escape(event.key)}"]`);
    going = 0;
    const run = place ? () => place.click() : Object.hasOwn(characters, event.key) && characters[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });

  // Ctrl+Enter sends the form in which one writes; Ctrl+K opens the palette.
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    const form = event.target.form;
    if (event.key === "Enter" && form?.method === "post" && event.target.matches("input, textarea, select")) {
      event.preventDefault();
      form.requestSubmit(form.querySelector("button:not([type=button], [name=find]), input[type=submit]"));
    }
    if (event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (palette.open) palette.close(); else open();
    }
  });

  // The palette's script is fetched when it is first opened.
  let loading = null;
  const open = async () => {
    if (document.querySelector("dialog[open]")) return;
    loading ??= import(palette.dataset.script);
    try { (await loading).open(); } catch { loading = null; }
  };
  for (const dialog of [palette, help]) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
})();
