// The heat map: a canvas with a cell for each host.  A change of the size or of the theme draws all cells; a change of the
// chosen cell draws two of them, so that 10,000 cells follow the pointer.

import { load } from "./session.js";

const STEPS = 11;
const GAP = 1;
const SMALLEST = 5;
const LARGEST = 28;

/** Return the step of the scale, 0 to 9 for tenths, 10 for more than the capacity. */
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
  let columns = 1, cell = SMALLEST, chosen = -1, colours = [], ink = "";

  function draw() {
    colours = Array.from({ length: STEPS }, (_, at) => colour(element, at));
    ink = getComputedStyle(element).color;
    const width = Math.max(element.clientWidth, SMALLEST);
    cell = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(Math.sqrt((width * width * 0.35) / count))));
    columns = Math.max(1, Math.floor(width / cell));
    const height = Math.ceil(count / columns) * cell;
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.style.height = `${height}px`;
    pen.scale(scale, scale);
    for (let host = 0; host < count; host++) fill(host);
    mark(chosen);
  }

  const place = (host) => [(host % columns) * cell, Math.floor(host / columns) * cell];

  function fill(host) {
    pen.fillStyle = colours[steps[host]];
    pen.fillRect(...place(host), cell - GAP, cell - GAP);
  }

  function mark(host) {
    if (host < 0) return;
    const [x, y] = place(host);
    pen.strokeStyle = ink;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, cell - GAP - 2, cell - GAP - 2); // inside of the cell
  }

  function choose(host) {
    if (host < 0 || host >= count || host === chosen) return;
    if (chosen >= 0) fill(chosen);
    mark(host);
    chosen = host;
    const { used, capacity, names } = hosts;
    tip.textContent = `${names[host]}: ${used[host]} of ${capacity[host]} ${hosts.resource_class} used`;
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / cell);
    return column < columns ? Math.floor((event.clientY - box.top) / cell) * columns + column : -1;
  }

  function open() {
    if (chosen < 0) return;
    const link = document.createElement("a");
    link.href = element.dataset.link + encodeURIComponent(hosts.uuids[chosen]);
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
  document.addEventListener("themechange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

/** Return the colour of a step as the style sheet has it in the present theme. */
function colour(element, at) {
  const sample = document.createElement("span");
  sample.className = `heat-${at}`;
  element.append(sample);
  const found = getComputedStyle(sample).backgroundColor;
  sample.remove();
  return found;
}
