// Numbers and words of the page, and the small pieces the other parts build it from.
"use strict";

const KIND = ["launch", "record", "wait", "attached", "activate", "label", "jump", "branch", "stream switch", "attached"];
const LAUNCH = 0, RECORD = 1, WAIT = 2, ATTACHED = 3, SELF_ATTACHED = 9;

const count = (n) => n.toLocaleString("en-GB");
const counted = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

// Nanoseconds as one reads them: 950 ns, 12.5 µs, 3.07 ms.
function time(ns) {
  if (ns === 0) return "0";
  const size = Math.abs(ns);
  const [unit, word] = size < 1e3 ? [1, "ns"] : size < 1e6 ? [1e3, "µs"] : size < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const x = ns / unit;
  const digits = Number.isInteger(x) ? 0 : Math.abs(x) < 10 ? 2 : Math.abs(x) < 100 ? 1 : 0;
  return `${x.toFixed(digits)} ${word}`;
}

const percent = (part, whole) => (whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–");

function element(tag, attributes = {}, ...children) {
  const out = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") out.textContent = value;
    else if (name.startsWith("on")) out.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) out.setAttribute(name, value === true ? "" : value);
  }
  out.append(...children);
  return out;
}

// Rows of cells; a cell is a text, an element, or {number: text}. Cells of a wide table know the head of their column.
function table(caption, head, rows, wide = false) {
  const heads = wide ? head.map((c) => c.number ?? c) : [];
  const cell = (tag, c, extra = {}) => {
    if (c instanceof Node) return element(tag, extra, c);
    return typeof c === "object" ? element(tag, { ...extra, class: "number", text: c.number }) : element(tag, { ...extra, text: c });
  };
  return element("table", { class: wide ? "wide" : null },
    element("caption", { text: caption, class: "muted", style: "text-align:left" }),
    element("thead", { class: "words" }, element("tr", {}, ...head.map((c) => cell("th", c, { scope: "col" })))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((c, i) => cell(i === 0 ? "th" : "td", c, i === 0 ? { scope: "row" } : { "data-head": heads[i] ?? null }))))));
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";
// Fills of engines; the text on them is the page's ink.
const FILLS = {
  light: ["#bcd5f7", "#c6e6c2", "#f7d5ad", "#e4caef", "#f6c8c8", "#c4e7e7", "#e8e2ae", "#d8dade"],
  dark: ["#1f4a80", "#235a2b", "#714613", "#573070", "#742a30", "#155457", "#575014", "#484d54"],
};
const fill = (engine) => FILLS[isDark() ? "dark" : "light"][(engine < 0 ? 7 : engine) % 8];

function nodeName(plan, n) {
  return plan.nodes.name[n];
}

// What happened to a stream's task, in one line.
function taskText(plan, run, i) {
  const s = run.spans;
  const at = `${time(s.b[i])} to ${time(s.b[i] + s.d[i])} (${time(s.d[i])}) on stream ${s.s[i]}`;
  const kind = s.k[i];
  if (kind === RECORD) return `record of event ${s.n[i]}, ${at}`;
  if (kind === WAIT) return `wait for event ${s.n[i]}, ${at}`;
  const engine = plan.nodes.engine[s.n[i]];
  const node = `${nodeName(plan, s.n[i])} (${plan.types[plan.nodes.type[s.n[i]]]}${engine < 0 ? "" : ` of engine ${plan.engines[engine]}`})`;
  return kind === LAUNCH ? `${node}, ${at}` : `${KIND[kind]} of ${node}, ${at}`;
}

// The reasons of a node: rule, waits, and waits it does not need with what implies them.
function reasons(plan, n) {
  const rows = [];
  const row = (word, value) => rows.push(element("dt", { text: word }), element("dd", {}, value));
  const list = (items) => element("ul", {}, ...items.map((text) => element("li", { text })));
  const rule = plan.nodes.rule[n];
  const engine = plan.nodes.engine[n];
  row("node", `${nodeName(plan, n)} (${plan.types[plan.nodes.type[n]]})`);
  row("stream", plan.nodes.stream[n] < 0 ? "none: it has no task" : `stream ${plan.nodes.stream[n]}`);
  if (engine >= 0) row("engine", plan.engines[engine]);
  row("rule", rule < 0 ? "not known: a schedule does not say" : `${plan.rules[rule].name}: ${plan.rules[rule].reason}`);
  if (plan.splits[n] !== undefined) row("split", plan.splits[n]);
  const stream = (m) => (plan.nodes.stream[m] < 0 ? "no stream" : `stream ${plan.nodes.stream[m]}`);
  const step = (id) => {
    const [from, to] = id < 0 ? plan.starts[-id - 1] : plan.pairs[id];
    return `${nodeName(plan, from)} ${id < 0 ? "=>" : "->"} ${nodeName(plan, to)}`;
  };
  const waits = plan.pairs.filter((p) => p[1] === n).map(([from, , reason]) => `${nodeName(plan, from)} on ${stream(from)} (${plan.reasons[reason]})`);
  row("waits for", waits.length ? list(waits) : "nothing on another stream");
  const dropped = plan.dropped.filter((d) => d[1] === n).map(([from, , more, ...path]) =>
    `${nodeName(plan, from)} on ${stream(from)}: implied by ${path.length ? path.map(step).join(" .. ") : "the order of the stream"}${more ? ` .. and ${counted(more, "more step")}` : ""}`);
  if (dropped.length) row("needs no wait for", list(dropped));
  return element("dl", {}, ...rows);
}

// The data as it is written is small; what is drawn from has the lane and the begin of each span, and lists of pairs.
function unpack(plan) {
  const groups = (flat, size) => Array.from({ length: flat.length / size }, (_, i) => flat.slice(i * size, (i + 1) * size));
  plan.pairs = groups(plan.pairs, 3);
  for (const run of plan.runs) {
    run.arrows = groups(run.arrows, 2);
    const spans = run.spans;
    spans.s = [];
    spans.b = [];
    spans.counts.forEach((many, lane) => {
      for (let end = 0; many > 0; --many) {
        const i = spans.s.length;
        spans.s.push(lane);
        spans.b.push(end + spans.gap[i]);
        end = spans.b[i] + spans.d[i];
      }
    });
  }
  return plan;
}
