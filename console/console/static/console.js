// The console's own script. Every page and form works without it: it copies, keeps times current and asks for passkeys.
"use strict";
(() => {
  const all = (selector, root = document) => root.querySelectorAll(selector);

  // Times such as "20 seconds ago".
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const ago = (time) => {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000 + Number(time.dataset.ahead || 0);
    if (seconds >= 0 && seconds < 5) return "just now";
    const left = Math.floor(Math.abs(seconds));
    const [size, name] = units.find(([size]) => left >= size) || units[3];
    const count = Math.floor(left / size);
    const words = `${count} ${name}${count === 1 ? "" : "s"}`;
    return seconds > 0 ? `${words} ago` : `in ${words}`;
  };
  const refresh = () => all("time.ago").forEach((time) => {
    const words = ago(time);
    if (time.textContent !== words) time.textContent = words;
  });
  setInterval(refresh, 10000);

  const copyable = (root) => all("[data-copy], [data-print]", root).forEach((button) => { button.hidden = false; });
  const ready = () => { copyable(document); offer(); };

  document.addEventListener("click", async (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      await navigator.clipboard.writeText(document.getElementById(copy.dataset.copy).textContent.trim());
      const words = copy.lastChild.textContent;
      copy.lastChild.textContent = "Copied";
      setTimeout(() => { copy.lastChild.textContent = words; }, 2000);
      return;
    }
    if (event.target.closest("[data-print]")) window.print();
    const passkey = event.target.closest("[data-passkey]");
    if (passkey) ask(passkey);
  });

  // A link that opens a row below its own, by htmx: a second click closes it.
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-opens]");
    if (!opener) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey) { event.stopPropagation(); return; }  // a tab of its own
    const open = opener.getAttribute("aria-expanded") === "true";
    opener.setAttribute("aria-expanded", String(!open));
    opener.closest("tr").classList.toggle("open", !open);
    if (!open) return;
    event.preventDefault();
    event.stopPropagation();
    document.getElementById(opener.dataset.opens).hidden = true;
  }, true);

  // A form is sent once, however often its button is pressed. The server does the same act once in any case.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => all("form[data-sent]").forEach((form) => { delete form.dataset.sent; }));

  // Enter in the search of a picker does not send the form: what fits is listed while one types.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.closest(".picker input[type=search]")) event.preventDefault();
  });

  // A session that nothing is done with ends. Two minutes before, the page says so, and a button goes on.
  const warning = document.getElementById("idle");
  const idle = Number(document.body.dataset.idleSeconds) * 1000;
  const watch = () => {
    if (warning && idle) setTimeout(() => { warning.hidden = false; }, Math.min(Math.max(0, idle - 120000), 2147483647));
  };
  document.getElementById("stay")?.addEventListener("click", async () => {
    const answer = await fetch(location.href, { method: "HEAD", credentials: "same-origin", redirect: "manual" });
    if (!answer.ok) { location.reload(); return; }
    warning.hidden = true;
    watch();
  });
  watch();

  // Passkeys. A button names the address that starts the ceremony and the form that ends it.
  let asking = null;
  const begin = async (button) => {
    const answer = await fetch(button.dataset.passkey, {
      method: "POST", body: new URLSearchParams({ act: button.dataset.act }), credentials: "same-origin",
    });
    if (!(answer.headers.get("Content-Type") || "").startsWith("application/json")) {
      // The session has ended, or a confirmation comes first: the server's page says so.
      throw new Error("This page is out of date; reload it.");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  };
  const finish = (button, ceremony, credential) => {
    const form = document.getElementById(button.dataset.form);
    form.querySelector("[data-ceremony]").value = ceremony;
    form.querySelector("[data-credential]").value = JSON.stringify(credential.toJSON());
    all("[required]", form).forEach((field) => { if (form.id === "confirm") field.required = false; });
    form.requestSubmit();
  };
  const ask = async (button, mediation) => {
    const error = document.getElementById("passkey-error");
    if (asking) asking.abort();
    const mine = asking = new AbortController();
    if (error) error.hidden = true;
    try {
      const { ceremony, options } = await begin(button);
      if (mine.signal.aborted) return;
      const creates = button.dataset.kind === "create";
      const publicKey = creates
        ? PublicKeyCredential.parseCreationOptionsFromJSON(options)
        : PublicKeyCredential.parseRequestOptionsFromJSON(options);
      const asked = { publicKey, signal: mine.signal };
      if (mediation) asked.mediation = mediation;
      const credential = await (creates ? navigator.credentials.create(asked) : navigator.credentials.get(asked));
      finish(button, ceremony, credential);
    } catch (problem) {
      if (mine.signal.aborted || mediation || !error) return;
      error.textContent = problem.name === "NotAllowedError"
        ? "No passkey was used: the browser asked and got none." : problem.message;
      error.hidden = false;
    }
  };
  const offer = async () => {
    const can = window.PublicKeyCredential && PublicKeyCredential.parseRequestOptionsFromJSON;
    if (!can) return;
    all("[data-passkey-only]").forEach((part) => { part.hidden = false; });
    const button = document.querySelector("[data-offer]");
    const available = PublicKeyCredential.isConditionalMediationAvailable;
    if (button && available && await PublicKeyCredential.isConditionalMediationAvailable()) ask(button, "conditional");
  };

  // Regions that htmx has loaded anew.
  document.addEventListener("htmx:after:swap", () => { copyable(document); refresh(); });
  ready();
})();
