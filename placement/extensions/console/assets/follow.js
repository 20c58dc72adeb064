// Events as they happen.  Each request waits at the service for the next event, and returns the newest rows.  New rows are
// added to the page; after a timeout without an event, only the ages of the rows are updated.

import { load } from "./session.js";

const LIVE = "Live: events are added as they happen";
const PAUSE = 5000;
const SHORT = 1000;
const MAX_ENTRIES = 500; // kept on the page
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Wait until the page is visible. */
async function visible() {
  while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
}

/** Add new entries and update the ages of the others; return the number added. */
function merge(list, fresh) {
  const known = new Map([...list.children].map((entry) => [entry.dataset.key, entry]));
  let added = 0;
  if (![...fresh.children].some((entry) => known.has(entry.dataset.key))) list.replaceChildren(); // events in between were missed
  for (const entry of [...fresh.children].reverse()) {
    const present = known.get(entry.dataset.key);
    if (present?.dataset.events === entry.dataset.events) present.querySelector(".ago").replaceWith(entry.querySelector(".ago"));
    else if (present) present.replaceWith(entry); // the request has added events
    else {
      entry.classList.add("fresh");
      list.prepend(entry);
      added++;
    }
  }
  while (list.children.length > MAX_ENTRIES) list.lastElementChild.remove();
  return added;
}

export function start(element) {
  const button = element.querySelector("[data-follow-button]");
  const status = element.querySelector("[data-follow-status]");
  let turn = 0; // number of the running loop; older loops end
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
      await visible();
      const began = Date.now();
      const rows = element.querySelector("[data-rows]");
      const separator = element.dataset.follow.endsWith("?") ? "" : "&";
      const url = `${element.dataset.follow}${separator}position=${rows.dataset.position}`;
      const reply = await load(url).catch(() => null);
      if (!runs()) return;
      if (reply && !reply.ok) return stop(`Events can no longer be followed (${reply.status}). Reload the page.`);
      const page = reply && new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = page?.querySelector("[data-rows]");
      if (!runs()) return;
      const news = fresh && fresh.dataset.position !== rows.dataset.position;
      if (fresh) {
        const [list, others] = [rows, fresh].map((each) => each.querySelector(".timeline"));
        rows.dataset.position = fresh.dataset.position;
        if (list && others) added += merge(list, others);
        else if (others) rows.replaceChildren(...fresh.childNodes);
        status.textContent = added ? `Live: ${added} added since you started following` : LIVE;
      }
      if (!fresh || (!news && Date.now() - began < SHORT)) await sleep(PAUSE);
    }
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-pressed") === "true") return stop("Not following new events.");
    button.setAttribute("aria-pressed", "true");
    status.textContent = LIVE;
    added = 0;
    follow();
  });
}
