// What a page must keep at any width and in both modes; returns a list of complaints. Run inside the page.
const complaints = [];
const visible = (e) => e.checkVisibility() && e.getClientRects().length > 0;
const named = (e) => `${e.tagName.toLowerCase()}${e.id ? `#${e.id}` : ""} "${(e.textContent || e.getAttribute("aria-label") || "").trim().slice(0, 40)}"`;

if (document.documentElement.scrollWidth > innerWidth) {
  complaints.push(`the page is ${document.documentElement.scrollWidth} pixels wide, the window ${innerWidth}`);
}
for (const e of document.querySelectorAll(".scroll")) {
  if (e.scrollWidth > e.clientWidth + 1) complaints.push(`${e.getAttribute("aria-label") || e.id || "the nodes"}: ${e.scrollWidth} pixels are wider than the ${e.clientWidth} shown`);
}

const leaves = [...document.body.querySelectorAll("*")].filter((e) => visible(e) && !e.matches("script, noscript, option") &&
  (e.matches("canvas, input, select, button") || [...e.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim() !== "")));

// Colours as [r, g, b, alpha].
const parse = (c) => { const n = c.match(/[\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
const hex = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16));
const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };

const seen = new Set();
for (const e of leaves) {
  const style = getComputedStyle(e);
  if (parseFloat(style.fontSize) < 12) complaints.push(`${named(e)} has text of ${style.fontSize}`);
  const ratio = contrast(parse(style.color), ground(e));
  const key = `${style.color} on ${ground(e)}`;
  if (e.tagName !== "CANVAS" && ratio < 4.5 && !seen.has(key)) { seen.add(key); complaints.push(`${named(e)}: contrast ${ratio.toFixed(2)}`); }
}
for (let i = 0; i < 8; ++i) {
  const ratio = contrast(hex(colour("ink")), hex(fill(i)));
  if (ratio < 4.5) complaints.push(`text on the fill of engine ${i}: contrast ${ratio.toFixed(2)}`);
}
for (const name of ["critical", "arrow", "wait", "accent"]) {
  const ratio = contrast(hex(colour(name)), hex(colour("ground")));
  if (ratio < 3) complaints.push(`${name} on the ground: contrast ${ratio.toFixed(2)}`);
}

// What can be seen of an element: its box within every ancestor that cuts it off.
function shown(e) {
  let { left, top, right, bottom } = e.getBoundingClientRect();
  for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
    const style = getComputedStyle(p);
    const box = p.getBoundingClientRect();
    if (style.overflowX !== "visible") { left = Math.max(left, box.left); right = Math.min(right, box.right); }
    if (style.overflowY !== "visible") { top = Math.max(top, box.top); bottom = Math.min(bottom, box.bottom); }
  }
  return { e, left, top, right, bottom };
}
const boxes = leaves.filter((e) => !e.matches(".skip")).map(shown).filter((b) => b.right - b.left > 1 && b.bottom - b.top > 1).sort((a, b) => a.top - b.top);
for (let i = 0; i < boxes.length; ++i) {
  const a = boxes[i];
  for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom - 1; ++j) {
    const b = boxes[j];
    if (b.left >= a.right - 1 || b.right <= a.left + 1 || a.e.contains(b.e) || b.e.contains(a.e)) continue;
    complaints.push(`${named(a.e)} and ${named(b.e)} overlap`);
  }
}

for (const e of document.querySelectorAll("button, input, select, [tabindex='0']")) {
  if (!visible(e)) continue;
  const name = e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") && document.getElementById(e.getAttribute("aria-labelledby"))?.textContent) ||
    (e.labels && [...e.labels].map((l) => l.textContent.trim()).join("")) || (e.tagName === "BUTTON" && e.textContent.trim());
  if (!name) complaints.push(`${named(e)} has no name for a screen reader`);
}
return complaints.slice(0, 20);
