// Newest figures while somebody looks: server-sent events, only while the tab is visible. No dependency.
//
// A page that wants it links this file and marks up:
//   data-live-from="/live/gpus/UUID"   once, on any element: what to listen to; "/live/fleet" for every GPU
//   data-live-gpu="UUID"               on a row or section: what is inside is of this GPU
//   data-live-field="power"            inside such a one: its text is replaced. Names: power, busy, memory, sm, tensor, dram,
//                                      clock, temperature; activity (keeps the macro's swatch); at (a <time>, or put in one)
//   data-live-state                    optional: says "live" or why not; what stands in it without scripts (a reload link)
//                                      comes back when the stream is lost
// Each delivery is also an event "gpuwise:live" on the document, with {UUID: {at, activity, name, fields}} as its detail.
"use strict";
(() => {
  const from = document.querySelector("[data-live-from]")?.dataset.liveFrom;
  if (!from || typeof EventSource === "undefined") return;
  const state = document.querySelector("[data-live-state]");
  const without = state ? [...state.childNodes] : [];
  const SHORTEST_S = 3, LONGEST_S = 120;
  let source = null;
  let wait = SHORTEST_S;
  let timer = 0;

  function say(text, live) {
    if (!state) return;
    state.dataset.liveState = live ? "on" : "off";
    if (live) state.replaceChildren(document.createTextNode(text));
    else state.replaceChildren(document.createTextNode(`${text} `), ...without);
  }

  function showActivity(element, item) {
    const rect = element.querySelector("rect");
    if (rect) {
      rect.setAttribute("class", `a-${item.activity}`);
      if (item.activity === "unknown") rect.setAttribute("fill", "url(#hatch)");
      else rect.removeAttribute("fill");
    }
    const inner = element.querySelector(".act") ?? element;
    inner.removeAttribute("title");
    const text = [...inner.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).pop();
    if (text) text.data = item.name;
    else inner.append(item.name);
  }

  function showTime(element, at) {
    let time = element.matches("time") ? element : element.querySelector("time");
    if (!time) {
      time = document.createElement("time");
      element.replaceChildren(time);
    }
    const when = new Date(at);
    time.dateTime = at;
    time.title = at.replace("T", " ").slice(0, 19) + " UTC";
    time.textContent = new Intl.DateTimeFormat(undefined, {
      day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
    }).format(when);
  }

  function show(items) {
    for (const place of document.querySelectorAll("[data-live-gpu]")) {
      const item = items[place.dataset.liveGpu];
      if (!item) continue;
      for (const element of place.querySelectorAll("[data-live-field]")) {
        const name = element.dataset.liveField;
        if (name === "activity") showActivity(element, item);
        else if (name === "at") showTime(element, item.at);
        else if (name in item.fields && element.textContent !== item.fields[name]) element.textContent = item.fields[name];
      }
    }
  }

  function open() {
    if (source || document.hidden) return;
    source = new EventSource(from);
    source.addEventListener("open", () => { wait = SHORTEST_S; say("live", true); });
    source.addEventListener("gpus", (event) => {
      const items = JSON.parse(event.data);
      show(items);
      document.dispatchEvent(new CustomEvent("gpuwise:live", { detail: items }));
    });
    // Left to itself a browser asks again every few seconds for ever, or never after a 503: both are ours to decide.
    source.addEventListener("error", () => {
      close();
      say("not live now", false);
      timer = setTimeout(open, wait * 1000);
      wait = Math.min(wait * 2, LONGEST_S);
    });
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); say("paused", false); } else open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
})();
