// What a person types in a form is kept until its act has succeeded, sealed (store.js): a page that is left, a session that
// ends or a network that is away loses nothing. Passwords, codes and hidden fields are not kept.
"use strict";
(() => {
  const { owner, done, posted, nobody } = document.body.dataset;
  if (!window.crypto?.subtle || !window.indexedDB) return;
  if (nobody) store.forget().catch(() => {});
  if (!owner) return;
  const FILE_BYTES_MAX = 20000000, FILES_BYTES_MAX = 60000000;
  const UNKEPT = "[type=hidden], [type=password], [type=submit], [type=button], [type=search], [type=reset], [data-unkept], "
    + "[autocomplete=one-time-code], [autocomplete$=-password]";
  const SEEN = "input[type=hidden][name^=seen], input[type=hidden][name^=from_]";
  const ready = store.begin(owner);
  ready.catch(() => {});

  const keepsFile = (field) => (field.accept || "").startsWith("image/");
  const kept = (form) => [...form.elements].filter((field) => field.name && !field.disabled && !field.matches(UNKEPT)
    && field.matches("input, select, textarea") && (field.type !== "file" || keepsFile(field)));
  // A page may have several forms for one address: they differ in their fields.
  const nameOf = (form) => [form.getAttribute("action"), ...new Set(kept(form).map((field) => field.name))].join(" ");
  const isTick = (field) => field.type === "checkbox" || field.type === "radio";
  const isChanged = (field) => {
    if (isTick(field)) return field.checked !== field.defaultChecked;
    if (field.type === "file") return field.files.length > 0;
    if (field.matches("select")) {
      const first = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(first, field.options.length ? 0 : -1);
    }
    return field.value !== field.defaultValue;
  };
  // The fields as [name, text] or [name, File]: a tick has its value or nothing, a choice its value and its words.
  const entriesOf = (form) => kept(form).flatMap((field) => {
    if (isTick(field)) return [[field.name, JSON.stringify([field.value, field.checked])]];
    if (field.type === "file") {
      let left = FILES_BYTES_MAX;
      return [...field.files].filter((file) => file.size <= FILE_BYTES_MAX && (left -= file.size) >= 0).map((file) => [field.name, file]);
    }
    if (field.matches("select")) return [[field.name, JSON.stringify([field.value, field.selectedOptions[0]?.text || ""])]];
    return [[field.name, field.value]];
  });
  const seenOf = (form) => [...form.querySelectorAll(SEEN)].map((field) => [field.name, field.value]);

  // Saves are made one after the other, and the last state wins.
  const saving = new Map();
  const save = (form) => {
    const name = nameOf(form);
    const is = { entries: entriesOf(form), seen: seenOf(form) };
    const isNone = !posted && !kept(form).some(isChanged);
    const next = (saving.get(name) || ready).catch(() => {}).then(() => (isNone ? store.drafts.drop(name) : store.drafts.put(name, is)));
    saving.set(name, next);
    next.catch(() => {});
  };
  const isForm = (form) => form?.method === "post" && form.getAttribute("action") && kept(form).length > 0 && form.id !== "confirm";

  // A draft that was sent keeps its token: sent again unchanged it is the same act. Changed, it is another one.
  const renewals = new WeakMap();
  let isRestoring = false;
  const edited = (event) => {
    const form = event.target.form;
    if (!isForm(form) || event.target.matches(UNKEPT)) return;
    if (isRestoring) return;
    renewals.get(form)?.();
    save(form);
  };
  document.addEventListener("input", edited);
  document.addEventListener("change", edited);
  // A form is sent once its draft is stored, with the token under which it goes.
  const held = new WeakSet(), stored = new WeakSet();
  document.addEventListener("submit", (event) => {
    const form = event.target, token = form.elements.act?.value;
    if (!isForm(form) || !token || stored.delete(form) || !(saving.has(nameOf(form)) || form.querySelector(".restored"))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (held.has(form)) return;
    held.add(form);
    const sent = Promise.resolve(saving.get(nameOf(form))).then(() => store.drafts.send(nameOf(form), token)).catch(() => {});
    Promise.race([sent, new Promise((done) => setTimeout(done, 1000))]).then(() => {
      held.delete(form);
      stored.add(form);
      form.requestSubmit(event.submitter);
      stored.delete(form);
    });
  }, true);

  // An act that was refused comes back as it was sent: its values stand alone.
  const pair = (text, other) => (text.startsWith("[") ? JSON.parse(text) : [text, other]);
  const put = (field, text) => {
    if (isTick(field)) field.checked = pair(text, true)[1];
    else if (field.matches("select")) {
      const [value, words] = pair(text, text);
      if (![...field.options].some((option) => option.value === value)) field.add(new Option(words, value));
      field.value = value;
    } else field.value = text;
  };
  // Writes a draft into its form. Returns whether that changed anything.
  const restore = (form, draft) => {
    const before = JSON.stringify(entriesOf(form).filter(([, content]) => typeof content === "string"));
    const fields = kept(form), files = new Map();
    for (const [name, content] of draft.entries) {
      if (typeof content !== "string") { files.set(name, [...(files.get(name) || []), content]); continue; }
      const field = fields.find((each) => each.name === name && !each.restored
        && (!isTick(each) || each.value === pair(content)[0]));
      if (!field) continue;
      field.restored = true;
      put(field, content);
      field.closest("details")?.setAttribute("open", "");
    }
    for (const [name, several] of files) {
      const field = fields.find((each) => each.name === name && each.type === "file");
      const transfer = new DataTransfer();
      several.forEach((file) => transfer.items.add(file));
      if (field) field.files = transfer.files;
    }
    for (const field of fields) delete field.restored;
    return files.size > 0 || JSON.stringify(entriesOf(form).filter(([, content]) => typeof content === "string")) !== before;
  };
  const say = (form, draft, hidden) => {
    const line = document.getElementById("restored").content.cloneNode(true).firstElementChild;
    const time = line.querySelector("time");
    time.dateTime = new Date(draft.at).toISOString();
    time.textContent = new Date(draft.at).toLocaleTimeString(document.documentElement.lang, { hour: "numeric", minute: "2-digit" });
    line.querySelector("button").addEventListener("click", () => {
      form.reset();
      for (const [field, value] of hidden) field.value = value;
      line.remove();
      store.drafts.drop(nameOf(form)).catch(() => {});
      kept(form)[0]?.focus();
    });
    form.prepend(line);
  };
  const offer = async (form) => {
    const sent = form.getAttribute("action");
    const own = await store.drafts.get(nameOf(form)), draft = own || await store.drafts.get(sent);
    if (!draft || (!own && !draft.entries.some(([name]) => kept(form).some((field) => field.name === name)))) return;
    const hidden = [...form.querySelectorAll(`input[name=act], ${SEEN}`)].map((field) => [field, field.value]);
    if (!restore(form, draft)) return;
    if (!own) {
      save(form);
      saving.get(nameOf(form)).then(() => store.drafts.drop(sent)).catch(() => {});
    }
    for (const [name, value] of draft.seen) {
      const field = form.querySelector(`input[type=hidden][name="${CSS.escape(name)}"]`);
      if (field) field.value = value;
    }
    const act = form.elements.act;
    if (draft.sent && act) {
      const fresh = act.value;
      act.value = draft.sent;
      renewals.set(form, () => { act.value = fresh; renewals.delete(form); });
    }
    say(form, draft, hidden);
    isRestoring = true;  // other scripts count words, or keep a live region as it is
    for (const field of kept(form)) if (field.matches("textarea, input")) field.dispatchEvent(new Event("input", { bubbles: true }));
    isRestoring = false;
  };
  const begin = async () => {
    await ready;
    if (done) await store.drafts.done(done);
    for (const form of document.forms) if (isForm(form)) await offer(form);
  };
  begin().catch(() => {});
})();
