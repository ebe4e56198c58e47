// One GPU's charts with a cursor and zoom: uPlot over the series that the server folds for the chosen span.
// Drag, pinch or the keys of a focused chart choose the span; the address follows, so that it can be passed on.
"use strict";
(() => {
  const box = document.querySelector("[data-series]");
  if (!box || typeof uPlot === "undefined") return;
  const said = box.querySelector("[data-said]");
  const bar = box.querySelector("[data-zoombar] nav");
  const phone = matchMedia("(max-width: 680px)");
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const SHORTEST_S = 60, LONGEST_S = 400 * 86400, FOLLOW_UP_TO_S = 6 * 3600, FOLLOW_EVERY_MS = 10_000;
  const first = [Date.parse(box.dataset.from) / 1000, Date.parse(box.dataset.to) / 1000];
  let newest = Date.parse(box.dataset.newest) / 1000;
  let following = false; // the span ends at the newest sample and moves on with it
  let plots = [];
  let shown = null;
  let trail = [];

  // Canvas knows no classes: ask the sheet what a chart's line or area would look like.
  function look(classes) {
    const probe = document.createElementNS("http://www.w3.org/2000/svg", "path");
    probe.setAttribute("class", classes);
    document.querySelector(".hidden-svg").append(probe);
    const { stroke, fill, strokeDasharray } = getComputedStyle(probe);
    const dash = strokeDasharray === "none" ? undefined : strokeDasharray.split(/[ ,]+/).map(parseFloat);
    probe.remove();
    return { stroke, fill, dash };
  }

  function hatch(ctx) {
    const size = 6 * devicePixelRatio;
    const tile = Object.assign(document.createElement("canvas"), { width: size, height: size });
    const pen = tile.getContext("2d");
    pen.fillStyle = look("hatch-back").fill;
    pen.fillRect(0, 0, size, size);
    pen.strokeStyle = look("hatch-line").stroke;
    pen.lineWidth = 1.6 * devicePixelRatio;
    for (const at of [-size, 0, size]) {
      pen.beginPath();
      pen.moveTo(at, size);
      pen.lineTo(at + size, 0);
      pen.stroke();
    }
    return ctx.createPattern(tile, "repeat");
  }

  function utc(u, value) {
    return value == null ? "" : new Date(value * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
  }

  // Labels of the time axis in UTC: hours inside a day and a half; beyond, days, with hours between where there is room.
  function times(u, ticks) {
    const length = u.scales.x.max - u.scales.x.min;
    return ticks.map((t) => {
      if (t > u.scales.x.max - 0.03 * length) return ""; // it would be cut off at the edge
      const at = new Date(t * 1000).toISOString();
      return length <= 36 * 3600 || t % 86400 !== 0 ? at.slice(11, length < 600 ? 19 : 16)
        : `${Number(at.slice(8, 10))} ${MONTHS[Number(at.slice(5, 7)) - 1]}`;
    });
  }

  // Layers as lines of their sums: uPlot fills each down to 0, so the highest sum is drawn first.
  function layers(chart) {
    const sums = [];
    let below = chart.lines[0]?.values.map(() => 0) ?? [];
    for (const line of chart.lines) {
      below = below.map((sum, i) => (line.values[i] == null ? null : (sum ?? 0) + line.values[i]));
      sums.push({ ...line, sums: below });
    }
    return sums.reverse().map((line) => {
      const fill = line.key === "a-unknown" ? (u) => hatch(u.ctx) : look(`area ${line.key}`).fill;
      return { name: line.name, values: line.sums, own: line.values, fill, stroke: look("hatch-back").fill, width: 1 };
    });
  }

  function lines(chart) {
    return chart.lines.map((line) => ({ name: line.name, values: line.values, own: line.values, width: 1.6, ...look(`line ${line.key}`), fill: undefined }));
  }

  // A legend's square cannot be hatched: it has the colour of the hatching.
  function mark(fill) {
    return typeof fill === "function" ? look("hatch-line").stroke : fill ?? "transparent";
  }

  function plot(chart, data, host) {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const gutter = parseFloat(getComputedStyle(box).getPropertyValue("--gutter")) * rem;
    const soft = getComputedStyle(said).color;
    const number = new Intl.NumberFormat("en", { maximumFractionDigits: chart.digits });
    const drawn = chart.stacked ? layers(chart) : lines(chart);
    if (chart.threshold != null) {
      const limit = { name: "limit", values: data.t.map(() => chart.threshold), width: 1.2, ...look("threshold"), fill: undefined };
      drawn.push({ ...limit, own: limit.values });
    }
    const axis = { stroke: soft, font: "11px system-ui", grid: { stroke: look("grid").stroke, width: 1 }, ticks: { show: false } };
    const made = new uPlot({
      width: host.clientWidth,
      height: phone.matches ? 150 : chart.name === "power" || chart.name === "memory" ? 190 : 160,
      padding: [8, 0.2 * rem, 0, 0],
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
      cursor: { sync: { key: "gpu" }, drag: { x: true, y: false, setScale: false }, y: false, points: { show: !chart.stacked } },
      legend: { live: true, markers: { fill: (u, i) => mark(drawn[i - 1]?.fill) }, mount: (u, table) => { table.classList.add("u-inline"); host.querySelector(".chead").append(table); } },
      scales: {
        x: { time: true, min: data.from_s, max: data.to_s },
        y: { range: (u, low, high) => [0, Math.max(chart.highest ?? 0, chart.threshold ?? 0, high ?? 0) * 1.06 || 1] },
      },
      series: [{ label: "", value: utc }, ...drawn.map((line) => ({
        label: line.name, dash: line.dash, stroke: line.stroke, fill: line.fill, width: line.width, spanGaps: false,
        value: (u, v, si, i) => (i == null ? "" : line.own[i] == null ? "–" : `${number.format(line.own[i])} ${chart.unit}`),
        points: { show: !chart.stacked && line.name !== "limit" && data.t.length < 40, size: 5 },
      }))],
      axes: [
        { ...axis, size: 24, space: 70, values: times },
        { ...axis, size: gutter, values: (u, ticks) => ticks.map((v) => `${number.format(v)} ${chart.unit}`) },
      ],
      hooks: { setSelect: [(u) => select(u)] },
    }, [data.t, ...drawn.map((line) => line.values)], host.querySelector("[data-plot]"));
    touch(made);
    return made;
  }

  function draw(data) {
    const focused = document.activeElement;
    plots.forEach((one) => one.destroy());
    box.querySelectorAll(".u-legend").forEach((table) => table.remove());
    plots = [];
    for (const chart of data.charts) {
      const host = box.querySelector(`[data-chart="${chart.name}"]`);
      if (!host) continue;
      host.querySelector("[data-plot] > svg.chart")?.setAttribute("hidden", "");
      host.querySelector("[data-title]").textContent = chart.title;
      const below = host.querySelector("[data-below]");
      if (below) below.innerHTML = chart.below_svg; // drawn and escaped by our own server, as the two bands
      plots.push(plot(chart, data, host));
    }
    box.querySelector("[data-band]").innerHTML = data.band_svg;
    box.querySelector("[data-marks]").innerHTML = data.marks_svg;
    box.querySelector("[data-activity-title]").textContent = data.activity_title;
    box.classList.add("drawn");
    said.textContent = data.said;
    box.dataset.step = String(data.step_s);
    back.hidden = trail.length === 0;
    bar.querySelector("[data-go=later]").hidden = data.to_s >= newest - 1;
    if (focused && box.contains(focused)) focused.focus({ preventScroll: true });
  }

  let asked = 0;
  let waiting = false;

  async function load(from, to, follow = false) {
    const mine = ++asked; // only the newest question's answer is drawn
    waiting = true;
    const query = new URLSearchParams({ since: new Date(from * 1000).toISOString(), until: new Date(to * 1000).toISOString() });
    const answer = await fetch(`${box.dataset.series}?${query}`).catch(() => null);
    const data = answer && answer.ok ? await answer.json().catch(() => null) : null;
    if (mine !== asked) return;
    waiting = false;
    if (!data) { said.textContent = "The server did not answer: reload the page."; return; }
    shown = data;
    draw(shown);
    following = follow || to >= newest - 1;
    if (!follow && (from !== first[0] || to !== first[1])) history.replaceState(null, "", `${location.pathname}?${query}`);
  }

  // A span within what can be asked for: not shorter than a minute, not past the newest sample unless it begins there.
  function fit(from, to) {
    const length = Math.min(Math.max(to - from, SHORTEST_S), LONGEST_S);
    const middle = (from + to) / 2;
    const end = Math.min(middle + length / 2, Math.max(newest, first[1]));
    return [end - length, end];
  }

  let wanted = null;
  let timer = 0;

  // What is shown; before the first series has come, what the server drew: a step taken then counts from it.
  const span = () => (shown ? [shown.from_s, shown.to_s] : first);

  // Keys repeat faster than a server should be asked: the charts move at once, the series follows.
  function go(from, to, delay = 0) {
    if (!wanted) trail.push(span());
    wanted = fit(from, to);
    preview(...wanted);
    clearTimeout(timer);
    timer = setTimeout(() => { const [a, b] = wanted; wanted = null; load(a, b); }, delay);
  }

  function preview(from, to) {
    for (const one of plots) one.setScale("x", { min: from, max: to });
  }

  const STEPS = {
    earlier: (from, to) => [from - (to - from), from],
    later: (from, to) => [to, to + (to - from)],
    closer: (from, to) => [from + (to - from) / 4, to - (to - from) / 4],
    wider: (from, to) => [from - (to - from) / 2, to + (to - from) / 2],
    left: (from, to) => [from - (to - from) / 4, to - (to - from) / 4],
    right: (from, to) => [from + (to - from) / 4, to + (to - from) / 4],
    whole: () => first,
  };
  const KEYS = { ArrowLeft: "left", ArrowRight: "right", "+": "closer", "=": "closer", "-": "wider", "−": "wider", PageUp: "earlier", PageDown: "later", Home: "whole", 0: "whole" };

  function step(name, delay) {
    go(...STEPS[name](...(wanted ?? span())), delay);
  }

  function select(u) {
    if (u.select.width < 8 || waiting) return; // the charts share their cursor: one drag selects in each of them
    const from = u.posToVal(u.select.left, "x");
    const to = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    go(from, to);
    waiting = true;
  }

  // One finger moves the span, two stretch it; up and down stays the page's own scrolling (touch-action in the sheet).
  function touch(u) {
    const fingers = new Map();
    let start = null;
    let goal = null; // where the fingers have brought it; asked for when the last one lifts
    const at = (id) => fingers.get(id) - u.over.getBoundingClientRect().left;
    const begin = () => {
      const [a, b] = [...fingers.keys()];
      const span = [u.scales.x.min, u.scales.x.max];
      const value = (x) => span[0] + (x / u.over.clientWidth) * (span[1] - span[0]);
      start = a === undefined ? null : { span, a: value(at(a)), b: b === undefined ? null : value(at(b)) };
    };
    u.over.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch" || fingers.size === 2) return;
      fingers.set(event.pointerId, event.clientX);
      begin();
    });
    u.over.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId) || !start) return;
      fingers.set(event.pointerId, event.clientX);
      const [a, b] = [...fingers.keys()];
      const width = u.over.clientWidth;
      let [from, to] = start.span;
      if (b === undefined) {
        const shift = start.a - (from + (at(a) / width) * (to - from));
        [from, to] = [from + shift, to + shift];
      } else {
        // The two instants under the fingers stay under them.
        const apart = (at(b) - at(a)) / width;
        if (Math.abs(apart) < 0.02 || start.a === start.b) return;
        const length = Math.abs((start.b - start.a) / apart);
        from = start.a - (at(a) / width) * length;
        to = from + length;
      }
      goal = fit(from, to);
      preview(...goal);
    });
    const end = (event) => {
      if (!fingers.delete(event.pointerId)) return;
      begin();
      if (fingers.size > 0 || !goal) return;
      go(...goal);
      goal = null;
    };
    u.over.addEventListener("pointerup", end);
    u.over.addEventListener("pointercancel", end);
  }

  const back = document.createElement("button");
  back.type = "button";
  back.textContent = "Back";
  back.hidden = true;
  back.addEventListener("click", () => {
    if (trail.length > 0) load(...trail.pop());
  });
  bar.append(back);
  // With a script, zooming in and out and moving need no new page; what the server left out is added.
  for (const [name, text] of [["earlier", "← earlier"], ["later", "later →"], ["closer", "zoom in"], ["wider", "zoom out"]]) {
    let link = bar.querySelector(`[data-go=${name}]`);
    if (!link) {
      link = Object.assign(document.createElement("a"), { href: "#", textContent: text });
      link.dataset.go = name;
      bar.insertBefore(link, bar.children[["earlier", "later", "closer", "wider"].indexOf(name)] ?? back);
    }
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      step(name, 0);
    });
  }
  for (const host of box.querySelectorAll("[data-chart]")) {
    host.tabIndex = 0;
    host.setAttribute("role", "group");
    host.setAttribute("aria-label", `${host.querySelector("[data-title]").textContent}. Arrow keys move in time, plus and minus zoom, 0 shows the whole period.`);
    host.addEventListener("keydown", (event) => {
      const name = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
      if (!name) return;
      event.preventDefault();
      step(name, 150);
    });
  }
  box.querySelector("[data-zoombar]").append(Object.assign(document.createElement("span"), {
    className: "hint", textContent: "Drag or pinch across a chart to zoom; on a chart the keys ← → + − work.",
  }));

  // While the newest end is shown, new samples move the charts on; nothing is asked for a tab that nobody sees.
  let moved = 0;
  document.addEventListener("gpuwise:live", (event) => {
    const ends = Object.values(event.detail).map((item) => Date.parse(item.at) / 1000);
    const end = Math.max(newest, ...ends);
    if (end <= newest) return;
    newest = end;
    const length = shown ? shown.to_s - shown.from_s : 0;
    if (!shown || !following || waiting || wanted || length > FOLLOW_UP_TO_S || document.hidden) return;
    if (Date.now() - moved < FOLLOW_EVERY_MS) return;
    moved = Date.now();
    load(newest - length, newest, true);
  });

  let width = box.clientWidth;
  new ResizeObserver(() => {
    if (shown && Math.abs(box.clientWidth - width) > 4) { width = box.clientWidth; draw(shown); }
  }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw(shown));
  load(...first);
})();
