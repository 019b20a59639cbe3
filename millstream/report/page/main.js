// Puts the page together.
const system = matchMedia("(prefers-color-scheme: dark)");
let timelines = [];

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").setAttribute("aria-pressed", String(dark));
  for (const t of timelines) t.draw();
  drawLegend();
}

let legend = [];
function drawLegend() {
  for (const [canvas, paint] of legend) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = 28 * ratio;
    canvas.height = 16 * ratio;
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(ctx);
  }
}
function makeLegend(plans) {
  const engines = new Map();
  for (const plan of plans) plan.nodes.engine.forEach((e) => { if (!engines.has(e)) engines.set(e, e < 0 ? "task" : plan.engines[e]); });
  const box = (ctx, style) => { ctx.fillStyle = style; ctx.fillRect(1, 1, 26, 14); ctx.strokeStyle = colour("wait"); ctx.strokeRect(1.5, 1.5, 25, 13); };
  const rows = [...engines].sort((a, b) => a[0] - b[0]).map(([e, name]) => [name, (ctx) => box(ctx, fill(e))]);
  rows.push(["waiting", (ctx) => hatch(ctx, 1, 1, 26, 14, colour("wait"))]);
  rows.push(["record", (ctx) => { ctx.fillStyle = colour("wait"); ctx.fillRect(10, 3, 4, 10); }]);
  rows.push(["wait for a record", (ctx) => { ctx.strokeStyle = ctx.fillStyle = colour("arrow"); line(ctx, 1, 13, 27, 4); head(ctx, 1, 13, 27, 4); }]);
  rows.push(["critical path (thick edge)", (ctx) => { ctx.strokeStyle = colour("critical"); ctx.lineWidth = 3; ctx.strokeRect(2, 2, 24, 12); }]);
  legend = rows.map(([, paint]) => [element("canvas", { width: 28, height: 16, "aria-hidden": "true" }), paint]);
  document.getElementById("legend").append(...rows.map(([name], i) => element("li", {}, legend[i][0], element("span", { text: name }))));
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const plans = data.plans.map(unpack);
  const titles = plans.length === 1 ? [plans[0].title] : plans.map((p, i) => `${i === 0 ? "before" : "after"}: ${p.title}`);
  document.title = `${plans.map((p) => p.title).join(" and ")} – millstream report`;
  document.getElementById("title").textContent = plans.length === 1 ? plans[0].title : `${plans[0].title} and ${plans[1].title}`;
  document.getElementById("subtitle").textContent = `${plans.map((p) => `${counted(p.nodes.name.length, "node")} on ${counted(p.counts.streams, "stream")}`).join(", then ")}; made by ${data.tool}`;
  document.getElementById("theme").addEventListener("click", () => setTheme(!isDark()));
  system.addEventListener("change", (e) => setTheme(e.matches));
  document.documentElement.dataset.theme = system.matches ? "dark" : "light";

  document.getElementById("numbers").append(numbersTable(plans, titles));
  document.getElementById("warnings").append(...plans.flatMap((p, i) => p.notes.map((text) => element("li", { text: plans.length > 1 ? `${titles[i]}: ${text}` : text }))));
  makeLegend(plans);
  const measured = [...new Set(plans.flatMap((p) => p.runs.slice(1).map((r) => r.what)))];
  document.getElementById("more").hidden = measured.length === 0;
  document.getElementById("more").textContent = `The list above the lanes has the times that were taken too: ${measured.join("; ")}.`;

  const checked = (id) => document.getElementById(id).checked;
  const linked = () => plans.length > 1 && checked("link");
  document.getElementById("link-label").hidden = plans.length < 2;
  const settings = {
    arrows: () => checked("arrows"), critical: () => checked("critical"),
    end: () => (linked() ? Math.max(0, ...timelines.map((t) => t.end())) : 0),
  };
  const holder = document.getElementById("timelines"), use = document.getElementById("use");
  holder.classList.toggle("two", plans.length > 1);
  use.classList.toggle("two", plans.length > 1);
  plans.forEach((plan, i) => {
    const timeline = new Timeline(plan, titles[i], i, settings);
    timelines.push(timeline);
    holder.append(timeline.root);
    use.append(useTables(plan, timeline.run, titles[i]));
  });
  timelines.forEach((t, i) => {
    t.moved = (t0, t1) => { if (linked()) timelines[1 - i].see(t0, t1, true); };
    t.pick.hidden = plans[i].runs.length < 2;
    t.pick.addEventListener("change", () => {
      use.children[i].replaceWith(useTables(plans[i], t.run, titles[i]));
      nodes.use(nodes.which);
    });
  });
  if (linked()) timelines[0].see(0, settings.end());
  const nodes = new NodeTable(plans, titles, timelines);
  for (const id of ["arrows", "critical"]) document.getElementById(id).addEventListener("change", () => timelines.forEach((t) => t.draw()));
  document.getElementById("link").addEventListener("change", () => { if (linked()) timelines[0].see(timelines[0].t0, timelines[0].t1); });
  document.addEventListener("keydown", (e) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target.type !== "checkbox";
    if (e.key !== "/" || typing || e.ctrlKey || e.metaKey || e.altKey) return;
    document.getElementById("search").focus();
    e.preventDefault();
  });
  setTheme(isDark());
  performance.mark("drawn");
}
start();
