// What is live on a page. The stream says what has changed, and htmx fetches those regions anew; while there is no stream,
// regions ask every 30 s. Pages work without this script.
"use strict";
(() => {
  const stream = document.getElementById("live");
  const dot = document.getElementById("live-state");
  let state = "";
  const say = (words) => {
    state = dot.textContent = words;
    dot.hidden = false;
    dot.classList.toggle("off", words !== "Live");
  };
  const lost = () => { if (state === "Live") say("Not live"); };
  if (stream) {
    setTimeout(() => { if (!state) say("Not live"); }, 4000);
    stream.addEventListener("state", (event) => say(event.detail.data === "live" ? "Live" : "Not live"));
    stream.addEventListener("ended", () => say("Signed out"));
    stream.addEventListener("htmx:sse:error", lost);
    stream.addEventListener("htmx:sse:close", lost);
    stream.addEventListener("htmx:sse:before:connection", (event) => { if (event.detail.connection.attempt) lost(); });
    setInterval(() => {
      if (state === "Not live" && !document.hidden) stream.dispatchEvent(new CustomEvent("live-again", { bubbles: true }));
    }, 30000);
  }
  // A browser is in one company at a time. A page says what it is of with all that it asks for, and that it is left.
  const company = document.body.dataset.company;
  document.addEventListener("htmx:config:request", (event) => {
    if (company) event.detail.ctx.request.headers["X-Company"] = company;
  });
  const companies = new BroadcastChannel("company");
  companies.onmessage = ({ data }) => {
    const note = document.getElementById("moved");
    if (!note) return;
    note.hidden = data.id === company;
    document.getElementById("moved-to").textContent = data.name;
  };
  if (company) companies.postMessage({ id: company, name: document.body.dataset.companyName });
  // What a person has opened stays open.
  htmx.registerExtension("stays-open", { htmx_before_morph_attr: (_part, change) => change.attrName !== "open" });
})();
