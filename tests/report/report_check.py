# SPDX-License-Identifier: Apache-2.0
"""Opens pages of `millstream report` in headless Chromium, wide and narrow, light and dark, and measures them.

report_check.py --cli MILLSTREAM [--shots FOLDER]
report_check.py --page FILE.html [--shots FOLDER]    a page that is there already
Exit status 77 where there is no browser.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

from browser import Browser, Checks, available

HERE = os.path.dirname(os.path.abspath(__file__))
TAB, ENTER, RIGHT, DOWN = "\ue004", "\ue007", "\ue014", "\ue015"
MOST_BYTES = 20_000_000
MOST_MS = 3000

checks = Checks()
check = checks.check


def make_pages(cli, folder):
    """Name and file of each page."""
    def run(*arguments):
        subprocess.run([cli, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run("gen", "layered", "--nodes", "10000", "--width", "64", "--p", "0.05", "-o", "large.mst")
    long_names(os.path.join(folder, "large.mst"))
    run("report", "large.mst", "--target", "unit", "--streams", "64", "--force-streams", "-o", "large.html")
    run("gen", "moe", "--nodes", "80", "--engines", "4", "-o", "moe.mst")
    run("compile", "moe.mst", "--target", "npu", "-o", "before.plan")
    run("compile", "moe.mst", "--target", "npu", "--strategy", "auto", "--streams", "5", "--force-streams", "-o", "after.plan")
    run("report", "before.plan", "after.plan", "--target", "npu", "-o", "pair.html")
    with open(os.path.join(folder, "names.mst"), "w", encoding="utf-8") as f:
        f.write(odd_names())
    run("report", "names.mst", "--target", "unit", "--streams", "8", "--force-streams", "-o", "names.html")
    run("gen", "inception", "--nodes", "40", "-o", "small.mst")
    run("report", "small.mst", "--streams", "4", "--force-streams", "--run", "-o", "small.html")
    return {name: os.path.join(folder, name + ".html") for name in ("large", "pair", "names", "small")}


def odd_names():
    """A graph whose nodes and streams are called what could break a page."""
    names = ["</script><script>document.title='pwned'</script>", "quote\\\"'&amp;<b>", "right \u202eto left", "x" * 5000, "line\\nbreak", "<!--",
             "a/path/of/which/only/the/last/part/would/be/shown/on"]
    lines = "".join(f'  v{i} = Relu(x) @name("{name}") @label("{name}") @cost({i + 1})\n' for i, name in enumerate(names))
    return f"graph \"</script>\"\n  input x : f32[4]\n{lines}  out = Sum({', '.join(f'v{i}' for i in range(len(names)))})\n  output out\n"


def check_names(browser, what):
    title = browser.js("return document.title")
    check(f"{what}: names are text", title != "pwned", title)
    high = browser.js("return Math.max(...[...document.querySelectorAll('th[scope=row]')].map((e) => e.getBoundingClientRect().height))")
    check(f"{what}: a long name does not fill the page", high < 130, f"a row is {high} pixels high")
    shown = browser.js("let shown; const ctx = { measureText: (t) => ({ width: 6 * t.length }), fillText: (t) => { shown = t; } };"
                       "label(ctx, 'a/long/path/of/many/parts', 0, 100, 0, 'ink', '7 '); return shown")
    check(f"{what}: a lane keeps its number", shown == "7 parts", shown)


def long_names(path):
    """Every hundredth node gets a name of 240 characters."""
    import re

    text = open(path).read()
    names = re.findall(r"(?m)^  (\w+) = ", text)[::100]
    longer = {n: "model/encoder/" + "block_with_a_long_name/" * 9 + n for n in names}
    open(path, "w").write(re.sub(r"\b\w+\b", lambda m: longer.get(m[0], m[0]), text))


def first_paint(browser, url):
    """Milliseconds until content is painted and the page is drawn, and processor time of the page's process until then."""
    browser.open(url)
    wall = None
    for _ in range(600):
        wall = browser.js("return Math.max(...['first-contentful-paint', 'drawn'].map((n) => performance.getEntriesByName(n)[0]?.startTime))")
        if wall is not None:  # NaN, which JSON does not have
            break
        time.sleep(0.1)
    metrics = {m["name"]: m["value"] for m in browser.cdp("Performance.getMetrics")["metrics"]}
    return wall or float("inf"), metrics["ProcessTime"] * 1000


def check_keys(browser, what):
    # In the order of the page, each with an outline that can be seen.
    browser.js("document.body.tabIndex = -1; document.body.focus(); window.scrollTo(0, 0)")
    before = -1
    for step in range(14):
        browser.keys(TAB)
        at, outline, name = browser.js(
            "const all = [...document.querySelectorAll('*')], e = document.activeElement, s = getComputedStyle(e);"
            "return [all.indexOf(e), s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2, e.id || e.tagName + e.textContent.slice(0, 20)]")
        check(f"{what}: tab {step} goes on", at > before, f"{name} stands at {at}, behind {before}")
        check(f"{what}: focus is visible", outline, name)
        before = at
    browser.js("timelines[0].canvas.focus({preventScroll: true})")
    view = "return [timelines[0].t0, timelines[0].t1]"
    t0, t1 = browser.js(view)
    browser.keys("+")
    near0, near1 = browser.js(view)
    check(f"{what}: + zooms in", near1 - near0 < (t1 - t0) * 0.6, f"{t0}..{t1} became {near0}..{near1}")
    browser.keys(RIGHT)
    check(f"{what}: the arrow key moves", browser.js(view)[0] > near0)
    browser.keys("-0")
    check(f"{what}: 0 shows all", abs(browser.js(view)[1] - t1) < 1e-6 * t1)
    browser.keys("n" + DOWN)
    check(f"{what}: n chooses a task", browser.js("return timelines[0].chosen >= 0 && timelines[0].text.textContent.includes('stream')"))
    browser.keys("/")
    check(f"{what}: / goes to the search", browser.js("return document.activeElement.id") == "search")


def check_table(browser, what):
    rows = "return [...document.querySelectorAll('#nodes td.name button')].map((b) => b.title)"
    all_rows = browser.js("return document.getElementById('found').textContent")
    name = browser.js(rows)[3]
    browser.keys(name)
    found = browser.js(rows)
    check(f"{what}: the search finds a node", name in found and all(name in f for f in found), f"{name} in {found[:5]}")
    browser.js("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
    check(f"{what}: an empty search shows all", browser.js("return document.getElementById('found').textContent") == all_rows)
    browser.js("document.querySelectorAll('#nodes thead button')[0].click()")
    up = browser.js(rows)
    browser.js("document.querySelectorAll('#nodes thead button')[0].click()")
    down = browser.js(rows)
    check(f"{what}: a click sorts, another turns it round", up[0] != down[0] and browser.js(
        "return document.querySelector('#nodes th').getAttribute('aria-sort')") == "descending")
    browser.js("document.querySelector('#nodes tbody button').focus()")
    browser.keys(ENTER)
    details = browser.js("return document.querySelector('#nodes td.details')?.textContent ?? ''")
    check(f"{what}: a row opens with its reasons", "rule" in details and "waits for" in details, details[:200])


def check_pair(browser, what):
    opened = browser.js("return [document.getElementById('which').selectedIndex, document.querySelectorAll('#nodes thead button')[3].textContent]")
    check(f"{what}: the nodes are those of the second plan", opened == [1, "stream before"], opened)
    # A wait on the path has its edge from the end of its record on.
    early = browser.js(
        "const t = timelines[1], { s, b, d, k } = t.run.spans, early = []; let waits = 0;"
        "t.outline = (ctx, i, stroke, width, from) => { const at = t.run.critical.indexOf(i), before = t.run.critical[at - 1];"
        "  if (k[i] !== WAIT || s[before] === s[i]) return; waits++; if (from < b[before] + d[before]) early.push(i); };"
        "t.draw(); delete t.outline; return waits > 0 ? early : ['no wait']")
    check(f"{what}: the edge of a wait begins with its record", early == [], early)


def check_measured(browser, what):
    shown = browser.js("return [timelines[0].run.what, document.getElementById('more').textContent]")
    check(f"{what}: the plan is shown, and a line says what was measured", shown[0].startswith("simulated") and "measured on cpu" in shown[1], shown)


def check_page(name, path, width, dark, shots, page_check):
    what = f"{name} {width} {'dark' if dark else 'light'}"
    with Browser(width, 900, dark) as browser:
        browser.requests()
        url = "file://" + path
        browser.cdp("Performance.enable")
        wall, processor = first_paint(browser, url)
        # On a machine that others use too only the processor time says something.
        check(f"{what}: first paint", min(wall, processor) <= MOST_MS, f"{wall:.0f} ms ({processor:.0f} ms of processor time), at most {MOST_MS}")
        check(f"{what}: the system's mode", browser.js("return isDark()") == dark)
        complaints = browser.js(page_check)
        check(f"{what}: layout", not complaints, "; ".join(complaints))
        if name == "pair":
            check_pair(browser, what)
        if name == "small":
            check_measured(browser, what)
        if name == "names":
            check_names(browser, what)
        else:
            check_keys(browser, what)
            check_table(browser, what)
        complaints = browser.js(page_check)
        check(f"{what}: layout with details", not complaints, "; ".join(complaints))
        if shots:
            browser.js("window.scrollTo(0, 0)")
            browser.screenshot(os.path.join(shots, f"{what.replace(' ', '_')}.png"), full=True)
        browser.js("document.getElementById('theme').click()")
        check(f"{what}: the button changes the mode", browser.js("return isDark()") != dark)
        complaints = browser.js(page_check)
        check(f"{what}: layout in the other mode", not complaints, "; ".join(complaints))
        asked = [a for a in browser.requests() if a != url and not a.startswith("data:")]
        check(f"{what}: no request", not asked, ", ".join(asked))
        said = [row["message"] for row in browser.log("browser")]
        check(f"{what}: the console is quiet", not said, "; ".join(said))
    print(f"-- {what}: first paint {wall:.0f} ms ({processor:.0f} ms of processor time)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cli")
    parser.add_argument("--page", action="append", default=[])
    parser.add_argument("--shots", help="folder for screenshots")
    parser.add_argument("--match", default="", help="only pages with this in their name")
    options = parser.parse_args()
    if not options.cli and not options.page:
        parser.error("give --cli or --page")
    why = available()
    if why:
        print(f"skipped: {why}")
        print("0 passed, 0 failed, 1 skipped")
        return 77
    if options.shots:
        os.makedirs(options.shots, exist_ok=True)
    page_check = open(os.path.join(HERE, "page_check.js")).read()
    with tempfile.TemporaryDirectory(prefix="millstream_report_") as folder:
        pages = {os.path.splitext(os.path.basename(page))[0]: os.path.abspath(page) for page in options.page}
        if options.cli:
            pages.update(make_pages(os.path.abspath(options.cli), folder))
        for name, path in pages.items():
            if options.match not in name:
                continue
            size = os.path.getsize(path)
            check(f"{name}: size", size <= MOST_BYTES, f"{size} bytes, at most {MOST_BYTES}")
            print(f"-- {name}: {size} bytes", flush=True)
            for width in (1280, 390):
                for dark in (False, True):
                    check_page(name, path, width, dark, options.shots, page_check)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
