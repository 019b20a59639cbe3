// The streams as lanes over a time axis, on a canvas.
const AXIS = 26;

class Timeline {
  constructor(plan, title, number, settings) {
    this.plan = plan;
    this.settings = settings;
    this.moved = () => {};
    this.run = plan.runs[0];
    this.chosen = -1;
    const streams = this.run.lanes.length;
    this.axis = element("canvas", { height: AXIS, "aria-hidden": "true" });
    this.canvas = element("canvas", {
      tabindex: 0, role: "application", "aria-roledescription": "timeline",
      "aria-label": `${title}: ${counted(streams, "stream")} over time. Arrow keys move, plus and minus zoom, n and p choose tasks.`,
    });
    this.text = element("div", { class: "chosen details", role: "status", id: `chosen-${number}` });
    this.body = element("div", { class: "body" }, this.canvas);
    const button = (label, what, act) => element("button", { type: "button", "aria-label": `${what}: ${title}`, title: what, text: label, onclick: act });
    this.pick = element("select", { "aria-label": `times of ${title}`, onchange: () => this.show(this.plan.runs[this.pick.selectedIndex]) },
      ...plan.runs.map((r) => element("option", { text: r.what })));
    this.root = element("div", {},
      element("h3", { text: title }),
      element("div", { class: "controls" },
        button("+", "zoom in", () => this.zoom(0.5)), button("−", "zoom out", () => this.zoom(2)),
        button("◀", "earlier", () => this.pan(-0.25)), button("▶", "later", () => this.pan(0.25)),
        button("all", "see all", () => this.see(0, this.end())), this.pick),
      element("div", { class: "lanes" }, this.axis, this.body), this.text);
    this.listen();
    this.show(this.run);
  }

  show(run) {
    this.run = run;
    this.laneHeight = Math.max(14, Math.min(28, Math.floor(30000 / run.lanes.length)));
    const { s, b } = run.spans;
    this.lanes = run.lanes.map(() => []);
    for (let i = 0; i < s.length; ++i) this.lanes[s[i]].push(i);
    for (const lane of this.lanes) lane.sort((x, y) => b[x] - b[y] || x - y);
    this.isCritical = new Uint8Array(s.length);
    for (const i of run.critical) this.isCritical[i] = 1;
    this.longest = this.lanes.map((lane) => lane.reduce((most, i) => Math.max(most, run.spans.d[i]), 0));
    this.choose(-1);
    this.see(0, this.end());
  }

  end() { return Math.max(1, this.run.total_ns) * 1.02; }
  gutter() { return this.canvas.clientWidth < 500 ? 78 : 150; }
  x(t) { return this.gutter() + ((t - this.t0) / (this.t1 - this.t0)) * (this.canvas.clientWidth - this.gutter()); }
  t(x) { return this.t0 + ((x - this.gutter()) / Math.max(1, this.canvas.clientWidth - this.gutter())) * (this.t1 - this.t0); }

  // `far` is as far as one may look: the other timeline's end where both keep one scale.
  see(t0, t1, told = false) {
    const far = Math.max(this.end(), this.settings.end ? this.settings.end() : 0);
    const width = Math.min(Math.max(t1 - t0, 10), far * 1.5);
    this.t0 = Math.min(Math.max(t0, -width * 0.5), far - width * 0.1);
    this.t1 = this.t0 + width;
    this.draw();
    if (!told) this.moved(this.t0, this.t1);
  }
  zoom(by, around = (this.t0 + this.t1) / 2) { this.see(around - (around - this.t0) * by, around + (this.t1 - around) * by); }
  pan(share) { const step = (this.t1 - this.t0) * share; this.see(this.t0 + step, this.t1 + step); }

  choose(i, into = false) {
    this.chosen = i;
    const s = this.run.spans;
    if (i < 0) {
      this.text.replaceChildren(element("span", { class: "muted", text: "Choose a task to see what it is and why it waits." }));
    } else {
      const launches = s.k[i] !== RECORD && s.k[i] !== WAIT;
      this.text.replaceChildren(element("p", { text: taskText(this.plan, this.run, i) }), ...(launches ? [reasons(this.plan, s.n[i])] : []));
      if (into) this.bring(i);
    }
    this.draw();
  }
  // Brings a task into view without changing the scale, unless it would be a hair.
  bring(i) {
    const { s, b, d } = this.run.spans;
    let width = this.t1 - this.t0;
    if (d[i] > 0 && d[i] / width < 0.01) width = d[i] * 20;
    if (b[i] < this.t0 || b[i] + d[i] > this.t1 || width !== this.t1 - this.t0) this.see(b[i] + d[i] / 2 - width / 2, b[i] + d[i] / 2 + width / 2);
    const top = s[i] * this.laneHeight;
    if (top < this.body.scrollTop || top + this.laneHeight > this.body.scrollTop + this.body.clientHeight) this.body.scrollTop = top - this.body.clientHeight / 2;
  }
  chooseNode(n) {
    const { k, n: index } = this.run.spans;
    const i = index.findIndex((m, j) => m === n && k[j] === LAUNCH);
    if (i >= 0) this.choose(i, true);
  }
  step(by) {
    const { s } = this.run.spans;
    const lane = this.chosen < 0 ? this.lanes.find((l) => l.length) : this.lanes[s[this.chosen]];
    if (!lane) return;
    const at = this.chosen < 0 ? (by > 0 ? 0 : lane.length - 1) : lane.indexOf(this.chosen) + by;
    if (lane[at] !== undefined) this.choose(lane[at], true);
  }
  // Up and down go to the task of the next stream that runs at the same time.
  across(by) {
    const { s, b, d } = this.run.spans;
    if (this.chosen < 0) { this.body.scrollTop += by * this.laneHeight * 3; return; }
    const middle = b[this.chosen] + d[this.chosen] / 2;
    for (let lane = s[this.chosen] + by; lane >= 0 && lane < this.lanes.length; lane += by) {
      if (this.lanes[lane].length === 0) continue;
      const near = this.lanes[lane].reduce((best, i) => (Math.abs(b[i] + d[i] / 2 - middle) < Math.abs(b[best] + d[best] / 2 - middle) ? i : best));
      this.choose(near, true);
      return;
    }
  }
  hit(x, y) {
    const lane = this.lanes[Math.floor(y / this.laneHeight)];
    if (!lane || x < this.gutter()) return -1;
    const { b, d, k } = this.run.spans;
    const slack = ((this.t1 - this.t0) / this.canvas.clientWidth) * 3;
    const at = this.t(x);
    let found = -1;
    for (const i of lane) {
      if (b[i] > at + slack) break;
      if (b[i] + d[i] >= at - slack && (found < 0 || k[i] === LAUNCH || k[found] !== LAUNCH)) found = i;
    }
    return found;
  }

  listen() {
    const c = this.canvas;
    let from = null;
    c.addEventListener("pointerdown", (e) => { from = { x: e.offsetX, t0: this.t0, t1: this.t1, far: false }; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointermove", (e) => {
      if (from === null) { c.title = this.hover(e.offsetX, e.offsetY); return; }
      if (Math.abs(e.offsetX - from.x) > 4) from.far = true;
      const moved = ((from.x - e.offsetX) / Math.max(1, c.clientWidth - this.gutter())) * (from.t1 - from.t0);
      if (from.far) this.see(from.t0 + moved, from.t1 + moved);
    });
    const stop = (e) => {
      if (from && !from.far && e.type === "pointerup") this.choose(this.hit(e.offsetX, e.offsetY));
      from = null;
    };
    c.addEventListener("pointerup", stop);
    c.addEventListener("pointercancel", stop);
    c.addEventListener("dblclick", (e) => this.zoom(0.4, this.t(e.offsetX)));
    c.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey) this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.t(e.offsetX));
      else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / 800);
      else return;
      e.preventDefault();
    }, { passive: false });
    c.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const act = {
        ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), ArrowUp: () => this.across(-1), ArrowDown: () => this.across(1),
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.see(0, this.end()), Home: () => this.see(0, this.end()),
        n: () => this.step(1), p: () => this.step(-1), Escape: () => this.choose(-1),
      }[e.key];
      if (act) { act(); e.preventDefault(); }
    });
    new ResizeObserver(() => this.draw()).observe(this.root);
  }
  hover(x, y) {
    const i = this.hit(x, y);
    return i < 0 ? "" : taskText(this.plan, this.run, i);
  }

  // A canvas in device pixels, its context in the page's.
  prepare(canvas, height) {
    const width = canvas.clientWidth, ratio = Math.min(window.devicePixelRatio || 1, 32000 / height);
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = colour("ground");
    ctx.fillRect(0, 0, width, height);
    ctx.font = '12px system-ui, "DejaVu Sans", sans-serif';
    ctx.textBaseline = "middle";
    return ctx;
  }

  draw() {
    if (this.t1 === undefined || this.canvas.clientWidth === 0) return;
    this.drawAxis();
    const height = Math.max(1, this.lanes.length) * this.laneHeight;
    const ctx = this.prepare(this.canvas, height);
    const width = this.canvas.clientWidth;
    ctx.strokeStyle = colour("line");
    ctx.lineWidth = 1;
    for (const t of this.ticks()) line(ctx, Math.round(this.x(t)) + 0.5, 0, Math.round(this.x(t)) + 0.5, height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.gutter(), 0, width, height);
    ctx.clip();
    this.lanes.forEach((lane, s) => this.drawLane(ctx, lane, s));
    if (this.settings.arrows()) this.drawArrows(ctx);
    if (this.settings.critical()) this.drawCritical(ctx);
    if (this.chosen >= 0) this.outline(ctx, this.chosen, colour("accent"), 3);
    ctx.restore();
    this.drawNames(ctx, height);
  }

  ticks() {
    const span = this.t1 - this.t0;
    const wanted = Math.max(2, (this.canvas.clientWidth - this.gutter()) / 90);
    let step = 10 ** Math.floor(Math.log10(span / wanted));
    for (const by of [2, 2.5, 2]) if (span / step > wanted) step *= by;
    const out = [];
    for (let t = Math.max(0, Math.ceil(this.t0 / step) * step); t <= this.t1; t += step) out.push(t);
    return out;
  }
  drawAxis() {
    const ctx = this.prepare(this.axis, AXIS);
    const gutter = this.gutter(), width = this.axis.clientWidth;
    ctx.fillStyle = colour("panel");
    ctx.fillRect(0, 0, width, AXIS);
    ctx.fillStyle = colour("ink");
    ctx.fillText("stream", 8, AXIS / 2);
    ctx.strokeStyle = colour("line");
    let free = gutter;
    for (const t of this.ticks()) {
      const x = this.x(t), text = time(Math.round(t * 1000) / 1000);
      line(ctx, Math.round(x) + 0.5, AXIS - 5, Math.round(x) + 0.5, AXIS);
      const w = ctx.measureText(text).width;
      if (x < free || x + w + 3 > width) continue;
      ctx.fillText(text, x + 3, AXIS / 2);
      free = x + w + 12;
    }
  }

  box(i) {
    const { s, b, d, k } = this.run.spans;
    const thin = k[i] === RECORD || k[i] > ATTACHED;
    const x = this.x(b[i]), right = this.x(b[i] + d[i]);
    return [x, s[i] * this.laneHeight + (thin ? 8 : 3), Math.max(1, right - x), this.laneHeight - (thin ? 16 : 6)];
  }
  drawLane(ctx, lane, s) {
    const { b, d, k, n } = this.run.spans;
    const ink = colour("ink"), wait = colour("wait"), edge = colour("line");
    const h = this.laneHeight;
    ctx.strokeStyle = edge;
    line(ctx, 0, (s + 1) * h - 0.5, this.canvas.clientWidth, (s + 1) * h - 0.5);
    // Spans stand by their begin: the first that can be seen begins at most the longest one before the view.
    let i = lowerBound(lane, (x) => b[x] < this.t0 - this.longest[s]);
    let painted = -1;
    for (; i < lane.length && b[lane[i]] <= this.t1; ++i) {
      const at = lane[i];
      if (b[at] + d[at] < this.t0) continue;
      const [x, y, w, tall] = this.box(at);
      if (x + w < painted + 0.5) continue;
      painted = x + w;
      if (k[at] === WAIT) {
        hatch(ctx, x, y, w, tall, wait);
        continue;
      }
      const isNode = k[at] !== RECORD;
      ctx.fillStyle = isNode ? fill(this.plan.nodes.engine[n[at]]) : wait;
      ctx.fillRect(x, y, w, tall);
      if (w < 3) continue;
      ctx.strokeStyle = wait;
      ctx.setLineDash(k[at] === ATTACHED || k[at] === SELF_ATTACHED ? [3, 3] : []);
      ctx.strokeRect(x + 0.5, y + 0.5, w - 1, tall - 1);
      ctx.setLineDash([]);
      if (k[at] === LAUNCH && tall >= 14) label(ctx, nodeName(this.plan, n[at]), Math.max(x, this.gutter()), Math.min(x + w, this.canvas.clientWidth), y + tall / 2, ink);
    }
  }
  drawArrows(ctx) {
    const { s, b, d, k } = this.run.spans;
    const arrows = this.run.arrows, middle = this.laneHeight / 2;
    const seen = arrows.filter(([from, to]) => b[to] + d[to] >= this.t0 && b[from] <= this.t1);
    const crowded = seen.length > 20000;
    ctx.strokeStyle = ctx.fillStyle = colour("arrow");
    for (const [from, to] of seen) {
      if (crowded && this.chosen < 0) break;
      const own = from === this.chosen || to === this.chosen || from + 1 === this.chosen || this.near(this.chosen, to);
      if (crowded && !own) continue;
      ctx.globalAlpha = own ? 1 : Math.max(0.12, Math.min(0.8, 120 / seen.length));
      ctx.lineWidth = own ? 2.5 : 1;
      const x1 = this.x(b[from] + d[from]), y1 = s[from] * this.laneHeight + middle;
      const x2 = this.x(k[to] === WAIT ? b[to] + d[to] : b[to]), y2 = s[to] * this.laneHeight + middle;
      line(ctx, x1, y1, x2, y2);
      if (seen.length < 1500) head(ctx, x1, y1, x2, y2);
    }
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1;
  }
  // Whether `wait` stands directly before the launch `i`.
  near(i, wait) {
    return i > wait && i - wait <= 4 && this.run.spans.s[i] === this.run.spans.s[wait] && this.run.spans.k[i] === LAUNCH &&
      this.run.spans.k.slice(wait, i).every((k) => k === WAIT);
  }
  // Of a wait only what follows its record is on the path; the line from lane to lane ends at that edge.
  drawCritical(ctx) {
    const { s, b, d } = this.run.spans;
    const strong = colour("critical");
    let before = -1;
    for (const i of this.run.critical) {
      const crosses = before >= 0 && s[before] !== s[i];
      const from = crosses ? Math.max(b[i], b[before] + d[before]) : b[i];
      if (b[i] + d[i] >= this.t0 && from <= this.t1) {
        this.outline(ctx, i, strong, 2, from);
        if (crosses) {
          const down = s[i] > s[before], [, y, , h] = this.box(before), [, top, , tall] = this.box(i);
          ctx.strokeStyle = strong;
          ctx.lineWidth = 2;
          line(ctx, this.x(b[before] + d[before]), down ? y + h : y, this.x(from), down ? top : top + tall);
          ctx.lineWidth = 1;
        }
      }
      before = i;
    }
  }
  outline(ctx, i, stroke, width, from = this.run.spans.b[i]) {
    const [x, y, w, h] = this.box(i);
    const left = Math.max(x, this.x(from));
    ctx.strokeStyle = stroke;
    ctx.lineWidth = width;
    ctx.strokeRect(left, y, Math.max(1, x + w - left), h);
    ctx.lineWidth = 1;
  }
  drawNames(ctx, height) {
    const gutter = this.gutter();
    ctx.fillStyle = colour("panel");
    ctx.fillRect(0, 0, gutter, height);
    ctx.strokeStyle = colour("line");
    line(ctx, gutter - 0.5, 0, gutter - 0.5, height);
    this.run.lanes.forEach((name, s) => {
      const y = (s + 0.5) * this.laneHeight;
      line(ctx, 0, (s + 1) * this.laneHeight - 0.5, gutter, (s + 1) * this.laneHeight - 0.5);
      label(ctx, name, 0, gutter - 2, y, colour("ink"), `${s} `);
    });
  }
}

function line(ctx, x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}
function head(ctx, x1, y1, x2, y2) {
  const turn = Math.atan2(y2 - y1, x2 - x1);
  ctx.beginPath();
  ctx.moveTo(x2, y2);
  for (const side of [-0.4, 0.4]) ctx.lineTo(x2 - 7 * Math.cos(turn + side), y2 - 7 * Math.sin(turn + side));
  ctx.fill();
}
function hatch(ctx, x, y, w, h, stroke) {
  ctx.strokeStyle = stroke;
  if (w < 3) { line(ctx, x, y, x, y + h); return; }
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y + h / 4, w, h / 2);
  ctx.clip();
  const left = Math.max(x, 0), right = Math.min(x + w, ctx.canvas.clientWidth || x + w);
  ctx.beginPath();
  for (let at = left - h; at < right; at += 6) { ctx.moveTo(at, y + h); ctx.lineTo(at + h, y); }
  ctx.stroke();
  ctx.restore();
  ctx.strokeRect(x + 0.5, y + h / 4, Math.max(0, w - 1), h / 2);
}
// As much of a text as there is room for between left and right; of a path its last part rather than its first. `number` stays.
function label(ctx, whole, left, right, y, ink, number = "") {
  const room = right - left - 8;
  if (room < 10) return;
  const fits = ctx.measureText(number + whole.slice(0, 400)).width <= room;
  const text = number + (fits ? whole : whole.slice(whole.lastIndexOf("/") + 1) || whole);
  let shown = text.length * 5 > room * 3 ? text.slice(0, Math.ceil(room)) : text;
  if (ctx.measureText(shown).width > room) {
    let few = 0, many = shown.length;
    while (few < many) {
      const half = (few + many + 1) >> 1;
      if (ctx.measureText(`${shown.slice(0, half)}…`).width <= room) few = half;
      else many = half - 1;
    }
    if (few === 0) return;
    shown = `${shown.slice(0, few)}…`;
  }
  ctx.fillStyle = ink;
  ctx.fillText(shown, left + 4, y);
}
function lowerBound(list, isBelow) {
  let low = 0, high = list.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (isBelow(list[half])) low = half + 1;
    else high = half;
  }
  return low;
}
