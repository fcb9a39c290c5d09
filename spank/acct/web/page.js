"use strict";
/* The page of `tcclacct serve`. All that comes from jobs is put into the page as text, never as HTML. */

const EVERY_MS = 10000;
const ROWS = 20;
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);

const state = { range: "day", job: null, start: null, kind: null, rows: ROWS, steps: null, summary: null, shown: null };

/* ---- elements ---- */

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {}))
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

/* Characters that can't be seen, or turn the direction of writing: shown by their number. */
const HIDDEN = /([\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb])/;

function said(text, more) {
  const parts = String(text ?? "").split(HIDDEN).filter((part) => part !== "");
  return h("bdi", { class: "said " + (more || "") }, parts.map((part) =>
    HIDDEN.test(part) ? h("span", { class: "code" }, "\\u" + part.charCodeAt(0).toString(16).padStart(4, "0")) : part));
}

const number = (value, digits) => (value > 0 ? value.toFixed(digits) : "");
const count = (value) => Number(value || 0).toLocaleString("en");
const two = (value) => String(value).padStart(2, "0");

function day(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function time(seconds) {
  const date = new Date(seconds * 1000);
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return day(seconds) === day(Date.now() / 1000) ? clock : `${day(seconds)} ${clock}`;
}

function mark(word) {
  const kind = word === "applied" ? "good" : word === "fallback" || word === "partial" || word === "differs" ? "warn" : "";
  return h("span", { class: "mark " + kind }, said(word));
}

/* Replaces what an element holds, if it would look otherwise: nothing flickers, and what is selected or
 * opened stays so while nothing changes. */
function put(element, key, ...children) {
  const text = JSON.stringify(key);
  if (element.said === text) return;
  element.said = text;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

/* ---- asking ---- */

async function ask(path) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Error("tcclacct serve does not answer: has it ended? Start it again, on the same socket or port");
  }
  const text = await answer.text();
  if (answer.status === 403) throw new Error(text.trim());
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error(text.trim() || `the answer can't be read (${answer.status})`);
  }
  if (!answer.ok) throw Object.assign(new Error(json.error || `status ${answer.status}`), { status: answer.status });
  return json;
}

const troubles = new Map();

/* One line for all that is in the way, with what to do about it. */
function trouble(what, error) {
  if (error) troubles.set(what, error.message);
  else troubles.delete(what);
  const lines = [...new Set(troubles.values())];
  const box = $("trouble");
  if (lines.length === 0) {
    box.hidden = true;
    return;
  }
  const hint = lines.some((line) => /refused|no answer|No such file|unreachable/.test(line)) && !lines.some((line) => line.includes("tccld running"))
    ? " Is tccld running there (systemctl status tccld)?" : "";
  put(box, lines, said(`${lines.join("; ")}.${hint} This page tries again by itself.`, "wide"));
  box.hidden = false;
}

/* Runs one part of the page; what is there stays, but paler, while it can't be had anew. */
async function part(what, path, show, areas) {
  try {
    const answer = await ask(path);
    show(answer);
    trouble(what, null);
    areas.forEach((area) => area.classList.remove("stale"));
    return true;
  } catch (error) {
    trouble(what, error);
    areas.forEach((area) => area.classList.add("stale"));
    return false;
  }
}

/* ---- where we are: #job=12.0&start=…&range=week&kind=… ---- */

function read_place() {
  const place = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B"));
  const range = place.get("range");
  state.range = ["day", "week", "month", "all"].includes(range) ? range : "day";
  state.job = place.get("job");
  state.start = place.get("start");
  state.kind = place.get("kind");
}

function place_of(changes) {
  const next = { range: state.range, job: state.job, start: state.start, kind: state.kind, ...changes };
  const words = [];
  for (const name of ["range", "job", "start", "kind"])
    if (next[name] && !(name === "range" && next.range === "day")) words.push(`${name}=${encodeURIComponent(next[name])}`);
  return "#" + words.join("&");
}

function go(changes) {
  location.hash = place_of(changes);
}

/* ---- steps ---- */

function row_key(step) {
  return `${step.cluster}/${step.id}/${step.restart}/${step.run}/${step.start}`;
}

function outcome(step) {
  const parts = [];
  if (step.built && step.built !== "applied") parts.push(`NCCL: ${step.built}`);
  else if (step.built) parts.push("NCCL built it");
  if (step.reason) parts.push(step.reason);
  else if (step.built_reason && step.built !== "applied") parts.push(step.built_reason);
  return parts.join("; ");
}

function cells_of(step) {
  return [
    ["Step", h("a", { href: place_of({ job: step.id, start: step.start }) }, step.id)],
    ["Job name", step.job_name && said(step.job_name, "cut")],
    ["User", said(step.user || step.uid, "cut")],
    ["Nodes", step.nodes && said(step.nodes, "cut")],
    ["GPUs", step.gpus ? count(step.gpus) : "", "n"],
    ["State", [mark(step.state), step.running ? [" ", h("span", { class: "live" }, "runs")] : ""]],
    ["GB/s", number(step.gbps, 2), "n"],
    ["NCCL", number(step.baseline_gbps, 2), "n"],
    ["Gain", step.ratio > 0 ? step.ratio.toFixed(2) + "×" : "", "n"],
    ["Started", time(step.start)],
    ["Outcome", outcome(step) && said(outcome(step), "cut wide")],
  ];
}

function fits(step, words, wanted) {
  if (wanted === "running" ? !step.running : wanted && step.state !== wanted) return false;
  const text = [step.id, step.job, step.job_name, step.user, step.account, step.partition, step.nodes, step.reason, step.state,
    step.built, step.built_reason, step.policy].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function is_chosen(step) {
  return state.shown ? row_key(step) === state.shown : false;
}

/* Rows stay the same elements as long as their step is in the list. */
function show_rows() {
  const body = $("steps");
  if (!state.steps) return;
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = state.steps.steps.filter((step) => fits(step, words, $("state").value));
  const old = new Map([...body.children].map((row) => [row.dataset.key, row]));
  const rows = all.slice(0, state.rows).map((step) => {
    const key = row_key(step);
    const row = old.get(key) || h("tr", { "data-key": key });
    const cells = cells_of(step);
    row.dataset.job = step.id;
    row.dataset.start = step.start;
    put(row, [step, state.range, state.kind], cells.map(([name, content, type]) => h("td", { class: type, "data-name": name }, content)));
    row.setAttribute("aria-selected", is_chosen(step));
    return row;
  });
  if (rows.length !== body.children.length || rows.some((row, i) => body.children[i] !== row)) body.replaceChildren(...rows);
  $("steps-more").hidden = all.length <= state.rows;
  show_note(all.length, rows.length);
}

const IN_RANGE = { day: "today", week: "in these 7 days", month: "in these 31 days", all: "on record" };

function show_note(found, shown) {
  const { steps, more, running_unknown: unknown, complete, node } = state.steps;
  const notes = [];
  if (found) notes.push(shown < found ? `${count(shown)} of ${count(found)} steps` : `${count(found)} step${found === 1 ? "" : "s"}`);
  if (more) notes.push("older ones are there too: search them by job number and Enter, or with tcclacct -S");
  if (unknown) notes.push(`whether a step still runs is not known: ${unknown}`);
  if (!complete) notes.push(`AccountingHost is not set in tccl.conf: only steps that node ${node} led are here`);
  put($("steps-note"), notes, said(notes.join(" · "), "wide"));
  const empty = $("steps-empty");
  empty.hidden = found > 0;
  if (found === 0)
    put(empty, [steps.length, state.range], steps.length
      ? "No step here fits. Clear the search, choose another state, or press Enter to look up a job number."
      : `No step asked for a ring ${IN_RANGE[state.range]}. Choose a longer range above, or start one: srun --tccl=on … ` +
        "(the site's policy may ask for all jobs: tccl.conf(5)). You see your own steps; root and Admins see everyone's.");
}

function show_steps(answer) {
  state.steps = answer;
  const whom = answer.accounting_host ? `records of ${answer.accounting_host}` : `records of this node, ${answer.node}`;
  put($("origin"), [whom, answer.user], said(`${whom}, as ${answer.user} sees them`, "wide"));
  show_rows();
}

/* ---- in short ---- */

function tile(name, value, more) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value, more ? h("small", {}, " " + more) : null));
}

function total(words, names) {
  return names.reduce((sum, name) => sum + ((words || {})[name] || 0), 0);
}

function show_tiles(summary) {
  const steps = summary.steps || 0, rings = total(summary.states, ["applied", "partial", "differs"]);
  const fallbacks = total(summary.states, ["fallback"]), built = total(summary.built, ["applied"]);
  const share = (part) => (steps ? `${Math.round((part * 100) / steps)} %` : "");
  const solve = (summary.solve_us || {}).median || 0;
  put($("tiles"), [summary.states, summary.built, summary.gain_median, summary.gain_mean, solve, steps],
    tile("Steps", count(steps)), tile("With a ring", count(rings), share(rings)), tile("Built by NCCL", count(built), rings ? `${Math.round((built * 100) / rings)} %` : ""),
    tile("Median gain", summary.gain_median > 0 ? summary.gain_median.toFixed(2) + "×" : "–"),
    tile("Fallbacks", count(fallbacks), share(fallbacks)),
    tile("Time to solve", solve > 0 ? (solve / 1000).toFixed(1) + " ms" : "–", solve > 0 ? "median" : ""));
}

/* ---- gain over time ---- */

const LEFT = 46, RIGHT = 14;

/* A pixel of the chart is one of the screen, so that its texts can be read on a phone, too. */
let WIDTH = 1180;

function chart_width() {
  return Math.max(300, $("gain").clientWidth - 32);
}

/* Steps for a scale up to most: about four. */
function ticks(least, most) {
  const raw = (most - least) / 4 || 1, power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= raw);
  const list = [];
  for (let at = Math.ceil(least / size - 1e-9) * size; at <= most + 1e-9; at += size) list.push(Math.round(at * 1e6) / 1e6);
  return list;
}

function scale(group, values, y, label) {
  for (const value of values) {
    group.append(s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      s("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, label(value)));
  }
}

function gain_line(days, x, width) {
  const known = days.filter((one) => one.gain_mean > 0);
  const most = Math.max(1.5, ...known.map((one) => one.gain_mean)) * 1.06, least = Math.min(1, ...known.map((one) => one.gain_mean));
  const top = 34, bottom = 190, y = (value) => bottom - ((value - least) / (most - least)) * (bottom - top);
  const group = s("g", {}, s("text", { class: "title", x: LEFT, y: 16 }, "Mean gain of a day's rings (NCCL's own = 1)"));
  scale(group, ticks(least, most), y, (value) => value + "×");
  if (least <= 1) group.append(s("line", { class: "one", x1: LEFT, x2: WIDTH - RIGHT, y1: y(1), y2: y(1) }));
  const centre = (one) => x(one.start) + width / 2;
  if (known.length > 1)
    group.append(s("path", { class: "curve", d: known.map((one, i) => `${i ? "L" : "M"}${centre(one).toFixed(1)},${y(one.gain_mean).toFixed(1)}`).join(" ") }));
  for (const one of known) group.append(s("circle", { class: "dot", cx: centre(one), cy: y(one.gain_mean), r: known.length > 60 ? 2 : 4 }));
  return group;
}

function day_bars(days, x, width) {
  const top = 236, bottom = 350, most = Math.max(1, ...days.map((one) => one.steps)), y = (value) => bottom - (value / most) * (bottom - top);
  const group = s("g", {}, s("text", { class: "title", x: LEFT, y: 222 }, "Steps of a day"));
  scale(group, ticks(0, most).filter(Number.isInteger), y, count);
  const every = Math.ceil(days.length / Math.floor((WIDTH - LEFT) / (days.length > 300 ? 92 : 62)));
  days.forEach((one, i) => {
    const bar = Math.min(width * 0.72, 56), left = x(one.start) + (width - bar) / 2, parts = [["applied", one.applied], ["fallback", one.fallback],
      ["rest", Math.max(0, one.steps - one.applied - one.fallback)]];
    const column = s("g", { class: "day", "data-day": day(one.start) }, s("title", {}, day_words(one)),
      s("rect", { class: "column", x: x(one.start), y: 24, width, height: bottom - 24 }));
    let base = 0;
    for (const [name, value] of parts) {
      if (value > 0) column.append(s("rect", { class: name, x: left, y: y(base + value), width: bar, height: y(base) - y(base + value) }));
      base += value;
    }
    group.append(column);
    if (i % every === 0) group.append(s("text", { x: x(one.start) + width / 2, y: bottom + 18, "text-anchor": "middle" }, day(one.start).slice(days.length > 300 ? 0 : 5)));
  });
  return group;
}

function day_words(one) {
  return `${day(one.start)}: ${count(one.steps)} steps, ${count(one.applied)} with a ring, ${count(one.fallback)} fallbacks` +
    (one.gain_mean > 0 ? `, mean gain ${one.gain_mean.toFixed(2)}×` : "");
}

/* Days on which nothing ran are days, too. */
function all_days(days) {
  const list = [];
  for (const one of days) {
    let last = list[list.length - 1];
    while (last && list.length < 1500) {
      const next = new Date(last.start * 1000);
      next.setDate(next.getDate() + 1);
      if (day(next / 1000) >= day(one.start)) break;
      last = { start: next / 1000, steps: 0, applied: 0, fallback: 0, gain_mean: 0 };
      list.push(last);
    }
    list.push(one);
  }
  return list;
}

function chart(days) {
  const width = (WIDTH - LEFT - RIGHT) / days.length, at = new Map(days.map((one, i) => [one.start, LEFT + i * width]));
  const x = (start) => at.get(start);
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} 374`, role: "img", "aria-label": `Gain and steps of ${days.length} days; the same as a table below` },
    day_bars(days, x, width), gain_line(days, x, width));
}

function legend() {
  const entry = (name, text) => h("li", {}, s("svg", { class: "chart", viewBox: "0 0 12 12", "aria-hidden": "true" }, s("rect", { class: name, width: 12, height: 12, rx: 2 })), text);
  return h("ul", { class: "legend" }, entry("applied", "with a ring"), entry("fallback", "fallback: NCCL's own choice"), entry("rest", "off, nothing to do, and others"));
}

function table(heads, rows) {
  return h("table", {}, h("thead", {}, h("tr", {}, heads.map(([name, type]) => h("th", { scope: "col", class: type }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { class: heads[i][1] }, cell))))));
}

function show_gain(summary) {
  const days = all_days((summary.days || []).slice(-1500));
  if (days.length === 0) {
    put($("gain"), [state.range], h("p", { class: "empty" }, `Nothing to show yet: no step asked for a ring ${IN_RANGE[state.range]}.`));
    return;
  }
  const rows = [...days].reverse().map((one) => [day(one.start), count(one.steps), count(one.applied), count(one.fallback), one.gain_mean > 0 ? one.gain_mean.toFixed(2) + "×" : ""]);
  const open = $("gain").querySelector("details")?.open;
  WIDTH = chart_width();
  put($("gain"), [days, WIDTH], chart(days), legend(), h("details", { open }, h("summary", {}, "The same as a table"),
    table([["Day"], ["Steps", "n"], ["With a ring", "n"], ["Fallbacks", "n"], ["Mean gain", "n"]], rows)));
}

/* ---- reasons and nodes ---- */

function bar(share, kind) {
  return s("svg", { class: "track " + (kind || ""), viewBox: "0 0 110 9", "aria-hidden": "true" }, s("rect", { width: 110, height: 9, rx: 4.5 }),
    s("rect", { width: Math.max(0, Math.min(1, share || 0)) * 110, height: 9, rx: 4.5 }));
}

function show_reasons(summary) {
  const reasons = summary.reasons || [], most = Math.max(1, ...reasons.map((one) => one.steps));
  put($("reasons"), [reasons, !summary.steps], reasons.length
    ? table([["Why"], ["Steps", "n"], [""], ["For example"], ["Last"]],
      reasons.map((one) => [said(one.class), count(one.steps), bar(one.steps / most), said(one.example, "wide"), one.last ? time(one.last) : ""]))
    : h("p", { class: "empty" }, summary.steps ? "No step fell back: every one that asked has its ring." : "No steps, so no reasons."));
}

const SLOW = 0.95; /* of the best: below that, a node stands out */

function show_nodes(summary) {
  const nodes = (summary.nodes || []).filter((one) => !(one.share >= SLOW) || one.fallbacks > 0);
  const words = "Bandwidth of a node's rings against the best of as many nodes and GPUs.";
  put($("nodes"), [nodes, !(summary.nodes || []).length], nodes.length
    ? [h("p", { class: "dim" }, words),
      table([["Node"], ["Steps", "n"], ["Share", "n"], [""], ["Fallbacks", "n"]],
        nodes.map((one) => [said(one.node), count(one.steps), one.share > 0 ? Math.round(one.share * 100) + " %" : "",
          one.share > 0 ? bar(one.share, one.share >= SLOW ? "good" : "") : "", one.fallbacks ? count(one.fallbacks) : ""]))]
    : h("p", { class: "empty" }, (summary.nodes || []).length
      ? `None stands out: rings over each node reach ${Math.round(SLOW * 100)} % or more of the best of as many nodes and GPUs, and no step fell back because of one.`
      : "No node had a ring in this time."));
}

function show_summary(summary) {
  state.summary = summary;
  show_tiles(summary);
  show_gain(summary);
  show_reasons(summary);
  show_nodes(summary);
}

/* ---- one step ---- */

const LEGIBLE = 0.7; /* below this scale a picture's texts can't be read: it is scrolled instead */

/* Pictures come as text, and are shown as images: nothing in them can run. */
function picture(svg, words) {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  const image = h("img", { src: url, alt: words });
  image.addEventListener("load", () => {
    URL.revokeObjectURL(url);
    image.style.minWidth = `${Math.round(image.naturalWidth * LEGIBLE)}px`;
  }, { once: true });
  return image;
}

function fact(name, value, type) {
  return value === "" || value === null || value === undefined ? null : h("div", {}, h("dt", {}, name), h("dd", { class: type }, value));
}

function facts_of(step) {
  return h("dl", { class: "facts" },
    fact("State", h("span", {}, mark(step.state), step.running ? [" ", h("span", { class: "live" }, "runs now")] : "")),
    fact("Bandwidth", step.gbps > 0 ? step.gbps.toFixed(2) + " GB/s" : "", "big"),
    fact("NCCL's own choice", step.baseline_gbps > 0 ? step.baseline_gbps.toFixed(2) + " GB/s" : "", "big"),
    fact("Gain", step.ratio > 0 ? step.ratio.toFixed(2) + "×" : "", "big"),
    fact("What NCCL built", step.built ? said(step.built) : step.state === "applied" ? "not known (yet)" : ""),
    fact("No ring can be faster than", step.bound_gbps > 0 ? step.bound_gbps.toFixed(2) + " GB/s" : ""),
    fact("User", said(step.user || step.uid)), fact("Account", step.account && said(step.account)),
    fact("Partition", step.partition && said(step.partition)), fact("Nodes", step.nodes && said(step.nodes, "wide")),
    fact("GPUs", step.gpus || ""), fact("Mode", said(step.mode)), fact("Policy", step.policy && said(step.policy)),
    fact("Started", time(step.start)), fact("Time to solve", step.solve_us > 0 ? (step.solve_us / 1000).toFixed(2) + " ms" : ""),
    fact("Bandwidths from", step.source && said(step.source)), fact("Requeued", step.restart ? `${step.restart} times` : ""));
}

function reasons_of(step) {
  return [step.reason && h("p", {}, h("strong", {}, step.state === "differs" ? "How it differs: " : "Why: "), said(step.reason, "wide")),
    step.built_reason && step.built_reason !== step.reason && h("p", {}, h("strong", {}, "What NCCL did: "), said(step.built_reason, "wide"))];
}

function panel_figure(panel) {
  const caption = h("figcaption", {}, h("strong", {}, said(panel.nodes, "wide")), panel.count > 1 ? ` (${count(panel.count)} nodes)` : "",
    panel.kind ? [": ", said(panel.kind), h("span", { class: "dim" }, " – ", panel.how)] : "", h("br"), h("code", {}, panel.chain));
  return h("figure", { class: "panel" }, caption, panel.svg && picture(panel.svg, `Chain ${panel.chain} on ${panel.nodes}`));
}

/* The chains of the nodes; of those without a picture, one line says why. */
function panels_of(panels) {
  const bare = panels.filter((one) => !one.svg).length;
  return [h("h3", {}, "On the nodes"), panels.map(panel_figure),
    bare > 0 && h("p", { class: "dim" }, `No picture of ${bare === panels.length ? "these nodes" : "the others"}: none of the profiles in CacheDir of this host has ` +
      "their chain. Copy the folder of their kind from one of them to get one.")];
}

function others(answer) {
  const step = answer.record, list = answer.records.filter((one) => one.id !== step.id || one.start !== step.start);
  return list.length === 0 ? null : h("p", { class: "dim" }, "Also of this job: ", list.slice(0, 40).flatMap((one) =>
    [h("a", { href: place_of({ job: one.id, start: one.start }) }, one.id + (one.restart ? ` (restart ${one.restart})` : "")), " "]));
}

function show_step(answer) {
  const box = $("detail"), step = answer.record;
  state.shown = row_key(step);
  const close = h("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", () => go({ job: null, start: null }));
  const pictures = [];
  if (answer.overview) pictures.push(h("figure", { class: "overview" }, picture(answer.overview, `The ring of step ${step.id}: ${step.ring.slice(0, 400)}`)));
  else if (answer.no_ring && (step.ring || !step.reason)) pictures.push(h("p", { class: "dim" }, said(answer.no_ring, "wide")));
  if (answer.panels.length) pictures.push(panels_of(answer.panels));
  put(box, answer, close, h("h2", {}, `Step ${step.id} `, said(step.job_name, "wide")), facts_of(step), reasons_of(step), others(answer), pictures,
    step.ring ? h("details", {}, h("summary", {}, "The ring on one line"), h("code", {}, step.ring)) : null);
  box.hidden = false;
  box.dataset.job = step.id;
  show_rows();
}

async function refresh_step(jump) {
  const box = $("detail"), wanted = state.job;
  if (!wanted) {
    trouble("step", null);
    box.hidden = true;
    box.said = null;
    state.shown = null;
    show_rows();
    return;
  }
  const start = state.start ? `&start=${encodeURIComponent(state.start)}` : "";
  try {
    const answer = await ask(`api/step?id=${encodeURIComponent(wanted)}${start}`);
    if (wanted !== state.job) return;
    show_step(answer);
    trouble("step", null);
  } catch (error) {
    if (wanted !== state.job) return;
    if (error.status === 404 || error.status === 400) {
      const close = h("button", { type: "button", class: "close" }, "Close");
      close.addEventListener("click", () => go({ job: null, start: null }));
      put(box, error.message, close, h("p", {}, said(error.message, "wide")));
      box.hidden = false;
      trouble("step", null);
    } else trouble("step", error);
  }
  if (jump) {
    box.scrollIntoView({ block: "start" });
    box.focus({ preventScroll: true });
  }
}

/* ---- kinds of machines ---- */

function show_congested(kind) {
  const rows = kind.congested.map((one) => [Math.round(one.ratio * 100) + " %" + (one.noisy ? " ~" : ""), bar(one.ratio),
    h("span", {}, said(one.sentence, "wide"), h("br"), h("code", { class: "dim" }, one.set), one.from === "model" ? h("span", { class: "dim" }, ", from the model") : "",
      one.alike > 0 ? h("span", { class: "dim" }, `, ${count(one.alike)} like it`) : "")]);
  if (rows.length === 0) return h("p", { class: "empty" }, "None: transfers that run together don't slow each other down here.");
  const heads = [["Left of it", "n"], [""], ["What runs together"]];
  return [table(heads, rows.slice(0, 12)), rows.length > 12 ? h("details", {}, h("summary", {}, `${rows.length - 12} more`), table(heads, rows.slice(12))) : null];
}

function show_kind(kind) {
  const source = kind.source === "model" ? "computed from a model, not measured" : kind.source === "host" ? "this host's cores in place of GPUs" : "measured on GPUs";
  put($("kind-body"), kind, h("div", { class: "card", "data-kind": kind.id },
    h("h3", {}, said(kind.name)),
    h("p", { class: "dim" }, `${kind.gpus} GPUs`, kind.gpu_model ? [" (", said(kind.gpu_model), ")"] : "", `, ${kind.memories} memories, ${kind.nics} NIC${kind.nics === 1 ? "" : "s"}; ${source}`,
      kind.last_measured ? `, last on ${day(kind.last_measured)}` : "", "; machine id ", h("code", {}, kind.id)),
    h("p", {}, `Transfers that run together below ${Math.round(kind.threshold * 100)} % of what the slowest of them reaches alone, worst first.`),
    h("div", { class: "scroll" }, show_congested(kind)),
    h("details", { open: true }, h("summary", {}, "Its picture"),
      kind.pictures.map((one) => h("figure", {}, h("figcaption", {}, h("strong", {}, one.title), h("br"), h("code", {}, one.chain)), picture(one.svg, one.title + " " + one.chain))))));
}

let kinds_known = null;

function show_kinds(answer) {
  kinds_known = answer.kinds;
  $("kind-choice").hidden = answer.kinds.length < 1;
  put($("kind"), [answer.kinds], answer.kinds.map((one) => h("option", { value: one.id }, `${one.name} (${one.gpus} GPUs, ${one.source})${one.own ? ", this node" : ""}`)));
  if (answer.kinds.length === 0)
    put($("kind-body"), answer, h("div", { class: "card" }, h("p", { class: "empty" }, "There is no profile in ", said(answer.cache_dir, "wide"),
      " of this host that you may read. Make one (tccl-profile init, then tccl-profile run: tccl-profile(8)), or copy the folder from a node of each kind.",
      answer.bad ? [" Not readable: ", said(answer.bad_reason, "wide")] : "")));
}

async function refresh_kinds() {
  const areas = [$("kind-body")];
  if (!(await part("kinds", "api/kinds", show_kinds, areas)) || kinds_known.length === 0) return;
  const chosen = kinds_known.find((one) => one.id === state.kind) || kinds_known.find((one) => one.own) || kinds_known[0];
  $("kind").value = chosen.id;
  await part("kind", `api/kind?id=${encodeURIComponent(chosen.id)}`, show_kind, areas);
}

/* ---- the whole ---- */

function show_range() {
  for (const button of $("ranges").children) button.setAttribute("aria-pressed", button.dataset.range === state.range);
}

/* An answer that comes after another range was chosen is not shown. */
async function refresh_range() {
  const range = state.range, still = (show) => (answer) => range === state.range && show(answer);
  await Promise.all([
    part("steps", `api/steps?range=${range}`, still(show_steps), [$("steps")]),
    part("summary", `api/summary?range=${range}`, still(show_summary), [$("tiles"), $("gain"), $("reasons"), $("nodes")]),
  ]);
}

let timer = null, round = 0;

async function refresh() {
  clearTimeout(timer);
  await Promise.all([refresh_range(), refresh_step(false), round++ % 6 === 0 || troubles.has("kinds") || troubles.has("kind") ? refresh_kinds() : null]);
  document.documentElement.dataset.rounds = round;
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, troubles.size ? EVERY_MS / 4 : EVERY_MS);
}

function follow() {
  const before = { ...state };
  read_place();
  show_range();
  if (before.range !== state.range) {
    state.rows = ROWS;
    refresh_range();
  }
  if (before.job !== state.job || before.start !== state.start) refresh_step(Boolean(state.job));
  if (before.kind !== state.kind) refresh_kinds();
}

function look_up(event) {
  const text = event.target.value.trim();
  if (event.key === "Enter" && /^\d{1,10}([+_]\d{1,10})?(\.\w{1,12})?$/.test(text)) go({ job: text, start: null });
}

$("ranges").addEventListener("click", (event) => event.target.dataset.range && go({ range: event.target.dataset.range }));
$("search").addEventListener("input", show_rows);
$("search").addEventListener("keydown", look_up);
$("state").addEventListener("change", show_rows);
$("kind").addEventListener("change", (event) => go({ kind: event.target.value }));
$("steps-more").addEventListener("click", () => { state.rows += 5 * ROWS; show_rows(); });
$("steps").addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  if (row && !event.target.closest("a") && !String(getSelection())) go({ job: row.dataset.job, start: row.dataset.start });
});
$("skip").addEventListener("click", (event) => { event.preventDefault(); $("steps-title").focus(); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && state.job) go({ job: null, start: null }); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
addEventListener("hashchange", follow);
addEventListener("resize", () => state.summary && show_gain(state.summary));

read_place();
show_range();
refresh();
