"use strict";
// A drawing of the graph on a canvas: areas or dots, edges below, one view for all drawings of a section.
const GraphMap = (() => {
  const EDGES_WHILE_MOVING = 8000; // by eye: as many lines are drawn within a frame; the others return when it rests
  const SHADES = 64; // colours of a scale, drawn one after the other; twice as many cannot be told apart
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function ramp(names) {
    const stops = names.map((name) => {
      const context = document.createElement("canvas").getContext("2d");
      context.fillStyle = style(name);
      context.fillRect(0, 0, 1, 1);
      return context.getImageData(0, 0, 1, 1).data;
    });
    return Array.from({ length: SHADES }, (_, k) => {
      const at = (k / (SHADES - 1)) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
      const mix = [0, 1, 2].map((c) => Math.round(stops[i][c] + (at - i) * (stops[i + 1][c] - stops[i][c])));
      return `rgb(${mix.join(",")})`;
    });
  }

  // What all drawings of a page share: where nodes are, outlines of areas, and which node is at a place.
  class Ground {
    constructor(nodes) {
      this.n = nodes.x.length;
      Object.assign(this, { x: nodes.x, y: nodes.y, from: nodes.from, to: nodes.to, titles: nodes.titles || [] });
      const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
      const reach = (x, y) => {
        low[0] = Math.min(low[0], x); high[0] = Math.max(high[0], x);
        low[1] = Math.min(low[1], y); high[1] = Math.max(high[1], y);
      };
      if (nodes.ring) this.outlines(nodes, reach);
      else for (let i = 0; i < this.n; i++) reach(this.x[i], this.y[i]);
      this.box = { low, high };
    }

    // Rings are given on a grid, as whole numbers: node k has those from shape[k] to shape[k + 1].
    outlines(nodes, reach) {
      const { shape, ring, vertex, frame } = nodes, [x0, y0, unit] = frame;
      this.paths = [];
      this.bounds = [];
      for (let k = 0; k < this.n; k++) {
        const path = new Path2D(), box = [Infinity, Infinity, -Infinity, -Infinity];
        for (let r = shape[k]; r < shape[k + 1]; r++) {
          for (let v = ring[r]; v < ring[r + 1]; v++) {
            const x = x0 + unit * vertex[2 * v], y = y0 + unit * vertex[2 * v + 1];
            if (v === ring[r]) path.moveTo(x, y); else path.lineTo(x, y);
            box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
            box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
          }
          path.closePath();
        }
        this.paths.push(path);
        this.bounds.push(box);
        if (box[0] <= box[2]) { reach(box[0], box[1]); reach(box[2], box[3]); }
      }
    }

    at(x, y, radius, context) {
      if (this.paths) {
        for (let k = 0; k < this.n; k++) {
          const [left, low, right, high] = this.bounds[k];
          if (x < left || x > right || y < low || y > high) continue;
          if (context.isPointInPath(this.paths[k], x, y, "evenodd")) return k;
        }
        return null;
      }
      let best = null, nearest = radius * radius;
      for (let k = 0; k < this.n; k++) {
        const d = (this.x[k] - x) ** 2 + (this.y[k] - y) ** 2;
        if (d <= nearest) { nearest = d; best = k; }
      }
      return best;
    }
  }

  // The part of the plane that is shown, the same in all drawings of a section.
  class View {
    constructor(ground) {
      this.ground = ground;
      this.maps = [];
      this.marked = null;
      this.whole();
    }

    whole() {
      const { low, high } = this.ground.box;
      this.centre = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
      this.zoom = 1;
    }

    zoomBy(factor, x = this.centre[0], y = this.centre[1]) {
      const zoom = Math.min(Math.max(this.zoom * factor, 1), 400), part = this.zoom / zoom;
      this.centre = [x + (this.centre[0] - x) * part, y + (this.centre[1] - y) * part];
      this.zoom = zoom;
      this.changed();
    }

    moveBy(dx, dy) {
      this.centre = [this.centre[0] + dx, this.centre[1] + dy];
      this.changed();
    }

    changed() {
      this.moving = true;
      clearTimeout(this.rest);
      this.rest = setTimeout(() => { this.moving = false; this.maps.forEach((map) => map.request()); }, 120);
      this.maps.forEach((map) => map.request());
    }

    mark(node, { centred = false } = {}) {
      this.marked = node;
      if (centred && node !== null && !this.maps.some((map) => map.shows(node))) {
        this.centre = [this.ground.x[node], this.ground.y[node]];
        this.changed();
      }
      this.maps.forEach((map) => map.overlay());
    }
  }

  class GraphMap {
    // `values` has a number for each node, NaN for none; `told(node)` makes the lines of its tip.
    constructor(div, view, { spec, values, observed, told, onPoint }) {
      Object.assign(this, { div, view, spec, values, observed, told, onPoint, ground: view.ground, only: null });
      this.base = div.querySelector("canvas");
      this.tip = div.querySelector(".tip");
      this.context = this.base.getContext("2d");
      view.maps.push(this);
      new ResizeObserver(() => this.resize()).observe(div);
      this.seen = true;
      new IntersectionObserver(([entry]) => { this.seen = entry.isIntersecting; this.request(); }).observe(div);
      this.listen();
      this.resize();
      div.dataset.nodes = this.ground.n;
    }

    resize() {
      const ratio = window.devicePixelRatio || 1;
      [this.width, this.height] = [this.div.clientWidth, this.div.clientHeight];
      if (!this.width) return;
      this.base.width = this.width * ratio;
      this.base.height = this.height * ratio;
      this.ratio = ratio;
      this.draw();
      this.overlay();
    }

    // Pixels for a unit of the plane, upwards being negative.
    get scale() {
      const { low, high } = this.ground.box, margin = 14;
      const wide = (this.width - 2 * margin) / (high[0] - low[0] || 1), tall = (this.height - 2 * margin) / (high[1] - low[1] || 1);
      const both = high[0] > low[0] && high[1] > low[1] ? Math.min(wide, tall) : high[0] > low[0] ? wide : tall;
      return both * this.view.zoom;
    }

    place(node) {
      const s = this.scale, [cx, cy] = this.view.centre;
      return [this.width / 2 + (this.ground.x[node] - cx) * s, this.height / 2 - (this.ground.y[node] - cy) * s];
    }

    plane(px, py) {
      const s = this.scale, [cx, cy] = this.view.centre;
      return [cx + (px - this.width / 2) / s, cy - (py - this.height / 2) / s];
    }

    shows(node) {
      const [x, y] = this.place(node);
      return x >= 0 && y >= 0 && x <= this.width && y <= this.height;
    }

    get radius() {
      const room = Math.sqrt((this.width * this.height) / Math.max(this.ground.n, 1));
      return Math.min(Math.max(0.3 * room * Math.sqrt(this.view.zoom), 1.3), 7);
    }

    // Painted with the next frame, where it is in sight; elsewhere when it comes into sight.
    request() {
      if (this.waiting || !this.seen) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.draw(); this.overlay(); });
    }

    // Looked up once for a theme.
    colours() {
      const { spec } = this, theme = style("--paper");
      if (this.theme !== theme) {
        this.theme = theme;
        this.shades = spec.classes ? spec.classes.map((_, k) => style(spec.colors[k % spec.colors.length])) : ramp(spec.colors);
      }
      return this.shades;
    }

    // Nodes by colour: one fill for each of them.
    buckets() {
      this.sorted ??= this.sort();
      return this.sorted;
    }

    sort() {
      const { spec, values, ground, observed } = this, last = spec.classes ? spec.classes.length - 1 : SHADES - 1;
      const found = Array.from({ length: last + 1 }, () => []), quiet = [];
      for (let i = 0; i < ground.n; i++) {
        const v = values[i];
        if (Number.isNaN(v) || (spec.only === "predicted" && observed[i]) || (spec.only === "observed" && !observed[i])) quiet.push(i);
        else if (spec.classes) (this.only === null || this.only === v ? found[v] : quiet).push(i);
        else found[Math.min(Math.max(Math.round(((v - spec.low) / (spec.high - spec.low)) * last), 0), last)].push(i);
      }
      return { found, quiet };
    }

    draw() {
      const { context: c, ground } = this;
      if (!this.width) return;
      c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      c.clearRect(0, 0, this.width, this.height);
      const { found, quiet } = this.buckets(), colours = this.colours();
      if (ground.paths) this.areas(found, quiet, colours);
      else { this.lines(); this.dots(found, quiet, colours); }
      this.titles();
    }

    titles() {
      const { context: c, ground } = this, s = this.scale, [cx, cy] = this.view.centre;
      c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      c.fillStyle = style("--ink-2");
      c.font = `12px ${style("--sans")}`;
      c.textAlign = "center";
      for (const [text, x, y] of ground.titles) c.fillText(text, this.width / 2 + (x - cx) * s, this.height / 2 - (y - cy) * s - 9);
    }

    lines() {
      const { context: c, ground } = this, count = ground.from.length;
      if (!count || (this.view.moving && count > EDGES_WHILE_MOVING)) return;
      const s = this.scale, [cx, cy] = this.view.centre, dx = this.width / 2 - cx * s, dy = this.height / 2 + cy * s;
      c.beginPath();
      for (let k = 0; k < count; k++) {
        const u = ground.from[k], v = ground.to[k];
        c.moveTo(dx + ground.x[u] * s, dy - ground.y[u] * s);
        c.lineTo(dx + ground.x[v] * s, dy - ground.y[v] * s);
      }
      c.strokeStyle = style("--edge");
      c.lineWidth = Math.min(Math.max(60 / Math.sqrt(count), 0.4), 1.2);
      c.stroke();
    }

    dots(found, quiet, colours) {
      const { context: c, observed, ground } = this, s = this.scale, [cx, cy] = this.view.centre;
      const dx = this.width / 2 - cx * s, dy = this.height / 2 + cy * s, usual = this.radius, paper = style("--paper");
      const fill = (members, colour, r = usual) => {
        if (!members.length) return;
        c.beginPath();
        for (const i of members) {
          const x = dx + ground.x[i] * s, y = dy - ground.y[i] * s;
          if (x < -r || y < -r || x > this.width + r || y > this.height + r) continue;
          if (observed[i] || r < 2) c.rect(x - 0.8 * r, y - 0.8 * r, 1.6 * r, 1.6 * r);
          else { c.moveTo(x + r, y); c.arc(x, y, r, 0, 7); }
        }
        c.fillStyle = colour;
        c.fill();
        if (r > 3.4) { c.strokeStyle = paper; c.lineWidth = 0.7; c.stroke(); }
      };
      fill(quiet, style("--quiet-2"), 0.6 * usual);
      found.forEach((members, k) => fill(members, colours[k]));
    }

    areas(found, quiet, colours) {
      const { context: c, ground } = this, s = this.scale, [cx, cy] = this.view.centre, ratio = this.ratio;
      c.setTransform(s * ratio, 0, 0, -s * ratio, (this.width / 2 - cx * s) * ratio, (this.height / 2 + cy * s) * ratio);
      c.lineWidth = 0.6 / s;
      c.strokeStyle = style("--paper");
      const merge = (members) => {
        const whole = new Path2D();
        members.forEach((i) => whole.addPath(ground.paths[i]));
        return whole;
      };
      this.merged ??= { quiet: merge(quiet), found: found.map(merge) };
      const fill = (path, colour) => {
        c.fillStyle = colour;
        c.fill(path, "evenodd");
        if (ground.n < 5000) c.stroke(path);
      };
      fill(this.merged.quiet, style(this.spec.only === "observed" ? "--ground" : "--quiet-2"));
      this.merged.found.forEach((path, k) => fill(path, colours[k]));
      if (this.spec.outlined && ground.n < 5000) this.outlineObserved();
    }

    // Known areas have a line around them, as known nodes are squares.
    outlineObserved() {
      const { context: c, ground, observed } = this;
      c.strokeStyle = style("--ink");
      c.lineWidth = 0.9 / this.scale;
      for (let i = 0; i < ground.n; i++) if (observed[i]) c.stroke(ground.paths[i]);
    }

    overlay() {
      const node = this.view.marked, ring = this.div.querySelector(".ring");
      this.tip.hidden = ring.hidden = node === null || !this.shows(node);
      if (node === null) return;
      const [x, y] = this.place(node);
      ring.style.transform = `translate(${x}px, ${y}px)`;
      if (this.written !== node) { this.tip.replaceChildren(...this.told(node)); this.written = node; }
      const wide = this.tip.offsetWidth, tall = this.tip.offsetHeight;
      const within = (at, room) => Math.min(Math.max(at, 2), Math.max(room - 2, 2));
      const left = within(x < this.width / 2 ? x + 16 : x - wide - 16, this.width - wide);
      const top = within(y - tall / 2, this.height - tall);
      this.tip.style.transform = `translate(${left}px, ${top}px)`;
    }

    find(event) {
      const box = this.base.getBoundingClientRect(), [x, y] = this.plane(event.clientX - box.left, event.clientY - box.top);
      this.context.setTransform(1, 0, 0, 1, 0, 0);
      return this.ground.at(x, y, (this.radius + 5) / this.scale, this.context);
    }

    listen() {
      const { base, view, div } = this;
      let from = null;
      base.addEventListener("pointerdown", (event) => {
        if (event.pointerType === "mouse" && event.button === 0) { from = [event.clientX, event.clientY]; base.setPointerCapture(event.pointerId); }
      });
      base.addEventListener("pointermove", (event) => {
        if (from) {
          view.moveBy(-(event.clientX - from[0]) / this.scale, (event.clientY - from[1]) / this.scale);
          from = [event.clientX, event.clientY];
        } else if (event.pointerType === "mouse") this.onPoint(this.find(event));
      });
      const drop = () => { from = null; };
      base.addEventListener("pointerup", drop);
      base.addEventListener("pointercancel", drop);
      base.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && !from) this.onPoint(null); });
      base.addEventListener("click", (event) => this.onPoint(this.find(event)));
      base.addEventListener("dblclick", (event) => {
        const box = base.getBoundingClientRect();
        view.zoomBy(2, ...this.plane(event.clientX - box.left, event.clientY - box.top));
      });
      base.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const box = base.getBoundingClientRect();
        view.zoomBy(Math.exp(-event.deltaY / 200), ...this.plane(event.clientX - box.left, event.clientY - box.top));
      }, { passive: false });
      div.addEventListener("keydown", (event) => {
        const step = 40 / this.scale;
        const does = {
          ArrowLeft: () => view.moveBy(-step, 0), ArrowRight: () => view.moveBy(step, 0), ArrowUp: () => view.moveBy(0, step),
          ArrowDown: () => view.moveBy(0, -step), "+": () => view.zoomBy(1.5), "-": () => view.zoomBy(1 / 1.5), 0: () => { view.whole(); view.changed(); },
        }[event.key];
        if (does && event.target.tagName !== "INPUT") { event.preventDefault(); does(); }
      });
      div.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
        const factor = Number(button.dataset.zoom);
        if (factor) view.zoomBy(factor); else { view.whole(); view.changed(); }
      }));
    }

    // Only nodes of this class keep their colour; null for all.
    emphasise(value) { this.only = value; this.sorted = this.merged = undefined; this.draw(); }
  }

  return { Ground, View, GraphMap };
})();
