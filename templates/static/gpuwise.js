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

  improve(document);
  const every = Number(document.querySelector("[data-live]")?.dataset.live);
  if (every > 0) live(every);
})();
