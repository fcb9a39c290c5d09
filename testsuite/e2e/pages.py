"""pages.py WORK: the pages that pages.sh has made, in a browser that runs no scripts and has no mouse."""
import base64
import json
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from browser import Browser
from page import check_page

WORK = sys.argv[1]
NAMES = ["summary", "year", "none", "mixed", "single", "hostile", "wide", "report"]
failures = 0


def check(what, actual, expected=True):
    global failures
    if actual != expected:
        print(f"failed: {what}: {str(actual)[:1500]}, expected {str(expected)[:600]}")
        failures += 1


def text_of(name):
    with open(f"{WORK}/pages/{name}.html", encoding="utf-8") as file:
        return file.read()


def words_of(element):
    return " ".join("".join(element.itertext()).split())


# ---- what is on them, against the same as JSON ----

def tables(tree):
    """Rows of cells, by caption, or else by the heading of the first column."""
    found = {}
    for table in tree.iter("table"):
        rows = [[words_of(cell) for cell in row] for row in table.iter("tr")]
        caption = table.find("caption")
        found[words_of(caption) if caption is not None else rows[0][0]] = rows[1:]
    return found


def check_summary(tree):
    with open(f"{WORK}/summary.json") as file:
        summary = json.load(file)
    shown = tables(tree)
    check("steps in the header", words_of(tree.find("body/header/p")).split()[0], str(summary["steps"]))
    days = shown["Outcome of steps by day"]
    check("days", {row[0]: row[1:] for row in days if row[1:] != ["0"] * 4},
          {local_day(day["start"]): [str(day["built"]), str(day["planned"] - day["built"]), str(day["failed"]), str(day["steps"] - day["planned"] - day["failed"])]
           for day in summary["days"]})
    hours = shown["Outcome of steps by hour"]
    check("hours", [len(hours), sum(int(value) for row in hours for value in row[1:])],
          [24, sum(hour["steps"] for hour in summary["hours"])])
    check("gain of days", [row[1] for row in shown["Mean predicted gain of rings by day"] if row[1] != "-"],
          [f"{day['gain_mean']:.2f}" for day in summary["days"] if day["gain_mean"]])
    check("gains", [int(row[1]) for row in shown["Steps by the predicted gain of their ring"] if row[1] != "0"],
          [part["steps"] for part in summary["gains"] if part["steps"]])
    check("states", {row[0]: int(row[1]) for row in shown["State"]}, summary["states"])
    check("built", {row[0]: int(row[1]) for row in shown["Built"]}, summary["built"])
    check("reasons", [[int(n) for n in row[1:3]] for row in shown["Class of reason"]],
          [[one["steps"], one["failed"]] for one in summary["reasons"]])
    check("slow nodes", [row[0] for row in shown["Node"]],
          [f'{one["node"]}: {one["stands_out"]}' for one in summary["nodes"] if one["stands_out"]])
    columns = [len(chart.findall(".//rect")) for chart in tree.iter("figure")]
    check("columns", columns[:2], [sum(value != "0" for row in rows for value in row[1:]) for rows in (hours, days)])


def local_day(start):
    import time
    return time.strftime("%Y-%m-%d", time.localtime(start))


def check_ring(tree):
    with open(f"{WORK}/ring.json") as file:
        answer = json.load(file)
    arrows = {"write": "-w>", "read": "-r>", "gpudirect": "-g>"}

    def chain_text(chain):
        stops = [chain["entry"], *map(str, chain["gpus"]), chain["exit"]]
        links = [arrows.get(link["kind"], f"-m{link['memory']}>") for link in chain["links"]]
        return " ".join(word for pair in zip(stops, links + [""]) for word in pair).strip()

    nodes = tables(tree)["Nodes in ring order, with the path of the data on each"]
    cards = []  # nodes with the same chains that follow each other are one card
    for node in answer["ring"]["nodes"]:
        if not cards or cards[-1][0] != node["chains"]:
            cards.append([node["chains"], 0])
        cards[-1][1] += 1
    check("chains", [row[1:] for row in nodes],
          [[str(count), "".join(map(chain_text, answer["ring"]["chains"][own]))] for own, count in cards])
    said = {"no call": "Planned: "}.get(answer["step"]["built"], "Predicted: ")  # no NCCL runs here
    check("first sentence", words_of(tree.find("body/header/p")).split(" GB/s")[0],
          f"{said}{answer['step']['gbps']:.2f} in place of {answer['step']['baseline_gbps']:.2f}")
    nccl = [rect.get("class") for group in tree.iter("g") if group.get("class") == "nccl" for rect in group.iter("rect")]
    stops = [word for word in answer["step"]["baseline_rings"].replace("|", " ").split() if word.isdigit()]
    check("GPUs of NCCL's own", nccl.count("gpu"), len(stops))
    boxes = [rect.get("class") for rect in tree.iter("rect")]
    check("GPUs drawn", boxes.count("gpu") - nccl.count("gpu"), sum(len(chain["gpus"]) for own, _ in cards for chain in answer["ring"]["chains"][own]))
    check("heading", words_of(tree.find("body/header/h1")), f"Step {answer['step']['job']}.0: train <b>all</b> of nobody")
    check("bandwidths", [row[1] for row in tables(tree)["Bandwidth of the ring and what to compare it with"]],
          [f"{answer['step'][name]:.2f}" for name in ("gbps", "baseline_gbps", "bound_gbps")])


# ---- how they look ----

# What somebody would stumble over: texts without room or contrast. Of a text in a picture, what is behind it is the
# last box under its middle that was drawn before it.
LOOK = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = (top, under) => { const a = top[3] ?? 1; return [0, 1, 2].map((i) => top[i] * a + under[i] * (1 - a)); };
  const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  function behind(element) {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  }
  function inPicture(text, svg) {
    const box = text.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
    let under = behind(svg);
    for (const shape of svg.querySelectorAll('rect, circle')) {
      const room = shape.getBoundingClientRect(), fill = getComputedStyle(shape).fill;
      const before = shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (before && fill !== 'none' && x > room.x && x < room.right && y > room.y && y < room.bottom) under = over(parse(fill), under);
    }
    return under;
  }
  const wrong = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement, words = node.data.trim();
    if (!words || element.closest(HIDDEN)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect(), style = getComputedStyle(element), svg = element.closest('svg');
    const colour = parse(svg ? style.fill : style.color), under = svg ? inPicture(element, svg) : behind(element);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(over(colour, under), under);
    const scale = svg && svg.viewBox.baseVal && svg.viewBox.baseVal.width ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    if (box.width < 1 || box.height < 1 || style.visibility !== 'visible') wrong.push('not seen: ' + words);
    else if (ratio < (large ? 3 : 4.5)) wrong.push(ratio.toFixed(2) + ' to 1: ' + words + ' ' + colour + ' on ' + under.map(Math.round));
    else if (size * scale < LEAST) wrong.push((size * scale).toFixed(1) + ' px: ' + words);
    else if (!element.closest('.wide') && (box.right > document.documentElement.clientWidth + 1 || box.left < -1)) wrong.push('outside: ' + words);
    seen++;
  }
  for (const chart of document.querySelectorAll('.chart svg')) {
    const boxes = [...chart.querySelectorAll('text')].map((text) => [text.getBoundingClientRect(), text.textContent]).filter(([box]) => box.width);
    boxes.forEach(([a, one], i) => boxes.slice(i + 1).forEach(([b, other]) => {
      if (a.x < b.right && b.x < a.right && a.y + 2 < b.bottom && b.y + 2 < a.bottom) wrong.push(`over each other: ${one}, ${other}`);
    }));
  }
  return {seen, wrong, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    height: document.documentElement.scrollHeight, cut: CUT, back: light(behind(document.body))};
})()"""


def check_look(browser, name, what, dark, paper):
    # On paper a drawing is made smaller where it must be, and nothing can be opened.
    # A chain is drawn, or on a phone listed.
    hidden = "title, style, .skip, .often, details:not([open])" + ("" if paper else " > :not(summary)")
    hidden += ", .drawing, th.long" if "phone" in what else ", .way"
    cut = "[...document.querySelectorAll('.wide')].map((e) => [e.getAttribute('aria-label'), e.scrollWidth - e.clientWidth]).filter(([, by]) => by > 0)"
    look = browser.value(LOOK.replace("CUT", cut).replace("LEAST", "4" if paper else "8.4").replace("HIDDEN", repr(hidden)))
    check(f"{name}, {what}: texts", look["wrong"], [])
    check(f"{name}, {what}: texts seen", look["seen"] > 5)
    check(f"{name}, {what}: wider than the screen by", look["wide"], 0)
    if what.startswith("phone"):
        check(f"{name}, {what}: drawings cut by", look["cut"], [])
        check(f"{name}, {what}: {look['height']} pixels long", look["height"] <= 7000)
    check(f"{name}, {what}: background", look["back"] < 0.1 if dark else look["back"] > 0.85)


def pixels(data):
    """Brightness (0 to 255) of the pixels of a PNG of 8 bits a channel."""
    at, chunks, width, colours = 8, b"", 0, 3
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, _, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
            assert depth == 8 and colour in (2, 6)
            colours = 3 if colour == 2 else 4
        elif kind == b"IDAT":
            chunks += data[at + 8:at + 8 + length]
        at += length + 12
    raw, stride, result = zlib.decompress(chunks), width * colours, []
    above = bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        row = bytearray(raw[start + 1:start + 1 + stride])
        for i in range(stride):
            left, up, corner = row[i - colours] if i >= colours else 0, above[i], above[i - colours] if i >= colours else 0
            guess = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, guess)[raw[start]]) & 255
        result += [sum(row[i:i + 3]) / 3 for i in range(0, stride, colours)]
        above = row
    return result


def check_picture(browser, name, what, dark):
    """Mostly the background, and not only that."""
    clip = {"x": 0, "y": 0, "width": browser.value("innerWidth"), "height": 700, "scale": 0.25}
    data = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
    data = base64.b64decode(data)
    with open(f"{WORK}/pages/{name}-{what.replace(' ', '-')}.png", "wb") as file:
        file.write(data)
    shades = sorted(pixels(data))
    middle = shades[len(shades) // 2]
    check(f"{name}, {what}: brightness of the picture", middle < 64 if dark else middle > 192)
    check(f"{name}, {what}: something is on it", sum(abs(shade - middle) > 20 for shade in shades) > len(shades) / 200)


def check_paper(browser, name):
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=False)["data"])
    pages = pdf.count(b"/Type /Page\n")
    check(f"{name}: a PDF", pdf.startswith(b"%PDF-"))
    check(f"{name}: pages on paper: {pages}", 1 <= pages <= 12)


# ---- how they are heard, and gone through by keyboard ----

def check_names(browser, name):
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    of = lambda role: [node.get("name", {}).get("value", "").strip() for node in nodes if node.get("role", {}).get("value") == role and not node.get("ignored")]
    pictures = browser.value("document.querySelectorAll('svg').length")
    check(f"{name}: pictures with names", [len(of("image")), all(of("image"))], [pictures, True])
    check(f"{name}: nothing is read out of a picture", of("group"), [""] * len(of("group")))
    check(f"{name}: tables to unfold have different names", len(set(of("DisclosureTriangle"))), len(of("DisclosureTriangle")))
    check(f"{name}: regions with names", all(of("region")))
    for landmark in ("banner", "main", "contentinfo"):
        check(f"{name}: landmark {landmark}", len(of(landmark)), 1)
    check(f"{name}: headings", of("heading")[0], browser.value("document.querySelector('h1').textContent"))


FOCUS = """(() => { const at = document.activeElement, box = at.getBoundingClientRect();
  return [at === document.body ? '' : at.className || at.id || at.localName, getComputedStyle(at).outlineStyle !== 'none', box.left >= 0 && box.top >= 0]; })()"""


def check_keys(browser, name):
    browser.key("Tab", windowsVirtualKeyCode=9)
    check(f"{name}: first stop", browser.value(FOCUS), ["skip", True, True])
    browser.key("Enter", windowsVirtualKeyCode=13, text="\r")
    browser.wait(f"{name}: the link", "document.activeElement.id === 'main'")
    stops = []
    expected = browser.value("document.querySelectorAll('summary:not(details:not([open]) details summary), .wide:not(details:not([open]) .wide)').length")
    while len(stops) < 200:
        browser.key("Tab", windowsVirtualKeyCode=9)
        stop = browser.value(FOCUS)
        if not stop[0] or stop[0] == "skip":
            break
        stops.append(stop)
    check(f"{name}: stops", [len(stops), all(seen for _, seen, _ in stops)], [expected, True])


def check_file(browser, name):
    url = f"file://{WORK}/pages/{name}.html"
    browser.requests.clear()
    browser.open(url)
    browser.wait(name, f"document.readyState === 'complete' && location.href === '{url}'")
    for what, width, dark, media in (("light", 1300, False, ""), ("dark", 1300, True, ""), ("phone", 390, False, ""), ("small phone", 320, False, ""),
                                     ("phone in the dark", 390, True, ""), ("print", 740, True, "print")):
        browser.size(width, dark=dark, media=media)
        check_look(browser, name, what, dark and not media, paper=bool(media))
        if not media:
            check_picture(browser, name, what, dark)
    browser.size(1300)
    check_paper(browser, name)
    check_names(browser, name)
    check_keys(browser, name)
    check(f"{name}: requests", browser.requests, [url])


ROWS = """[...document.querySelector("table.rows%s").rows].slice(1).map((row) => row.cells[%d].textContent.trim())"""
HEADS = """[...document.querySelectorAll("table.rows%s tr:first-child th")].map((head) => head.getAttribute("aria-sort"))"""


def check_sorting(browser):
    """By mouse and by keyboard: steps of reasons as numbers, most first; then least first; then as they were."""
    column = ".four"
    before = browser.value(ROWS % (column, 1))
    button = 'document.querySelectorAll("table.rows.four th button")[1]'
    browser.value(f"{button}.click()")
    check("sorted down", browser.value(ROWS % (column, 1)), sorted(before, key=int, reverse=True))
    check("aria-sort", browser.value(HEADS % column), ["none", "descending", "none", "none", "none"])
    browser.value(f"{button}.focus()")
    browser.key("Enter", windowsVirtualKeyCode=13, text="\r")
    check("sorted up", browser.value(ROWS % (column, 1)), sorted(before, key=int))
    browser.key("Enter", windowsVirtualKeyCode=13, text="\r")
    check("as it was", browser.value(ROWS % (column, 1)), before)
    classes = browser.value(ROWS % (column, 0))
    browser.value('document.querySelector("table.rows.four th button").click()')
    check("sorted by words", browser.value(ROWS % (column, 0)), sorted(classes, key=str.lower))
    check("focus is seen", browser.value(f"{button}.focus(); getComputedStyle({button}).outlineStyle"), "solid")


def main():
    for name in NAMES:
        tree = check_page(text_of(name))
        if name == "summary":
            check_summary(tree)
        elif name == "mixed":
            check_ring(tree)
    browser = Browser()
    try:
        browser.call("Accessibility.enable")
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        for name in NAMES:
            check_file(browser, name)
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
        for name in ("hostile", "summary", "single"):
            browser.requests.clear()
            browser.open(f"file://{WORK}/pages/{name}.html")
            browser.wait(name, "document.readyState === 'complete'")
            check(f"{name}: what ran", browser.value("typeof hacked"), "undefined")
            check(f"{name}: requests with scripts", len(browser.requests), 1)
            check(f"{name}: heads that sort", browser.value("document.querySelectorAll('th button').length") > 0)
            if name == "summary":
                check_sorting(browser)
        check("complaints", browser.complaints, [])
        check("dialogs", browser.dialogs, [])
    finally:
        browser.close()
    print(f"{failures} failed" if failures else "all as it should be")
    sys.exit(failures > 0)


main()
