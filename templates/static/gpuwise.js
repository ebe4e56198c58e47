// Improves pages that already work: local times with UTC on hover, copy buttons, a live view. No dependency.
"use strict";
(() => {
  const local = new Intl.DateTimeFormat(undefined, {
    day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
  });

  function improve(root) {
    for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.valueOf())) continue;
      time.title = at.toISOString().replace("T", " ").slice(0, 19) + " UTC";
      time.textContent = local.format(at);
    }
    if (!navigator.clipboard) return;
    for (const line of root.querySelectorAll(".copyline")) {
      if (line.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(line.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      line.append(button);
    }
  }

  // A page that asks for it is fetched again and its main part swapped: only while someone looks.
  function live(seconds) {
    setInterval(async () => {
      const main = document.querySelector("main");
      if (document.hidden || main.contains(document.activeElement) || String(getSelection()) !== "") return;
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
      if (!answer || !answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      if (!fresh) return;
      const open = [...main.querySelectorAll("details")].map((d) => d.open);
      fresh.querySelectorAll("details").forEach((d, i) => { d.open = Boolean(open[i]); });
      improve(fresh);
      main.replaceChildren(...fresh.childNodes);
    }, seconds * 1000);
  }

  // Under the search box: arrows move through what was found, Escape goes back to the box and then out of it.
  function searchKeys(form) {
    const box = form.querySelector("[data-search]");
    const links = () => [...form.querySelectorAll(".quick a")];
    form.addEventListener("keydown", (event) => {
      const found = links();
      const at = found.indexOf(document.activeElement);
      if (event.key === "ArrowDown" && found.length) found[Math.min(at + 1, found.length - 1)].focus();
      else if (event.key === "ArrowUp" && at >= 0) (found[at - 1] ?? box).focus();
      else if (event.key === "Escape") { if (at >= 0) box.focus(); else box.blur(); } else return;
      event.preventDefault();
    });
  }

  document.querySelectorAll("header .search").forEach(searchKeys);
  improve(document);
  // What htmx swaps in gets the same; "/" goes to the search, as on other sites of this kind.
  document.addEventListener("htmx:after:swap", () => {
    improve(document);
    // A calculator's answer has an address that holds every field: the one to reload, to keep and to hand on.
    const address = document.querySelector("[data-address]");
    if (address) history.replaceState(null, "", address.href);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(input|select|textarea)$/i.test(document.activeElement?.tagName ?? "");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    document.querySelector("[data-search]")?.focus();
  });
  const every = Number(document.querySelector("[data-live]")?.dataset.live);
  if (every > 0) live(every);
})();
