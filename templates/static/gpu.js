// One GPU's charts with a cursor and zoom: uPlot over the series that the server folds for the chosen span.
"use strict";
(() => {
  const box = document.querySelector("[data-series]");
  if (!box || typeof uPlot === "undefined") return;
  const band = document.querySelector("[data-band]");
  const said = document.querySelector("[data-said]");
  const first = new URLSearchParams(location.search);
  const phone = matchMedia("(max-width: 680px)");
  const LEFT = 62;
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  let plots = [];
  let shown = null;
  let trail = [];

  // Canvas knows no classes: ask the sheet what a chart's line would look like.
  function colour(classes) {
    const probe = document.createElementNS("http://www.w3.org/2000/svg", "path");
    probe.setAttribute("class", classes);
    box.ownerDocument.querySelector(".hidden-svg").append(probe);
    const stroke = getComputedStyle(probe).stroke;
    probe.remove();
    return stroke;
  }

  function utc(u, value) {
    return value == null ? "–" : new Date(value * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
  }

  const CHARTS = [
    { name: "power", unit: "W", digits: 0, limit: "power_limit_w", lines: [["power_max_w", "highest", "line faint"], ["power_w", "mean", "line power"]] },
    { name: "busy", unit: "%", digits: 0, top: 100, lines: [["busy_percent", "busy", "line busy"]] },
    { name: "memory", unit: "GiB", digits: 1, limit: "memory_total_gib", lines: [["memory_gib", "memory held", "line memory"]] },
  ];

  // Labels of the time axis in UTC: hours inside a day and a half, days beyond.
  function times(u, ticks) {
    const short = u.scales.x.max - u.scales.x.min <= 36 * 3600;
    return ticks.map((t) => {
      const at = new Date(t * 1000).toISOString();
      return short ? at.slice(11, u.scales.x.max - u.scales.x.min < 600 ? 19 : 16)
        : `${Number(at.slice(8, 10))} ${MONTHS[Number(at.slice(5, 7)) - 1]}`;
    });
  }

  function draw(data) {
    plots.forEach((plot) => plot.destroy());
    plots = CHARTS.map((chart) => {
      const host = box.querySelector(`[data-chart="${chart.name}"]`);
      host.querySelector("svg.chart")?.setAttribute("hidden", "");
      const soft = getComputedStyle(said).color;
      const grid = colour("grid");
      const limit = chart.limit ? data[chart.limit] : null;
      const lines = chart.lines.map(([key, label, classes]) => ({ values: data[key], label, classes }));
      if (limit !== null && limit !== undefined) {
        lines.unshift({ values: data.t.map(() => limit), label: "limit", classes: "threshold", dash: [4, 3] });
      }
      const axis = { stroke: soft, font: "11px system-ui", grid: { stroke: grid, width: 1 }, ticks: { show: false } };
      return new uPlot({
        width: host.clientWidth,
        height: phone.matches ? 150 : 170,
        tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), "Etc/UTC"),
        cursor: { sync: { key: "gpu" }, drag: { x: true, y: false, setScale: false }, y: false },
        scales: {
          x: { time: true, min: data.from_s, max: data.to_s },
          y: { range: (u, low, high) => [0, Math.max(chart.top ?? 0, (high ?? 0) * 1.08, 1)] },
        },
        series: [{ label: "time", value: utc }, ...lines.map(({ label, classes, dash }) => ({
          label, dash, stroke: colour(classes), width: dash ? 1 : 1.6, spanGaps: false,
          value: (u, v) => (v == null ? "–" : `${v.toFixed(chart.digits)} ${chart.unit}`),
          points: { show: !dash && data.t.length < 40, size: 5 },
        }))],
        axes: [{ ...axis, size: 24, space: 70, values: times }, { ...axis, size: LEFT, values: (u, ticks) => ticks.map((v) => `${v} ${chart.unit}`) }],
        hooks: { setSelect: [(u) => select(u)] },
      }, [data.t, ...lines.map((line) => line.values)], host);
    });
    band.innerHTML = data.band_svg; // drawn and escaped by our own server
    said.textContent = data.said;
    box.dataset.step = String(data.step_s);
    back.hidden = trail.length === 0;
  }

  let asked = 0;
  let waiting = false;

  async function load(from, to) {
    const mine = ++asked; // only the newest question's answer is drawn
    waiting = true;
    const query = `since=${encodeURIComponent(from)}&until=${encodeURIComponent(to)}`;
    const answer = await fetch(`${box.dataset.series}?${query}`).catch(() => null);
    const data = answer && answer.ok ? await answer.json().catch(() => null) : null;
    if (mine !== asked) return;
    waiting = false;
    if (!data) { said.textContent = "The server did not answer: reload the page."; return; }
    shown = data;
    draw(shown);
  }

  function select(u) {
    if (u.select.width < 8 || waiting) return; // the charts share their cursor: one drag selects in each of them
    const from = u.posToVal(u.select.left, "x");
    const to = Math.max(u.posToVal(u.select.left + u.select.width, "x"), from + 60);
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    trail.push([shown.from_s, shown.to_s]);
    load(new Date(from * 1000).toISOString(), new Date(to * 1000).toISOString());
  }

  const back = document.createElement("button");
  back.type = "button";
  back.textContent = "Zoom out";
  back.hidden = true;
  back.addEventListener("click", () => {
    if (trail.length === 0) return;
    const [from, to] = trail.pop();
    load(new Date(from * 1000).toISOString(), new Date(to * 1000).toISOString());
  });
  const bar = document.querySelector("[data-zoombar]");
  bar.append(Object.assign(document.createElement("span"), { textContent: "Drag across a chart to zoom in." }), back);

  let width = 0;
  new ResizeObserver(() => {
    if (shown && Math.abs(box.clientWidth - width) > 4) { width = box.clientWidth; draw(shown); }
  }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw(shown));
  width = box.clientWidth;
  load(box.dataset.from, box.dataset.to);
})();
