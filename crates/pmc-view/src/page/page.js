"use strict";
// The page's script: reads the data that the page holds, and draws it. Nothing is loaded from anywhere. Names come
// from the recorded machine and are untrusted: they reach the page as text (textContent, fillText), never as markup.
//
//   data ── paths: node -> function, caller (callers stand before what they call)
//      '── cells: what ended at a node, by event, thread and slice of time
//   selection (event, thread, span of time, search, zoom) ── sums by node ── graph, table, strip

const $ = (id) => document.getElementById(id);

/** The kinds of code, in the order of their numbers: what the style calls them, what people do. */
const KINDS = [["program", "program"], ["library", "libraries"], ["kernel", "kernel"], ["generated", "generated code"], ["unknown", "unknown"]];

/** The states of waiting threads, in the order of their numbers less one. They have colours of their own. */
const WAITS = [["runnable", "waiting for a CPU"], ["blocked", "blocked"]];
/** Colours of a comparison: of functions that cost more, less, or the same within the noise. */
const CHANGES = [["more", "costs more in B"], ["less", "costs less in B"], ["same", "no difference beyond the noise"]];
/** All colours: of code that runs, then of waiting, then of differences. */
const COLOURS = [...KINDS, ...WAITS, ...CHANGES];
const FIRST_CHANGE = KINDS.length + WAITS.length;

/** An element with text or other elements in it. */
function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "style") made.style.cssText = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...inside);
  return made;
}

// ---- Data -------------------------------------------------------------------------------------------------------------

async function unpacked() {
  const holder = $("data");
  const bytes = Uint8Array.from(atob(holder.textContent.trim()), (letter) => letter.charCodeAt(0));
  holder.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** All that does not change. */
let data;
/** What is selected. `from` and `to` are slices, the end exclusive; `zoom` is a list of functions from the root on. */
const chosen = { event: 0, thread: "", from: 0, to: 0, search: "", state: "", inverted: false, view: "flame", zoom: [] };
/** What follows from the selection: periods and samples by node (own, and with what was called), and the whole. */
let sums;
/** The functions that the search finds, by number; none where nothing is searched for. */
let found = null;

function prepare(raw) {
  const count = raw.back.length;
  const caller = new Int32Array(count);
  for (let node = 0; node < count; node++) caller[node] = raw.back[node] ? node - raw.back[node] : -1;
  // Functions that are inlined here and called there are one in the table.
  const same = new Map();
  const row = raw.names.map((name, at) => {
    const key = raw.module[at] + " " + name;
    if (!same.has(key)) same.set(key, same.size);
    return same.get(key);
  });
  let node = 0;
  const cellNode = Int32Array.from(raw.cellNode, (step) => (node += step));
  return { ...raw, ...raw.head, caller, row, rows: same.size, cellNode, fn: Int32Array.from(raw.fn) };
}

/** Whether a cell's thread is chosen: all, a process ("p12") or a thread ("t3", by its index). */
function threadChosen() {
  const typed = chosen.thread;
  const wanted = data.threads.map((thread, at) =>
    typed === "" || (typed[0] === "p" ? String(thread.pid) === typed.slice(1) : String(at) === typed.slice(1)));
  return (cell) => wanted[data.cellThread[cell]];
}

/** The state of a cell's thread: 0 if it ran. */
const stateOf = (cell) => (data.cellState ? data.cellState[cell] : 0);
/** The number of the state that each choice selects; other choices select all states. */
const STATES = { running: 0, runnable: 1, waiting: 2 };
/** Whether a cell's state is chosen. */
function stateChosen() {
  const wanted = STATES[chosen.state];
  return (cell) => wanted === undefined || stateOf(cell) === wanted;
}
/** Running or waiting, whichever the threads spent more time on: the first choice. */
function firstState() {
  if (!data.cellState) return "";
  if (data.firstState) return data.firstState;
  const sums = [0, 0, 0];
  for (let cell = 0; cell < data.cellNode.length; cell++) {
    if (data.cellEvent[cell] === data.event) sums[stateOf(cell)] += data.cellPeriod[cell];
  }
  return (data.firstState = sums[STATES.waiting] > sums[STATES.running] ? "waiting" : "running");
}

function addUp() {
  const count = data.caller.length;
  const own = new Float64Array(count), total = new Float64Array(count), samples = new Float64Array(count);
  // Of `own` and `total`, the parts that are waiting: for a CPU, and blocked.
  const ownWaits = data.cellState ? WAITS.map(() => new Float64Array(count)) : [], waits = ownWaits.map(() => new Float64Array(count));
  // Of a comparison: the costs in A, and the differences that exceed the noise. The other costs are those in B.
  const ownBefore = new Float64Array(data.compared ? count : 0), before = new Float64Array(ownBefore.length), changes = new Float64Array(ownBefore.length);
  const isChosen = threadChosen(), isState = stateChosen();
  const everything = data.slices === 0;
  let whole = 0, all = 0, wholeBefore = 0;
  for (let cell = 0; cell < data.cellNode.length; cell++) {
    if (data.cellEvent[cell] !== chosen.event || !isChosen(cell) || !isState(cell)) continue;
    const slice = data.cellSlice[cell], state = stateOf(cell);
    if (!everything && (slice < chosen.from || slice >= chosen.to)) continue;
    own[data.cellNode[cell]] += data.cellPeriod[cell];
    if (state) ownWaits[state - 1][data.cellNode[cell]] += data.cellPeriod[cell];
    samples[data.cellNode[cell]] += data.cellSamples[cell];
    whole += data.cellPeriod[cell];
    all += data.cellSamples[cell];
    if (!data.compared) continue;
    ownBefore[data.cellNode[cell]] += data.cellBefore[cell];
    wholeBefore += data.cellBefore[cell];
    if (data.cellChanged[cell]) changes[data.cellNode[cell]] += data.cellPeriod[cell] - data.cellBefore[cell];
  }
  const mostChange = changes.reduce((most, change) => Math.max(most, Math.abs(change)), 0);
  [[own, total], ...(data.compared ? [[ownBefore, before]] : []), ...ownWaits.map((of, at) => [of, waits[at]])].forEach(([from, to]) => {
    to.set(from);
    for (let node = count - 1; node >= 0; node--) if (data.caller[node] >= 0) to[data.caller[node]] += to[node];
  });
  sums = { own, total, ownWaits, waits, samples, whole, all, ownBefore, before, changes, wholeBefore, mostChange };
}

// ---- Words ------------------------------------------------------------------------------------------------------------

const percent = (part, whole) => (whole ? (100 * part) / whole : 0).toFixed(part / whole >= 0.0995 ? 1 : 2) + "%";
const grouped = (number) => Math.round(number).toLocaleString("en-US");

function time(ns) {
  for (const [unit, length] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) if (ns >= length) return (ns / length).toPrecision(3) + " " + unit;
  return Math.round(ns) + " ns";
}
const amount = (period) => data.events[chosen.event].clock ? time(period) : grouped(period);
const colour = (at) => `hsl(var(--${COLOURS[at][0]}))`;
/** A difference with its sign. */
const signed = (difference) => (difference ? (difference < 0 ? "−" : "+") + amount(Math.abs(difference)) : "");
/** The costs of a block or row in A and B, in words. */
const costs = (before, now) => `A ${amount(before)}, B ${amount(now)}${before ? ` (${now < before ? "−" : "+"}${percent(Math.abs(now - before), before)})` : ""}`;
/** The colour of a function's cost, by its number in COLOURS: of a state if most of it is waiting, of a change in a comparison. */
function colourOf(fn, cost, [runnable = 0, blocked = 0], change = 0) {
  if (data.compared) return FIRST_CHANGE + (change > 0 ? 0 : change < 0 ? 1 : 2);
  return runnable + blocked > cost / 2 ? KINDS.length + (runnable > blocked ? 0 : 1) : data.kind[fn];
}
/** A function's name as one reads it; `data.names` has all of it. */
const shown = (fn) => data.brief[fn] ?? data.names[fn];
/** At most so many letters, the middle left out: the ends tell names apart. */
function shortened(words, most) {
  if (words.length <= most) return words;
  if (most < 7) return words.slice(0, Math.max(most - 1, 1)) + "…";
  const tail = Math.floor((most - 1) / 2);
  return words.slice(0, most - 1 - tail) + "…" + words.slice(-tail);
}
const fact = (label) => (data.facts.find(([name]) => name === label) || [])[1];

/** A function that decides whether a name is meant: a regular expression, or the words as they stand. */
function matcher(text) {
  let pattern;
  try { pattern = new RegExp(text, "i"); } catch { return (name) => name.toLowerCase().includes(text.toLowerCase()); }
  return (name) => pattern.test(name);
}

// ---- Flame graph ------------------------------------------------------------------------------------------------------
// A block is a function in its context: { fn, total, own, samples, depth, children() }. Children are made when they are
// first drawn, so that of a million paths only what can be seen costs anything.

/** Blocks from the root on: a node each. */
function fromTop() {
  const first = new Int32Array(data.caller.length).fill(-1), next = new Int32Array(data.caller.length).fill(-1);
  let top = -1;
  for (let node = data.caller.length - 1; node >= 0; node--) {
    const caller = data.caller[node];
    if (caller < 0) { next[node] = top; top = node; } else { next[node] = first[caller]; first[caller] = node; }
  }
  const block = (node) => ({
    fn: data.fn[node], total: sums.total[node], own: sums.own[node], waits: sums.waits.map((of) => of[node]),
    before: sums.before[node] || 0, ownBefore: sums.ownBefore[node] || 0, change: sums.changes[node] || 0,
    below: null,
    children() { return (this.below ??= siblings(first[node])); },
  });
  const siblings = (node) => {
    const list = [];
    for (; node >= 0; node = next[node]) if (sums.total[node] > 0) list.push(block(node));
    return list.sort((a, b) => b.total - a.total);
  };
  return { fn: -1, total: sums.whole, own: 0, children() { return (this.below ??= siblings(top)); } };
}

/** Blocks from the sampled function on, callers below it: each is a list of nodes with what ended there. */
function fromLeaf() {
  const group = (entries) => {
    const byFunction = new Map();
    for (const [node, weight, waits, before, change] of entries) {
      const fn = data.fn[node];
      let block = byFunction.get(fn);
      if (!block) byFunction.set(fn, (block = { fn, total: 0, own: 0, before: 0, ownBefore: 0, change: 0, waits: waits.map(() => 0), entries: [], children() { return (this.below ??= group(this.outward())); },
        outward() { return this.entries.filter(([at]) => data.caller[at] >= 0).map(([at, ...parts]) => [data.caller[at], ...parts]); } }));
      block.total += weight;
      block.before += before;
      block.change += change;
      waits.forEach((part, at) => { block.waits[at] += part; });
      block.entries.push([node, weight, waits, before, change]);
      if (data.caller[node] < 0) { block.own += weight; block.ownBefore += before; }
    }
    return [...byFunction.values()].sort((a, b) => b.total - a.total);
  };
  const leaves = [];
  sums.own.forEach((weight, node) => { if (weight > 0) leaves.push([node, weight, sums.ownWaits.map((of) => of[node]), sums.ownBefore[node] || 0, sums.changes[node] || 0]); });
  return { fn: -1, total: sums.whole, own: 0, children() { return (this.below ??= group(leaves)); } };
}

const ROW = 21, SMALLEST = 0.6;
let root, drawn = [], hovered = null;

/** The blocks from the root to what is zoomed on; what is not there any more is forgotten. */
function zoomed() {
  const way = [root];
  for (const fn of chosen.zoom) {
    const below = way.at(-1).children().find((block) => block.fn === fn);
    if (!below) break;
    way.push(below);
  }
  chosen.zoom = way.slice(1).map((block) => block.fn);
  return way;
}

/** The canvas in the size it is shown, ready to be drawn on in CSS pixels. */
function surface(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return [context, width];
}

function drawGraph() {
  if (chosen.view !== "flame") return;
  const canvas = $("graph"), way = zoomed(), width = canvas.clientWidth;
  drawn = [];
  // Those that lead to what is zoomed on take the whole width, then everything below takes its share.
  way.forEach((block, depth) => drawn.push({ block, x: 0, width, depth, way: way.slice(1, depth + 1), leads: depth < way.length - 1 }));
  const open = [drawn.at(-1)];
  while (open.length) {
    const above = open.pop();
    let x = above.x;
    for (const block of above.block.children()) {
      const wide = (block.total / above.block.total) * above.width;
      if (wide < SMALLEST) break; // The rest is smaller still.
      const place = { block, x, width: wide, depth: above.depth + 1, way: above.way.concat(block) };
      drawn.push(place);
      open.push(place);
      x += wide;
    }
  }
  const deepest = drawn.reduce((most, place) => Math.max(most, place.depth), 0);
  const [context] = surface(canvas, (deepest + 1) * ROW);
  const style = getComputedStyle(document.documentElement);
  const fills = COLOURS.map(([name]) => style.getPropertyValue("--" + name).trim().split(/\s+/));
  const mark = style.getPropertyValue("--mark"), ground = style.getPropertyValue("--ground");
  const edge = style.getPropertyValue("--edge"), text = style.getPropertyValue("--text"), ink = style.getPropertyValue("--frame-text");
  context.font = "12px " + getComputedStyle(document.body).fontFamily;
  context.textBaseline = "middle";
  const letter = context.measureText("abcdefghijklmnopqrst").width / 20;
  for (const place of drawn) {
    const { block, x, depth } = place, isRoot = block.fn < 0;
    const isFound = found && !isRoot && found[block.fn];
    const [hue, saturation, light] = isRoot ? [] : fills[colourOf(block.fn, block.total, block.waits)];
    // Neighbours differ a little in hue, the same function never. In a comparison, the hue is a change.
    const shift = isRoot || data.compared ? 0 : (hash(data.names[block.fn]) % 17) - 8;
    const [wide, strength] = [Math.max(place.width - (place.width > 3 ? 1 : 0), 0.5), place.leads ? 0.55 : found && !isFound && !isRoot ? 0.45 : 1];
    const fill = (style, alpha) => { [context.fillStyle, context.globalAlpha] = [style, alpha]; context.fillRect(x, depth * ROW, wide, ROW - 1); };
    fill(isRoot ? edge : isFound ? mark : `hsl(${Number(hue) + shift} ${saturation} ${light})`, strength);
    if (block.change && !isFound) {
      const [hue, saturation, light] = fills[colourOf(block.fn, block.total, block.waits, block.change)];
      fill(`hsl(${hue} ${saturation} ${light})`, strength * (0.25 + 0.75 * Math.sqrt(Math.min(1, Math.abs(block.change) / sums.mostChange))));
    }
    context.globalAlpha = 1;
    if (place.width < 28) continue;
    const fits = Math.floor((place.width - 8) / letter);
    const name = data.names[block.fn];
    const words = isRoot ? (data.compared ? `all: ${amount(sums.whole)} in a run of B` : `all: ${grouped(sums.all)} samples`) : name.length > fits ? shown(block.fn) : name;
    context.fillStyle = isRoot ? text : isFound ? "#fff" : ink;
    context.fillText(shortened(words, fits), x + 4, depth * ROW + ROW / 2, place.width - 6);
  }
  if (hovered) {
    const place = drawn.find((place) => place.block === hovered);
    if (place) { context.strokeStyle = text; context.lineWidth = 1.5; context.strokeRect(place.x + 0.75, place.depth * ROW + 0.75, place.width - 1.5, ROW - 2.5); }
  }
  crumbs(way);
}

function hash(text) {
  let sum = 7;
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) >>> 0;
  return sum >>> 4;
}

function crumbs(way) {
  const last = way.at(-1);
  const go = (depth) => element("button", { onclick: () => zoom(chosen.zoom.slice(0, depth)) }, depth ? shown(way[depth].fn) : "all");
  const parts = [];
  for (let depth = Math.max(0, way.length - 4); depth < way.length - 1; depth++) parts.push(go(depth), " › ");
  const words = last.fn < 0 ? "Click a function to zoom in." : `${shown(last.fn)}: ${percent(last.total, sums.whole)} of all`;
  $("crumbs").replaceChildren(...(way.length > 4 ? [go(0), " › … › "] : []), ...parts, words);
}

function placeAt(event) {
  const box = $("graph").getBoundingClientRect();
  const x = event.clientX - box.left, depth = Math.floor((event.clientY - box.top) / ROW);
  return drawn.find((place) => place.depth === depth && x >= place.x && x < place.x + place.width);
}

/** How much of a block is waiting, in words. */
function waiting(block) {
  return block.waits.map((of, at) => (of > 0 ? ` · ${percent(of, block.total)} of it ${WAITS[at][1]}` : "")).join("");
}

function tip(event) {
  const place = placeAt(event), shown = $("tip");
  if ((place && place.block) !== hovered) { hovered = place ? place.block : null; drawGraph(); }
  shown.hidden = !place || place.block.fn < 0;
  if (shown.hidden) return;
  const { block, way } = place, outer = zoomed().at(-1);
  const inlined = data.inlined[block.fn] ? ", inlined" : "";
  const within = outer.fn >= 0 && !place.leads ? `, ${percent(block.total, outer.total)} of ${data.names[outer.fn]}` : "";
  shown.replaceChildren(
    element("b", {}, data.names[block.fn]),
    element("span", {}, `${data.modules[data.module[block.fn]]} · ${KINDS[data.kind[block.fn]][1]}${inlined}`),
    element("br"),
    ...(data.compared
      ? [costs(block.before, block.total), element("br"), `own: ${costs(block.ownBefore, block.own)}${block.change ? "" : ", no difference beyond the noise"}`]
      : [`${percent(block.total, sums.whole)} of all${within} · ${amount(block.total)} · own ${percent(block.own, sums.whole)}${waiting(block)} · ${way.length} deep`]));
  const left = Math.min(event.clientX + 14, window.innerWidth - shown.offsetWidth - 10);
  const above = event.clientY + 18 + shown.offsetHeight > window.innerHeight;
  shown.style.left = Math.max(left, 4) + "px";
  shown.style.top = (above ? event.clientY - shown.offsetHeight - 10 : event.clientY + 18) + "px";
}

function zoom(way) {
  chosen.zoom = way;
  hovered = null;
  $("tip").hidden = true;
  drawGraph();
  remember();
}

// ---- Call tree --------------------------------------------------------------------------------------------------------

/** Lines that are open, by the functions that lead there; `null`: the costliest way is still to be opened. */
let opened = null;
const MOST_LINES = 2000, LEAST_SHARE = 0.0005;

function openCostliest() {
  opened = new Set();
  let way = "", block = root;
  for (let depth = 0; depth < 60; depth++) {
    const next = block.children()[0];
    if (!next || next.total < sums.whole / 10) break;
    way += "." + next.fn;
    opened.add(way);
    block = next;
  }
}

function drawTree() {
  if (chosen.view !== "tree") return;
  if (!opened) openCostliest();
  const rows = [];
  let left = 0;
  const toggle = (way) => { if (!opened.delete(way)) opened.add(way); drawTree(); };
  const add = (above, before, depth) => {
    for (const block of above.children()) {
      if (block.total < sums.whole * LEAST_SHARE) break; // The rest is smaller still.
      if (rows.length >= MOST_LINES) { left++; continue; }
      const way = before + "." + block.fn, isOpen = opened.has(way), hasMore = block.children().length > 0;
      const isFound = found && found[block.fn] ? " found" : "";
      rows.push(element("tr", { class: "link", tabindex: 0, onclick: () => toggle(way), onkeydown: (event) => { if (event.key === "Enter") toggle(way); } },
        element("td", { class: "number", title: amount(block.total) }, percent(block.total, sums.whole)),
        element("td", { class: "share" }, element("i", { style: `width:${(100 * block.total) / (sums.whole || 1)}%;background:${colour(colourOf(block.fn, block.total, block.waits, block.change))}` })),
        element("td", { class: "number", title: amount(block.own) }, percent(block.own, sums.whole)),
        ...(data.compared ? [element("td", { class: "number", title: costs(block.before, block.total) }, signed(block.total - block.before))] : []),
        element("td", { class: "name" + isFound, title: data.names[block.fn], style: `padding-left:${10 + Math.min(depth, 40) * 14}px` },
          element("span", { class: "sign" }, hasMore ? (isOpen ? "▾" : "▸") : ""), shown(block.fn)),
        element("td", { class: "dim module", title: data.modules[data.module[block.fn]] }, data.modules[data.module[block.fn]])));
      if (isOpen) add(block, way, depth + 1);
    }
  };
  add(root, "", 0);
  const heads = [["Total", "number"], ["", ""], ["Self", "number"], ...(data.compared ? [["B − A", "number"]] : []), [chosen.inverted ? "Function, its callers below" : "Function, what it calls below", ""], ["Module", ""]];
  document.querySelector("#tree thead").replaceChildren(element("tr", {}, ...heads.map(([title, of]) => element("th", of ? { class: of } : {}, title))));
  document.querySelector("#tree tbody").replaceChildren(...rows);
  document.querySelector("#tree .more").textContent = left ? `${grouped(left)} more lines: close some` : "";
}

// ---- Search -----------------------------------------------------------------------------------------------------------

function search() {
  found = null;
  if (chosen.search) {
    const isMeant = matcher(chosen.search);
    found = data.names.map((name, fn) => isMeant(name) || isMeant(data.modules[data.module[fn]]));
  }
  // Each sample counts once, however many functions of its stack are found.
  let matched = 0;
  if (found) {
    const inside = new Uint8Array(data.caller.length);
    for (let node = 0; node < inside.length; node++) {
      const caller = data.caller[node];
      if (caller >= 0 && inside[caller]) inside[node] = 1;
      else if (found[data.fn[node]]) { inside[node] = 1; matched += sums.total[node]; }
    }
  }
  $("matched").textContent = found ? `found: ${percent(matched, sums.whole)}` : "";
  const isMeant = matcher(chosen.search);
  document.querySelectorAll("#result .functions tr").forEach((row) => { row.hidden = Boolean(row.querySelector("td")) && !isMeant(row.textContent); });
}

// ---- Table ------------------------------------------------------------------------------------------------------------

let order = "own", shownRows = 100, table = [];

function functions() {
  const own = new Float64Array(data.rows), total = new Float64Array(data.rows), samples = new Float64Array(data.rows), waits = sums.ownWaits.map(() => new Float64Array(data.rows)), before = new Float64Array(data.rows), change = new Float64Array(data.rows), example = new Int32Array(data.rows);
  data.row.forEach((row, fn) => { example[row] = fn; });
  for (let node = 0; node < data.caller.length; node++) {
    if (!(sums.total[node] > 0)) continue;
    const row = data.row[data.fn[node]];
    own[row] += sums.own[node];
    samples[row] += sums.samples[node];
    before[row] += sums.ownBefore[node] || 0;
    change[row] += sums.changes[node] || 0;
    waits.forEach((of, at) => { of[row] += sums.ownWaits[at][node]; });
    // Of a function that calls itself the outermost call counts.
    let above = data.caller[node];
    while (above >= 0 && data.row[data.fn[above]] !== row) above = data.caller[above];
    if (above < 0) total[row] += sums.total[node];
  }
  table = [];
  for (let row = 0; row < data.rows; row++) if (total[row] > 0) table.push({ fn: example[row], own: own[row], total: total[row], samples: samples[row], waits: waits.map((of) => of[row]), before: before[row], change: change[row], difference: own[row] - before[row] });
}

const columns = () => [["own", "Self", true], ["", "", false], ["total", "Total", true], data.compared ? ["difference", "Self: B − A", true] : ["samples", "Samples", true], ["name", "Function", false], ["module", "Module", false]];

function drawTable() {
  if (chosen.view !== "functions") return;
  const words = { name: (row) => data.names[row.fn], module: (row) => data.modules[data.module[row.fn]] };
  const rows = table.filter((row) => !found || found[row.fn]);
  rows.sort(words[order] ? (a, b) => words[order](a).localeCompare(words[order](b)) : (a, b) => b[order] - a[order] || b.total - a.total);
  const heads = columns().map(([key, title, isNumber]) => element("th", {
    ...(isNumber ? { class: "number" } : {}), ...(key && key === order ? { "aria-sort": words[key] ? "ascending" : "descending" } : {}),
    onclick: () => { if (key) { order = key; drawTable(); } },
  }, title));
  const most = Math.max(...rows.map((row) => row.own), 1);
  const lines = rows.slice(0, shownRows).map((row) => element("tr", { class: "link", onclick: () => find(data.names[row.fn]) },
    element("td", { class: "number", title: amount(row.own) }, percent(row.own, sums.whole)),
    element("td", { class: "share" }, element("i", { style: `width:${(100 * row.own) / most}%;background:${colour(colourOf(row.fn, row.own, row.waits, row.change))}` })),
    element("td", { class: "number", title: amount(row.total) }, percent(row.total, sums.whole)),
    data.compared ? element("td", { class: "number", title: costs(row.before, row.own) }, signed(row.difference)) : element("td", { class: "number" }, grouped(row.samples)),
    element("td", { class: "name", title: data.names[row.fn] }, shown(row.fn)),
    element("td", { class: "dim module", title: data.modules[data.module[row.fn]] }, data.modules[data.module[row.fn]])));
  document.querySelector("#functions thead").replaceChildren(element("tr", {}, ...heads));
  document.querySelector("#functions tbody").replaceChildren(...lines);
  const more = rows.length - lines.length;
  document.querySelector("#functions .more").replaceChildren(
    ...(more > 0 ? [element("button", { onclick: () => { shownRows += 1000; drawTable(); } }, `${grouped(more)} more`)] : []));
}

/** Shows where a function of this name is called. */
function find(name) {
  $("search").value = chosen.search = "^" + name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
  show("flame");
  refresh(false);
}

// ---- Strip of time ----------------------------------------------------------------------------------------------------

let drag = null;

function drawStrip() {
  $("time").hidden = data.slices < 2;
  if ($("time").hidden) return;
  const heights = COLOURS.map(() => new Float64Array(data.slices));
  const isChosen = threadChosen(), isState = stateChosen();
  for (let cell = 0; cell < data.cellNode.length; cell++) {
    if (data.cellEvent[cell] !== chosen.event || !isChosen(cell) || !isState(cell)) continue;
    const state = stateOf(cell), fill = state ? KINDS.length + state - 1 : data.kind[data.fn[data.cellNode[cell]]];
    heights[fill][data.cellSlice[cell]] += data.cellPeriod[cell];
  }
  const [context, width] = surface($("strip"), 64);
  const style = getComputedStyle(document.documentElement);
  let most = 0;
  for (let slice = 0; slice < data.slices; slice++) most = Math.max(most, heights.reduce((sum, of) => sum + of[slice], 0));
  const step = width / data.slices;
  for (let slice = 0; slice < data.slices; slice++) {
    const isIn = slice >= chosen.from && slice < chosen.to;
    let y = 62;
    context.globalAlpha = isIn ? 1 : 0.25;
    COLOURS.forEach(([name], kind) => {
      const high = most ? (heights[kind][slice] / most) * 56 : 0;
      context.fillStyle = `hsl(${style.getPropertyValue("--" + name)})`;
      context.fillRect(slice * step, y - high, Math.max(step - (step > 3 ? 1 : 0), 0.5), high);
      y -= high;
    });
  }
  context.globalAlpha = 1;
  const isAll = chosen.from === 0 && chosen.to === data.slices;
  if (!isAll) {
    context.strokeStyle = style.getPropertyValue("--accent");
    context.strokeRect(chosen.from * step, 1, (chosen.to - chosen.from) * step, 62);
  }
  const at = (slice) => ((slice * data.slice) / 1e9).toFixed(data.slice < 1e7 ? 3 : 2);
  $("span").textContent = isAll ? `${at(data.slices)} s; drag over a part of the time to look at that alone`
    : `${at(chosen.from)} s to ${at(chosen.to)} s: ${grouped(sums.all)} samples; click to see all again`;
}

function sliceAt(event) {
  const box = $("strip").getBoundingClientRect();
  return Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * data.slices), 0), data.slices - 1);
}

function dragged(event) {
  const here = sliceAt(event);
  const span = drag === null ? [0, data.slices] : [Math.min(drag, here), Math.max(drag, here) + 1];
  [chosen.from, chosen.to] = span;
}

// ---- Code -------------------------------------------------------------------------------------------------------------

let listed = 0;
/** The listing that was scrolled to its hottest line, so that later drawings leave it where the reader put it. */
let scrolled = "";

function drawCode() {
  if (chosen.view !== "code") return;
  const whole = data.events[chosen.event].period;
  $("listed").replaceChildren(...data.code.map((of, at) => element("button",
    { "aria-selected": at === listed, title: of.name, onclick: () => { listed = at; drawCode(); } }, element("strong", {}, of.brief ?? of.name), element("span", { class: "dim" }, percent(of.own[chosen.event] || 0, whole)))));
  const of = data.code[listed];
  if (!of) { $("listing").replaceChildren(element("p", { class: "dim" }, "No code: this recording was written without it, or no function is known.")); return; }
  const own = of.own[chosen.event] || 0, hasText = of.rows.some((row) => row.text && row.s);
  const rows = [];
  let gap = false, hottest = null, highest = 0;
  for (const row of of.rows) {
    const cost = row.cost ? row.cost[chosen.event] || 0 : 0, share = own ? cost / own : 0;
    const bar = element("td", { class: "number", style: share ? `background:linear-gradient(to left, hsl(var(--program)) ${Math.min(100 * share, 100)}%, transparent 0)` : "" }, cost ? percent(cost, own) : "");
    const space = "  ".repeat(row.depth || 0);
    if (row.f) rows.push(element("tr", { class: "f" }, element("td"), element("td"), element("td", { title: row.f }, space + (row.brief ?? row.f))));
    else if (row.s) rows.push(element("tr", { class: "s", title: `${row.file}:${row.s}` }, bar, element("td", { class: "number dim" }, String(row.s)), element("td", {}, space + (row.text ?? (row.file || "").split("/").pop() + ":" + row.s))));
    // Below source lines only instructions that cost something are worth a row.
    else if (cost || !hasText) { rows.push(element("tr", { class: "i" }, bar, element("td", { class: "number" }, row.i), element("td", {}, "    " + row.text))); gap = false; if (!hasText && cost > highest) [hottest, highest] = [rows.at(-1), cost]; continue; }
    else if (!gap) { gap = true; continue; }
    gap = gap && Boolean(row.i);
    if (cost > highest) [hottest, highest] = [rows.at(-1), cost];
  }
  const notes = of.notes.map((note) => element("p", { class: "dim" }, note));
  $("listing").replaceChildren(element("h2", { title: of.name }, of.brief ?? of.name), element("p", { class: "dim" }, `${of.module} · percentages of the function · whole recording`),
    element("table", {}, element("tbody", {}, ...rows)), ...notes);
  hottest?.classList.add("hottest");
  const shownNow = `${listed} ${chosen.event}`;
  if (scrolled === shownNow) return;
  scrolled = shownNow;
  const box = $("listing");
  box.scrollTop = hottest ? hottest.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop - box.clientHeight / 3 : 0;
}

// ---- Recording --------------------------------------------------------------------------------------------------------

function drawRecording() {
  const rows = data.facts.map(([label, value]) => element("tr", {}, element("td", { class: "dim" }, label), element("td", {}, value)));
  const events = data.events.map((event) => element("tr", {}, element("td", {}, event.name),
    element("td", { class: "number" }, grouped(event.samples) + " samples"), element("td", { class: "number" }, event.clock ? time(event.period) : grouped(event.period))));
  $("recording").replaceChildren(
    element("h2", {}, "Data quality"), element("pre", {}, data.trust.trim()),
    element("h2", {}, "Events"), element("table", {}, element("tbody", {}, ...events)),
    element("h2", {}, "Recording details"), element("table", {}, element("tbody", {}, ...rows)));
}

// ---- Selection --------------------------------------------------------------------------------------------------------

function show(view) {
  chosen.view = view;
  document.querySelectorAll("nav [data-view]").forEach((tab) => tab.setAttribute("aria-selected", tab.dataset.view === view));
  document.querySelectorAll("main > section").forEach((section) => section.classList.toggle("shown", section.id === view));
  drawGraph();
  drawTree();
  drawTable();
  drawCode();
  remember();
}

/** Works out what follows from the selection; `counts`: what is counted has changed too. */
function refresh(counts = true) {
  if (counts) {
    addUp();
    functions();
    root = chosen.inverted ? fromLeaf() : fromTop();
  }
  search();
  if (counts) drawAbout();
  drawStrip();
  drawGraph();
  drawTree();
  drawTable();
  drawCode();
  remember();
}

/** The selection stands in the address, so that a link to a part of the page can be sent with it. */
function remember() {
  const words = new URLSearchParams();
  if (chosen.view !== firstView()) words.set("view", chosen.view);
  if (chosen.search) words.set("search", chosen.search);
  if (chosen.thread) words.set("thread", chosen.thread);
  if (chosen.state !== firstState()) words.set("state", chosen.state || "all");
  if (chosen.inverted) words.set("inverted", "1");
  if (chosen.event !== data.event) words.set("event", chosen.event);
  if (chosen.from > 0 || chosen.to < data.slices) words.set("time", `${chosen.from}-${chosen.to}`);
  if (chosen.zoom.length) words.set("zoom", chosen.zoom.join("."));
  const text = words.toString();
  try { history.replaceState(null, "", text ? "#" + text : location.pathname); } catch { /* Some readers forbid it. */ }
}

/** The view that a page opens with. */
const firstView = () => (data.compared ? "result" : "flame");

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const [from, to] = (words.get("time") || "").split("-").map(Number);
  chosen.event = data.events[Number(words.get("event") ?? data.event)] ? Number(words.get("event") ?? data.event) : data.event;
  chosen.thread = words.get("thread") || "";
  chosen.search = words.get("search") || "";
  const state = words.get("state");
  chosen.state = data.cellState && (state === "all" || state in STATES) ? state.replace("all", "") : firstState();
  chosen.inverted = words.has("inverted");
  chosen.from = from >= 0 && from < data.slices ? from : 0;
  chosen.to = to > chosen.from && to <= data.slices ? to : data.slices;
  chosen.zoom = (words.get("zoom") || "").split(".").filter(Boolean).map(Number);
  chosen.view = ["result", "flame", "tree", "functions", "code", "recording"].includes(words.get("view")) ? words.get("view") : firstView();
}

function controls() {
  const option = (value, text) => element("option", { value }, text);
  const costs = new Map(), name = ({ tid, comms: [last, ...earlier] }) => last + (tid === null ? "" : ` (${tid})`) + (earlier.length ? `, earlier ${earlier.join(", ")}` : "");
  for (let cell = 0; cell < data.cellNode.length; cell++) {
    const at = data.cellThread[cell];
    costs.set(at, (costs.get(at) || 0) + data.cellPeriod[cell]);
  }
  const byCost = [...costs].sort((a, b) => b[1] - a[1]).map(([at]) => at);
  const processes = new Map();
  for (const at of byCost) {
    const pid = data.threads[at].pid;
    if (!processes.has(pid)) processes.set(pid, []);
    processes.get(pid).push(at);
  }
  const choices = [option("", byCost.length > 1 ? `All ${byCost.length} threads` : "All threads")];
  for (const [pid, threads] of processes) {
    if (pid !== null && threads.length > 1) choices.push(option("p" + pid, `${data.threads[threads[0]].process || "process"} (process ${pid})`));
    for (const at of threads) choices.push(option("t" + at, (threads.length > 1 && pid !== null ? "   " : "") + name(data.threads[at])));
  }
  $("thread").replaceChildren(...choices);
  $("event").replaceChildren(...data.events.map((event, at) => option(at, event.name)));
  $("event").hidden = data.events.filter((event) => event.samples > 0).length < 2;
  $("state").hidden = !data.cellState;
  [$("thread").value, $("event").value, $("search").value, $("state").value] = [chosen.thread, chosen.event, chosen.search, chosen.state];
  const inversions = [$("inverted"), $("inverted-tree")];
  inversions.forEach((box) => { box.checked = chosen.inverted; });

  $("thread").addEventListener("change", (event) => { chosen.thread = event.target.value; refresh(); });
  $("event").addEventListener("change", (event) => { chosen.event = Number(event.target.value); refresh(); });
  $("state").addEventListener("change", (event) => { chosen.state = event.target.value; refresh(); });
  $("search").addEventListener("input", (event) => { chosen.search = event.target.value; refresh(false); });
  inversions.forEach((box) => box.addEventListener("change", (event) => {
    chosen.inverted = event.target.checked;
    inversions.forEach((other) => { other.checked = chosen.inverted; });
    [chosen.zoom, opened] = [[], null];
    refresh();
  }));
  document.querySelectorAll("nav [data-view]").forEach((tab) => tab.addEventListener("click", () => show(tab.dataset.view)));

  const graph = $("graph"), strip = $("strip");
  graph.addEventListener("mousemove", tip);
  graph.addEventListener("mouseleave", () => { hovered = null; $("tip").hidden = true; drawGraph(); });
  graph.addEventListener("click", (event) => { const place = placeAt(event); if (place) zoom(place.way.map((block) => block.fn)); });
  strip.addEventListener("pointerdown", (event) => { drag = sliceAt(event); strip.setPointerCapture(event.pointerId); });
  strip.addEventListener("pointermove", (event) => { if (drag !== null) { dragged(event); drawStrip(); } });
  strip.addEventListener("pointerup", (event) => {
    // A click without a way shows all again.
    if (drag === sliceAt(event)) drag = null;
    dragged(event);
    drag = null;
    refresh();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target === $("search");
    if (event.key === "/" && !isTyping) { event.preventDefault(); $("search").focus(); }
    if (event.key !== "Escape") return;
    if (isTyping && chosen.search) { $("search").value = chosen.search = ""; refresh(false); } else zoom(chosen.zoom.slice(0, -1));
  });
  $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => theme(event.matches ? "dark" : "light"));
  new ResizeObserver(() => { drawStrip(); drawGraph(); }).observe(document.body);
}

function theme(which) {
  document.documentElement.dataset.theme = which;
  if (data) { drawStrip(); drawGraph(); }
}

/** What was recorded, in words. */
function drawAbout() {
  const event = data.events[chosen.event], command = fact("cmdline");
  if (!event) return;
  if (data.compared) {
    const [a, b] = data.compared.runs;
    $("about").replaceChildren(`Mean cost of a run, by ${event.name}: ${costs(sums.wholeBefore, sums.whole)}. ${grouped(a)} runs of A and ${grouped(b)} of B were profiled.`);
    return;
  }
  const where = fact("hostname") ? ` on ${fact("hostname")}` : "";
  const when = data.started ? `, ${new Date(data.started).toLocaleString(undefined, { dateStyle: "long", timeStyle: "short" })}` : "";
  const long = data.span ? `, for ${time(data.span)}` : "";
  const times = [0, 0, 0];
  data.cellPeriod.forEach((period, cell) => { if (data.cellEvent[cell] === chosen.event) times[stateOf(cell)] += period; });
  const amounts = !event.clock ? `about ${grouped(event.period)} ${event.unit}`
    : times[1] + times[2] ? `${time(times[0])} running, ${time(times[1])} waiting for a CPU and ${time(times[2])} blocked` : `${time(event.period)} of CPU time`;
  const words = `Recorded${where}${when}${long}: ${grouped(event.samples)} ${event.samples === 1 ? "sample" : "samples"} of ${event.name}, ${amounts}.`;
  // The directory of the program that recorded tells the reader nothing.
  const shortened = command ? [element("br"), element("code", {}, command.replace(/^\S*\//, ""))] : [];
  $("about").replaceChildren(words, ...shortened);
}

async function start() {
  theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  data = prepare(await unpacked());
  recall();
  $("trust").textContent = `${data.trust.split("\n")[0]} Written by pmc ${data.version}.`.trim();
  const kinds = new Set(data.compared ? CHANGES.map((_, at) => FIRST_CHANGE + at) : data.kind);
  // Waiting is blue, so the kernel has another colour than without.
  if (data.cellState) { document.documentElement.dataset.waits = "yes"; WAITS.forEach((_, at) => kinds.add(KINDS.length + at)); }
  $("legend").replaceChildren(...(data.cellState ? ["running:"] : []),
    ...COLOURS.flatMap(([, words], at) => kinds.has(at) ? [element("span", {}, element("i", { style: `background:${colour(at)}` }), words)] : []));
  controls();
  drawRecording();
  const tab = (view) => document.querySelector(`[data-view="${view}"]`);
  tab("code").hidden = !data.code.length;
  [tab("result").hidden, tab("recording").hidden, $("thread").hidden] = [!data.compared, data.compared, data.compared].map(Boolean);
  // Interrupted before the profiled runs.
  ["flame", "tree", "functions"].forEach((view) => { tab(view).hidden = !data.events.length; });
  refresh();
  show(chosen.view);
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  $("about").textContent = typeof DecompressionStream === "undefined" ? "This browser is too old to unpack the data (DecompressionStream)." : `This page cannot be read: ${error}`;
});
