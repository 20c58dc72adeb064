// Events as they happen.  A request waits at the service for the next one, and brings the newest rows, of which those are
// added that are new; rows also come when nothing has happened for a while, and say anew how long ago each was.

import { load } from "./session.js";

const LIVE = "Live: events are added as they happen";
const PAUSE = 5000;
const SHORT = 1000;
const MOST = 500; // entries that a page keeps
const rest = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Wait until the reader looks at the page. */
async function seen() {
  while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
}

/** Add the entries that are new, and bring the ages of the others up to date; return how many were added. */
function merge(list, fresh) {
  const known = new Map([...list.children].map((entry) => [entry.dataset.key, entry]));
  let added = 0;
  if (![...fresh.children].some((entry) => known.has(entry.dataset.key))) list.replaceChildren(); // some were missed
  for (const entry of [...fresh.children].reverse()) {
    const present = known.get(entry.dataset.key);
    if (present?.dataset.events === entry.dataset.events) present.querySelector(".ago").replaceWith(entry.querySelector(".ago"));
    else if (present) present.replaceWith(entry); // its request has done more
    else {
      entry.classList.add("fresh");
      list.prepend(entry);
      added++;
    }
  }
  while (list.children.length > MOST) list.lastElementChild.remove();
  return added;
}

export function start(element) {
  const button = element.querySelector("[data-follow-button]");
  const status = element.querySelector("[data-follow-status]");
  let turn = 0; // of the loop that runs; any other one ends
  let added = 0;

  function stop(text) {
    turn++;
    button.setAttribute("aria-pressed", "false");
    status.textContent = text;
  }

  async function follow() {
    const mine = ++turn;
    const runs = () => mine === turn && element.isConnected;
    while (runs()) {
      await seen();
      const began = Date.now();
      const rows = element.querySelector("[data-rows]");
      const separator = element.dataset.follow.endsWith("?") ? "" : "&";
      const url = `${element.dataset.follow}${separator}position=${rows.dataset.position}`;
      const reply = await load(url).catch(() => null);
      if (!runs()) return;
      if (reply && !reply.ok) return stop(`Nothing more can be followed (${reply.status}). Load the page again.`);
      const page = reply && new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = page?.querySelector("[data-rows]");
      if (!runs()) return;
      const news = fresh && fresh.dataset.position !== rows.dataset.position;
      if (fresh) {
        const [list, others] = [rows, fresh].map((each) => each.querySelector(".timeline"));
        rows.dataset.position = fresh.dataset.position;
        if (list && others) added += merge(list, others);
        else if (others) rows.replaceChildren(...fresh.childNodes);
        status.textContent = added ? `Live: ${added} since you began to follow` : LIVE;
      }
      if (!fresh || (!news && Date.now() - began < SHORT)) await rest(PAUSE);
    }
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-pressed") === "true") return stop("New events are not followed.");
    button.setAttribute("aria-pressed", "true");
    status.textContent = LIVE;
    added = 0;
    follow();
  });
}
