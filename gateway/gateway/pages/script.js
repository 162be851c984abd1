// The pages' only script: search, copy buttons, and one choice of language for all examples. Without it they are
// complete, too.
"use strict";
(() => {
  const LANGUAGE = "makeready-language";
  const FOUND_MAX = 12;

  // Copy buttons

  const said = document.createElement("p");
  said.className = "quietly";
  said.setAttribute("role", "status");
  document.body.append(said);

  for (const block of document.querySelectorAll("pre")) {
    const frame = document.createElement("div");
    const button = document.createElement("button");
    frame.className = "copied";
    button.type = "button";
    button.textContent = "Copy";
    block.replaceWith(frame);
    frame.append(block, button);
    button.addEventListener("click", async () => {
      let done = "Copied";
      try {
        await navigator.clipboard.writeText(block.textContent);
      } catch {
        // No clipboard without HTTPS: the text is selected, for the keyboard's own command.
        getSelection().selectAllChildren(block);
        done = "Selected";
      }
      button.textContent = done;
      said.textContent = `${done}.`;
      setTimeout(() => {
        button.textContent = "Copy";
        said.textContent = "";
      }, 2000);
    });
  }

  // What a link leads to is shown, also where it stands folded; browsers of before 2024 do not do it by themselves

  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.closest("details:not([open])");
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // The language of examples, for all of them and for the next page

  const remembered = () => {
    try {
      return localStorage.getItem(LANGUAGE);
    } catch {
      return null; // storage may be forbidden
    }
  };
  const choose = (language) => {
    for (const one of document.querySelectorAll(".sample input")) one.checked = one.checked || one.value === language;
  };
  if (remembered()) choose(remembered());
  document.addEventListener("change", (event) => {
    const chosen = event.target;
    if (!chosen.matches(".sample input")) return;
    const before = chosen.getBoundingClientRect().top;
    choose(chosen.value);
    scrollBy(0, chosen.getBoundingClientRect().top - before); // examples above it may have another height now
    try {
      localStorage.setItem(LANGUAGE, chosen.value);
    } catch {
      // only this page knows it
    }
  });

  // Search

  const box = document.querySelector("search");
  const input = document.getElementById("search");
  const list = document.getElementById("found");
  const status = box.querySelector("[role=status]");
  const root = document.body.dataset.root;
  let chosen = -1;
  box.hidden = false;

  const wordsOf = (text) => text.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean);
  const entries = INDEX.map(([title, kind, where, names, text]) => ({
    title,
    kind,
    where,
    names: names.split(" "),
    inTitle: wordsOf(title),
    inNames: wordsOf(`${kind} ${names}`),
    inText: text.split(" "),
  }));

  // Every word of the query begins a word of the entry; those of the title count most, those of its text least.
  const search = (query) => {
    const asked = wordsOf(query);
    if (!asked.length) return [];
    return entries
      .map((entry) => {
        const points = asked.map((word) => {
          const begins = (whole) => whole.startsWith(word);
          if (entry.inTitle.includes(word)) return 30;
          if (entry.inTitle.some(begins)) return 20;
          if (entry.inNames.some(begins)) return 10;
          if (entry.inText.includes(word)) return 2;
          return entry.inText.some(begins) ? 1 : 0;
        });
        const sum = points.reduce((a, b) => a + b, 0);
        const short = Math.max(...points) > 2 ? 1 / (1 + entry.inTitle.length) : 0;
        return { entry, points: points.includes(0) ? 0 : sum + short };
      })
      .filter((one) => one.points)
      .sort((a, b) => b.points - a.points)
      .slice(0, FOUND_MAX)
      .map((one) => one.entry);
  };

  const mark = (number) => {
    const options = [...list.querySelectorAll("a")];
    chosen = options.length ? (number + options.length) % options.length : -1;
    options.forEach((one, n) => one.setAttribute("aria-selected", String(n === chosen)));
    if (chosen < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  };

  const show = (found, query) => {
    list.replaceChildren(
      ...found.map(({ title, kind, where, names }, n) => {
        const option = document.createElement("li");
        const link = document.createElement("a");
        const about = document.createElement("small");
        const named = names.filter((one) => wordsOf(query).some((word) => one.startsWith(word) || one.includes(`_${word}`)));
        option.setAttribute("role", "none");
        link.id = `found-${n}`;
        link.setAttribute("role", "option");
        link.href = where.replace(/^docs/, root);
        link.tabIndex = -1;
        link.textContent = title;
        about.textContent = [kind, kind === "Object" ? named.slice(0, 3).join(", ") : ""].filter(Boolean).join(" · ");
        link.append(about);
        option.append(link);
        return option;
      }),
    );
    const isOpen = found.length > 0;
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    status.textContent = query.trim() ? `${found.length || "Nothing"} found` : "";
    status.classList.toggle("quietly", isOpen || !query.trim());
    mark(isOpen ? 0 : -1);
  };

  const close = () => show([], "");
  input.addEventListener("input", () => show(search(input.value), input.value));
  input.addEventListener("focus", () => show(search(input.value), input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      mark(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      list.querySelectorAll("a")[chosen].click();
    } else if (event.key === "Escape") {
      input.value = "";
      close();
    }
  });
  list.addEventListener("click", (event) => {
    if (event.target.closest("a")) setTimeout(close);
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target)) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) return;
    event.preventDefault();
    input.focus();
  });
})();
