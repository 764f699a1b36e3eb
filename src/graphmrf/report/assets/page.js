"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const kinds = { i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array, u1: Uint8Array };
  const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const unpack = (v) => (v && v.dtype ? new kinds[v.dtype](bytes(v.data).buffer) : v);
  const unpacked = (object) => Object.fromEntries(Object.entries(object).map(([name, v]) => [name, unpack(v)]));

  const nodes = unpacked(page.nodes);
  const features = page.features.map(unpacked);
  const targets = page.targets.map(unpacked);
  const named = new Map(nodes.id.map((id, i) => [id, i]));
  const ground = new GraphMap.Ground(nodes);

  const formatted = (value, places) =>
    (places === null
      ? value.toExponential(2)
      : value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })
    ).replace("-", "\u2212");

  // The lines of a tip: what is known of a node, or of the many nodes of a cell.
  function facts(target, i) {
    const places = target.decimals, f = (v) => formatted(v, places), has = (name) => target[name] && !Number.isNaN(target[name][i]);
    const lines = [];
    if (nodes.count) lines.push(`mean of ${nodes.count[i].toLocaleString("en-US")} nodes`);
    if (target.classes) {
      const most = target.classes.map((name, k) => [target.probability[i * target.classes.length + k], name]);
      if (target.observed[i]) lines.push(`${target.classes[target.code[i]]} (observed)`);
      else most.sort((a, b) => b[0] - a[0]).slice(0, 3).forEach(([p, name]) => lines.push(`${name}: ${Math.round(100 * p)} %`));
      if (has("left_out")) lines.push(`from the others: ${target.classes[target.left_out[i]]}`);
    } else if (target.observed[i] && !has("std")) {
      lines.push(`${f(target.value[i])} (observed)`);
    } else {
      lines.push(has("std") ? `${f(target.value[i])} ± ${f(target.std[i])} (predicted)` : `${f(target.value[i])} (predicted)`);
      if (has("lower")) lines.push(`${page.targets[target.position].interval}: ${f(target.lower[i])} to ${f(target.upper[i])}`);
    }
    if (has("left_out") && !target.classes) lines.push(`out of fold: ${f(target.left_out[i])}`);
    if (has("smoothed")) {
      const g = (name) => formatted(target[name][i], target.smoothed_decimals);
      lines.push(`smoothed rate: ${g("smoothed")}, ${page.targets[target.position].interval}: ${g("smoothed_lower")} to ${g("smoothed_upper")}`);
    }
    const strongest = target.strongest && target.strongest[i];
    if (strongest) lines.push(`labels with most weight: ${strongest.map(([k, weight]) => `${nodes.id[k]} (${weight})`).join(", ")}`);
    if (has("probability_above")) lines.push(`${page.targets[target.position].above_text}: ${Math.round(100 * target.probability_above[i])} %`);
    if (has("residual")) lines.push(`residual: ${formatted(target.residual[i], 1)} std`);
    return lines;
  }
  const described = (i) => features.map((each) => {
    const v = each.values[i];
    const text = Number.isNaN(v) || v < 0 && each.levels ? "missing" : each.levels ? each.levels[v] : formatted(v, each.decimals);
    return `${each.name} ${text}`;
  });

  function told(target, i) {
    const line = (text, kind) => Object.assign(document.createElement("div"), { textContent: text, className: kind });
    const features = described(i).join(" · ");
    return [line(nodes.id[i], "name"), ...facts(target, i).map((text) => line(text, "")), ...(features ? [line(features, "feature")] : [])];
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

  function point(section, i, { centred = false } = {}) {
    const target = targets[section.dataset.target], readout = section.querySelector(".readout");
    views.get(section)?.mark(i, { centred });
    if (readout) readout.textContent = i === null ? "" : `${nodes.id[i]}: ${facts(target, i).join(", ")}`;
  }

  const views = new Map();
  function drawMaps(section) {
    const target = targets[section.dataset.target];
    if (!views.has(section)) {
      const view = new GraphMap.View(ground);
      views.set(section, view);
      section.querySelectorAll(".map").forEach((div) => {
        const spec = target.maps[div.dataset.map];
        new GraphMap.GraphMap(div, view, {
          spec, values: target[spec.values], observed: target.observed, told: (i) => told(target, i),
          onPoint: (i) => { if (view.marked !== i) point(section, i); },
        });
      });
    } else views.get(section).maps.forEach((map) => map.resize());
  }

  // Plotly comes compressed; unpacked it runs as a script of this document, whose policy has its hash.
  const plotly = (async () => {
    const packed = new Blob([bytes(document.getElementById("plotly").textContent)]).stream();
    const textContent = await new Response(packed.pipeThrough(new DecompressionStream("deflate"))).text();
    document.head.append(Object.assign(document.createElement("script"), { textContent }));
  })();

  // One chart after the other, so that the page answers meanwhile; a later call stops an earlier one.
  async function drawCharts(section, turn) {
    const target = targets[section.dataset.target];
    await plotly;
    for (const div of section.querySelectorAll("[data-figure]")) {
      await new Promise((resolve) => setTimeout(resolve));
      if (turn !== latest) return;
      const spec = themed(target.figures[div.dataset.figure]);
      await Plotly.react(div, spec.data, spec.layout, { responsive: true, displayModeBar: false });
    }
    if (turn === latest) section.dataset.drawn = "true";
  }

  const sections = [...document.querySelectorAll("section.target")];
  const tabs = [...document.querySelectorAll(".tabs a")];
  let current = null, latest = 0;

  function show(section) {
    delete section.dataset.drawn;
    drawMaps(section);
    latest += 1;
    drawCharts(section, latest);
  }

  function open(section) {
    if (section === current) return;
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

  document.querySelectorAll("tr[data-place]").forEach((row) => {
    const section = row.closest("section"), i = Number(row.dataset.place);
    row.addEventListener("mouseenter", () => point(section, i));
    row.addEventListener("mouseleave", () => point(section, null));
    row.querySelector(".node").addEventListener("focus", () => point(section, i));
    row.addEventListener("click", () => {
      point(section, i, { centred: true });
      section.querySelector(".maps").scrollIntoView({ block: "center" });
    });
  });

  document.querySelectorAll(".find").forEach((form) => form.addEventListener("submit", (event) => {
    event.preventDefault();
    const section = form.closest("section"), wanted = form.elements.id.value.trim(), i = named.get(wanted);
    point(section, i ?? null, { centred: true });
    if (i === undefined) section.querySelector(".readout").textContent = wanted ? `No node “${wanted}” in the drawing.` : "";
  }));

  document.querySelectorAll(".classes button").forEach((button) => button.addEventListener("click", () => {
    const section = button.closest("section"), pressed = button.getAttribute("aria-pressed") === "true";
    section.querySelectorAll(".classes button").forEach((other) => other.setAttribute("aria-pressed", "false"));
    button.setAttribute("aria-pressed", String(!pressed));
    views.get(section).maps.filter((map) => map.spec.classes).forEach((map) => map.emphasise(pressed ? null : Number(button.value)));
  }));

  // The table of all drawn nodes, made when it is asked for.
  const cell = (v) => (/[",\n\r]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v);
  const plain = (v) => (v === undefined || v === null || Number.isNaN(v) ? "" : String(v));
  function csv(target) {
    const numbers = ["std", "lower", "upper", "left_out", "residual", "smoothed", "smoothed_lower", "smoothed_upper", "probability_above"].filter((name) => target[name] && !target.classes);
    const heads = ["id", "prediction", ...(target.classes ? ["probability"] : numbers), "observed", ...features.map((each) => each.name)];
    const rows = nodes.id.map((id, i) => {
      const predicted = target.classes ? [target.classes[target.code[i]], plain(target.sure[i])] : [plain(target.value[i]), ...numbers.map((name) => plain(target[name][i]))];
      const described = features.map(({ values, levels }) => (levels ? levels[values[i]] ?? "" : plain(values[i])));
      return [id, ...predicted, target.observed[i] ? "True" : "False", ...described].map(cell).join(",");
    });
    return [heads.map(cell).join(","), ...rows, ""].join("\n");
  }

  function save(content, name) {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  document.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => {
    const section = button.closest("section"), target = targets[section.dataset.target];
    if (button.dataset.save === "csv") save(new Blob([csv(target)], { type: "text/csv" }), `${target.file}.csv`);
    else views.get(section).maps[0].base.toBlob((image) => save(image, `${target.file}.png`));
  }));

  dark.addEventListener("change", () => { if (current) show(current); });
  open(sections.find((section) => `#${section.id}` === location.hash) ?? sections[0]);
})();
