// Numbers, use and idle time, and the table of nodes.
function numbersTable(plans, titles) {
  const us = (x) => (x === null || x === undefined ? null : time(x * 1000));
  const bounds = (p, key) => (p.bounds ? us(p.bounds[key]) : null);
  const rows = [
    ["time of the first view", (p) => time(p.runs[0].total_ns)],
    ["predicted by the cost model", (p) => bounds(p, "span_us")],
    ["best one-stream plan, predicted", (p) => bounds(p, "single_stream_us")],
    ["no plan can be under", (p) => (p.bounds ? `${us(p.bounds.lower_bound_us)} (${p.bounds.limited_by})` : null)],
    ["bound by critical path", (p) => bounds(p, "critical_path_us")],
    ["bound by cores", (p) => bounds(p, "cores_us")],
    ["bound by memory bandwidth", (p) => bounds(p, "bandwidth_us")],
    ["overlap (busy time with two or more tasks)", (p) => percent(p.runs[0].overlap, 1)],
    ["nodes", (p) => p.nodes.name.length],
    ["streams", (p) => p.counts.streams],
    ["pairs inserted (one for each order between streams)", (p) => p.counts.pairs_inserted],
    ["pairs kept", (p) => p.counts.pairs_kept],
    ["pairs compat mode would keep", (p) => p.counts.pairs_compat],
    ["records", (p) => p.counts.records],
    ["waits", (p) => p.counts.waits],
    ["event ids", (p) => p.counts.events],
    ["threads an operator", (p) => p.threads],
    ["target", (p) => p.target],
    ["read from", (p) => p.file],
  ];
  const shown = (x) => (x === null || x === undefined ? "–" : typeof x === "number" ? { number: count(x) } : { number: x });
  return table("Times, bounds and counts", ["", ...titles.map((t) => ({ number: t }))],
    rows.map(([name, of]) => [name, ...plans.map((p) => shown(of(p)))]));
}

// Long names differ at their ends more often than at their beginnings.
const shortened = (name) => (name.length > 46 ? `${name.slice(0, 12)}…${name.slice(-32)}` : name);
const shortName = (name) => (name.length > 46 ? element("span", { text: shortened(name), title: name }) : name);

const CAUSES = [
  ["run", "running"], ["sync", "records and waits"], ["wait", "waiting for another stream"], ["hand_off", "hand-off"],
  ["busy", "engine busy"], ["before", "not started"], ["after", "no work left"],
];

function useTables(plan, run, title) {
  const total = run.total_ns;
  const streams = table(`${title}: where each stream's time goes (${run.what}; of ${time(total)})`,
    ["stream", ...CAUSES.map(([, word]) => ({ number: word })), "waits most for"],
    run.use.map((u, s) => {
      const most = run.awaited.filter((a) => a[0] === s).sort((a, b) => b[2] - a[2])[0];
      return [shortName(`${s} ${run.lanes[s]}`), ...CAUSES.map(([key]) => ({ number: percent(u[key], total) })),
        most ? `stream ${most[1]} (${time(most[2])})` : "–"];
    }), true);
  const engines = table(`${title}: use by engine`, ["engine", { number: "units" }, { number: "busy" }, { number: "use" }],
    run.engines.map((e) => [shortName(plan.engines[e.engine] ?? "none"), { number: String(e.units) }, { number: time(e.busy_ns) }, { number: percent(e.busy_ns, total * e.units) }]));
  const region = (name, inner) => element("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": `${title}: ${name}` }, inner);
  const path = table(`${title}: the critical path by cause`, ["cause", { number: "time" }, { number: "share" }],
    run.path.map(([word, ns]) => [word, { number: time(ns) }, { number: percent(ns, total) }]));
  return element("div", {}, region("use of streams", streams), region("use of engines", engines), region("critical path", path));
}

// Which stream of the other plan each stream answers to: the two with most nodes in common first, each once.
function matchStreams(a, b) {
  const other = new Map(b.nodes.name.map((name, n) => [name, n]));
  const common = new Map();
  a.nodes.name.forEach((name, n) => {
    const m = other.get(name);
    if (m === undefined || a.nodes.stream[n] < 0 || b.nodes.stream[m] < 0) return;
    const key = `${a.nodes.stream[n]} ${b.nodes.stream[m]}`;
    common.set(key, (common.get(key) || 0) + 1);
  });
  const match = new Map(), taken = new Set();
  for (const [key] of [...common].sort((x, y) => y[1] - x[1])) {
    const [s, t] = key.split(" ").map(Number);
    if (match.has(s) || taken.has(t)) continue;
    match.set(s, t);
    taken.add(t);
  }
  return { match, other };
}

class NodeTable {
  constructor(plans, titles, timelines) {
    this.plans = plans;
    this.timelines = timelines;
    this.root = document.getElementById("nodes");
    this.sortBy = null;
    this.down = false;
    this.page = 0;
    this.perPage = 100;
    this.open = -1;
    const on = (id, event, act) => document.getElementById(id).addEventListener(event, act);
    for (const [id, shown] of [["which-label", plans.length > 1], ["moved-label", plans.length > 1]]) document.getElementById(id).hidden = !shown;
    // Of two plans the second is the one whose reasons are asked for.
    const last = plans.length - 1;
    document.getElementById("which").append(...titles.map((t, i) => element("option", { text: t, selected: i === last })));
    on("which", "change", (e) => this.use(e.target.selectedIndex));
    on("moved", "change", () => this.find());
    on("search", "input", () => this.find());
    on("before", "click", () => this.turn(-1));
    on("after", "click", () => this.turn(1));
    this.use(last);
  }

  use(which) {
    this.which = which;
    this.plan = this.plans[which];
    const run = this.timelines[which].run, { k, n, b, d } = run.spans;
    const nodes = this.plan.nodes.name.length;
    this.begin = new Array(nodes).fill(null);
    this.length = new Array(nodes).fill(null);
    for (let i = 0; i < k.length; ++i) {
      if (k[i] !== LAUNCH) continue;
      if (this.begin[n[i]] === null) this.begin[n[i]] = b[i];
      this.length[n[i]] = (this.length[n[i]] || 0) + d[i];
    }
    this.waits = new Array(nodes).fill(0);
    for (const [, to] of this.plan.pairs) this.waits[to] += 1;
    this.other = this.plans.length > 1 ? matchStreams(this.plan, this.plans[1 - which]) : null;
    const plan = this.plan;
    const word = (list, i, none) => (i < 0 ? none : list[i]);
    this.columns = [
      ["node", (m) => plan.nodes.name[m]],
      ["type", (m) => plan.types[plan.nodes.type[m]]],
      ["stream", (m) => plan.nodes.stream[m], (x) => (x < 0 ? "–" : String(x))],
      ...(this.other ? [[which === 0 ? "stream after" : "stream before", (m) => this.otherStream(m), (x) => (x < 0 ? "–" : String(x))]] : []),
      ["start", (m) => this.begin[m] ?? -1, (x) => (x < 0 ? "–" : time(x))],
      ["duration", (m) => this.length[m] ?? -1, (x) => (x < 0 ? "–" : time(x))],
      ["waits", (m) => this.waits[m], count],
      ["engine", (m) => word(plan.engines, plan.nodes.engine[m], "–")],
      ["rule", (m) => (plan.nodes.rule[m] < 0 ? "–" : plan.rules[plan.nodes.rule[m]].name)],
    ];
    this.keys = plan.nodes.name.map((name, m) =>
      `${name} ${plan.types[plan.nodes.type[m]]} ${plan.nodes.rule[m] < 0 ? "" : plan.rules[plan.nodes.rule[m]].name} stream ${plan.nodes.stream[m]}`.toLowerCase());
    this.find();
  }
  otherStream(m) {
    const to = this.other.other.get(this.plan.nodes.name[m]);
    return to === undefined ? -1 : this.plans[1 - this.which].nodes.stream[to];
  }
  hasMoved(m) {
    const to = this.other.match.get(this.plan.nodes.stream[m]);
    return this.otherStream(m) !== (to === undefined ? -1 : to);
  }

  find() {
    const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const moved = this.other !== null && document.getElementById("moved").checked;
    this.rows = [];
    for (let m = 0; m < this.keys.length; ++m) {
      if (words.every((w) => this.keys[m].includes(w)) && (!moved || this.hasMoved(m))) this.rows.push(m);
    }
    this.sort();
  }
  sort() {
    if (this.sortBy !== null) {
      const of = this.columns[this.sortBy]?.[1] ?? this.columns[0][1];
      const text = new Intl.Collator("en", { numeric: true });
      const by = (a, b) => { const x = of(a), y = of(b); return typeof x === "number" ? x - y : text.compare(x, y); };
      this.rows.sort((a, b) => (this.down ? by(b, a) : by(a, b)) || a - b);
    } else {
      this.rows.sort((a, b) => a - b);
    }
    this.page = 0;
    this.open = -1;
    this.draw();
  }
  turn(by) {
    this.page = Math.max(0, Math.min(this.page + by, Math.ceil(this.rows.length / this.perPage) - 1));
    this.draw();
  }
  draw() {
    const first = this.page * this.perPage, shown = this.rows.slice(first, first + this.perPage);
    const isNumber = (c) => c >= 2 && this.columns[c].length === 3;
    const head = this.columns.map(([name], c) => element("th", {
      scope: "col", class: isNumber(c) ? "number" : null, "aria-sort": this.sortBy === c ? (this.down ? "descending" : "ascending") : "none",
    }, element("button", {
      type: "button", text: name + (this.sortBy === c ? (this.down ? " ▼" : " ▲") : ""),
      onclick: () => {
        this.down = this.sortBy === c && !this.down;
        this.sortBy = c;
        this.sort();
        this.root.querySelectorAll("thead button")[c].focus();
      },
    })));
    const body = shown.flatMap((m) => {
      const cells = this.columns.map(([, of, print], c) => {
        const text = print ? print(of(m)) : of(m);
        if (c > 0) return element("td", { class: isNumber(c) ? "number" : "cut", text, title: isNumber(c) ? null : text, "data-head": this.columns[c][0] });
        return element("td", { class: "name" }, element("button", {
          type: "button", text: shortened(text), title: text, "aria-label": text, "aria-expanded": String(this.open === m), "data-node": m,
          onclick: () => {
            this.open = this.open === m ? -1 : m;
            if (this.open === m) this.timelines[this.which].chooseNode(m);
            this.draw();
            this.root.querySelector(`[data-node="${m}"]`).focus({ preventScroll: true });
          },
        }));
      });
      const row = element("tr", { class: this.open === m ? "open" : null }, ...cells);
      if (this.open !== m) return [row];
      return [row, element("tr", { class: "open" }, element("td", { colspan: this.columns.length, class: "details" }, reasons(this.plan, m)))];
    });
    this.root.replaceChildren(element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
    const pages = Math.max(1, Math.ceil(this.rows.length / this.perPage));
    document.getElementById("found").textContent = `${counted(this.rows.length, "node")} of ${count(this.keys.length)}`;
    document.getElementById("page").textContent = `page ${this.page + 1} of ${pages}`;
    document.getElementById("before").disabled = this.page === 0;
    document.getElementById("after").disabled = this.page + 1 >= pages;
  }
}
