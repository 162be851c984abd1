// What helps while a person writes a form. Forms work without it: the services count, and check, by themselves.
"use strict";
(() => {
  // Words as the services count them: a sign of Chinese or Japanese is a word, and so are three letters of scripts
  // without blanks.
  const signs = /[\u3005-\u3007\u3021-\u3029\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}\ua000-\ua48c][\u3099-\u309c\uff9e\uff9f]*/gu;
  const unspaced = /[\u0e00-\u0fff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaadf\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf]+/gu;
  const asWords = (run) => {
    const letters = (run.match(/\p{Lo}/gu) || []).length;
    return " x".repeat(Math.ceil(letters / 3) + (/\p{Nd}/u.test(run) ? 1 : 0)) + " ";
  };
  const words = (text) => text.replaceAll("\u200b", " ").replace(signs, " x ").replace(unspaced, asWords)
    .split(/\s+/u).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

  const counted = (field) => {
    const hint = document.getElementById(`${field.id}-h`);
    if (!hint) return;
    hint.dataset.words ??= hint.textContent;
    const found = words(field.value);
    hint.textContent = found ? `${found} of ${field.dataset.words} words${found >= field.dataset.words ? ": enough" : ""}` : hint.dataset.words;
  };

  // A part of a live page in which somebody has begun to write stays as it is, until the form is sent.
  const stays = (target) => target.closest?.("[data-stays]")?.setAttribute("hx-morph-skip", "");

  document.addEventListener("input", (event) => {
    stays(event.target);
    if (event.target.dataset.words) counted(event.target);
    const all = event.target.dataset.picks;
    if (all) document.querySelectorAll(`input[name="${all}"]`).forEach((one) => { one.checked = event.target.checked; });
  });
  document.addEventListener("toggle", (event) => { if (event.target.open) stays(event.target); }, true);

  const ready = () => document.querySelectorAll("[data-picks]").forEach((one) => { one.hidden = false; });
  document.addEventListener("htmx:after:swap", ready);
  ready();
  document.querySelectorAll("[data-words]").forEach(counted);
})();
