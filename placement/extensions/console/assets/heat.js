// The heat map: a canvas that fills its container, with one cell per host.  A change of size or theme redraws all cells; a
// change of the selected cell redraws only two, so that 10,000 cells keep up with the pointer.

import { load } from "./session.js";

const STEPS = 11;
const GAPPED = 6; // pixels: minimum size of a cell with a gap after it
// Sizes are for a font of 15 pixels and scale with it.
const REM = parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
const TALLEST = 56 * REM; // pixels: maximum height of a cell
const TWO_LINES = 40 * REM; // pixels: minimum height of a cell that shows a level below the name
const LABELLED = { width: 58 * REM, height: 20 * REM }; // minimum size of a cell that shows a name
const MAX_GROUPS = 40; // groups drawn with a title

/** Return the step of the scale: 0 to 9 for tenths of the capacity, 10 for over-committed. */
const step = (used, capacity) => (used > capacity ? 10 : Math.min(Math.floor((10 * used) / Math.max(capacity, 1)), 9));

export async function start(element) {
  const reply = await load(element.dataset.heat, { accept: "application/json" });
  if (!reply.ok) return;
  const hosts = await reply.json();
  const count = hosts.names.length;
  if (!count) return;
  element.hidden = false;
  const canvas = element.querySelector("canvas");
  const pen = canvas.getContext("2d");
  const tip = element.querySelector("[data-tip]");
  const steps = hosts.used.map((used, host) => step(used, hosts.capacity[host]));
  // If there are more groups, all hosts are drawn as one group without a title.
  const groups = hosts.groups.length <= MAX_GROUPS ? hosts.groups : [["", count]];
  const title = groups.length > 1 ? 18 * REM : 0;
  const left = new AbortController();
  let places = [], cell = [1, 1], gap = 0, chosen = -1, columns = 1, colours = [], inks = [], ink = "", line = "";

  /** Choose the largest cells with which all groups fit into the height at full width. */
  function arrange(width) {
    const height = Math.max(140, Math.max(140, Math.min(width * 0.45, 460 * REM)) - groups.length * title);
    const rows = (per) => groups.reduce((sum, [, size]) => sum + Math.ceil(size / per), 0);
    columns = Math.max(1, Math.ceil(Math.sqrt((count * width) / (2.2 * Math.max(height, 40)))));
    while (columns < count && rows(columns) * (width / columns / 2.2) > height) columns++;
    columns = Math.min(columns, Math.max(...groups.map(([, size]) => size)));
    cell = [width / columns, Math.max(3, Math.min(TALLEST, height / rows(columns)))];
    gap = Math.min(...cell) >= GAPPED ? 1 : 0;
    places = [];
    let y = 0;
    for (const [, size] of groups) {
      y += title;
      for (let at = 0; at < size; at++) places.push([(at % columns) * cell[0], y + Math.floor(at / columns) * cell[1]]);
      y += Math.ceil(size / columns) * cell[1];
    }
    return Math.ceil(y);
  }

  function draw() {
    if (!element.isConnected) return left.abort(); // the page was left
    const samples = Array.from({ length: STEPS }, (_, at) => colour(element, at));
    [colours, inks] = [samples, samples.map(readable)];
    const style = getComputedStyle(element);
    ink = style.color;
    line = `${12 * REM}px ${style.fontFamily}`;
    const width = Math.max(element.clientWidth, 40);
    const height = arrange(width);
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    pen.scale(scale, scale);
    if (title) {
      let first = 0;
      for (const [name, size] of groups) {
        write(`${name} (${size})`, 0, places[first][1] - 5 * REM, width, ink);
        first += size;
      }
    }
    for (let host = 0; host < count; host++) fill(host);
    mark(chosen);
  }

  function write(text, x, y, width, fill) {
    pen.font = line;
    pen.fillStyle = fill;
    // Cut at the start: names of hosts differ at their ends.
    let shown = text;
    for (let cut = 1; cut < text.length && pen.measureText(shown).width > width; cut++) shown = `…${text.slice(cut)}`;
    pen.fillText(shown, x, y);
  }

  function fill(host) {
    const [x, y] = places[host], [width, height] = cell;
    pen.fillStyle = colours[steps[host]];
    // At whole pixels, so that the background does not show between cells without a gap.
    const [left, top] = [Math.round(x), Math.round(y)];
    pen.fillRect(left, top, Math.round(x + width) - left - gap, Math.round(y + height) - top - gap);
    if (hosts.disabled[host]) hatch(x, y, width - gap, height - gap);
    if (width >= LABELLED.width && height >= LABELLED.height) {
      const level = height >= TWO_LINES;
      write(hosts.names[host], x + 6 * REM, y + height / 2 + (level ? -3 : 4) * REM, width - 12 * REM, inks[steps[host]]);
      if (level) write(`${percent(host)} %`, x + 6 * REM, y + height / 2 + 13 * REM, width - 12 * REM, inks[steps[host]]);
    }
    if (hosts.over[host] && steps[host] < 10) frame(host, colours[10], 3);
  }

  const percent = (host) => Math.floor((100 * hosts.used[host]) / Math.max(hosts.capacity[host], 1));

  function hatch(x, y, width, height) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, width, height);
    pen.clip();
    pen.strokeStyle = ink;
    pen.globalAlpha = 0.25;
    pen.lineWidth = REM;
    pen.beginPath();
    for (let from = -height; from < width; from += 6 * REM) {
      pen.moveTo(x + from, y + height);
      pen.lineTo(x + from + height, y);
    }
    pen.stroke();
    pen.restore();
  }

  function frame(host, colour, thick) {
    const [x, y] = places[host];
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.strokeRect(x + thick / 2, y + thick / 2, cell[0] - gap - thick, cell[1] - gap - thick); // inside the cell
  }

  function mark(host) {
    if (host >= 0) frame(host, ink, 2);
  }

  function choose(host) {
    if (host < 0 || host >= count || host === chosen) return;
    if (chosen >= 0) fill(chosen);
    mark(host);
    chosen = host;
    const { used, capacity, names } = hosts;
    tip.textContent = `${names[host]}: ${used[host]} of ${capacity[host]} ${hosts.resource_class} used${hosts.disabled[host] ? ", disabled" : ""}${hosts.over[host] ? ", over-committed" : ""}`;
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return places.findIndex(([left, top]) => x >= left && x < left + cell[0] && y >= top && y < top + cell[1]);
  }

  function open() {
    if (chosen < 0) return;
    const link = document.createElement("a");
    link.href = element.dataset.link + encodeURIComponent(hosts.uuids[chosen]) + element.dataset.then;
    element.append(link);
    link.click();
    link.remove();
  }

  canvas.addEventListener("pointermove", (event) => choose(under(event)));
  canvas.addEventListener("click", (event) => {
    choose(under(event));
    open();
  });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -count, End: count };
    if (event.key in moves) {
      event.preventDefault();
      choose(Math.max(0, Math.min(count - 1, Math.max(chosen, 0) + moves[event.key])));
    } else if (event.key === "Enter") open();
  });
  new ResizeObserver(draw).observe(element);
  document.addEventListener("themechange", draw, left);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, left);
  draw();
}

/** Return black or white, whichever has more contrast with a colour. */
function readable(colour) {
  const [red, green, blue] = colour.match(/[\d.]+/g).map((part) => (part / 255) ** 2.2);
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) ** 2 > 0.05 * 1.05 ? "#000000" : "#ffffff";
}

/** Return the colour of a step from the style sheet, in the current theme. */
function colour(element, at) {
  const sample = document.createElement("span");
  sample.className = `heat-${at}`;
  element.append(sample);
  const background = getComputedStyle(sample).backgroundColor;
  sample.remove();
  return background;
}
