"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const touch = matchMedia("(pointer: coarse)").matches;
  const kinds = { i4: Int32Array, f8: Float64Array, u1: Uint8Array };

  const unpack = (packed) => packed && new kinds[packed.dtype](Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0)).buffer);
  const nodes = Object.fromEntries(Object.entries(page.nodes).map(([name, v]) => [name, Array.isArray(v) ? v : unpack(v)]));
  const place = new Map(Array.from(nodes.index, (node, i) => [node, i]));
  const named = new Map(nodes.id.map((id, i) => [id, i]));
  const targets = page.targets.map((t) => ({ ...t, value: unpack(t.value), std: unpack(t.std), observed: unpack(t.observed) }));
  const hasWebGL = (() => {
    try { return Boolean(document.createElement("canvas").getContext("webgl")); } catch { return false; }
  })();

  // Plotly reads a few tags in its texts; what users wrote is shown as they wrote it.
  const literal = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const formatted = (value, places) =>
    (places === null
      ? value.toExponential(2)
      : value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })
    ).replace("-", "\u2212");

  function describe(target, i) {
    const value = formatted(target.value[i], target.decimals);
    if (target.observed[i]) return `${value} (observed)`;
    return target.std ? `${value} ± ${formatted(target.std[i], target.decimals)} (predicted)` : `${value} (predicted)`;
  }

  // Colours and fonts are written as CSS variables; Plotly needs what they stand for in the current theme.
  function themed(spec) {
    const style = getComputedStyle(document.documentElement);
    const walk = (v) => {
      if (typeof v === "string") return /^var\(--[\w-]+\)$/.test(v) ? style.getPropertyValue(v.slice(4, -1)).trim() : v;
      if (Array.isArray(v)) return v.map(walk);
      if (v && v.constructor === Object) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, walk(x)]));
      return v;
    };
    return walk(spec);
  }

  let edges;
  function edgeLines() {
    if (edges) return edges;
    const x = [], y = [];
    nodes.from.forEach((u, k) => {
      const v = nodes.to[k];
      x.push(nodes.x[u], nodes.x[v], null);
      y.push(nodes.y[u], nodes.y[v], null);
    });
    return (edges = { x, y });
  }

  function fillMap(spec, target, values, width) {
    const zoom = Math.min(1.1, Math.max(0.55, width / 520));
    const at = (wanted) => Array.from(nodes.x.keys()).filter((i) => Boolean(target.observed[i]) === wanted);
    for (const trace of spec.data) {
      if (!hasWebGL && trace.type === "scattergl") trace.type = "scatter";
      if (trace.name === "edges") { Object.assign(trace, edgeLines()); continue; }
      const members = at(trace.name === "observed");
      trace.x = members.map((i) => nodes.x[i]);
      trace.y = members.map((i) => nodes.y[i]);
      trace.text = members.map((i) => `<b>${literal(nodes.id[i])}</b><br>${describe(target, i)}`);
      trace.customdata = members;
      trace.marker.size *= zoom;
      if (trace.marker.colorscale) trace.marker.color = members.map((i) => values[i]);
    }
    return spec;
  }

  const mapsOf = (section) => [...section.querySelectorAll(".map")];

  function highlight(section, i, source) {
    const target = targets[section.dataset.target];
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    for (const map of mapsOf(section)) {
      if (map === source) continue;
      const note = i === null ? [] : [{
        x: nodes.x[i], y: nodes.y[i], text: `<b>${literal(nodes.id[i])}</b><br>${describe(target, i)}`, align: "left",
        arrowhead: 6, arrowsize: 1, arrowwidth: 1.5, arrowcolor: color("--ink"), ax: 0, ay: -42, standoff: 0,
        bgcolor: color("--raised"), bordercolor: color("--line-2"), borderpad: 5, font: { color: color("--ink"), size: 13 },
      }];
      Plotly.relayout(map, { annotations: note });
    }
    const readout = section.querySelector(".readout");
    if (readout) readout.textContent = i === null ? "" : `${nodes.id[i]}: ${describe(target, i)}`;
  }

  function link(section) {
    const maps = mapsOf(section);
    for (const map of maps) {
      map.removeAllListeners?.("plotly_hover");
      map.on("plotly_hover", (event) => highlight(section, event.points[0].customdata, map));
      map.on("plotly_unhover", () => highlight(section, null));
      map.on("plotly_relayout", (change) => {
        if (!("xaxis.range[0]" in change) && !("xaxis.autorange" in change)) return;
        const view = Object.fromEntries(Object.entries(change).filter(([key]) => /^[xy]axis\./.test(key)));
        const same = (other) => ["xaxis", "yaxis"].every((a) => String(other.layout[a].range) === String(map.layout[a].range));
        maps.filter((other) => other !== map && !same(other)).forEach((other) => Plotly.relayout(other, view));
      });
    }
  }

  async function show(section) {
    const target = targets[section.dataset.target];
    const drawn = [...section.querySelectorAll("[data-figure]")].map((div) => {
      const name = div.dataset.figure;
      const spec = themed(target.figures[name]);
      const isMap = div.classList.contains("map");
      if (isMap) fillMap(spec, target, name === "std_map" ? target.std : target.value, div.clientWidth);
      if (isMap && touch) spec.layout.dragmode = false;
      return Plotly.newPlot(div, spec.data, spec.layout, {
        responsive: true, displaylogo: false, displayModeBar: isMap ? undefined : false, scrollZoom: false,
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      });
    });
    await Promise.all(drawn);
    link(section);
    section.dataset.drawn = "true";
  }

  function hide(section) {
    section.querySelectorAll("[data-figure]").forEach((div) => Plotly.purge(div));
    delete section.dataset.drawn;
  }

  const sections = [...document.querySelectorAll("section.target")];
  const tabs = [...document.querySelectorAll(".tabs a")];
  let current = null;

  // Only the open section holds drawings: browsers allow a page few WebGL canvases.
  function open(section) {
    if (section === current) return;
    if (current) hide(current);
    current = section;
    sections.forEach((other) => { other.hidden = other !== section; });
    tabs.forEach((tab) => {
      const selected = tab.hash === `#${section.id}`;
      tab.setAttribute("aria-selected", selected);
      tab.tabIndex = selected ? 0 : -1;
    });
    show(section);
  }

  tabs.forEach((tab, k) => {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      history.replaceState(null, "", tab.hash);
      open(document.querySelector(tab.hash));
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(k + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });

  function sortBy(head) {
    const row = head.parentElement, body = row.closest("table").tBodies[0], column = head.cellIndex;
    const numeric = head.classList.contains("number");
    const first = numeric ? "descending" : "ascending", second = numeric ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? second : first;
    const key = (tr) => tr.cells[column].dataset.key;
    const compare = numeric ? (a, b) => key(a) - key(b) : (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
    [...row.cells].forEach((cell) => cell.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
    body.append(...[...body.rows].sort((a, b) => (order === "ascending" ? compare(a, b) : compare(b, a))));
  }

  document.querySelectorAll(".sort").forEach((button) => button.addEventListener("click", () => sortBy(button.parentElement)));

  document.querySelectorAll("tr[data-node]").forEach((row) => {
    const section = row.closest("section"), i = place.get(Number(row.dataset.node));
    row.addEventListener("mouseenter", () => highlight(section, i));
    row.addEventListener("mouseleave", () => highlight(section, null));
    row.addEventListener("click", () => {
      highlight(section, i);
      section.querySelector(".maps").scrollIntoView({ block: "center" });
    });
  });

  document.querySelectorAll(".find").forEach((form) => form.addEventListener("submit", (event) => {
    event.preventDefault();
    const section = form.closest("section"), wanted = form.elements.id.value.trim(), i = named.get(wanted);
    highlight(section, i ?? null);
    if (i === undefined) section.querySelector(".readout").textContent = wanted ? `No node “${wanted}” in the drawing.` : "";
  }));

  dark.addEventListener("change", () => { if (current) { hide(current); show(current); } });
  open(sections.find((section) => `#${section.id}` === location.hash) ?? sections[0]);
})();
